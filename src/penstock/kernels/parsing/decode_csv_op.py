"""Lines of comma-separated values as columns.

In:   records, and a default for each column.
Out:  one tensor per column, shaped like the records.
Not:  reads no files; RFC 4180, with TensorFlow's own complaints.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from penstock.core import dtypes
from penstock.core.dtypes import DType
from penstock.core.values import Array, Value, as_value
from penstock.errors import InvalidArgumentError
from penstock.kernels.api.attrs import Attrs
from penstock.kernels.api.registry import Kernel, kernel
from penstock.kernels.api.signatures import type_text
from penstock.kernels.values.arrays import as_array, zeros
from penstock.kernels.values.spelled_numbers import spelled_float, spelled_integer


@kernel("DecodeCSV")
def make_decode_csv(attrs: Attrs) -> Kernel:
    """The fields of each record, converted to their column's type."""
    types = attrs.list("OUT_TYPE")
    readers = [_reader(dtype) for dtype in types]
    columns, missing = _columns(attrs, len(types)), attrs.bytes("na_value")
    fields_of = _splitter(attrs, columns)

    def decode(records: Value, *defaults: Value) -> tuple[Value, ...]:
        lines = as_array(records)
        spare = [_default(at, value) for at, value in enumerate(map(as_array, defaults))]
        outputs = [zeros(lines.shape, dtype) for dtype in types]
        flat = [output.reshape(-1) for output in outputs]
        for record, line in enumerate(lines.ravel().tolist()):
            fields = fields_of(line)
            if len(fields) != len(types):
                raise InvalidArgumentError(
                    f"Expect {len(types)} fields but have {len(fields)} in record {record}"
                )
            for at, field in enumerate(fields):
                if field in (b"", missing):
                    flat[at][record] = _or_missing(spare[at], at, record)
                else:
                    flat[at][record] = _read(readers[at], field, types[at], at, record)
        return tuple(map(as_value, outputs))

    return decode


def _columns(attrs: Attrs, count: int) -> tuple[int, ...]:
    """The columns that are wanted; none means all."""
    if len(attrs.bytes("field_delim")) != 1:
        raise InvalidArgumentError("field_delim should be only 1 char")
    columns: tuple[int, ...] = attrs.list("select_cols")
    if columns and len(columns) != count:
        raise InvalidArgumentError("select_cols should match output size")
    if any(b <= a for a, b in zip((-1, *columns), columns, strict=False)):
        raise InvalidArgumentError("select_cols should be strictly increasing indices")
    return columns


def _default(at: int, value: Array) -> list[Any]:
    """The default of a column, if it has one."""
    if value.ndim > 1:
        raise InvalidArgumentError("Each record default should be at most rank 1")
    if value.size > 1:
        raise InvalidArgumentError(
            f"There should only be 1 default per field but field {at} has {value.size}"
        )
    return list(value.flat)


def _or_missing(spare: list[Any], at: int, record: int) -> Any:
    if not spare:
        raise InvalidArgumentError(f"Field {at} is required but missing in record {record}!")
    return spare[0]


def _reader(dtype: DType) -> Callable[[bytes], Any]:
    if dtype is dtypes.string:
        return lambda field: field
    if dtype.is_integer:
        return lambda field: dtype.numpy.type(spelled_integer(field))
    return lambda field: spelled_float(field, dtype)


def _read(read: Callable[[bytes], Any], field: bytes, dtype: DType, at: int, record: int) -> Any:
    try:
        return read(field)
    except (ValueError, OverflowError):
        shown = field.decode("utf-8", "replace")
        raise InvalidArgumentError(
            f"Field {at} in record {record} is not a valid {type_text(dtype)}: {shown}"
        ) from None


# -- splitting -------------------------------------------------------------------------


def _splitter(attrs: Attrs, columns: tuple[int, ...]) -> Callable[[bytes], list[bytes]]:
    delimiter, quotes = attrs.bytes("field_delim"), attrs.bool("use_quote_delim")

    def fields_of(line: bytes) -> list[bytes]:
        fields = _split(line, delimiter, quotes=quotes)
        return [fields[at] for at in columns if at < len(fields)] if columns else fields

    return fields_of


def _split(line: bytes, delimiter: bytes, *, quotes: bool) -> list[bytes]:
    """The fields of one line; a field may stand in quotes."""
    if not line:
        return []
    fields: list[bytes] = []
    at = 0
    while at <= len(line):
        if quotes and line[at : at + 1] == b'"':
            field, at = _quoted(line, at + 1, delimiter)
        else:
            field, at = _bare(line, at, delimiter, quotes=quotes)
        fields.append(field)
    return fields


def _bare(line: bytes, at: int, delimiter: bytes, *, quotes: bool) -> tuple[bytes, int]:
    end = line.find(delimiter, at)
    field = line[at:] if end < 0 else line[at:end]
    if quotes and any(byte in b'"\r\n' for byte in field):
        raise InvalidArgumentError("Unquoted fields cannot have quotes/CRLFs inside")
    return field, at + len(field) + 1


def _quoted(line: bytes, at: int, delimiter: bytes) -> tuple[bytes, int]:
    """A field from behind its first quote; and where the next one starts."""
    parts: list[bytes] = []
    while (end := line.find(b'"', at)) >= 0:
        parts.append(line[at:end])
        follower = line[end + 1 : end + 2]
        if follower in (b"", delimiter):
            return b"".join(parts), end + 2
        if follower != b'"':
            raise InvalidArgumentError("Quote inside a string has to be escaped by another quote")
        parts.append(b'"')
        at = end + 2
    raise InvalidArgumentError("Quoted field has to end with quote followed by delim or end")
