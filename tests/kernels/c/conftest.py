"""What tests of the library in C have in common."""

from __future__ import annotations

import numpy as np
import pytest

from support import convolutions
from support.convolutions import Watched, use
from support.shared_library import KINDS


@pytest.fixture(params=KINDS)
def watched(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Watched:
    """Each kind of vectors that this processor has, in turn."""
    chosen = Watched(request.param)
    use(chosen, monkeypatch)
    return chosen


@pytest.fixture(autouse=True)
def _the_same_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever tests came before, and in which process."""
    monkeypatch.setattr(convolutions, "RNG", np.random.default_rng(11))
