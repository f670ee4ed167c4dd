"""Windows that slide over the spatial dimensions of an array.

In:   an array with the batch first, then the spatial dimensions, then the depth.
Out:  how often a window fits and what has to be padded; views of what is under it.
Not:  registers no kernel; multiplies, adds and compares nothing.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from numpy.lib.stride_tricks import as_strided

from penstock.core.values import Array, Value
from penstock.dataclass import dataclass
from penstock.kernels.api.attrs import Attrs
from penstock.kernels.values.arrays import check_new

#: Elements of a window that are more than it pays to go through one by one.
_LARGE: Final = 64


@dataclass(frozen=False, slots=True)  # not frozen: made in every call
class Fit:
    """How often a window fits along a dimension, and the padding that it needs there."""

    places: int
    before: int
    after: int


@dataclass(frozen=True, slots=True)
class Window:
    """How a window slides along one dimension."""

    size: int
    stride: int = 1
    #: Distance of neighbouring elements of the window.
    dilation: int = 1
    #: Elements added at either end; None adds what lets it start in every stride ("SAME").
    margins: tuple[int, int] | None = (0, 0)

    @property
    def extent(self) -> int:
        """From its first element to its last."""
        return (self.size - 1) * self.dilation + 1

    def fit(self, length: int) -> Fit:
        """How it fits along ``length`` elements; raises ValueError if it never does."""
        if self.margins is None:
            places = -(-length // self.stride)
            missing = max((places - 1) * self.stride + self.extent - length, 0) if places else 0
            return Fit(places, missing // 2, missing - missing // 2)
        before, after = self.margins
        room = length + before + after - self.extent + self.stride
        if room <= -self.stride:
            raise ValueError(
                f"Computed output size would be negative: {-(-room // self.stride)} "
                f"[input_size: {length}, effective_filter_size: {self.extent}, "
                f"stride: {self.stride}]"
            )
        return Fit(max(room, 0) // self.stride, before, after)

    def trimmed(self, length: int) -> Window:
        """The same without elements that meet nothing but padding, wherever the window is.

        For windows whose elements lie side by side.  So none is much longer than what it slides
        along, whatever a graph says.
        """
        if self.size <= length:
            return self
        fit = self.fit(length)
        if not fit.places:
            return self
        first = min(max(fit.before - (fit.places - 1) * self.stride, 0), self.size - 1)
        last = max(min(fit.before + length, self.size) - 1, first)
        margins = fit.before - first, fit.after - (self.size - 1 - last)
        return Window(last + 1 - first, self.stride, margins=margins)


def turned_windows(
    windows: Sequence[Window], shape: Sequence[int], places: Sequence[int]
) -> tuple[Window, ...] | None:
    """The windows by which elements see the places that see them; None if that is no good way.

    Elements of the window come in the opposite order there.  Places must not be strides apart, and
    not be few: each element would see little else than what is around them.  Nor may a window be
    large, since all of it is gone through.

    Args:
        windows: how places see elements.
        shape: of images, the batch first and the depth last.
        places: what it is for the places.

    """
    turned = []
    if math.prod(window.size for window in windows) > _LARGE:
        return None
    if 2 * math.prod(places[1:-1]) < math.prod(shape[1:-1]):
        return None
    for window, length, count in zip(windows, shape[1:-1], places[1:-1], strict=True):
        before = window.extent - 1 - window.fit(length).before
        after = length - count - before + window.extent - 1
        if window.stride != 1 or min(before, after) < 0:
            return None
        turned.append(Window(window.size, 1, window.dilation, (before, after)))
    return tuple(turned)


def trimmed(windows: Sequence[Window], shape: Sequence[int]) -> list[Window]:
    """Windows over images of a shape without what only ever meets padding."""
    return [w.trimmed(n) for w, n in zip(windows, shape[1:-1], strict=True)]


def pad(array: Array, fits: Sequence[Fit], fill: Value) -> Array:
    """Add ``fill`` at the ends of the spatial dimensions; the array itself if none is due."""
    if not any(fit.before or fit.after for fit in fits):
        return array
    inner = array.shape[1 : 1 + len(fits)]
    outer = [n + fit.before + fit.after for n, fit in zip(inner, fits, strict=True)]
    shape = (array.shape[0], *outer, *array.shape[1 + len(fits) :])
    check_new(shape, array.dtype)
    padded = np.empty(shape, array.dtype)
    inside: tuple[slice, ...] = (slice(None),)
    for size, fit in zip(inner, fits, strict=True):
        if fit.before:
            padded[(*inside, slice(None, fit.before))] = fill
        if fit.after:
            padded[(*inside, slice(-fit.after, None))] = fill
        inside = (*inside, slice(fit.before, fit.before + size))
    padded[inside] = array
    return padded


def cut(padded: Array, fits: Sequence[Fit], shape: Sequence[int]) -> Array:
    """What is inside the padding of images of this shape; a view."""
    facts = zip(fits, shape[1:-1], strict=True)
    return padded[(slice(None), *(slice(fit.before, fit.before + n) for fit, n in facts))]


def centred(array: Array, windows: Sequence[Window]) -> Array:
    """The array without what windows skip first, as TensorFlow has it in three dimensions.

    "SAME" windows that are smaller than their strides do not start with the first element
    there: half of what no window sees is skipped.
    """
    firsts = [0]
    for window, length in zip(windows, array.shape[1:-1], strict=True):
        places = -(-length // window.stride)
        unseen = length - (places - 1) * window.stride - window.extent
        firsts.append(max(unseen, 0) // 2 if window.margins is None else 0)
    return array[tuple(slice(first, None) for first in firsts)] if any(firsts) else array


def slide(array: Array, windows: Sequence[Window], fill: Value = 0) -> Array:
    """A read-only view of what is under the windows in every place.

    From [batch, sizes..., depth] comes [batch, places..., window sizes..., depth].
    """
    count = len(windows)
    fits = [w.fit(n) for w, n in zip(windows, array.shape[1 : 1 + count], strict=True)]
    padded = pad(array, fits, fill)
    batch, *along, depth = padded.strides
    places = [fit.places for fit in fits]
    shape = (padded.shape[0], *places, *(w.size for w in windows), padded.shape[-1])
    jumps = [step * w.stride for step, w in zip(along, windows, strict=True)]
    steps = [step * w.dilation for step, w in zip(along, windows, strict=True)]
    return as_strided(padded, shape, (batch, *jumps, *steps, depth), writeable=False)


def tap(window: Window, fit: Fit, element: int) -> slice:
    """Where one element of the window meets the padded dimension, in all places."""
    start = element * window.dilation
    return slice(start, start + fit.places * window.stride, window.stride)


def seen_by(rows: slice, window: Window, fit: Fit, length: int) -> tuple[slice, Fit]:
    """Which of ``length`` rows these places see, and how the window fits to those alone."""
    top = rows.start * window.stride - fit.before
    height = (rows.stop - rows.start - 1) * window.stride + window.extent
    seen = slice(min(max(top, 0), length), min(max(top + height, 0), length))
    before = min(max(-top, 0), height)
    after = height - before - (seen.stop - seen.start)
    return seen, Fit(rows.stop - rows.start, before, after)


def margins_of(attrs: Attrs, layout: str) -> tuple[tuple[int, int] | None, ...]:
    """The spatial margins that ``padding`` and ``explicit_paddings`` ask for."""
    spatial = [axis for axis, letter in enumerate(layout) if letter not in "NC"]
    kind = attrs.str("padding")
    if kind != "EXPLICIT":
        return (None if kind == "SAME" else (0, 0),) * len(spatial)
    listed = attrs.list("explicit_paddings")
    if len(listed) != 2 * len(layout):
        raise ValueError(
            f"explicit_paddings attribute must contain {2 * len(layout)} values, "
            f"but got: {len(listed)}"
        )
    if min(listed) < 0:
        raise ValueError(f"All elements of explicit_paddings must be nonnegative: {listed}")
    if any(any(_pair(listed, axis)) for axis in range(len(layout)) if axis not in spatial):
        raise ValueError(
            "Nonzero explicit padding in the batch or depth dimensions is not supported"
        )
    return tuple(_pair(listed, axis) for axis in spatial)


def _pair(listed: Sequence[Any], axis: int) -> tuple[int, int]:
    return listed[2 * axis], listed[2 * axis + 1]


def per_dimension(attrs: Attrs, name: str, layout: str) -> dict[str, int]:
    """A list attribute that has one number for each letter of the layout."""
    listed = attrs.list(name)
    if len(listed) != len(layout):
        raise ValueError(
            f"Sliding window {name} field must specify {len(layout)} dimensions: {listed}"
        )
    return dict(zip(layout, listed, strict=True))
