"""Python's operators between tensors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from builder.asking import run
from penstock.builder import Graph, Tensor, constant, placeholder
from penstock.errors import InvalidArgumentError


@pytest.mark.parametrize(
    ("meaning", "expected"),
    [
        (lambda x: x + 1, 8),
        (lambda x: 1 - x, -6),
        (lambda x: x * x, 49),
        (lambda x: x / 2, 3.5),
        (lambda x: 14 / x, 2.0),
        (lambda x: x // 2, 3),
        (lambda x: -x // 2, -4),
        (lambda x: -x % 4, 1),
        (lambda x: 10 % x, 3),
        (lambda x: x**2, 49),
        (lambda x: 2**x, 128),
        (lambda x: abs(-x), 7),
        (lambda x: x < 8, True),
        (lambda x: x <= 6, False),
        (lambda x: x > 7, False),
        (lambda x: x >= 7, True),
        (lambda x: x > 1, True),
        (lambda x: x & 3, 3),
        (lambda x: 8 | x, 15),
        (lambda x: x ^ 1, 6),
        (lambda x: ~x, -8),
        (lambda x: (x > 1) & (x > 9), False),
        (lambda x: (x > 1) | (x > 9), True),
        (lambda x: (x > 1) ^ (x > 2), False),
        (lambda x: ~(x > 1), False),
        (lambda x: np.array([1, 2], np.int32) + x, [8, 9]),
    ],
)
def test_operators_mean_what_they_mean_in_python(
    graph: Graph, meaning: Callable[[Any], Tensor], expected: Any
) -> None:
    """Each operator makes a node that computes Python's result."""
    x = placeholder("int32", ())

    assert np.array_equal(run(graph, meaning(x), {x: 7}), expected)


_GRID = np.arange(24, dtype=np.int32).reshape(2, 3, 4)


@pytest.mark.parametrize(
    "key",
    [
        0,
        -1,
        (1, 2, 3),
        slice(None, None, -1),
        (..., 1),
        (slice(None), None, slice(1, None), slice(None, None, 2)),
        (..., slice(-2, None), 0),
        (np.int64(1), ...),
        (),
    ],
    ids=str,
)
def test_indexing_is_numpys(graph: Graph, key: Any) -> None:
    """Integers, slices, Ellipsis and None cut what they cut in numpy."""
    assert np.array_equal(run(graph, constant(_GRID)[key]), _GRID[key])


def test_tensors_may_be_indices_and_bounds(graph: Graph) -> None:
    """A scalar tensor can stand wherever an integer can."""
    i, grid = placeholder("int32", ()), constant(_GRID)

    first, second = run(graph, [grid[i, : i + 1], grid[i:, ..., -1]], {i: 1})

    assert np.array_equal(first, _GRID[1, :2])
    assert np.array_equal(second, _GRID[1:, ..., -1])


@pytest.mark.parametrize("key", [True, 1.5, "a", [0, 1], slice(0.5)])
def test_what_is_no_index_is_refused(key: Any) -> None:
    """Masks, lists and floats would be guesses."""
    with pytest.raises(TypeError, match="no index"):
        constant(_GRID)[key]


def test_one_ellipsis_is_enough() -> None:
    """Two would not say how much each stands for."""
    with pytest.raises(InvalidArgumentError, match="more than one Ellipsis"):
        constant(_GRID)[..., ...]


def test_equality_is_identity(graph: Graph) -> None:
    """``==`` asks for the same tensor and answers at once, so tensors can be keys."""
    x = constant(1)

    assert x == x.op.outputs[0]
    assert x != constant(1)
    assert {x: "found"}[graph.tensor("Const:0")] == "found"


def test_a_tensor_has_no_truth_value() -> None:
    """``if x:`` is a mistake that points to cond."""
    with pytest.raises(TypeError, match="cond"):
        bool(constant(1) > 0)


def test_a_tensor_cannot_be_iterated_over() -> None:
    """A loop over a tensor would never end; it is refused instead."""
    with pytest.raises(TypeError, match="cannot be iterated"):
        list(constant([1, 2]))


def test_strings_add_up(graph: Graph) -> None:
    """``+`` joins text."""
    assert run(graph, constant("a") + "b") == b"ab"
