"""Text in the encodings of Unicode, and in older ones.

In:   strings in some encoding; or code points with row splits.
Out:  code points, strings in another encoding, scripts.
Not:  knows no locale; converts what Python has a codec for.
"""

from __future__ import annotations

import codecs
import itertools
from collections.abc import Callable, Iterator
from typing import Final

import numpy as np

from penstock.core.values import Array, Value, as_value
from penstock.errors import InvalidArgumentError
from penstock.kernels.arrays import as_array
from penstock.kernels.attrs import Attrs
from penstock.kernels.registry import Kernel, kernel
from penstock.kernels.string.unicode_scripts import scripts
from penstock.kernels.strings import each_string, items_of, string_array

#: A code point, or None for bytes that mean nothing; and where its bytes begin.
_Char = tuple[int | None, int]
_UTF_OUT: Final = {"UTF-8": "utf-8", "UTF-16-BE": "utf-16-be", "UTF-32-BE": "utf-32-be"}
_LAST: Final = 0x10FFFF


def _codec(name: str) -> str:
    """Python's name for an encoding."""
    try:
        return codecs.lookup(_UTF_OUT.get(name, name)).name
    except (LookupError, ValueError):
        raise InvalidArgumentError(
            f"Could not create converter for input encoding: {name}"
        ) from None


def _characters(text: bytes, codec: str) -> Iterator[_Char]:
    """The characters of a text; each stretch of bytes that means nothing counts as one."""
    at = 0
    while at < len(text):
        try:
            good, bad, size = text[at:].decode(codec), 0, len(text) - at
        except UnicodeDecodeError as error:
            good, bad = text[at : at + error.start].decode(codec), error.end - error.start
            size = error.start
        place = at
        for char in good:
            yield ord(char), place
            place += len(char.encode(codec)) if codec == "utf-8" else _width(char, codec)
        at += size
        if bad:
            yield None, at
            at += bad


def _width(char: str, codec: str) -> int:
    """Bytes of one character, without a mark of byte order."""
    plain = {"utf-16": "utf-16-le", "utf-32": "utf-32-le", "utf-8-sig": "utf-8"}
    return len(char.encode(plain.get(codec, codec)))


def _reader(attrs: Attrs) -> Callable[[bytes], list[tuple[int, int]]]:
    """How a string is read: its code points, and where they begin."""
    codec, errors = _codec(attrs.str("input_encoding")), attrs.str("errors")
    spare, hides_controls = attrs.int("replacement_char"), attrs.bool("replace_control_characters")
    _check_replacement(spare)

    def read(text: bytes) -> list[tuple[int, int]]:
        chars: list[tuple[int, int]] = []
        for code, at in _characters(text, codec):
            if code is None and errors == "strict":
                raise InvalidArgumentError("Invalid formatting on input string")
            is_bad = code is None or (hides_controls and code < 0x20)
            if code is None or is_bad:
                if errors == "ignore":
                    continue
                code = spare
            chars.append((code, at))
        return chars

    return read


def _check_replacement(code: int) -> None:
    if not 0 <= code <= _LAST or 0xD800 <= code <= 0xDFFF:
        raise InvalidArgumentError("replacement_char out of unicode codepoint range")


def _writer(attrs: Attrs) -> Callable[[Iterator[int]], bytes]:
    codec = _UTF_OUT[attrs.str("output_encoding")]
    return lambda chars: "".join(map(chr, chars)).encode(codec, "surrogatepass")


# -- decoding and encoding -------------------------------------------------------------


@kernel("UnicodeDecode", "UnicodeDecodeWithOffsets")
def make_unicode_decode(attrs: Attrs) -> Kernel:
    """Code points of all strings, with row splits; and where in its string each begins."""
    read, dtype = _reader(attrs), attrs.dtype("Tsplits").numpy
    has_offsets = attrs.op.name == "UnicodeDecodeWithOffsets"

    def decode(texts: Value) -> tuple[Array, ...]:
        rows = [read(text) for text in items_of(texts)]
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
    return each_string(lambda text: write(code for code, _ in read(text)))


@kernel("UnicodeEncode")
def make_unicode_encode(attrs: Attrs) -> Kernel:
    """A string for each row of code points."""
    write, errors, spare = _writer(attrs), attrs.str("errors"), attrs.int("replacement_char")
    _check_replacement(spare)

    def sound(codes: list[int]) -> Iterator[int]:
        for code in codes:
            if 0 <= code <= _LAST and not 0xD800 <= code <= 0xDFFF:
                yield code
            elif errors == "strict":
                raise InvalidArgumentError(
                    "Code point is out of range for Unicode, or is a surrogate."
                )
            elif errors == "replace":
                yield spare

    def encode(values: Value, splits: Value) -> Array:
        codes, edges = as_array(values).tolist(), as_array(splits).tolist()
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
