"""Grey dilation of images.

In:   images, and a filter of numbers for each channel; for gradients what is sent back.
Out:  at each place of the sliding window, the greatest sum of what is under it and the filter;
      gradients of images or filter.
Not:  no erosion: that is dilation of what is turned round and negated.

Padding is never the greatest.  A gradient goes to the first of the greatest sums.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeAlias

import numpy as np

from penstock.core.values import Array, Value
from penstock.kernels.api.attrs import Attrs
from penstock.kernels.api.registry import Kernel, kernel
from penstock.kernels.api.types import REALS
from penstock.kernels.values.arrays import shape_text
from penstock.kernels.values.windows import Window, pad, tap

_MakeWindows: TypeAlias = Callable[[Array, Array], list[Window]]


@kernel("Dilation2D", types={"T": REALS})
def make_dilation(attrs: Attrs) -> Kernel:
    """The greatest sum of window and filter, by channel."""
    make_windows = _window_maker(attrs)
    return lambda images, filters: _greatest(images, filters, make_windows(images, filters))[0]


@kernel("Dilation2DBackpropInput", types={"T": REALS})
def make_dilation_backprop_input(attrs: Attrs) -> Kernel:
    """Each gradient to the element that made the greatest sum."""
    make_windows = _window_maker(attrs)

    def backprop(images: Value, filters: Value, grads: Value) -> Array:
        windows = make_windows(images, filters)
        number_of = _greatest(images, filters, windows)[1]
        _check_grads(grads, number_of)
        fits = [w.fit(n) for w, n in zip(windows, images.shape[1:3], strict=True)]
        padded = np.zeros_like(pad(images, fits, 0))
        for number, where in enumerate(_taps(images, windows)):
            padded[where] += np.where(number_of == number, grads, grads.dtype.type(0))
        rows, columns = (slice(fit.before, fit.before + n) for fit, n in zip(
            fits, images.shape[1:3], strict=True))  # fmt: skip
        return padded[:, rows, columns]

    return backprop


@kernel("Dilation2DBackpropFilter", types={"T": REALS})
def make_dilation_backprop_filter(attrs: Attrs) -> Kernel:
    """Each gradient to the element of the filter that made the greatest sum."""
    make_windows = _window_maker(attrs)

    def backprop(images: Value, filters: Value, grads: Value) -> Array:
        number_of = _greatest(images, filters, make_windows(images, filters))[1]
        _check_grads(grads, number_of)
        nothing = grads.dtype.type(0)
        total = [
            np.where(number_of == number, grads, nothing).sum((0, 1, 2), dtype=grads.dtype)
            for number in range(filters.shape[0] * filters.shape[1])
        ]
        return np.stack(total).reshape(filters.shape)

    return backprop


def _window_maker(attrs: Attrs) -> _MakeWindows:
    strides, rates = attrs.list("strides"), attrs.list("rates")
    margins = None if attrs.str("padding") == "SAME" else (0, 0)
    for name, values in (("strides", strides), ("rates", rates)):
        if len(values) != 4 or values[0] != 1 or values[3] != 1 or min(values) < 1:
            raise ValueError(
                f"{name} must have 4 positive values, and be 1 in the batch and depth "
                f"dimensions: {values}"
            )

    def make_windows(images: Array, filters: Array) -> list[Window]:
        if images.ndim != 4 or filters.ndim != 3:
            raise ValueError(
                "input must be 4-dimensional and filter 3-dimensional: "
                f"{shape_text(images.shape)} and {shape_text(filters.shape)}"
            )
        if images.shape[3] != filters.shape[2]:
            raise ValueError(
                "input and filter must have the same depth: "
                f"{images.shape[3]} vs {filters.shape[2]}"
            )
        return [Window(filters.shape[n], strides[n + 1], rates[n + 1], margins) for n in (0, 1)]

    return make_windows


def _taps(images: Array, windows: Sequence[Window]) -> Iterator[tuple[slice, ...]]:
    """Where the padded images meet each element of the window, in order."""
    fits = [w.fit(n) for w, n in zip(windows, images.shape[1:3], strict=True)]
    for element in itertools.product(*(range(w.size) for w in windows)):
        yield (slice(None), *map(tap, windows, fits, element))


def _greatest(images: Array, filters: Array, windows: Sequence[Window]) -> tuple[Array, Array]:
    """The greatest sums, and the numbers of the elements that made them."""
    fits = [w.fit(n) for w, n in zip(windows, images.shape[1:3], strict=True)]
    padded = pad(images, fits, 0)
    inside = pad(np.ones((1, *images.shape[1:3], 1), bool), fits, 0)
    shape = (len(images), fits[0].places, fits[1].places, images.shape[3])
    best = np.full(shape, _least(images.dtype), images.dtype)
    number_of = np.zeros(shape, np.intp)
    flat = filters.reshape(-1, filters.shape[2])
    for number, where in enumerate(_taps(images, windows)):
        total = padded[where] + flat[number]
        is_better = (total > best) & inside[where]
        np.copyto(best, total, where=is_better)
        np.copyto(number_of, number, where=is_better)
    return best, number_of


def _least(dtype: np.dtype[Any]) -> Any:
    if dtype.kind in "iu":
        return np.iinfo(dtype).min
    return np.nextafter(dtype.type(-np.inf), dtype.type(0))


def _check_grads(grads: Value, like: Array) -> None:
    if grads.shape != like.shape:
        raise ValueError(
            f"out_backprop has incompatible size: {shape_text(grads.shape)} "
            f"instead of {shape_text(like.shape)}"
        )
