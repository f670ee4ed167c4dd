"""A search for a part of an image ends when it must; its results are in ``samplers.py``."""

from __future__ import annotations

import pytest

from penstock import Config, RunOptions, Session, Tier, errors
from support.sketch import sketch


@pytest.mark.parametrize("tier", list(Tier))
@pytest.mark.parametrize(
    "node",
    [
        "StatelessSampleDistortedBoundingBox(size, boxes, covered, seed) T=int32 Tseed=int32",
        "SampleDistortedBoundingBoxV2(size, boxes, covered) T=int32",
    ],
)
def test_a_search_for_what_is_not_there_can_be_ended(tier: Tier, node: str) -> None:
    """No part of an image without pixels will do; a deadline counts, with one thread too."""
    graph = sketch(f"""
        size = Const() value=[0, 0, 3]
        boxes = Const() value=[[[0.0, 0.0, 1.0, 1.0]]]
        covered = Const() value=0.5
        seed = Const() value=[1, 2]
        found = {node} max_attempts=2147483647
    """)
    config = Config(tier=tier, inter_op_parallelism_threads=1)
    with Session(graph, config=config) as session, pytest.raises(errors.DeadlineExceededError):
        session.run("found:0", options=RunOptions(timeout_in_ms=50))
