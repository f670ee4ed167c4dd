"""Taking over what a model has learnt into one with another vocabulary.

In:   files of vocabularies; a checkpoint's matrix, and for each new row and column the old one.
Out:  for each new word the place of the old one; the matrix in its new order.
Not:  trains nothing.  A negative number, -1 as a rule, says that there is no old one.
"""

from __future__ import annotations

import os
from typing import Final

import numpy as np

from penstock.core import dtypes
from penstock.core.values import Array, Value, shape_of
from penstock.defs.bundle_reader import BundleReader
from penstock.defs.tensor_slices import TensorSlice
from penstock.errors import InternalError, InvalidArgumentError, UnimplementedError
from penstock.kernels.api.attrs import Attrs
from penstock.kernels.api.registry import Kernel, kernel
from penstock.kernels.api.signatures import type_text
from penstock.kernels.values.arrays import as_array, check_new, shape_text
from penstock.kernels.values.paths import path_in
from penstock.kernels.values.strings import items_of

_NONE: Final = -1
_FLOAT: Final = np.dtype(np.float32)


@kernel("GenerateVocabRemapping")
def make_generate_vocab_remapping(attrs: Attrs) -> Kernel:
    """For some words of a vocabulary their lines in an old one, and how many were found."""
    first, count = attrs.int("new_vocab_offset"), attrs.int("num_new_vocab")
    old_count, files = attrs.int("old_vocab_size"), attrs.host.files

    def remap(new_file: Value, old_file: Value) -> tuple[Array, np.int32]:
        new = _lines(files.read(path_in(new_file, "new_vocab_file")))
        old = _lines(files.read(path_in(old_file, "old_vocab_file")))
        if first + count > len(new):
            raise InvalidArgumentError(
                "lookup table size must be larger than last new vocab entry's line: "
                f"{len(new)} lines, and {first + count} are needed"
            )
        if old_count >= 0:
            old = old[:old_count]
        places = {word: place for place, word in enumerate(old)}
        found = [places.get(word, _NONE) for word in new[first : first + count]]
        return np.array(found, np.int64), np.int32(len(found) - found.count(_NONE))

    return remap


def _lines(contents: bytes) -> list[bytes]:
    lines = contents.split(b"\n")
    return lines[:-1] if lines[-1] == b"" else lines


@kernel("LoadAndRemapMatrix")
def make_load_and_remap_matrix(attrs: Attrs) -> Kernel:
    """A checkpoint's rows and columns in a new order; what is new has the values given."""
    height, width = attrs.int("num_rows"), attrs.int("num_cols")
    portion, files = attrs.int("max_rows_in_memory"), attrs.host.files

    def load(path: Value, name: Value, rows: Value, columns: Value, values: Value) -> Array:
        row_numbers = _numbers("row", rows, height)
        column_numbers = _numbers("col", columns, width) if columns.size else None
        prefix, key = _only(path, "ckpt_path"), items_of(name)[0]
        old = _Matrix(BundleReader(os.fsdecode(prefix), files), key)
        if column_numbers is None:
            old.check_width(width)
            column_numbers = np.arange(width)
        taken = old.rows(row_numbers, portion)
        result = old.columns(taken, column_numbers)
        is_new = (row_numbers < 0)[:, None] | (column_numbers < 0)
        result[is_new] = _fitting(as_array(values).ravel(), int(is_new.sum()))
        return result

    return load


def _only(value: Value, what: str) -> bytes:
    items = items_of(value)
    if len(items) != 1:
        raise InvalidArgumentError(f"{what} must be one string, got {len(items)} of them")
    return items[0]


