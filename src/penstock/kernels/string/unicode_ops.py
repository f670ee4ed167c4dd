"""Text in the encodings of Unicode, and in older ones.

In:   strings in some encoding; or code points with row splits.
Out:  code points, strings in another encoding, scripts.
Not:  knows no locale; reads no bytes itself (text_readers).
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import Final

import numpy as np

from penstock.core.values import Array, Value, as_value, shape_of
from penstock.errors import InvalidArgumentError
from penstock.kernels.api.attrs import Attrs
from penstock.kernels.api.registry import Kernel, kernel
from penstock.kernels.string.text_readers import Char, is_scalar, reader_of
from penstock.kernels.string.unicode_scripts import scripts
from penstock.kernels.values.arrays import as_array, shape_text
from penstock.kernels.values.strings import items_of, string_array

_UTF_OUT: Final = {"UTF-8": "utf-8", "UTF-16-BE": "utf-16-be", "UTF-32-BE": "utf-32-be"}

#: What stands in UTF-8 for half of a pair.
_HALVES: Final = dict.fromkeys(range(0xD800, 0xE000), 0xFFFD)


def _reader(attrs: Attrs) -> Callable[[Iterable[bytes]], Iterator[list[tuple[int, int]]]]:
    """How the strings of a batch are read: their code points, and where they begin."""
    read, errors = reader_of(attrs.str("input_encoding")), attrs.str("errors")
    spare, hides_controls = attrs.int("replacement_char"), attrs.bool("replace_control_characters")
    _check_replacement(spare)
    # Of what shall be replaced, a strict Transcode refuses controls too, the others do not.
    refused = (None, *range(0x20)) if attrs.op.name == "UnicodeTranscode" else (None,)

    def sound(chars: list[Char]) -> Iterator[tuple[int, int]]:
        for code, at in chars:
            if code is not None and not (hides_controls and code < 0x20):
                yield code, at
            elif errors == "strict" and code in refused:
                raise InvalidArgumentError("Invalid formatting on input string")
            elif errors != "ignore":
                yield spare, at

    return lambda texts: (list(sound(chars)) for chars in read(texts))


def _check_replacement(code: int) -> None:
    if not 0 <= code <= sys.maxunicode:
        raise InvalidArgumentError("replacement_char out of unicode codepoint range")


def _writer(attrs: Attrs) -> Callable[[Iterator[int]], bytes]:
    """How code points are written; UTF-8 has no halves of pairs, which may be replacements."""
    codec = _UTF_OUT[attrs.str("output_encoding")]
    if codec != "utf-8":
        return lambda chars: "".join(map(chr, chars)).encode(codec, "surrogatepass")
    return lambda chars: _utf8("".join(map(chr, chars)))


def _utf8(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:
        return text.translate(_HALVES).encode()


# -- decoding and encoding -------------------------------------------------------------


@kernel("UnicodeDecode", "UnicodeDecodeWithOffsets")
def make_unicode_decode(attrs: Attrs) -> Kernel:
    """Code points of all strings, with row splits; and where in its string each begins."""
    read, dtype = _reader(attrs), attrs.dtype("Tsplits").numpy
    has_offsets = attrs.op.name == "UnicodeDecodeWithOffsets"

    def decode(texts: Value) -> tuple[Array, ...]:
        rows = list(read(items_of(texts)))
        splits = np.zeros(len(rows) + 1, dtype)
        np.cumsum([len(row) for row in rows], out=splits[1:])
        codes = np.array([code for row in rows for code, _ in row], np.int32)
        if not has_offsets:
            return splits, codes
        offsets = [at for row in rows for _, at in row]
        return splits, codes, np.array(offsets, np.int64)

    return decode


@kernel("UnicodeTranscode")
def make_unicode_transcode(attrs: Attrs) -> Kernel:
    """The same text in another encoding."""
    read, write = _reader(attrs), _writer(attrs)

    def transcode(texts: Value) -> Value:
        rows = (write(code for code, _ in row) for row in read(items_of(texts)))
        return as_value(string_array(rows, shape_of(texts)))

    return transcode


@kernel("UnicodeEncode")
def make_unicode_encode(attrs: Attrs) -> Kernel:
    """A string for each row of code points."""
    write, errors, spare = _writer(attrs), attrs.str("errors"), attrs.int("replacement_char")
    _check_replacement(spare)

    def sound(codes: list[int]) -> Iterator[int]:
        for code in codes:
            if is_scalar(code):
                yield code
            elif errors == "strict":
                raise InvalidArgumentError(
                    "Code point is out of range for Unicode, or is a surrogate."
                )
            elif errors == "replace":
                yield spare

    def encode(values: Value, splits: Value) -> Array:
        if values.ndim != 1 or splits.ndim != 1:
            raise InvalidArgumentError(
                "Both the input_tensor and input_splits should be of rank 1, not of shapes "
                f"{shape_text(values.shape)} and {shape_text(splits.shape)}"
            )
        codes, edges = values.tolist(), splits.tolist()
        _check_splits(edges, len(codes))
        rows = [write(sound(codes[a:b])) for a, b in itertools.pairwise(edges)]
        return string_array(rows, (len(rows),))

    return encode


def _check_splits(splits: list[int], count: int) -> None:
    if not splits:
        raise InvalidArgumentError(
            "Input_splits should contain elements, but given input_values has 0 elements"
        )
    if splits[0] != 0:
        raise InvalidArgumentError("First value in input_splits must be zero.")
    if splits[-1] != count:
        raise InvalidArgumentError(
            "Last value in input_splits must be equal to length of input_tensor."
        )
    if any(b < a for a, b in itertools.pairwise(splits)):
        raise InvalidArgumentError("Values in input_splits must be equal or in ascending order.")


# -- scripts ---------------------------------------------------------------------------


@kernel("UnicodeScript")
def make_unicode_script(_attrs: Attrs) -> Kernel:
    """ICU's number of the script that each code point belongs to."""
    return lambda codes: as_value(scripts(as_array(codes)))
