"""What two checkpoints do not have in common."""

from __future__ import annotations

from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

import penstock as ps
from penstock.checkpoint import Difference, Kind


def test_differences_are_told_apart(tmp_path: Path) -> None:
    """Names, types, shapes and values; of numbers how many, and how far they are apart."""
    first = {
        "same": [1.0, np.nan, np.inf], "gone": 1, "type": np.float32(1), "shape": [1, 2],
        "near": [1.0, 2.0, np.inf], "text": ["a", "b"], "small": np.uint8([3, 200]),
        "odd": np.array([1], ml_dtypes.bfloat16), "whole": np.int64([2**62]),
    }  # fmt: skip
    second = {
        "same": [1.0, np.nan, np.inf], "new": 1, "type": np.float64(1), "shape": [[1, 2]],
        "near": [1.5, 2.0, -np.inf], "text": ["a", "c"], "small": np.uint8([200, 3]),
        "odd": np.array([3], ml_dtypes.bfloat16), "whole": np.int64([2**62 + 1]),
    }  # fmt: skip
    one = ps.checkpoint.load(ps.checkpoint.save(tmp_path / "one", first))
    two = ps.checkpoint.load(ps.checkpoint.save(tmp_path / "two", second))

    assert list(ps.checkpoint.diff(one, one)) == []
    assert list(ps.checkpoint.diff(one, two)) == [
        Difference("gone", Kind.ONLY_FIRST),
        Difference("near", Kind.VALUE, 2, 0.5),
        Difference("new", Kind.ONLY_SECOND),
        Difference("odd", Kind.VALUE, 1, 2.0),
        Difference("shape", Kind.SHAPE),
        Difference("small", Kind.VALUE, 2, 197.0),
        Difference("text", Kind.VALUE, 1),
        Difference("type", Kind.DTYPE),
        Difference("whole", Kind.VALUE, 1, 1.0),
    ]


@pytest.mark.parametrize(("tolerance", "count"), [(0.0, 2), (0.1, 1), (0.5, 0)])
def test_numbers_may_differ_a_little(tmp_path: Path, tolerance: float, count: int) -> None:
    """As far apart as is allowed is not different."""
    one = ps.checkpoint.load(ps.checkpoint.save(tmp_path / "one", {"a": [1.0, 2.0, 3.0]}))
    two = ps.checkpoint.load(ps.checkpoint.save(tmp_path / "two", {"a": [1.0, 2.0625, 3.5]}))

    assert sum(found.count for found in ps.checkpoint.diff(one, two, tolerance)) == count