class _Matrix:
    """A matrix in a checkpoint."""

    def __init__(self, reader: BundleReader, name: bytes) -> None:
        self._reader = reader
        self._name = name
        self._shown = name.decode("utf-8", "replace")
        dtype, shape = reader.dtype(name), reader.shape(name)
        if dtype is not dtypes.float32:
            raise InvalidArgumentError(
                f"Tensor {self._shown} has invalid type {type_text(dtype)} instead of expected "
                "type float"
            )
        if len(shape) != 2:
            raise InvalidArgumentError(
                f"Tensor {self._shown} has shape {shape_text(shape)} of invalid rank {len(shape)} "
                "instead of expected shape of rank 2."
            )
        self.height, self.width = shape

    def check_width(self, width: int) -> None:
        """Raise unless there are so many columns."""
        if self.width != width:
            raise InvalidArgumentError(
                f"Tensor {self._shown} has shape [{self.height},{self.width}], where the size of "
                f"its 2nd dimension is {self.width} instead of being equal to num_cols={width}"
            )

    def rows(self, numbers: Array, portion: int) -> Array:
        """The rows of these numbers; of those that are negative, anything.

        At most ``portion`` rows, if it is positive, are read at a time: all between the first and
        the last one that is wanted, which must all have been saved.
        """
        check_new((len(numbers), self.width), _FLOAT)
        taken = np.zeros((len(numbers), self.width), _FLOAT)
        wanted = numbers[numbers >= 0]
        if not wanted.size:
            return taken
        first, end = int(wanted.min()), int(wanted.max()) + 1
        portion = portion if portion > 0 else end - first
        if end > self.height:
            start = first + max(0, self.height - first) // portion * portion
            raise InternalError(
                f"Extent in dimension 0 out of bounds: shape = [{self.height},{self.width}], "
                f"slice = {self._part(start, min(portion, end - start))}"
            )
        if self._reader.is_whole(self._name) or not self.width:
            portion = end - first  # Less would save no memory, and take longer.
        for start in range(first, end, portion):
            stop = min(start + portion, end)
            block = as_array(self._reader.read(self._name, self._part(start, stop - start)))
            is_here = (numbers >= start) & (numbers < stop)
            taken[is_here] = block[numbers[is_here] - start]
        return taken

    def _part(self, start: int, count: int) -> TensorSlice:
        return TensorSlice((start, 0), (count, self.width), frozenset({1}))

    def columns(self, rows: Array, numbers: Array) -> Array:
        """Some columns of rows, as an array of its own; negative numbers mean anything."""
        most = int(numbers.max(initial=_NONE))
        if most >= self.width:
            raise InvalidArgumentError(
                f"col_remapping contains {most}, but tensor {self._shown} has only {self.width} "
                "columns"
            )
        check_new((len(rows), len(numbers)), _FLOAT)
        if not self.width:
            return np.zeros((len(rows), len(numbers)), _FLOAT)
        taken: Array = rows[:, np.maximum(numbers, 0)]
        return taken


def _numbers(kind: str, value: Value, count: int) -> Array:
    """The old row, or column, of each new one; no old one may be there twice."""
    numbers = as_array(value)
    if numbers.ndim != 1:
        raise InvalidArgumentError(
            f"The `{kind}_remapping` tensor must be 1-D, got a tensor of shape "
            f"{shape_text(shape_of(value))}"
        )
    if len(numbers) != count:
        what = "Size of row_remapping" if kind == "row" else "Provided col_remapping, but its size"
        raise InvalidArgumentError(
            f"{what} is {len(numbers)} instead of being equal to num_{kind}s={count}"
        )
    seen: dict[int, int] = {}
    for new, old in enumerate(numbers.tolist()):
        if old >= 0 and seen.setdefault(old, new) != new:
            raise UnimplementedError(
                f"Old ID {old} is mapped to both new ID {seen[old]} and {new}, "
                "which is not supported."
            )
    return numbers


def _fitting(values: Array, count: int) -> Array:
    if len(values) < count:
        raise InvalidArgumentError(
            f"initializing_values contained {len(values)} elements, but more missing values remain."
        )
    if len(values) > count:
        raise InvalidArgumentError(
            f"initializing_values contained {len(values)} elements, but only {count} elements "
            "were used to fill in missing values."
        )
    return values
