"""What a signature is in its model's session."""

from __future__ import annotations

import numpy as np
import pytest

import penstock as ps
from penstock.errors import InvalidArgumentError
from support.saved_models import FOLDER, assert_same, recorded


@pytest.mark.parametrize("name", ["keras_two_inputs", "simple_save", "several_signatures"])
def test_the_session_gives_tensorflows_answers(name: str) -> None:
    """Fetches and feeds of the session stand for outputs and inputs, in their order."""
    calls = [call for call in recorded(name).calls if call.signature]
    assert calls
    with ps.load_model(FOLDER / name / "model") as model:
        for call in calls:
            signature = model.signatures[call.signature]
            found = model.session.run(*signature.request(**call.kwargs))
            if call.result:  # else the node alone was run
                assert_same(dict(zip(signature.outputs, found, strict=True)), call.result)


def test_inputs_are_checked() -> None:
    """As in a call."""
    folder = FOLDER / "keras_two_inputs" / "model"
    with ps.load_model(folder) as model, pytest.raises(InvalidArgumentError, match="wants the inp"):
        model.signatures["serve"].request(left=np.ones((1, 4), np.float32))
