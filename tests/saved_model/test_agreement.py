"""Every committed SavedModel gives what TensorFlow gave."""

from __future__ import annotations

import pytest

import penstock as ps
from support.saved_models import NAMES, assert_same, made, recorded


@pytest.mark.parametrize("name", NAMES)
def test_calls_give_what_tensorflow_gave(name: str) -> None:
    """All calls, in TensorFlow's order: structures and types are the same, numbers to 1e-5."""
    model = recorded(name)

    with ps.saved_model.load(model.path, model.tags) as loaded:
        for number, call in enumerate(model.calls):
            assert_same(made(loaded, call), call.result, f"call {number}")
