"""Mirror images around arrays are numpy's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import penstock as ps

SHAPES = [
    ((5,), [[3, 2]]), ((4, 5), [[1, 2], [0, 4]]), ((3, 4, 2), [[2, 1], [1, 3], [1, 0]]),
    ((1, 60, 50, 3), [[0, 0], [8, 5], [0, 7], [0, 0]]), ((70, 90, 3), [[2, 1], [1, 3], [1, 2]]),
    ((2, 3), [[0, 0], [0, 0]]),
]  # fmt: skip


@pytest.mark.parametrize(("shape", "margins"), SHAPES)
@pytest.mark.parametrize("mode", ["REFLECT", "SYMMETRIC"])
@pytest.mark.parametrize("dtype", ["float32", "uint8", "complex64", "string"])
def test_margins_are_mirror_images(shape: Any, margins: Any, mode: str, dtype: str) -> None:
    """Along each axis, corners included, for numbers of any size and texts."""
    values = np.random.default_rng(7).integers(0, 200, shape)
    values = values.astype("S").astype(object) if dtype == "string" else values.astype(dtype)
    graph = ps.Graph()
    with graph.as_default():
        x = ps.placeholder(dtype, None, name="x")
        ps.ops.mirror_pad(x, np.array(margins, np.int32), mode=mode, name="y")
    with ps.Session(graph) as session:
        got = session.run("y:0", {"x:0": values})
    np.testing.assert_array_equal(got, np.pad(values, margins, mode.lower()))
