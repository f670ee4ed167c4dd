"""Strings: joining, cutting, measuring, changing case.

In:   strings, which are bytes; some ops take them for UTF-8.
Out:  strings, or numbers about them.
Not:  knows no locale; conversions from and to numbers stand in ``string_number_ops``,
      encodings of binary data in ``decode_ops``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from penstock.core.values import Array, Value, as_value, shape_of
from penstock.errors import InvalidArgumentError, OutOfRangeError
from penstock.kernels.api.attrs import Attrs
from penstock.kernels.api.registry import Kernel, kernel
from penstock.kernels.values.arrays import as_array, shape_text
from penstock.kernels.values.printing import summarize_ends
from penstock.kernels.values.strings import (
    character_starts,
    each_string,
    each_to_number,
    items_of,
    string_array,
)

_WHITESPACE: Final = b" \t\n\v\f\r"


@kernel("StringJoin")
def make_string_join(attrs: Attrs) -> Kernel:
    """Strings at the same place, one after the other; scalars stand for every place."""
    join = attrs.bytes("separator").join

    def string_join(*inputs: Value) -> Value:
        arrays = [item for item in inputs if shape_of(item) != ()]
        if not arrays:
            return join(items[0] for items in map(items_of, inputs))
        shape = arrays[0].shape
        for other in arrays:
            if other.shape != shape:
                raise InvalidArgumentError(
                    f"Input shapes do not match: {shape_text(shape)} vs. {shape_text(other.shape)}"
                )
        columns = [items_of(item) if shape_of(item) else None for item in inputs]
        size = arrays[0].size
        full = [
            items_of(item) * size if column is None else column
            for item, column in zip(inputs, columns, strict=True)
        ]
        return string_array(map(join, zip(*full, strict=True)), shape)

    return string_join


@kernel("ReduceJoin")
def make_reduce_join(attrs: Attrs) -> Kernel:
    """Strings joined along axes; the axis that is named first varies fastest."""
    join, keep_dims = attrs.bytes("separator").join, attrs.bool("keep_dims")

    def reduce_join(inputs: Value, axes: Value) -> Value:
        array = as_array(inputs)
        reduced = _reduced_axes(as_array(axes).ravel().tolist(), array.ndim)
        kept = [axis for axis in range(array.ndim) if axis not in reduced]
        size = int(np.prod([array.shape[axis] for axis in kept], dtype=np.int64))
        rows = array.transpose(kept + reduced[::-1])
        width = array.size // size if size else 0
        rows = rows.reshape(size, width)
        shape = [1 if axis in reduced else n for axis, n in enumerate(array.shape)]
        final = tuple(shape) if keep_dims else tuple(array.shape[axis] for axis in kept)
        return as_value(string_array((join(row.tolist()) for row in rows), final))

    return reduce_join


def _reduced_axes(axes: list[int], rank: int) -> list[int]:
    """The axes, counted from the front; in the order in which they were named."""
    for axis in axes:
        if not -rank <= axis < rank:
            raise OutOfRangeError(
                f"Invalid reduction dimension {axis} for input with {rank} dimension(s)"
            )
    counted: list[int] = []
    for axis in axes:
        if axis % rank in counted:
            raise InvalidArgumentError(f"Duplicate reduction dimension {axis}")
        counted.append(axis % rank)
    return counted


@kernel("StringLength")
def make_string_length(attrs: Attrs) -> Kernel:
    """Number of bytes, or of characters."""
    is_utf8 = attrs.str("unit") == "UTF8_CHAR"
    length: Callable[[bytes], int] = _count_characters if is_utf8 else len
    return each_to_number(length, np.dtype(np.int32))


def _count_characters(text: bytes) -> int:
    return len(character_starts(text))


@kernel("StringStrip")
def make_string_strip(_attrs: Attrs) -> Kernel:
    """Strings without the ASCII whitespace at both ends."""
    return each_string(lambda text: text.strip(_WHITESPACE))


@kernel("StringLower", "StringUpper")
def make_string_case(attrs: Attrs) -> Kernel:
    """Letters in the other case: those of ASCII, or with encoding utf-8 those of Unicode."""
    encoding = attrs.str("encoding")
    if encoding not in ("", "utf-8"):
        raise InvalidArgumentError(
            f"only utf-8 or '' (no encoding) is supported, received {encoding}"
        )
    is_lower = attrs.op.name == "StringLower"
    if not encoding:
        return each_string(bytes.lower if is_lower else bytes.upper)
    change = str.lower if is_lower else str.upper

    def changed(text: bytes) -> bytes:
        # TensorFlow hands the text on as C does, so it ends at its first zero.
        shown = text.partition(b"\0")[0]
        return change(shown.decode("utf-8", "replace")).encode()

    return each_string(changed)


@kernel("Substr")
def make_substr(attrs: Attrs) -> Kernel:
    """Parts of strings; positions may count from the end, and all inputs broadcast."""
    cut = _cut_characters if attrs.str("unit") == "UTF8_CHAR" else _cut_bytes

    def substr(inputs: Value, pos: Value, length: Value) -> Value:
        if shape_of(pos) != shape_of(length):
            raise InvalidArgumentError(
                "pos and len should have the same shape, got: "
                f"{shape_text(shape_of(pos))} vs. {shape_text(shape_of(length))}"
            )
        if isinstance(inputs, bytes) and shape_of(pos) == ():
            return cut(inputs, int(pos), int(length), 0)
        texts, starts, lengths = _broadcast(as_array(inputs), as_array(pos), as_array(length))
        parts = zip(texts.flat, starts.ravel().tolist(), lengths.ravel().tolist(), strict=True)
        return as_value(
            string_array((cut(*part, at) for at, part in enumerate(parts)), texts.shape)
        )

    return substr


def _broadcast(texts: Array, pos: Array, length: Array) -> tuple[Array, ...]:
    try:
        return tuple(np.broadcast_arrays(texts, pos, length))
    except ValueError:
        raise InvalidArgumentError(
            f"Incompatible shapes: {shape_text(texts.shape)} vs. {shape_text(pos.shape)}"
        ) from None


def _cut_bytes(text: bytes, pos: int, length: int, at: int) -> bytes:
    size = len(text)
    if not -size <= pos <= size:
        raise InvalidArgumentError(f"pos {pos} out of range for string {text!r} at index {at}")
    start = pos + size if pos < 0 else pos
    # A negative length is a very large one, since TensorFlow takes it without its sign.
    return text[start:] if length < 0 else text[start : start + length]


def _cut_characters(text: bytes, pos: int, length: int, at: int) -> bytes:
    starts = character_starts(text)
    size = len(starts)
    if not -size <= pos <= size:
        raise InvalidArgumentError(f"pos {pos} out of range for string at index {at}")
    first = pos + size if pos < 0 else pos
    edges = [*starts, len(text)]
    return text[edges[first] : edges[min(first + max(length, 0), size)]]


@kernel("StringFormat")
def make_string_format(attrs: Attrs) -> Kernel:
    """The template with summaries of the inputs in place of its placeholders."""
    limit, count = attrs.int("summarize"), len(attrs.input_types)
    parts = attrs.str("template").split(attrs.str("placeholder"))
    if len(parts) - 1 != count:
        raise InvalidArgumentError(
            f"num placeholders in template and num inputs must match: {len(parts) - 1} vs. {count}"
        )

    def string_format(*inputs: Any) -> bytes:
        shown = [summarize_ends(value, limit) for value in inputs]
        text = "".join(a + b for a, b in zip(parts, [*shown, ""], strict=True))
        return text.encode("utf-8", "replace")

    return string_format
