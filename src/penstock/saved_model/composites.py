"""Values that consist of several tensors, as callers give and get them.

In:   arrays.
Out:  ``RaggedTensor`` and ``SparseTensor``; their parts, in the order of a function's arguments.
Not:  computes nothing with them.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from penstock.core.values import Array


@dataclass(frozen=True, slots=True, eq=False)
class RaggedTensor:
    """Rows of different lengths.

    ``values`` has the elements of all rows, one behind the other: shape [n, …].  ``row_splits``
    has an array for each ragged dimension, the outermost first: row i of it begins at element
    ``splits[i]`` and ends before ``splits[i + 1]``.
    """

    values: Any
    row_splits: tuple[Any, ...]

    @classmethod
    def from_rows(cls, rows: Sequence[Any], dtype: Any = None) -> RaggedTensor:
        """Of a list of rows, each of them a list; one ragged dimension.

        Args:
            rows: the rows; all their elements have one shape.
            dtype: numpy's type of the elements; told from them if none is given.

        """
        arrays = [np.asarray(row, dtype) for row in rows]
        splits = np.cumsum([0, *map(len, arrays)], dtype=np.int64)
        filled = [array for array in arrays if len(array)]
        values = np.concatenate(filled) if filled else np.empty(0, dtype or np.float32)
        return cls(values, (splits,))

    def to_list(self) -> list[Any]:
        """Lists in lists, with Python's own numbers and texts."""
        items: list[Any] = np.asarray(self.values).tolist()
        for splits in reversed(self.row_splits):
            ends = np.asarray(splits).tolist()
            items = [items[start:end] for start, end in itertools.pairwise(ends)]
        return items


@dataclass(frozen=True, slots=True, eq=False)
class SparseTensor:
    """A tensor of which all elements are zero, or empty, but those that are given.

    ``indices`` has shape [n, rank] and type int64, ``values`` shape [n]; ``dense_shape`` has the
    sizes of the whole, of type int64.
    """

    indices: Any
    values: Any
    dense_shape: Any

    def to_dense(self) -> Array:
        """The whole; strings that are not given are empty."""
        values = np.asarray(self.values)
        empty: Any = b"" if values.dtype.hasobject else 0
        found = np.full(tuple(np.asarray(self.dense_shape).tolist()), empty, values.dtype)
        found[tuple(np.asarray(self.indices).T)] = values
        return found
