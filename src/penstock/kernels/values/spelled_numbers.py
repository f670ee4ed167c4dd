"""Numbers that strings spell, as C spells them.

In:   bytes.
Out:  integers; floats of a type, the nearest to what is spelled; ValueError if that is no number.
Not:  knows no ranges of integers, and follows no locale.
"""

from __future__ import annotations

import math
import re
from decimal import Decimal
from fractions import Fraction
from typing import Any, Final

import numpy as np

from penstock.core import dtypes
from penstock.core.dtypes import DType

_INTEGER: Final = re.compile(rb"\s*([+-]?)0*([0-9]+)\s*")
#: No integer of any type has more, zeros in front aside.
_MOST_DIGITS: Final = 20
_DECIMAL: Final = re.compile(
    rb"\s*[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)(e[+-]?[0-9]+)?\s*", re.IGNORECASE
)
_HEXADECIMAL: Final = re.compile(
    rb"\s*[+-]?0x([0-9a-f]+\.?[0-9a-f]*|\.[0-9a-f]+)(p[+-]?[0-9]+)?\s*", re.IGNORECASE
)
_INFINITE: Final = re.compile(rb"\s*[+-]?inf(inity)?\s*", re.IGNORECASE)
#: C allows a remark in parentheses.
_NAN: Final = re.compile(rb"\s*[+-]?nan(\(\w*\))?\s*", re.IGNORECASE)
#: What would come after float32's largest number, and in whose place infinity stands.
_BEYOND: Final = 2.0**128


def spelled_integer(text: bytes) -> int:
    """The integer in a text, which may have white space around it."""
    found = _INTEGER.fullmatch(text)
    # Python takes more time for more digits, and refuses very many.
    if not found or len(found[2]) > _MOST_DIGITS:
        raise ValueError(f"{text!r} is not an integer")
    return int(found[1] + found[2])


def spelled_float(text: bytes, dtype: DType) -> Any:
    """The number of type ``dtype`` that is nearest to what a text spells."""
    value = _float64(text)
    if dtype is dtypes.float32:
        return _float32(value, text)
    return dtype.numpy.type(value)


def _float64(text: bytes) -> float:
    if _DECIMAL.fullmatch(text):
        return float(text)
    if _HEXADECIMAL.fullmatch(text):
        return _hexadecimal(text)
    if _INFINITE.fullmatch(text):
        return float(text)
    if _NAN.fullmatch(text):
        return math.nan
    raise ValueError(f"{text!r} is not a number")


def _hexadecimal(text: bytes) -> float:
    try:
        return float.fromhex(text.decode())
    except OverflowError:
        return -math.inf if text.lstrip().startswith(b"-") else math.inf


def _float32(value: float, text: bytes) -> np.float32:
    """The float32 nearest to a text whose nearest float64 is ``value``.

    That is the one nearest to ``value``, unless this lies in the middle between two.
    """
    with np.errstate(over="ignore"):
        narrow = np.float32(value)
    if not math.isfinite(value) or float(narrow) == value:
        return narrow
    side = -math.inf if float(narrow) > value else math.inf
    other = np.nextafter(narrow, np.float32(side))
    low, high = (min(max(float(end), -_BEYOND), _BEYOND) for end in (narrow, other))
    exact = _exact(text) if low + high == 2 * value else value
    if exact == value:
        return narrow
    return max(narrow, other) if exact > value else min(narrow, other)


def _exact(text: bytes) -> Fraction | Decimal:
    """What a text spells, however many digits it has."""
    spelled = text.decode().strip().lower()
    sign = -1 if spelled.startswith("-") else 1
    unsigned = spelled.lstrip("+-")
    if not unsigned.startswith("0x"):
        return Decimal(spelled)
    digits, _, exponent = unsigned.removeprefix("0x").partition("p")
    whole, _, part = digits.partition(".")
    return sign * int(whole + part, 16) * Fraction(2) ** (int(exponent or 0) - 4 * len(part))
