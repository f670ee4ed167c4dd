"""What tests of the library in C have in common."""

from __future__ import annotations

import pytest

from support.convolutions import Watched, use
from support.shared_library import KINDS


@pytest.fixture(params=KINDS)
def watched(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Watched:
    """Each kind of vectors that this processor has, in turn."""
    chosen = Watched(request.param)
    use(chosen, monkeypatch)
    return chosen
