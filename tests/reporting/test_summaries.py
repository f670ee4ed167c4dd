"""Summaries of values are what numpy computes of the same values."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import penstock as ps
from penstock.reporting.summaries import summary_of
from reporting.graphs import FEEDS, looping

ARRAYS = {
    "normal": np.random.default_rng(7).standard_normal((20, 30)).astype(np.float32),
    "integers": np.arange(100, dtype=np.int64).reshape(10, 10),
    "huge": np.float64([-1.7e308, 0, 1.7e308]),
    "odd": np.float32([1, np.nan, np.inf, 3, -np.inf, np.nan]),
    "flags": np.array([True, False, True]),
}


@pytest.mark.parametrize("name", list(ARRAYS))
def test_numbers(name: str) -> None:
    """Smallest, largest, mean; what is no number is counted; all others are in the histogram."""
    array = ARRAYS[name]
    found = summary_of("n", 0, array)
    numbers: Any = array.astype(np.float64)
    finite = numbers[np.isfinite(numbers)]
    assert (found.least, found.most) == (finite.min(), finite.max())
    assert found.mean == pytest.approx(finite.mean())
    assert found.nans == np.isnan(numbers).sum()
    assert found.infinite == np.isinf(numbers).sum()
    assert sum(found.histogram) == finite.size
    if name in ("normal", "integers"):
        expected, _ = np.histogram(finite, 16)
        # A number at a border may fall to either side.
        assert np.abs(np.cumsum(found.histogram) - np.cumsum(expected)).max() <= 1


def test_what_is_no_number() -> None:
    """Strings are counted; nothing is said of an empty tensor, or of NaNs alone."""
    assert summary_of("n", 0, np.array([b"a", b"b"], object)).size == 2
    assert summary_of("n", 0, np.float32([])).least is None
    assert summary_of("n", 0, np.float32([np.nan])).nans == 1


def test_each_iteration_has_one() -> None:
    """Of a loop that doubles, each iteration's largest is twice the one before."""
    found = ps.report(looping(), "out:0", FEEDS, values=True).summaries
    assert found is not None
    most = [one.most for one in found if one.name == "model/loop/mul"]
    assert most == [8, 16, 32, 64, 128]
    assert ps.report(looping(), "out:0", FEEDS).summaries is None


def test_dead_outputs_have_none() -> None:
    """Of a Switch, only the side that is taken has a value."""
    graph = ps.Graph()
    with graph.as_default():
        x = ps.placeholder(ps.dtypes.float32, [4], name="x")
        _, yes = ps.ops.Switch(data=x, pred=ps.placeholder(ps.dtypes.bool_, [], name="p"), name="s")
        ps.ops.neg(yes, name="out")
    found = ps.report(graph, "out:0", {**FEEDS, "p:0": True}, values=True).summaries
    assert found is not None
    assert {one.slot for one in found if one.name == "s"} == {1}
