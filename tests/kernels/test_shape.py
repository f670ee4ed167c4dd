"""Ops that ask for a shape or change it, against answers recorded from TensorFlow."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from penstock.core import dtypes
from penstock.errors import InvalidArgumentError
from support.ops import run_op

MATRIX = np.arange(6, dtype=np.float32).reshape(2, 3)


def ints(*values: int) -> Any:
    """A vector of int32."""
    return np.array(values, np.int32)


@pytest.mark.parametrize("out_type", [dtypes.int32, dtypes.int64])
def test_sizes_come_in_the_type_that_is_asked_for(out_type: dtypes.DType) -> None:
    """Shape, ShapeN and Size have an output type; Rank is always int32."""
    shape = run_op("Shape", MATRIX, out_type=out_type)
    size = run_op("Size", MATRIX, out_type=out_type)

    assert (shape.dtype, shape.tolist()) == (out_type.numpy, [2, 3])
    assert (size.dtype, size) == (out_type.numpy, 6)
    assert [s.tolist() for s in run_op("ShapeN", [MATRIX, MATRIX[0]])] == [[2, 3], [3]]
    assert run_op("Rank", MATRIX).dtype == np.int32


def test_scalars_and_strings_have_shapes_too() -> None:
    """At rank 0 a string is bytes, and yet has a shape, a size and a rank."""
    assert run_op("Shape", b"text").shape == (0,)
    assert run_op("Size", b"text") == 1
    assert run_op("Rank", b"text") == 0
    assert run_op("Reshape", b"text", ints(1, 1)).tolist() == [[b"text"]]
    assert run_op("Reshape", np.array([b"text"], object), ints()) == b"text"


@pytest.mark.parametrize(
    ("shape", "sizes", "expected"),
    [
        ((2, 3), [3, 2], (3, 2)),
        ((2, 3), [-1], (6,)),
        ((2, 3), [1, -1, 2], (1, 3, 2)),
        ((1,), [], ()),
        ((2, 3), 6, (6,)),
        ((0, 3), [-1, 3], (0, 3)),
        ((0, 3), [-1, 0], (3, 0)),
        ((0, 3), [0, -1], (0, 3)),
        ((0, 3, 4), [-1, 0, 5], (2, 0, 5)),
        ((0,), [-1, 0], (1, 0)),
        ((2, 0, 3), [0, 4, -1], (0, 4, 1)),
    ],
)
def test_reshape(shape: Any, sizes: Any, expected: tuple[int, ...]) -> None:
    """-1 is the rest; without elements, what is left when the zeros are left out."""
    assert np.shape(run_op("Reshape", np.zeros(shape), np.array(sizes, np.int32))) == expected


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ([4, 4], "is a tensor with 6 values, but the requested shape has 16"),
        ([-1, 4], "but the requested shape requires a multiple of 4"),
        ([-1, 0], "but the requested shape has 0"),
        ([-1, -1], "Only one input size may be -1, not both 0 and 1"),
        ([-2, 3], "Size 0 must be non-negative, not -2"),
        ([[6]], r"sizes input must be 1-D, not \[1,1\]"),
        ([2**40, 2**40], "has too many elements"),
    ],
)
def test_reshape_refuses(sizes: Any, message: str) -> None:
    """What does not fit is said in TensorFlow's words."""
    with pytest.raises(InvalidArgumentError, match=message):
        run_op("Reshape", MATRIX, np.array(sizes, np.int64))


@pytest.mark.parametrize(
    ("axis", "expected"), [(0, (1, 2, 3)), (1, (2, 1, 3)), (-1, (2, 3, 1)), (-3, (1, 2, 3))]
)
def test_expand_dims(axis: int, expected: tuple[int, ...]) -> None:
    """The axis is the new dimension's place in the result, as a scalar or in an array."""
    assert run_op("ExpandDims", MATRIX, np.int32(axis)).shape == expected
    assert run_op("ExpandDims", MATRIX, np.array([[axis]])).shape == expected


@pytest.mark.parametrize("axis", [3, -4])
def test_expand_dims_refuses_axes_outside(axis: int) -> None:
    """There is no dimension to stand before or behind."""
    with pytest.raises(InvalidArgumentError, match=f"expand dim index {axis} for tensor with 2"):
        run_op("ExpandDims", MATRIX, np.int32(axis))


