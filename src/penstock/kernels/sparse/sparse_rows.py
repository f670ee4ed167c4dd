"""Sparse matrices in rows, as variants: one holds a matrix, or a batch of them of one size.

In:   where each row starts, the column of each element, and its value.
Out:  a variant, which can be written into a message and read from one.
Not:  registers no kernel; looks for no duplicates.
"""

from __future__ import annotations

import itertools
import math
import struct
from collections.abc import Callable
from typing import ClassVar, Final, NamedTuple

import numpy as np

from penstock.core import dtypes
from penstock.core.dtypes import DType
from penstock.core.values import Array, EncodedVariant, Value
from penstock.kernels.values.arrays import as_array
from penstock.kernels.values.variant_elements import tensor_text
from penstock.kernels.values.variants import Variant, variant_in

#: What the metadata holds: whether the matrix is valid, and the number of its type.
_METADATA: Final = struct.Struct("<?3xi")
#: Sizes, ends of matrices, starts of rows, columns, values.
_PARTS: Final = 5


class Rows(NamedTuple):
    """One matrix: where rows start and the last ends; columns and values of the elements."""

    starts: Array
    columns: Array
    values: Array

    @property
    def numbers(self) -> Array:
        """The row of each element."""
        return np.repeat(np.arange(len(self.starts) - 1), np.diff(self.starts))


class SparseRows(Variant):
    """A sparse matrix, or several of one size."""

    __slots__ = ("dtype", "matrices", "shape")
    type_name: ClassVar[str] = "tensorflow::CSRSparseMatrix"

    def __init__(self, shape: tuple[int, ...], matrices: tuple[Rows, ...], dtype: DType) -> None:
        self.shape: Final = shape
        self.matrices: Final = matrices
        self.dtype: Final = dtype

    def mapped(self, change: Callable[[Rows], Rows], *size: int) -> SparseRows:
        """Each matrix changed, and of another size."""
        return SparseRows((*self.shape[:-2], *size), tuple(map(change, self.matrices)), self.dtype)

    def encoded(self) -> EncodedVariant:
        """Sizes; where each matrix's elements end; all starts, columns and values."""
        counts = [len(matrix.columns) for matrix in self.matrices]
        parts = [np.concatenate(part) for part in zip(*self.matrices, strict=True)]
        int32s = (np.array([0, *itertools.accumulate(counts)], np.int32), *parts[:2])
        return EncodedVariant(
            self.type_name,
            _METADATA.pack(True, self.dtype.number),  # noqa: FBT003
            (
                (dtypes.int64, np.array(self.shape, np.int64)),
                *((dtypes.int32, part) for part in int32s),
                (self.dtype, parts[2]),
            ),
        )

    @classmethod
    def decoded(cls, encoded: EncodedVariant) -> Variant:
        """The matrices that such parts make up, if none of their numbers is out of bounds."""
        if len(encoded.metadata) != _METADATA.size or len(encoded.tensors) != _PARTS:
            raise ValueError(f"{len(encoded.tensors)} tensors are not the parts of a matrix")
        dtype = encoded.tensors[-1][0]
        kinds = [kind for kind, _ in encoded.tensors]
        sizes, ends, starts, columns, values = (as_array(part) for _, part in encoded.tensors)
        ints = [dtypes.int64, *[dtypes.int32] * 3]
        if kinds[:-1] != ints or _METADATA.unpack(encoded.metadata)[1] != dtype.number:
            raise ValueError("the parts of a matrix are of other types")
        shape = tuple(map(int, sizes.tolist()))
        _check_parts(shape, ends, starts, columns, values)
        pieces = np.split(starts, len(ends) - 1)
        cuts = ends[1:-1].tolist()
        split = zip(pieces, np.split(columns, cuts), np.split(values, cuts), strict=True)
        return cls(shape, tuple(Rows(*parts) for parts in split), dtype)

    def __str__(self) -> str:
        return tensor_text(np.array(self.shape, np.int64), dtypes.int64)


def _check_parts(
    shape: tuple[int, ...], ends: Array, starts: Array, columns: Array, values: Array
) -> None:
    """Raise ValueError unless these parts of matrices fit together."""
    if len(shape) not in (2, 3) or min(shape) < 0:
        raise ValueError(f"{list(shape)} are not the sizes of matrices")
    count, height = math.prod(shape[:-2]), shape[-2]
    if ends.shape != (count + 1,) or starts.shape != (count * (height + 1),) or not count:
        raise ValueError("there must be a start for each row, and an end for each matrix")
    if columns.shape != values.shape or columns.ndim != 1:
        raise ValueError("there must be a column for each value")
    if ends[0] != 0 or ends[-1] != len(values) or (np.diff(ends) < 0).any():
        raise ValueError("the ends of matrices are out of order")
    rows = starts.reshape(count, height + 1)
    if rows[:, 0].any() or (rows[:, -1] != np.diff(ends)).any() or (np.diff(rows) < 0).any():
        raise ValueError("the starts of rows are out of order")
    if ((columns < 0) | (columns >= shape[-1])).any():
        raise ValueError("a column is out of bounds")


def rows_of(places: Array, values: Array, height: int) -> Rows:
    """A matrix of places, which are in order of rows, and values."""
    counts = np.bincount(places[:, 0], minlength=height)
    starts = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
    return Rows(starts, places[:, 1].astype(np.int32), values)


def matrix_in(value: Value) -> SparseRows:
    """The matrix on an edge."""
    return variant_in(value, SparseRows, "Input is not a CSRSparseMatrix")
