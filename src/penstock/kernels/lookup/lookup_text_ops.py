"""Tables that are filled from text files.

In:   a handle, and the name of a file with one key and value per line.
Out:  nothing; the table is filled.
Not:  knows no format but lines and columns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, TypeAlias

import numpy as np

from penstock.core import dtypes
from penstock.core.dtypes import DType
from penstock.core.values import Array, Value
from penstock.errors import InvalidArgumentError, OutOfRangeError
from penstock.kernels.api.attrs import Attrs
from penstock.kernels.api.context import OpKernelContext
from penstock.kernels.api.registry import Kernel, context_kernel
from penstock.kernels.api.signatures import type_text
from penstock.kernels.lookup.lookup_ops import table_of
from penstock.kernels.values.paths import path_in
from penstock.kernels.values.spelled_numbers import spelled_float, spelled_integer

_LINE_NUMBER: Final = -1
_WHOLE_LINE: Final = -2
#: What a line is turned into; given its number, its text and its columns.
_Read: TypeAlias = Callable[[int, bytes, list[bytes]], Any]


@context_kernel("InitializeTableFromTextFile", "InitializeTableFromTextFileV2")
def make_initialize_table_from_text_file(attrs: Attrs) -> Kernel:
    """Nothing; keys and values are lines, columns or numbers of lines."""
    limit, offset = attrs.int("vocab_size"), attrs.int("offset")
    indices = attrs.int("key_index"), attrs.int("value_index")
    delimiter, files = attrs.bytes("delimiter"), attrs.host.files

    def initialize(context: OpKernelContext, handle: Value, filename: Value) -> None:
        table, path = table_of(context, handle), path_in(filename, "filename")
        types = table.spec.key_dtype, table.spec.value_dtype
        for index, dtype, what in zip(indices, types, ("Key", "Value"), strict=True):
            _check_type(index, dtype, what)
        read_key, read_value = (
            _reader(index, dtype, offset) for index, dtype in zip(indices, types, strict=True)
        )
        keys: list[Any] = []
        values: list[Any] = []
        for at, line in enumerate(_lines(path, files.read(path), limit)):
            columns = _columns(path, at, line, delimiter, 1 + max(indices))
            keys.append(read_key(at, line, columns))
            values.append(read_value(at, line, columns))
        if len(keys) < limit:
            raise InvalidArgumentError(
                f"Invalid vocab_size in {path}: expected {limit} but got {len(keys)}"
            )
        container = getattr(handle, "container", "") or "localhost"
        table.fill(container, _array(keys, types[0]), _array(values, types[1]))

    return initialize


def _reader(index: int, dtype: DType, offset: int) -> _Read:
    """Make the function that finds a key, or a value, in a line."""
    if index == _LINE_NUMBER:
        return lambda at, _line, _columns: at + offset
    if dtype is dtypes.string:
        return lambda _at, line, columns: line if index == _WHOLE_LINE else columns[index]
    return lambda at, line, columns: _number(
        line if index == _WHOLE_LINE else columns[index], at, dtype
    )


def _check_type(index: int, dtype: DType, what: str) -> None:
    if index == _LINE_NUMBER and dtype is not dtypes.int64:
        raise InvalidArgumentError(
            f"{what} index for line number requires table {what.lower()} dtype of int64, "
            f"got {type_text(dtype)}"
        )
    if index == _WHOLE_LINE and dtype is not dtypes.string and dtype is not dtypes.int64:
        raise InvalidArgumentError(
            f"{what} index for whole line requires table {what.lower()} dtype of string "
            f"or int64, got {type_text(dtype)}"
        )


def _lines(path: str, contents: bytes, limit: int) -> Iterator[bytes]:
    """The lines of a file, without their ends; ``limit`` of them if it is not negative."""
    if not contents:
        raise OutOfRangeError(f"{path}: Read less bytes than requested")
    position = 0
    for at, line in enumerate(contents.removesuffix(b"\n").split(b"\n")):
        if at == limit:
            return
        position += len(line) + 1
        text = line.removesuffix(b"\r")
        if not text:
            raise InvalidArgumentError(
                f"Invalid content in {path}: empty line found at position {position}."
            )
        yield text


def _columns(path: str, at: int, line: bytes, delimiter: bytes, width: int) -> list[bytes]:
    if width <= 0:
        return []
    columns = line.split(delimiter)
    if len(columns) < width:
        shown = line.decode("utf-8", "replace")
        raise InvalidArgumentError(
            f"Invalid number of columns in {path} line {at} ({shown}) : "
            f"expected at least {width} got {len(columns)}"
        )
    return columns


def _array(items: Sequence[Any], dtype: DType) -> Array:
    array = np.empty(len(items), dtype.numpy)
    array[:] = items
    return array


def _number(field: bytes, at: int, dtype: DType) -> Any:
    try:
        if dtype.is_integer:
            return dtype.numpy.type(spelled_integer(field))
        return spelled_float(field, dtype)
    except (ValueError, OverflowError):
        shown = field.decode("utf-8", "replace")
        raise InvalidArgumentError(
            f"Field {shown} in line {at} is not a valid {type_text(dtype)}."
        ) from None
