"""How two values differ.

In:   two arrays, and how much is allowed.
Out:  nothing, or a ``Difference``: types, shapes, or by how much, and where most.
Not:  knows no node.

Numbers of floating point are equal if |a - b| <= atol + rtol · |b|, and both may be NaN.  A unit in
the last place (ULP) is the distance to the next number of the type (Goldberg, "What every computer
scientist should know about floating-point arithmetic", ACM Computing Surveys 23, 1991).
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from penstock.dataclass import dataclass

_INTEGER_OF: Final = {2: np.int16, 4: np.int32, 8: np.int64}


@dataclass(frozen=True, slots=True)
class Difference:
    """What is not equal."""

    text: str
    #: The largest distance; infinite where one is no number and the other is; 0 if types differ.
    absolute: float = 0.0
    #: The same, in units of the other number.
    relative: float = 0.0
    #: How many elements differ.
    count: int = 0


def difference(one: Any, other: Any, rtol: float = 0.0, atol: float = 0.0) -> Difference | None:
    """How ``one`` differs from ``other``; None if it does not by more than is allowed."""
    a, b = np.asarray(one), np.asarray(other)
    if a.dtype.kind in "OSU" or b.dtype.kind in "OSU":
        a, b = a.astype(object), b.astype(object)
    if a.dtype != b.dtype:
        return Difference(f"types differ: {a.dtype} and {b.dtype}")
    if a.shape != b.shape:
        return Difference(f"shapes differ: {list(a.shape)} and {list(b.shape)}")
    if a.dtype.kind in "fcV":
        return _of_floats(a, b, rtol, atol)
    differs = a != b
    count = int(np.count_nonzero(differs))
    if not count:
        return None
    at = tuple(int(i) for i in np.argwhere(differs)[0])
    return Difference(
        f"{count} of {a.size} elements differ, first at {list(at)}: {a[at]!r} and {b[at]!r}",
        count=count,
    )


def _of_floats(a: Any, b: Any, rtol: float, atol: float) -> Difference | None:
    if a.dtype.kind == "V":  # bfloat16, and types of eight bits
        ulps = None
        a, b = a.astype(np.float32), b.astype(np.float32)
    else:
        ulps = _ulps(a, b)
    with np.errstate(all="ignore"):
        away = np.abs(a - b)
        both_nan = np.isnan(a) & np.isnan(b)
        equal = (a == b) | both_nan | (away <= atol + rtol * np.abs(b))
        count = int(np.count_nonzero(~equal))
        if not count:
            return None
        away = np.where(equal, 0, np.where(np.isnan(away), np.inf, away))
        relative = np.where(away == 0, 0, away / np.abs(b))
    at = np.unravel_index(int(np.argmax(away)), away.shape)
    place = [int(i) for i in at]
    text = f"{count} of {a.size} elements differ, most at {place}: {a[at]!r} and {b[at]!r}"
    if ulps is not None and np.isfinite(away[at]):
        text += f", {int(ulps[at])} units in the last place"
    return Difference(text, float(away[at]), float(np.nanmax(relative)), count)


def _ulps(a: Any, b: Any) -> Any:
    """How many numbers of the type lie between two; None for complex numbers."""
    kind = _INTEGER_OF.get(a.dtype.itemsize)
    if a.dtype.kind != "f" or kind is None:
        return None
    return np.abs(_ordered(a, kind) - _ordered(b, kind))


def _ordered(values: Any, kind: Any) -> Any:
    """Numbers that are as far apart as there are numbers of floating point between them."""
    bits = np.ascontiguousarray(values).view(kind).reshape(values.shape).astype(object)
    lowest = int(np.iinfo(kind).min)
    return np.where(values < 0, lowest - bits, bits)
