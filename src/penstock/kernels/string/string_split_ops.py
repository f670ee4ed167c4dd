"""Strings cut into parts, and parts joined again by segment or as n-grams.

In:   strings.
Out:  more strings, as a sparse matrix or with row splits; or fewer.
Not:  knows no regular expressions.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Final

import numpy as np

from penstock.core.values import Array, Value, as_value, shape_of
from penstock.errors import InvalidArgumentError, OutOfRangeError
from penstock.kernels.api.attrs import Attrs
from penstock.kernels.api.registry import Kernel, kernel
from penstock.kernels.values.arrays import as_array, check_new, shape_text
from penstock.kernels.values.strings import items_of, string_array

#: Each byte as a text.
_BYTES: Final = [bytes([value]) for value in range(256)]
_SPACE: Final = b" \t\n\v\f\r"
_NO_SPACE: Final = bytes.maketrans(_SPACE, b" " * len(_SPACE))


def _sparse_rows(rows: Sequence[Sequence[bytes]]) -> tuple[Array, Array, Array]:
    """Rows of different lengths as a sparse matrix."""
    sizes = np.fromiter(map(len, rows), np.int64, len(rows))
    count = int(sizes.sum())
    indices = np.empty((count, 2), np.int64)
    indices[:, 0] = np.repeat(np.arange(len(rows)), sizes)
    indices[:, 1] = np.arange(count) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    values = string_array(itertools.chain.from_iterable(rows), (count,))
    return indices, values, np.array([len(rows), sizes.max(initial=0)], np.int64)


def _vector(value: Value) -> list[bytes]:
    if len(shape_of(value)) != 1:
        raise InvalidArgumentError(f"input must be a vector, got shape: {_shape(value)}")
    return items_of(value)


def _scalar(value: Value, name: str) -> bytes:
    if shape_of(value) != ():
        raise InvalidArgumentError(f"{name} must be a scalar, got shape: {_shape(value)}")
    return items_of(value)[0]


def _shape(value: Value) -> str:
    return shape_text(shape_of(value))


@kernel("StringSplit")
def make_string_split(attrs: Attrs) -> Kernel:
    """Parts between any of the delimiter's bytes; single bytes if there is none."""
    skips_empty = attrs.bool("skip_empty")

    def string_split(inputs: Value, delimiter: Value) -> tuple[Array, Array, Array]:
        texts, stops = _vector(inputs), _scalar(delimiter, "delimiter")
        rows = [_split_at_bytes(text, stops) for text in texts]
        if skips_empty:
            rows = [list(filter(None, row)) for row in rows]
        return _sparse_rows(rows)

    return string_split


def _split_at_bytes(text: bytes, stops: bytes) -> list[bytes]:
    if not stops:
        return list(map(_BYTES.__getitem__, text))
    if not text:
        return []
    table = bytes.maketrans(stops, stops[:1] * len(stops))
    edges = itertools.accumulate(len(part) + 1 for part in text.translate(table).split(stops[:1]))
    starts = [0, *edges]
    return [text[a : b - 1] for a, b in itertools.pairwise(starts)]


@kernel("StringSplitV2")
def make_string_split_v2(attrs: Attrs) -> Kernel:
    """Parts between separators; between runs of whitespace if there is none."""
    limit = attrs.int("maxsplit")

    def string_split_v2(inputs: Value, sep: Value) -> tuple[Array, Array, Array]:
        texts, stop = _vector(inputs), _scalar(sep, "sep")
        if stop:
            rows = [text.split(stop, max(limit, -1)) for text in texts]
        else:
            rows = [_split_at_space(text, limit) for text in texts]
        return _sparse_rows(rows)

    return string_split_v2


def _split_at_space(text: bytes, limit: int) -> list[bytes]:
    """At most ``limit`` cuts; what follows the last one is kept, even if it is empty."""
    if limit < 0:
        return text.translate(_NO_SPACE).split()
    if limit == 0:
        return [text]
    parts: list[bytes] = []
    rest = text.lstrip(_SPACE)
    while rest:
        size = len(rest.translate(_NO_SPACE).partition(b" ")[0])
        parts.append(rest[:size])
        rest = rest[size:].lstrip(_SPACE)
        if len(parts) == limit:
            return [*parts, rest]
    return parts


