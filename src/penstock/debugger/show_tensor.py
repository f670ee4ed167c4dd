"""A value as text: whole or in part, with its statistics, with what lies in a range marked.

In:   what is recorded of a tensor, and perhaps a part of it.
Out:  lines.
Not:  knows no terminal; text of strangers is escaped as Python writes it.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from penstock.debugger.history import Recorded
from penstock.printable import printable

#: More elements than this are abridged, unless all are wanted.
_ABRIDGED: Final = 1000
_COLUMNS: Final = 100
_BINS: Final = 10
_BAR: Final = 40

#: Closed ranges of numbers.
Ranges = Sequence[tuple[float, float]]


def title(one: Recorded) -> str:
    """What a record is of: ``x:0 float32[2] (Add) in loop[3]``."""
    where = f" in {one.frame}[{one.iterations[-1]}]" if one.iterations else ""
    return printable(f"{one.name} {type_text(one)} ({one.op}){where}")


def type_text(one: Recorded) -> str:
    """Type and shape; or what else there is to say."""
    if one.is_dead:
        return "dead"
    if one.value is None:
        return one.kind
    return f"{one.dtype}[{','.join(map(str, np.shape(one.value)))}]"


def brief(one: Recorded) -> str:
    """A value on one line."""
    if one.is_dead or one.value is None:
        return type_text(one)
    text = np.array2string(np.asarray(one.value), threshold=8, edgeitems=2, separator=" ")
    return printable(" ".join(text.split()))


def value_lines(value: Any, *, whole: bool = False, ranges: Ranges = ()) -> list[str]:
    """The elements, with those that lie in one of the ranges between asterisks."""
    array, threshold = np.asarray(value), sys.maxsize if whole else _ABRIDGED
    lines = []
    formats: Any = None
    if ranges and array.dtype.kind in "iufb":
        within = [np.count_nonzero((array >= low) & (array <= high)) for low, high in ranges]
        for (low, high), count in zip(ranges, within, strict=True):
            lines.append(f"{count} of {array.size} elements in [{low}, {high}]")
        formats = {kind: _marking(ranges) for kind in ("float_kind", "int_kind", "bool")}
    text = np.array2string(
        array, threshold=threshold, max_line_width=_COLUMNS, separator=", ", formatter=formats
    )
    return [*lines, *map(printable, text.split("\n"))]


def _marking(ranges: Ranges) -> Any:
    def show(element: Any) -> str:
        text = str(element)
        return f"*{text}*" if any(low <= element <= high for low, high in ranges) else text

    return show


def statistics_lines(value: Any) -> list[str]:
    """Counts of what is no number, of signs; least, largest, mean; and a histogram."""
    array = np.asarray(value)
    if array.dtype.kind == "b":
        count = int(np.count_nonzero(array))
        return [f"{array.size} elements: {count} true, {array.size - count} false"]
    if array.dtype.kind == "V":
        array = array.astype(np.float32)
    if array.dtype.kind not in "iuf" or not array.size:
        return [f"{array.size} elements, which are no numbers" if array.size else "no elements"]
    array = array.astype(np.float64).ravel()
    finite = array[np.isfinite(array)]
    counts = {
        "NaN": np.isnan(array), "-inf": array == -np.inf, "below 0": finite < 0, "0": finite == 0,
        "above 0": finite > 0, "+inf": array == np.inf,
    }  # fmt: skip
    told = ", ".join(f"{np.count_nonzero(c)} {name}" for name, c in counts.items() if c.any())
    lines = [f"{array.size} elements: {told}"]
    if finite.size:
        lines.append(
            f"min {finite.min():.6g}, max {finite.max():.6g}, mean {finite.mean():.6g}, "
            f"std {finite.std():.6g}"
        )
        lines += _histogram(finite)
    return lines


def _histogram(finite: Any) -> list[str]:
    """A bar for each tenth of the way from the least to the largest."""
    low, high = float(finite.min()), float(finite.max())
    if low == high or not np.isfinite(high - low):
        return []
    counts, edges = np.histogram(finite, _BINS)
    most = counts.max()
    return [
        f"{edge:12.5g} {'#' * int(np.ceil(count / most * _BAR))} {count}".rstrip()
        for edge, count in zip(edges, counts, strict=False)
    ]
