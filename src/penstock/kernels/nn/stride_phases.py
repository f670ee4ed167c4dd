"""The ways in which the elements of images are under windows.

In:   how a window slides along a dimension.
Out:  groups of elements that meet the same elements of windows, in places one after the other.
Not:  computes nothing with images.

Windows that jump by two are over every other element in one way, and over those in between in
another.  For each way what is sent back from the places is a convolution; or for all of them
together, with the channels of each.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from penstock.kernels.values.windows import Window

#: Ways together may have so many times the products that they have one by one.
_MOST_WASTE: Final = 1.5


class StridePhase(NamedTuple):
    """Elements along a dimension that are under the windows in the same way."""

    first: int
    stride: int
    size: int
    #: The window's first element that meets them, and how many do.
    at: int
    taps: int
    #: Zeros that are wanted around what the places got.
    margins: tuple[int, int]
    #: Whether no convolution gives them.
    is_odd: bool


def ways_along(window: Window, length: int, places: int) -> list[StridePhase]:
    """The ways along a dimension, of so many elements and places."""
    stride, fit = window.stride, window.fit(length)
    found = []
    for at in range(stride):
        taps, first = len(range(at, window.size, stride)), (at - fit.before) % stride
        size, missed = len(range(first, length, stride)), (first + fit.before - at) // stride
        before, after = (taps - 1) * window.dilation - missed, missed + size - places
        is_beyond = min(before, after) < -places and taps > 0 and size > 0
        is_odd = is_beyond or (stride > 1 and window.dilation > 1)
        found.append(StridePhase(first, stride, size, at, taps, (before, after), is_odd))
    return found


class SideBySide(NamedTuple):
    """All ways along a dimension as one convolution.

    A place of its results has the channels of as many elements as the stride is, in their order.
    Those of the last place may be beyond the dimension.
    """

    ways: tuple[StridePhase, ...]
    taps: int
    #: Where the taps of each way begin among these.
    begins: tuple[int, ...]
    margins: tuple[int, int]

    @property
    def has_gaps(self) -> bool:
        """Whether some ways have no taps of their own for what others see."""
        return any(way.taps < self.taps for way in self.ways)


def side_by_side(ways: Sequence[StridePhase], places: int) -> SideBySide | None:
    """The ways along a dimension of so many places together; None if that is not worthwhile."""
    before, size = max(way.margins[0] for way in ways), max(way.size for way in ways)
    begins = tuple(before - way.margins[0] for way in ways)
    taps = max(begin + way.taps for begin, way in zip(begins, ways, strict=True))
    if len(ways) == 1 or taps * len(ways) > _MOST_WASTE * sum(way.taps for way in ways):
        return None
    margins = before, size + taps - 1 - places - before
    return SideBySide(tuple(ways), taps, begins, margins)
