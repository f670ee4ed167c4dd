"""Diagonals and bands, against answers recorded from TensorFlow."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from penstock.errors import OpError
from support.ops import run_op

M34 = np.arange(1, 13, dtype=np.float32).reshape(3, 4)
M33 = np.arange(1, 10, dtype=np.float32).reshape(3, 3)
NINE = np.float32(9)


def k(*numbers: int) -> np.ndarray[Any, Any]:
    """A range of diagonals."""
    return np.array(numbers, np.int32)


def test_diag_part_takes_the_main_diagonal_of_each_matrix() -> None:
    """Batches stay; matrices need not be square, nor have elements."""
    batch = np.arange(1, 25, dtype=np.float32).reshape(2, 3, 4)

    assert run_op("MatrixDiagPart", batch).tolist() == [[1, 6, 11], [13, 18, 23]]
    assert run_op("MatrixDiagPart", np.zeros((0, 3), np.float32)).shape == (0,)
    assert run_op("BatchMatrixDiagPart", M33).tolist() == [1, 5, 9]


@pytest.mark.parametrize(
    ("align", "expected"),
    [
        (
            "RIGHT_LEFT",
            [[9, 9, 4], [9, 3, 8], [2, 7, 12], [1, 6, 11], [5, 10, 9], [9, 9, 9]],
        ),
        (
            "LEFT_RIGHT",
            [[4, 9, 9], [3, 8, 9], [2, 7, 12], [1, 6, 11], [9, 5, 10], [9, 9, 9]],
        ),
        (
            "LEFT_LEFT",
            [[4, 9, 9], [3, 8, 9], [2, 7, 12], [1, 6, 11], [5, 10, 9], [9, 9, 9]],
        ),
        (
            "RIGHT_RIGHT",
            [[9, 9, 4], [9, 3, 8], [2, 7, 12], [1, 6, 11], [9, 5, 10], [9, 9, 9]],
        ),
    ],
)
def test_diag_part_aligns_short_diagonals(align: str, expected: list[list[int]]) -> None:
    """Diagonals come highest first, padded on the side that ``align`` names."""
    got = run_op("MatrixDiagPartV3", M34, k(-2, 3), NINE, align=align)

    assert got.tolist() == expected


def test_version_two_aligns_to_the_left() -> None:
    """The second versions have no ``align``: both kinds of diagonals start at the left."""
    got = run_op("MatrixDiagPartV2", M34, k(-1, 3), NINE)

    assert got.tolist() == [[4, 9, 9], [3, 8, 9], [2, 7, 12], [1, 6, 11], [5, 10, 9]]


@pytest.mark.parametrize("number", range(-2, 4))
def test_one_diagonal_is_that_of_numpy(number: int) -> None:
    """A scalar, a vector of one and a pair of equal numbers ask for one row."""
    expected = np.diagonal(M34, number).tolist()

    for asked in (np.int32(number), k(number), k(number, number)):
        assert run_op("MatrixDiagPartV3", M34, asked, NINE).tolist() == expected


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        (k(1, 0), "lower_diag_index must not be larger than upper_diag_index: 1 > 0"),
        (k(0, 1, 2), "only one or two elements, received 3"),
        (k(), "at least 1 element"),
        (k(4), "lower_diag_index is out of bound: 4. It must be between -3 and 4"),
        (k(-3), "lower_diag_index is out of bound: -3"),
        (k(0, 4), "upper_diag_index is out of bound: 4"),
        (k(0, 1)[None], r"must be a scalar or vector, received shape: \[1,2\]"),
    ],
)
def test_bad_ranges_of_diagonals_are_refused(asked: Any, message: str) -> None:
    """A range must be one or two numbers in order, of diagonals that there are."""
    with pytest.raises(ValueError, match=message):
        run_op("MatrixDiagPartV3", M34, asked, NINE)


def test_a_matrix_without_elements_still_has_its_main_diagonal() -> None:
    """Diagonal 0 is there in any matrix; others only in the direction that has a size."""
    wide = np.zeros((0, 3), np.float32)

    assert run_op("MatrixDiagPartV3", wide, k(1), NINE).shape == (0,)
    assert run_op("MatrixDiagPartV3", wide.T, k(-1, 0), NINE).shape == (2, 0)
    with pytest.raises(ValueError, match="between 0 and 3"):
        run_op("MatrixDiagPartV3", wide, k(-1), NINE)


def diag(vectors: Any, where: Any, rows: int, columns: int) -> Any:
    """MatrixDiagV3 of float32 vectors, padded with nines."""
    packed = np.array(vectors, np.float32)
    return run_op("MatrixDiagV3", packed, where, np.int32(rows), np.int32(columns), NINE)


def test_diag_makes_the_smallest_matrix_that_fits() -> None:
    """Unknown sizes make a square, or the least number where the other is known."""
    assert diag([1, 2], k(1), -1, -1).tolist() == [[9, 1, 9], [9, 9, 2], [9, 9, 9]]
    assert diag([1, 2], k(1), 2, -1).tolist() == [[9, 1, 9], [9, 9, 2]]
    assert diag([1, 2], k(-1), -1, 2).tolist() == [[9, 9], [1, 9], [9, 2]]
    assert diag([[1, 2], [3, 4]], k(0, 1), 2, 3).tolist() == [[3, 1, 9], [9, 4, 2]]
    assert diag([[1, 2], [3, 4]], k(0, 1), 3, 2).tolist() == [[3, 2], [9, 4], [9, 9]]
    assert diag([], k(0), -1, -1).shape == (0, 0)


@pytest.mark.parametrize(
    ("vectors", "where", "rows", "columns", "message"),
    [
        ([1, 2], k(0), 1, 3, "The number of rows is too small"),
        ([1, 2], k(-1), -1, 1, "The number of columns is too small"),
        ([1, 2], k(0), 3, 3, "not consistent with the specified d_lower"),
        ([[1, 2]] * 3, k(0, 1), -1, -1, "number of diagonals provided in the input does not"),
        ([1, 2], k(0, 1), -1, -1, "number of diagonals provided in the input does not"),
        (1, k(0), -1, -1, "diagonal must be at least 1-dim"),
        ([1], k(0), 1, 1 << 40, "OOM"),
    ],
)
def test_diag_refuses_sizes_that_do_not_fit(
    vectors: Any, where: Any, rows: int, columns: int, message: str
) -> None:
    """Too few rows, more than the diagonals need in both directions, or absurdly many."""
    arguments = np.float32(vectors), where, np.int64(rows), np.int64(columns), NINE

    with pytest.raises((ValueError, OpError), match=message):
        run_op("MatrixDiagV3", *arguments)


def test_plain_diag_keeps_batches() -> None:
    """Each vector becomes a square matrix with zeros elsewhere, in its own type."""
    got = run_op("MatrixDiag", np.array([[True, False]]))

    assert got.dtype == bool
    assert got.tolist() == [[[True, False], [False, False]]]


def test_set_diag_replaces_diagonals_and_copies_the_rest() -> None:
    """The input stays as it was; packed rows are read as ``align`` says."""
    two = np.float32([[1, 2, 3], [4, 5, 6]])

    got = run_op("MatrixSetDiagV3", M33, two, k(0, 1))

    assert got.tolist() == [[4, 2, 3], [4, 5, 3], [7, 8, 6]]
    assert M33[0, 0] == 1
    assert run_op("MatrixSetDiagV2", M33, np.float32([[1, 2], [3, 4]]), k(1, 2)).tolist() == [
        [1, 3, 1],
        [4, 5, 4],
        [7, 8, 9],
    ]
    assert run_op("MatrixSetDiag", M33, np.float32([1, 2, 3])).tolist() == [
        [1, 2, 3],
        [4, 2, 6],
        [7, 8, 3],
    ]


@pytest.mark.parametrize("shape", [(2,), (1, 3), (4,)])
def test_set_diag_refuses_diagonals_of_other_sizes(shape: tuple[int, ...]) -> None:
    """The message shows both shapes and the one that was expected."""
    with pytest.raises(ValueError, match=r"Input shape: \[3,3\].*Expected diagonal shape: \[3\]"):
        run_op("MatrixSetDiag", M33, np.ones(shape, np.float32))


def test_band_part_keeps_a_band() -> None:
    """Negative numbers keep that whole triangle."""

    def band(lower: int, upper: int) -> Any:
        return run_op("MatrixBandPart", M34, np.int64(lower), np.int64(upper)).tolist()

    assert band(1, 0) == [[1, 0, 0, 0], [5, 6, 0, 0], [0, 10, 11, 0]]
    assert band(-1, 0) == [[1, 0, 0, 0], [5, 6, 0, 0], [9, 10, 11, 0]]
    assert band(0, 4) == [[1, 2, 3, 4], [0, 6, 7, 8], [0, 0, 11, 12]]
    assert band(-2, -7) == M34.tolist()


def test_band_part_refuses_bands_wider_than_the_matrix() -> None:
    """One more than the size is an error; so is a vector."""
    with pytest.raises(ValueError, match=r"less or equal to number of rows \(3\) got: 4"):
        run_op("MatrixBandPart", M34, np.int64(4), np.int64(0))
    with pytest.raises(ValueError, match=r"num_upper must be .* columns \(4\) got: 5"):
        run_op("MatrixBandPart", M34, np.int64(0), np.int64(5))
    with pytest.raises(ValueError, match=r"num_lower must be scalar, got shape \[1\]"):
        run_op("MatrixBandPart", M34, np.array([0]), np.int64(0))
