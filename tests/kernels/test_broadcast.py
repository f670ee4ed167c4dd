"""Broadcasting of shapes and arrays, against answers recorded from TensorFlow."""

from __future__ import annotations

import numpy as np
import pytest

from support.ops import run_op


@pytest.mark.parametrize(
    ("given", "sizes"),
    [((2,), (3, 2)), ((), (0,)), ((1, 2), (0, 2)), ((1, 2), (5, 1, 2)), ((), ()), ((2,), (2,))],
)
def test_broadcast_to(given: tuple[int, ...], sizes: tuple[int, ...]) -> None:
    """New dimensions and those of size one are repeated."""
    value = np.ones(given, np.float32)[()]

    result = run_op("BroadcastTo", value, np.array(sizes, np.int32))
    assert np.shape(result) == sizes
    assert result.dtype == np.float32


def test_broadcast_strings() -> None:
    """A scalar string is repeated with the zeros at its end."""
    assert run_op("BroadcastTo", b"a\0", np.int32([2])).tolist() == [b"a\0", b"a\0"]


@pytest.mark.parametrize(
    ("given", "sizes", "message"),
    [
        ((1, 2), [2, 3], r"Incompatible shapes: \[1,2\] vs. \[2,3\]"),
        ((1, 2), [2], r"Rank of input \(2\) must be no greater than rank of output shape \(1\)"),
        ((1, 2), [2, -1], "Dimension -1 must be >= 0"),
        ((2,), [[1]], r"shape must be a vector of \{int32,int64\}, got shape \[1,1\]"),
        ((0,), [3, 1], r"Incompatible shapes: \[0\] vs. \[3,1\]"),
    ],
)
def test_broadcast_to_refuses(given: tuple[int, ...], sizes: list[int], message: str) -> None:
    """A shape that cannot be stretched to the target is an error that names both."""
    with pytest.raises(ValueError, match=message):
        run_op("BroadcastTo", np.ones(given, np.float32), np.array(sizes, np.int64))


@pytest.mark.parametrize(
    ("a", "b", "common", "reduce_a", "reduce_b"),
    [
        ([2, 1, 3], [4, 1], [2, 4, 3], [1], [0, 2]),
        ([], [], [], [], []),
        ([2, 3], [2, 3], [2, 3], [], []),
        ([1], [1], [1], [], []),
        ([2, 1], [1, 2], [2, 2], [1], [0]),
        ([2, 3], [], [2, 3], [], [0, 1]),
        ([1, 1], [1], [1, 1], [0, 1], [0, 1]),
        ([0, 1], [1, 3], [0, 3], [1], [0]),
        ([1, 2, 1, 1], [1, 1], [1, 2, 1, 1], [0, 2, 3], [0, 1, 2, 3]),
    ],
)
@pytest.mark.parametrize("kind", [np.int32, np.int64])
def test_common_shape_and_stretched_dimensions(
    a: list[int],
    b: list[int],
    common: list[int],
    reduce_a: list[int],
    reduce_b: list[int],
    kind: type,
) -> None:
    """Two shapes have a common one, and gradients are summed where they were stretched."""
    s0, s1 = np.array(a, kind), np.array(b, kind)

    shape = run_op("BroadcastArgs", s0, s1)
    assert (shape.tolist(), shape.dtype) == (common, kind)
    reductions = run_op("BroadcastGradientArgs", s0, s1)
    assert [r.tolist() for r in reductions] == [reduce_a, reduce_b]
    assert [r.dtype for r in reductions] == [kind, kind]


@pytest.mark.parametrize("op", ["BroadcastArgs", "BroadcastGradientArgs"])
def test_shapes_without_a_common_one(op: str) -> None:
    """Shapes that do not fit are named."""
    with pytest.raises(ValueError, match=r"Incompatible shapes: \[2,3\] vs. \[4\]"):
        run_op(op, np.int32([2, 3]), np.int32([4]))
