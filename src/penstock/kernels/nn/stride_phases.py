"""The ways in which the elements of images are under windows.

In:   how a window slides along a dimension.
Out:  groups of elements that meet the same elements of windows, in places one after the other.
Not:  computes nothing with images.

Windows that jump by two are over every other element in one way, and over those in between in
another.  For each way what is sent back from the places is a convolution.
"""

from __future__ import annotations

from typing import NamedTuple

from penstock.kernels.values.windows import Window


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
