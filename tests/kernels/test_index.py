"""Finding places in arrays, against answers recorded from TensorFlow."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from penstock.errors import InvalidArgumentError
from support.ops import run_op

MATRIX = np.arange(6, dtype=np.float32).reshape(2, 3)


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        (MATRIX, [[0, 1], [0, 2], [1, 0], [1, 1], [1, 2]]),
        (np.array([True, False]), [[0]]),
        (np.array([np.nan, 0, -0.0, 1]), [[0], [3]]),
        (np.array([0j, 1j]), [[1]]),
        (np.array([0, 2], ml_dtypes.bfloat16), [[1]]),
    ],
)
def test_where(condition: Any, expected: list[list[int]]) -> None:
    """Everything but zeros of either sign, in the order of the elements."""
    result = run_op("Where", condition)

    assert (result.dtype, result.tolist()) == (np.int64, expected)


def test_where_of_nothing_and_of_scalars() -> None:
    """The second dimension is the rank, even without elements; a scalar has no places."""
    assert run_op("Where", np.zeros((2, 0))).shape == (0, 2)
    with pytest.raises(InvalidArgumentError, match="Unhandled input dimensions: 0"):
        run_op("Where", np.bool_(1))


@pytest.mark.parametrize(
    ("indices", "dims", "expected"),
    [
        ([22, 41, 37], [7, 6], [[3, 6, 6], [4, 5, 1]]),
        (22, [7, 6], [3, 4]),
        ([-1, -43], [7, 6], [[0, 0], [-1, -1]]),
        ([0], [], np.zeros((0, 1)).tolist()),
    ],
)
def test_unravel_index(indices: Any, dims: list[int], expected: Any) -> None:
    """Negative indices are let through and divided as C divides."""
    result = run_op("UnravelIndex", np.array(indices, np.int32), np.array(dims, np.int32))

    assert (result.dtype, result.tolist()) == (np.int32, expected)


@pytest.mark.parametrize(
    ("indices", "dims", "message"),
    [
        ([42], [7, 6], "index is out of bound as with dims"),
        ([1], [0, 6], "dims contains zero at index 0"),
        ([1], [-7, 6], "Input dims cannot be negative. Got dim = -7 at index 0"),
        ([[1]], [7, 6], r'scalar or vector, got "\[1,1\]"'),
        ([1], 6, "can only be 1-D"),
        ([], [7, 6], "received empty tensor indices"),
        ([0], [2**16, 2**16], r"causing integer overflow: \(65536 65536\)"),
    ],
)
def test_unravel_index_refuses(indices: Any, dims: Any, message: str) -> None:
    """Dimensions must be positive and their product must fit the type."""
    with pytest.raises(InvalidArgumentError, match=message):
        run_op("UnravelIndex", np.array(indices, np.int32), np.array(dims, np.int32))


def test_diag_and_back() -> None:
    """Diag doubles the rank, DiagPart halves it."""
    pair = run_op("Diag", np.array([[1, 2], [3, 4]]))

    assert pair[0].tolist() == [[[1, 0], [0, 0]], [[0, 2], [0, 0]]]
    assert pair[1].tolist() == [[[0, 0], [3, 0]], [[0, 0], [0, 4]]]
    assert run_op("DiagPart", pair).tolist() == [[1, 2], [3, 4]]
    assert run_op("Diag", np.zeros(0)).shape == (0, 0)
    assert run_op("DiagPart", np.float32(2)) == 2


@pytest.mark.parametrize(
    ("op", "shape", "message"),
    [
        ("Diag", (), "Input must be at least rank 1, got 0"),
        ("DiagPart", (2, 3), r"Invalid shape \[2,3\]: dimensions 0 and 1 do not match"),
        ("DiagPart", (1,), "The rank of the tensor should be even"),
    ],
)
def test_diag_refuses(op: str, shape: Any, message: str) -> None:
    """A diagonal needs its shape twice."""
    with pytest.raises(InvalidArgumentError, match=message):
        run_op(op, np.float32(1) if shape == () else np.zeros(shape, np.float32))


@pytest.mark.parametrize("shape", [(5000,), (70, 90), (3, 41, 1, 50), (1, 9, 9, 9, 9)])
def test_where_in_large_arrays(shape: tuple[int, ...]) -> None:
    """Each row is the index of an element that is true, and they go in order."""
    x = np.random.default_rng(1).integers(0, 3, shape).astype(np.float32)
    for array in (x, x.T):
        listed = [index for index in np.ndindex(array.shape) if array[index]]
        np.testing.assert_array_equal(run_op("Where", array), listed)
    assert run_op("Where", np.zeros(shape)).shape == (0, len(shape))
