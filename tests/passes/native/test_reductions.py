"""The largest and the smallest elements of rows of any length, by programs in C."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import penstock as ps
from support.native import ALL, JIT, watched

NATIVE = ps.Config(graph_options=JIT, limits=ALL, check_graphs=True)


def extremes() -> ps.Graph:
    """Of each row its largest element, its smallest one, and where the largest one is."""
    graph = ps.Graph()
    with graph.as_default():
        x = ps.placeholder("float32", [None, None], name="x")
        ps.ops.max(x, np.int32(-1), name="most")
        ps.ops.min(x, np.int32(-1), name="least")
        ps.ops.arg_max(x, np.int32(-1), name="place")
    return graph


@pytest.mark.parametrize("size", [1, 31, 32, 33, 63, 65, 500, 1001])
def test_rows_of_any_length(size: int) -> None:
    """Wherever the extreme is: in either half, or in both; of equals the first."""
    rng = np.random.default_rng(size)
    x = rng.standard_normal((12, size), np.float32)
    x[:4] = np.round(x[:4])
    x[4, 0] = x[5, -1] = x[6, size // 2] = 9
    x[7, 0] = x[8, -1] = x[9, size // 2] = -9
    x[10], x[11, -1] = -np.inf, np.inf
    names = ["most:0", "least:0", "place:0"]
    with watched() as given, ps.Session(extremes(), config=NATIVE) as session:
        found: list[Any] = session.run(names, {"x:0": x})
    assert given
    assert None not in given
    for got, want in zip(found, (x.max(1), x.min(1), x.argmax(1)), strict=True):
        np.testing.assert_array_equal(got, want)


def test_nan_is_seen_wherever_it_is() -> None:
    """It is the largest and the smallest of its row."""
    x = np.zeros((70, 70), np.float32)
    np.fill_diagonal(x, np.nan)
    with watched() as given, ps.Session(extremes(), config=NATIVE) as session:
        most, least = session.run(["most:0", "least:0"], {"x:0": x})
    assert given
    assert np.isnan(most).all()
    assert np.isnan(least).all()