@pytest.mark.parametrize(
    ("dims", "expected"), [((), (2,)), ((0,), (2, 1)), ((-1,), (1, 2)), ((0, -3, 0), (2, 1))]
)
def test_squeeze(dims: tuple[int, ...], expected: tuple[int, ...]) -> None:
    """All dimensions of size 1, or the ones listed; twice the same one is no error."""
    assert run_op("Squeeze", np.zeros((1, 2, 1)), squeeze_dims=dims).shape == expected


@pytest.mark.parametrize(
    ("dims", "message"),
    [
        ((1,), r"Can not squeeze dim\[1\], expected a dimension of 1, got 2"),
        ((5,), "Tried to squeeze dim index 5 for tensor with 3 dimensions"),
    ],
)
def test_squeeze_refuses(dims: tuple[int, ...], message: str) -> None:
    """A larger dimension, and one that is not there."""
    with pytest.raises(InvalidArgumentError, match=message):
        run_op("Squeeze", np.zeros((1, 2, 1)), squeeze_dims=dims)


def test_transpose_makes_views() -> None:
    """Negative axes count from the end, and no element is moved."""
    turned = run_op("Transpose", MATRIX, ints(-1, 0))

    np.testing.assert_array_equal(turned, [[0, 3], [1, 4], [2, 5]])
    assert np.shares_memory(turned, MATRIX)
    assert run_op("Transpose", np.float32(2), ints()) == 2


def test_conjugate_transpose_iterations_the_sign() -> None:
    """Imaginary parts change their sign, real numbers do not change."""
    values = np.array([[1 + 2j, 3j]], np.complex64)

    np.testing.assert_array_equal(
        run_op("ConjugateTranspose", values, ints(1, 0)), [[1 - 2j], [-3j]]
    )
    np.testing.assert_array_equal(run_op("ConjugateTranspose", MATRIX, ints(1, 0)), MATRIX.T)


@pytest.mark.parametrize(
    ("perm", "message"),
    [
        ([0, 0], r"1 is missing from \{0,0\}"),
        ([0], "transpose expects a vector of size 2"),
        ([], "transpose expects a vector of size 2"),
        ([0, 2], r"2 is out of range \[0 .. 2\)"),
        (0, "perm must be rank 1"),
    ],
)
def test_transpose_refuses(perm: Any, message: str) -> None:
    """Only a permutation of all dimensions will do."""
    with pytest.raises(InvalidArgumentError, match=message):
        run_op("Transpose", MATRIX, np.array(perm, np.int32))


@pytest.mark.parametrize(
    ("values", "to", "expected"),
    [
        (np.float32(1), dtypes.uint16, np.array([0, 16256], np.uint16)),
        (np.array([1], np.float32), dtypes.int32, np.array([1065353216], np.int32)),
        (np.array([[0, 0, 128, 63]], np.uint8), dtypes.float32, np.array([1], np.float32)),
        (np.array([0, 16256], np.uint16), dtypes.float32, np.float32(1)),
        (np.zeros((0,), np.float32), dtypes.uint8, np.zeros((0, 4), np.uint8)),
        (np.zeros((0, 2), np.float32), dtypes.float64, np.zeros((0,))),
        (np.array([5], np.int8), dtypes.qint8, np.array([(5,)], dtypes.qint8.numpy)),
    ],
)
def test_bitcast(values: Any, to: dtypes.DType, expected: Any) -> None:
    """A smaller type gets a dimension more, a larger one loses the last."""
    result = run_op("Bitcast", values, type=to)

    assert (result.dtype, np.shape(result)) == (expected.dtype, np.shape(expected))
    np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize("values", [np.float32(1), np.zeros((3, 0), np.float32)])
def test_bitcast_needs_a_fitting_last_dimension(values: Any) -> None:
    """Two floats make a double, so the last dimension must be 2."""
    with pytest.raises(InvalidArgumentError, match="Cannot bitcast from"):
        run_op("Bitcast", values, type=dtypes.float64)