@kernel("UnsortedSegmentJoin")
def make_unsorted_segment_join(attrs: Attrs) -> Kernel:
    """Strings of the same segment, joined in the order in which they stand."""
    separator = attrs.bytes("separator")

    def join(inputs: Value, segment_ids: Value, num_segments: Value) -> Value:
        texts, ids = as_array(inputs), as_array(segment_ids)
        count = _count_in(num_segments)
        _check_segments(texts, ids, count)
        shape = (count, *texts.shape[ids.ndim :])
        check_new(shape, texts.dtype)
        width = math.prod(texts.shape[ids.ndim :])
        rows = texts.reshape(ids.size, width)
        parts: list[list[list[bytes]]] = [[[] for _ in range(width)] for _ in range(count)]
        for segment, row in zip(ids.ravel().tolist(), rows.tolist(), strict=True):
            for cell, text in zip(parts[segment], row, strict=True):
                cell.append(text)
        cells = itertools.chain.from_iterable(parts)
        return as_value(string_array(map(separator.join, cells), shape))

    return join


def _count_in(num_segments: Value) -> int:
    if num_segments.ndim:
        shown = shape_text(num_segments.shape)
        raise InvalidArgumentError(f"Number of segments must be a scalar, not of shape {shown}")
    if num_segments < 0:
        raise InvalidArgumentError(
            f"Number of segments must be non-negative but got {num_segments}"
        )
    return int(num_segments)


def _check_segments(texts: Array, ids: Array, count: int) -> None:
    if ids.ndim == 0:
        raise InvalidArgumentError("Segment_id cannot have rank 0")
    if ids.ndim > texts.ndim:
        raise OutOfRangeError(
            f"Invalid segment_id rank {ids.ndim} for input with {texts.ndim} dimension(s)"
        )
    for axis, (have, want) in enumerate(zip(ids.shape, texts.shape, strict=False)):
        if have != want:
            raise InvalidArgumentError(
                f"Segment dimension is {have} while input dimension is {want} in rank {axis}"
            )
    if ids.size and not (ids.min() >= 0 and ids.max() < count):
        raise InvalidArgumentError(
            "segment_ids are not allowed to exceed num_segments or to have negative values."
        )


@kernel("StringNGrams")
def make_string_ngrams(attrs: Attrs) -> Kernel:
    """All n-grams of the rows of a ragged matrix of strings, of each width in turn."""
    widths = attrs.list("ngram_widths")
    if any(width <= 0 for width in widths):
        raise InvalidArgumentError("ngram_widths must contain positive values")
    row_grams = _row_grams(attrs, widths)
    dtype = attrs.dtype("Tsplits").numpy

    def ngrams(data: Value, data_splits: Value) -> tuple[Array, Array]:
        tokens, splits = as_array(data).tolist(), as_array(data_splits).tolist()
        _check_splits(splits, len(tokens))
        rows = [row_grams(tokens[a:b]) for a, b in itertools.pairwise(splits)]
        ends = np.zeros(len(splits), dtype)
        np.cumsum([len(row) for row in rows], out=ends[1:])
        grams = [gram for row in rows for gram in row]
        return string_array(grams, (len(grams),)), ends

    return ngrams


def _row_grams(attrs: Attrs, widths: tuple[int, ...]) -> Callable[[list[bytes]], list[bytes]]:
    separator, pad_width = attrs.bytes("separator"), attrs.int("pad_width")
    left, right = attrs.bytes("left_pad"), attrs.bytes("right_pad")
    keeps_short = attrs.bool("preserve_short_sequences")

    def padding(width: int) -> int:
        return width - 1 if pad_width < 0 else min(pad_width, width - 1)

    def of_width(row: list[bytes], width: int) -> list[bytes]:
        pad = padding(width)
        padded = [left] * pad + row + [right] * pad
        if len(padded) < width:
            return []
        tokens = [itertools.islice(padded, at, None) for at in range(width)]
        return list(map(separator.join, zip(*tokens, strict=False)))

    def row_grams(row: list[bytes]) -> list[bytes]:
        grams = [gram for width in widths for gram in of_width(row, width)]
        if grams or not keeps_short or not row or not widths:
            return grams
        # A row too short for any n-gram is one by itself, with all the padding there is.
        pad = max(pad_width, 0)
        return [separator.join([left] * pad + row + [right] * pad)]

    return row_grams


def _check_splits(splits: list[int], count: int) -> None:
    if not splits:
        return
    if splits[0] != 0:
        raise InvalidArgumentError(f"First split value must be 0, got {splits[0]}")
    for before, split in itertools.pairwise(splits):
        if not before <= split <= count:
            raise InvalidArgumentError(
                f"Invalid split value {split}, must be in [{before}, {count}]"
            )
    if splits[-1] != count:
        raise InvalidArgumentError(
            f"Last split value must be data size. Expected {count}, got {splits[-1]}"
        )
