"""``x[1, ..., ::2]`` as the arguments of a StridedSlice.

In:   what stands between the brackets: integers, slices, Ellipsis, None, scalar tensors.
Out:  begins, ends, strides and the masks that say which of them count.
Not:  makes no nodes; a bound that is no integer is passed on as it is.
"""

from __future__ import annotations

import operator
from dataclasses import field
from typing import Any

import numpy as np

from penstock.dataclass import dataclass
from penstock.errors import InvalidArgumentError


@dataclass(frozen=False, slots=True)
class Slices:
    """The arguments of one StridedSlice; bit i of a mask speaks of entry i."""

    begin: list[Any] = field(default_factory=list)
    end: list[Any] = field(default_factory=list)
    strides: list[Any] = field(default_factory=list)
    begin_mask: int = 0
    end_mask: int = 0
    ellipsis_mask: int = 0
    new_axis_mask: int = 0
    shrink_axis_mask: int = 0

    def add(self, begin: Any, end: Any, stride: Any) -> None:
        """Append one entry."""
        self.begin.append(begin)
        self.end.append(end)
        self.strides.append(stride)

    def inputs(self) -> tuple[Any, Any, Any]:
        """Begins, ends and strides; arrays where every bound is an integer."""
        begin, end, strides = map(_integers, (self.begin, self.end, self.strides))
        return begin, end, strides

    def masks(self) -> dict[str, int]:
        """The masks by the names of their attributes."""
        return {
            "begin_mask": self.begin_mask,
            "end_mask": self.end_mask,
            "ellipsis_mask": self.ellipsis_mask,
            "new_axis_mask": self.new_axis_mask,
            "shrink_axis_mask": self.shrink_axis_mask,
        }


def parse_slices(key: Any) -> Slices:
    """Read what stands between the brackets.

    Raises:
        TypeError: a truth value, text or a float is no index.
        InvalidArgumentError: more than one Ellipsis.

    """
    slices = Slices()
    for place, item in enumerate(key if isinstance(key, tuple) else (key,)):
        bit = 1 << place
        if item is Ellipsis:
            _add_ellipsis(slices, bit)
        elif item is None:
            slices.new_axis_mask |= bit
            slices.add(0, 0, 1)
        elif isinstance(item, slice):
            _add_slice(slices, bit, item)
        else:
            _check_index(item)
            slices.shrink_axis_mask |= bit
            slices.add(item, item + 1, 1)
    return slices


def _add_ellipsis(slices: Slices, bit: int) -> None:
    if slices.ellipsis_mask:
        raise InvalidArgumentError("An index has more than one Ellipsis")
    slices.ellipsis_mask |= bit
    slices.add(0, 0, 1)


def _add_slice(slices: Slices, bit: int, item: slice) -> None:
    for bound in (item.start, item.stop, item.step):
        if bound is not None:
            _check_index(bound)
    if item.start is None:
        slices.begin_mask |= bit
    if item.stop is None:
        slices.end_mask |= bit
    slices.add(
        0 if item.start is None else item.start,
        0 if item.stop is None else item.stop,
        1 if item.step is None else item.step,
    )


def _check_index(item: Any) -> None:
    if isinstance(item, (bool, np.bool_, str, bytes, float, list)):
        raise TypeError(
            f"{item!r} is no index of a tensor; use integers, slices, Ellipsis, None or "
            "scalar integer tensors, and ops.gather or ops.where for anything else"
        )


def _integers(bounds: list[Any]) -> Any:
    try:
        return np.array([operator.index(bound) for bound in bounds], np.int32)
    except TypeError:
        return bounds
