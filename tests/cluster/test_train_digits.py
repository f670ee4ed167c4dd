"""The example of training on several tasks learns, in each of its ways."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

pytest.importorskip("grpc")

pytestmark = pytest.mark.slow

PROGRAM = Path(__file__).parents[2] / "examples/train_digits.py"


@pytest.mark.parametrize(
    "way",
    [
        # Gradients that come late spoil the first steps, now more and now less.
        "async --workers 2 --parameter-tasks 2 --steps 200",
        "sync --workers 3 --backup-workers 1 --steps 40",
        "collectives --workers 3 --steps 40",
    ],
)
def test_digits_are_learnt(way: str) -> None:
    """Most of those that nobody learnt are read; workers that add up gradients agree."""
    found = runpy.run_path(str(PROGRAM))["main"](way.split())
    assert min(found) > 0.7, found
    if "collectives" in way:
        assert len(set(found)) == 1
