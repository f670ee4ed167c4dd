"""A search by beams ends when it must; what it finds is in ``cases_src/beams.py``."""

from __future__ import annotations

import numpy as np
import pytest

from penstock import Config, RunOptions, Session, Tier, errors
from support.sketch import sketch


@pytest.mark.parametrize("tier", list(Tier))
def test_a_search_of_everything_can_be_ended(tier: Tier) -> None:
    """A beam that nothing falls out of doubles in each frame, but a deadline counts."""
    graph = sketch("""
        x = Placeholder() dtype=float32
        n = Placeholder() dtype=int32
        found = CTCBeamSearchDecoder(x, n) beam_width=1000000 top_paths=1
    """)
    feeds = {"x:0": np.zeros((50, 1, 4), np.float32), "n:0": np.array([50], np.int32)}
    options = RunOptions(timeout_in_ms=50)
    session = Session(graph, config=Config(tier=tier))
    with session, pytest.raises(errors.DeadlineExceededError):
        session.run("found:0", feeds, options)
