"""Numbers as strings, and strings as numbers.

In:   numbers, or strings that spell some.
Out:  the other.
Not:  follows no locale; the spellings are those of C.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from penstock.core import dtypes
from penstock.core.dtypes import DType
from penstock.core.values import Value, as_value
from penstock.errors import InvalidArgumentError
from penstock.kernels.api.attrs import Attrs
from penstock.kernels.api.registry import Kernel, kernel
from penstock.kernels.api.types import NUMBERS
from penstock.kernels.values.arrays import as_array, check_room
from penstock.kernels.values.spelled_numbers import spelled_float, spelled_integer
from penstock.kernels.values.strings import each_string, each_to_number, items_of, string_array

_PRINTABLE: Final = NUMBERS | {dtypes.bool_, dtypes.string, dtypes.variant}


@kernel("AsString", types={"T": _PRINTABLE})
def make_as_string(attrs: Attrs) -> Kernel:
    """Each element as C's printf spells it."""
    dtype = attrs.dtype("T")
    flag, width = _flag(attrs), attrs.int("width")
    if dtype is dtypes.string:
        pattern = _pattern("" if flag == "0" else flag, width, "", "s").encode()
        pad = each_string(lambda text: pattern % text)

        def padded(texts: Value) -> Value:
            check_room(len(items_of(texts)), max(width, 1), "characters")
            return pad(texts)

        return padded
    if dtype is dtypes.variant:
        return _each_object
    spell = _spelling(attrs, dtype, flag, width)
    widest = max(width, attrs.int("precision"), 1)

    def as_string(value: Value) -> Value:
        array = as_array(value)
        # Python has no numbers of 16 bits, and ``tolist`` would not make any others of them.
        plain = array.astype(np.float32) if dtype is dtypes.bfloat16 else array
        check_room(array.size, widest, "characters")
        items: list[Any] = plain.ravel().tolist()
        return as_value(string_array((spell(item).encode() for item in items), array.shape))

    return as_string


def _each_object(value: Value) -> Value:
    array = as_array(value)
    return as_value(string_array((item.described.encode() for item in array.flat), array.shape))


def _flag(attrs: Attrs) -> str:
    """The fill character, which is one of printf's flags."""
    fill = attrs.str("fill")
    if len(fill) > 1:
        raise InvalidArgumentError("Fill string must be one or fewer characters")
    if fill not in (*" +-0", ""):
        raise InvalidArgumentError(f'Fill argument not supported: "{fill}"')
    return fill


def _pattern(flag: str, width: int, precision: str, conversion: str) -> str:
    return f"%{flag}{width if width > -1 else ''}{precision}{conversion}"


def _spelling(attrs: Attrs, dtype: DType, flag: str, width: int) -> Callable[[Any], str]:
    """How one number of ``dtype`` is spelled."""
    scientific, shortest = attrs.bool("scientific"), attrs.bool("shortest")
    if scientific and shortest:
        raise InvalidArgumentError("Cannot select both scientific and shortest notation")
    if dtype.is_floating or dtype.is_complex:
        digits = f".{attrs.int('precision')}" if attrs.int("precision") > -1 else ""
        conversion = "e" if scientific else "g" if shortest else "f"
        real = _real_spelling(flag, width, digits, conversion)
        return real if dtype.is_floating else lambda z: f"({real(z.real)},{real(z.imag)})"
    if scientific or shortest:
        raise InvalidArgumentError(
            f"scientific and shortest format not supported for datatype {dtype}"
        )
    if attrs.int("precision") > -1:
        raise InvalidArgumentError(f"precision not supported for datatype {dtype}")
    if dtype is dtypes.bool_:
        return lambda item: "true" if item else "false"
    pattern = _pattern(flag, width, "", "d")
    return lambda item: pattern % item


def _real_spelling(flag: str, width: int, digits: str, conversion: str) -> Callable[[float], str]:
    pattern = _pattern(flag, width, digits, conversion)
    # C fills up infinities and NaN with blanks where Python takes zeros.
    unusual = _pattern(flag.replace("0", ""), width, digits, conversion)
    return lambda item: (pattern if math.isfinite(item) else unusual) % item


@kernel("StringToNumber")
def make_string_to_number(attrs: Attrs) -> Kernel:
    """The number that each string spells; whitespace around it does not matter."""
    dtype = attrs.dtype("out_type")
    read = _float_reader(dtype) if dtype.is_floating else _integer_reader(dtype)

    def to_number(text: bytes) -> Any:
        try:
            return read(text)
        except ValueError:
            spelled = text.decode("utf-8", "replace")
            raise InvalidArgumentError(
                f"StringToNumberOp could not correctly convert string: {spelled}"
            ) from None

    return each_to_number(to_number, dtype.numpy)


def _float_reader(dtype: DType) -> Callable[[bytes], Any]:
    return lambda text: spelled_float(text, dtype)


def _integer_reader(dtype: DType) -> Callable[[bytes], int]:
    bounds = np.iinfo(dtype.numpy)
    low, high, is_unsigned = int(bounds.min), int(bounds.max), bounds.min == 0

    def read(text: bytes) -> int:
        number = spelled_integer(text)
        if not low <= number <= high or (is_unsigned and b"-" in text):
            raise ValueError
        return number

    return read
