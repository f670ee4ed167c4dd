"""The op computes polynomials."""

from __future__ import annotations

import numpy as np

import penstock as ps


def test_polynomial_of_each_element() -> None:
    """1 + 2x + 3x² at 0, 1 and 2."""
    graph = ps.Graph()
    with graph.as_default():
        x = ps.ops.constant(np.float32([0, 1, 2]))
        y = ps.ops.polynomial(x, coefficients=[1.0, 2.0, 3.0])
    with ps.Session(graph) as session:
        assert session.run(y).tolist() == [1, 6, 17]
