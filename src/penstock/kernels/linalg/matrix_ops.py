"""Diagonals and bands of matrices.

In:   matrices as the last two dimensions of an array, in batches.
Out:  diagonals packed into rows, matrices made from them, or a band of a matrix.
Not:  solves nothing; decomposes nothing.

Diagonal 0 is the main one; those above it have positive numbers, those below negative
ones.  Several diagonals are packed as rows of one array, highest number first, and the
shorter ones are padded to the longest, on the left or on the right.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np

from penstock.core import dtypes
from penstock.core.values import Array, Value
from penstock.dataclass import dataclass
from penstock.kernels.api.attrs import Attrs
from penstock.kernels.api.registry import Kernel, kernel
from penstock.kernels.api.types import NUMBERS
from penstock.kernels.values.arrays import full, shape_text

_ELEMENTS: Final = NUMBERS | {dtypes.bool_}


@dataclass(frozen=True, slots=True)
class _Align:
    """Which diagonals are packed to the right end of their row."""

    is_above_right: bool
    is_below_right: bool

    def is_right(self, number: int) -> bool:
        """Whether diagonal ``number`` is; the main one is when either kind is."""
        return (self.is_above_right and number >= 0) or (self.is_below_right and number <= 0)


_LEFT: Final = _Align(is_above_right=False, is_below_right=False)


def _align(attrs: Attrs) -> _Align:
    """The attribute ``align``, which the second versions of the ops lack."""
    if "align" not in attrs.values:
        return _LEFT
    above, _, below = attrs.str("align").partition("_")
    return _Align(above == "RIGHT", below == "RIGHT")


@dataclass(frozen=True, slots=True)
class _Diagonals:
    """A range of diagonals of matrices of one size."""

    rows: int
    columns: int
    lowest: int
    highest: int

    @property
    def width(self) -> int:
        """Length of the longest diagonal."""
        return min(self.rows + min(self.highest, 0), self.columns - max(self.lowest, 0))

    @property
    def packed_shape(self) -> tuple[int, ...]:
        """Shape of the packed form; a range of one diagonal has no dimension of its own."""
        if self.lowest == self.highest:
            return (self.width,)
        return (self.highest - self.lowest + 1, self.width)

    def length(self, number: int) -> int:
        """Length of one diagonal."""
        return min(self.rows + min(number, 0), self.columns - max(number, 0))

    def where(self, number: int) -> slice:
        """Where one diagonal lies in the matrix read row by row."""
        start = number if number >= 0 else -number * self.columns
        step = self.columns + 1
        return slice(start, start + max(self.length(number), 0) * step, step)

    def places(self, align: _Align) -> Iterator[tuple[int, slice, slice]]:
        """Row in the packed form, place in that row and place in the matrix of each."""
        for row, number in enumerate(range(self.highest, self.lowest - 1, -1)):
            length = max(self.length(number), 0)
            start = self.width - length if align.is_right(number) else 0
            yield row, slice(start, start + length), self.where(number)


def _diagonals_of(matrices: Array, limits: tuple[int, int]) -> _Diagonals:
    """A range of diagonals, the lowest and the highest of which the matrices must have."""
    rows, columns = matrices.shape[-2:]
    for word, number in zip(("lower", "upper"), limits, strict=True):
        if number != 0 and not -rows < number < columns:
            raise ValueError(
                f"{word}_diag_index is out of bound: {number}. "
                f"It must be between {-rows} and {columns}"
            )
    return _Diagonals(rows, columns, *limits)


def _range(k: Value) -> tuple[int, int]:
    """Lowest and highest diagonal that ``k`` asks for: one number or two."""
    numbers = np.asarray(k)
    if numbers.ndim > 1:
        raise ValueError(
            f"diag_index must be a scalar or vector, received shape: {shape_text(numbers.shape)}"
        )
    if numbers.size == 0:
        raise ValueError("Expected diag_index to have at least 1 element")
    if numbers.size > 2:
        raise ValueError(
            f"diag_index must have only one or two elements, received {numbers.size} elements."
        )
    lowest, highest = int(numbers.flat[0]), int(numbers.flat[-1])
    if lowest > highest:
        raise ValueError(
            f"lower_diag_index must not be larger than upper_diag_index: {lowest} > {highest}"
        )
    return lowest, highest


def _matrices(values: Value) -> Array:
    """The argument as an array, which must hold matrices."""
    array = np.asarray(values)
    if array.ndim < 2:
        raise ValueError(f"input must be at least 2-dim, received shape: {shape_text(array.shape)}")
    return array


def _vectors(values: Value) -> Array:
    """The argument as an array, which must hold vectors."""
    array = np.asarray(values)
    if array.ndim < 1:
        raise ValueError("diagonal must be at least 1-dim, received shape: []")
    return array


def _in_rows(matrices: Array) -> Array:
    """Each matrix read row by row as one vector."""
    rows, columns = matrices.shape[-2:]
    return matrices.reshape(*matrices.shape[:-2], rows * columns)


@kernel("MatrixDiagPart", "BatchMatrixDiagPart", types={"T": _ELEMENTS})
def make_matrix_diag_part(_attrs: Attrs) -> Kernel:
    """The main diagonal of each matrix."""

    def matrix_diag_part(values: Value) -> Array:
        return _matrices(values).diagonal(0, -2, -1)

    return matrix_diag_part


@kernel("MatrixDiagPartV2", "MatrixDiagPartV3", types={"T": _ELEMENTS})
def make_matrix_diag_part_range(attrs: Attrs) -> Kernel:
    """A range of diagonals of each matrix, packed as rows and padded."""
    align = _align(attrs)

    def matrix_diag_part(values: Value, k: Value, padding: Value) -> Array:
        matrices = _matrices(values)
        wanted = _diagonals_of(matrices, _range(k))
        if np.size(padding) != 1:
            raise ValueError("Padding must be scalar.")
        flat = _in_rows(matrices)
        if wanted.lowest == wanted.highest:
            return flat[..., wanted.where(wanted.lowest)]
        shape = flat.shape[:-1] + wanted.packed_shape
        packed = full(shape, np.asarray(padding).flat[0], matrices.dtype)
        for row, place, where in wanted.places(align):
            packed[..., row, place] = flat[..., where]
        return packed

    return matrix_diag_part


@kernel("MatrixDiag", "BatchMatrixDiag", types={"T": _ELEMENTS})
def make_matrix_diag(_attrs: Attrs) -> Kernel:
    """Square matrices with the given main diagonals and zeros elsewhere."""

    def matrix_diag(diagonal: Value) -> Array:
        vectors = _vectors(diagonal)
        size = vectors.shape[-1]
        matrices = full((*vectors.shape, size), 0, vectors.dtype)
        _in_rows(matrices)[..., :: size + 1] = vectors
        return matrices

    return matrix_diag


@kernel("MatrixDiagV2", "MatrixDiagV3", types={"T": _ELEMENTS})
def make_matrix_diag_range(attrs: Attrs) -> Kernel:
    """Matrices with the given packed diagonals, and the padding value elsewhere."""
    align = _align(attrs)

    def matrix_diag(
        diagonal: Value, k: Value, num_rows: Value, num_cols: Value, padding: Value
    ) -> Array:
        vectors = _vectors(diagonal)
        sizes = _scalar(num_rows, "num_rows"), _scalar(num_cols, "num_cols")
        wanted = _sized(vectors, _range(k), *sizes)
        if np.ndim(padding):
            raise ValueError("padding_value must be a scalar")
        batch = vectors.shape[: vectors.ndim - len(wanted.packed_shape)]
        matrices = full((*batch, wanted.rows, wanted.columns), padding, vectors.dtype)
        _write(_in_rows(matrices), vectors, wanted, align)
        return matrices

    return matrix_diag


def _scalar(value: Value, name: str) -> int:
    if np.ndim(value):
        raise ValueError(f"{name} must be a scalar")
    return int(value)


def _sized(vectors: Array, limits: tuple[int, int], rows: int, columns: int) -> _Diagonals:
    """The range of diagonals in the smallest matrices that hold them, or in those asked for.

    A negative number of rows or columns asks for the smallest; for both, for a square.
    """
    lowest, highest = limits
    if lowest < highest:
        count = highest - lowest + 1
        if vectors.ndim < 2 or vectors.shape[-2] != count:
            raise ValueError(
                "The number of diagonals provided in the input does not match the "
                f"lower_diag_index and upper_diag_index range: shape {shape_text(vectors.shape)}, "
                f"{count} diagonals from {lowest} to {highest}"
            )
    least_rows = vectors.shape[-1] - min(highest, 0)
    least_columns = vectors.shape[-1] + max(lowest, 0)
    if rows < 0 and columns < 0:
        rows = columns = max(least_rows, least_columns)
    rows = _at_least(rows, least_rows, "rows")
    columns = _at_least(columns, least_columns, "columns")
    if rows != least_rows and columns != least_columns:
        raise ValueError(
            "The number of rows or columns is not consistent with the specified d_lower, "
            f"d_upper, and diagonal: {rows} rows and {columns} columns, of which one should be "
            f"the least possible, {least_rows} rows or {least_columns} columns"
        )
    return _Diagonals(rows, columns, lowest, highest)


def _at_least(size: int, least: int, word: str) -> int:
    if size < 0:
        return least
    if size < least:
        raise ValueError(f"The number of {word} is too small. It is {size}, at least {least}")
    return size


def _write(flat: Array, packed: Array, wanted: _Diagonals, align: _Align) -> None:
    """Write packed diagonals into matrices that are read row by row."""
    if wanted.lowest == wanted.highest:
        flat[..., wanted.where(wanted.lowest)] = packed
        return
    for row, place, where in wanted.places(align):
        flat[..., where] = packed[..., row, place]


@kernel("MatrixSetDiag", "BatchMatrixSetDiag", types={"T": _ELEMENTS})
def make_matrix_set_diag(_attrs: Attrs) -> Kernel:
    """A copy of each matrix with another main diagonal."""

    def matrix_set_diag(values: Value, diagonal: Value) -> Array:
        return _with_diagonals(values, diagonal, (0, 0), _LEFT)

    return matrix_set_diag


@kernel("MatrixSetDiagV2", "MatrixSetDiagV3", types={"T": _ELEMENTS})
def make_matrix_set_diag_range(attrs: Attrs) -> Kernel:
    """A copy of each matrix with a range of diagonals replaced by packed ones."""
    align = _align(attrs)

    def matrix_set_diag(values: Value, diagonal: Value, k: Value) -> Array:
        return _with_diagonals(values, diagonal, _range(k), align)

    return matrix_set_diag


def _with_diagonals(
    values: Value, diagonal: Value, limits: tuple[int, int], align: _Align
) -> Array:
    matrices, vectors = _matrices(values), _vectors(diagonal)
    wanted = _diagonals_of(matrices, limits)
    expected = matrices.shape[:-2] + wanted.packed_shape
    if vectors.shape != expected:
        raise ValueError(
            "Either first dimensions of diagonal don't match input.shape[:-2], or its last ones "
            f"are not the number and length of the diagonals [{limits[0]}:{limits[1]}]. "
            f"Input shape: {shape_text(matrices.shape)} "
            f"Diagonal shape: {shape_text(vectors.shape)} "
            f"Expected diagonal shape: {shape_text(expected)}"
        )
    result = matrices.copy()
    _write(_in_rows(result), vectors, wanted, align)
    return result


@kernel("MatrixBandPart", "BatchMatrixBandPart", types={"T": _ELEMENTS})
def make_matrix_band_part(_attrs: Attrs) -> Kernel:
    """Each matrix with zeros outside a band around its main diagonal.

    The band has so many diagonals below and above the main one; a negative number means
    all of them.
    """

    def matrix_band_part(values: Value, num_lower: Value, num_upper: Value) -> Array:
        matrices = _matrices(values)
        rows, columns = matrices.shape[-2:]
        lower = _band(num_lower, rows, "num_lower", "rows")
        upper = _band(num_upper, columns, "num_upper", "columns")
        is_inside = np.tri(rows, columns, upper, dtype=bool)
        if lower < rows:
            is_inside &= ~np.tri(rows, columns, -lower - 1, dtype=bool)
        return np.where(is_inside, matrices, matrices.dtype.type(0))

    return matrix_band_part


def _band(value: Value, size: int, name: str, word: str) -> int:
    if np.ndim(value):
        raise ValueError(f"{name} must be scalar, got shape {shape_text(np.asarray(value).shape)}")
    count = int(value)
    if count > size:
        raise ValueError(
            f"{name} must be negative or less or equal to number of {word} ({size}) got: {count}"
        )
    return size if count < 0 else count
