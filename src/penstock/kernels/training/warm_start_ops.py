"""Taking over what a model has learnt into one with another vocabulary.

In:   files of vocabularies; a checkpoint's matrix, and for each new row and column the old one.
Out:  for each new word the place of the old one; the matrix in its new order.
Not:  trains nothing; -1 says that there is no old one.
"""

from __future__ import annotations

import os
from typing import Final

import numpy as np

from penstock.core.values import Array, Value, shape_of
from penstock.defs.tensor_bundle import BundleReader, index_path
from penstock.errors import (
    InternalError,
    InvalidArgumentError,
    NotFoundError,
    UnimplementedError,
)
from penstock.kernels.arrays import as_array, shape_text
from penstock.kernels.attrs import Attrs
from penstock.kernels.files import file_errors, path_in, read_file
from penstock.kernels.registry import Kernel, kernel

_NONE: Final = -1


@kernel("GenerateVocabRemapping")
def make_generate_vocab_remapping(attrs: Attrs) -> Kernel:
    """For some words of a vocabulary their lines in an old one, and how many were found."""
    first, count = attrs.int("new_vocab_offset"), attrs.int("num_new_vocab")
    old_count = attrs.int("old_vocab_size")

    def remap(new_file: Value, old_file: Value) -> tuple[Array, np.int32]:
        new = _lines(path_in(new_file, "new_vocab_file"))
        old = _lines(path_in(old_file, "old_vocab_file"))
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


def _lines(path: str) -> list[bytes]:
    lines = read_file(path).split(b"\n")
    return lines[:-1] if lines[-1] == b"" else lines


@kernel("LoadAndRemapMatrix")
def make_load_and_remap_matrix(attrs: Attrs) -> Kernel:
    """A checkpoint's rows and columns in a new order; what is new has the values given."""
    height, width = attrs.int("num_rows"), attrs.int("num_cols")

    def load(path: Value, name: Value, rows: Value, columns: Value, values: Value) -> Array:
        old = _matrix(path_in(path, "ckpt_path"), as_array(name).item())
        row_numbers = _numbers("row", rows, height, old.shape[0])
        if len(columns):
            column_numbers = _numbers("col", columns, width, old.shape[1])
        elif old.shape[1] != width:
            raise InvalidArgumentError(
                f"Without col_remapping the matrix must have {width} columns, not {old.shape[1]}"
            )
        else:
            column_numbers = np.arange(width)
        is_new = (row_numbers[:, None] == _NONE) | (column_numbers == _NONE)
        taken = old[row_numbers[:, None], column_numbers] if old.size else np.zeros(is_new.shape)
        result: Array = taken.astype(np.float32)
        result[is_new] = _fitting(as_array(values).ravel(), int(is_new.sum()))
        return result

    return load


def _matrix(path: str, name: bytes) -> Array:
    if not os.path.exists(index_path(path)):
        raise NotFoundError(f"Failed to find any matching files for {path}")
    with file_errors(path):
        matrix = as_array(BundleReader(path).read(name))
    if matrix.ndim != 2 or matrix.dtype != np.float32:
        raise InvalidArgumentError(
            f"The old tensor must be a matrix of float, not {matrix.dtype} of shape "
            f"{shape_text(shape_of(matrix))}"
        )
    return matrix


def _numbers(kind: str, value: Value, count: int, old_count: int) -> Array:
    """The old row, or column, of each new one."""
    numbers = as_array(value)
    if len(numbers) != count:
        raise InvalidArgumentError(
            f"Size of {kind}_remapping is {len(numbers)} instead of being equal to "
            f"num_{kind}s={count}"
        )
    seen: dict[int, int] = {}
    for new, old in enumerate(numbers.tolist()):
        if old == _NONE:
            continue
        if not 0 <= old < old_count:
            dimension = 0 if kind == "row" else 1
            raise InternalError(
                f"Extent in dimension {dimension} out of bounds: {old} of {old_count}"
            )
        if old in seen:
            raise UnimplementedError(
                f"Old ID {old} is mapped to both new ID {seen[old]} and {new}, "
                "which is not supported."
            )
        seen[old] = new
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
