"""Gradients of pooling.

In:   images that were pooled, and gradients of what came out; or of what went in.
Out:  gradients of the other.
Not:  no pooling over the depth.

Which element of its window is the greatest is found once, as the element's number in the
window; where that is among the images follows from where the window was.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, TypeAlias

import numpy as np

from penstock.core import dtypes
from penstock.core.values import Array, Value
from penstock.errors import UnimplementedError
from penstock.kernels.api.attrs import Attrs
from penstock.kernels.api.registry import Kernel, kernel
from penstock.kernels.api.types import FLOATS, REALS
from penstock.kernels.c.pooling import pool_gradient
from penstock.kernels.narrow.precision import NARROW
from penstock.kernels.nn.pool_ops import (
    by_letter,
    check_sizes,
    layout_of,
    pool_windows,
)
from penstock.kernels.nn.window_reduction import Joiner, divide_by_counts, join_along, spread_along
from penstock.kernels.parallel.strided_copies import gathered, put
from penstock.kernels.parallel.tiles import by_images
from penstock.kernels.values.arrays import check_new, shape_text
from penstock.kernels.values.select_clip import kept
from penstock.kernels.values.windows import Fit, Window, cut, pad, per_dimension, tap, trimmed

_Windows: TypeAlias = Sequence[Window]
_Shape: TypeAlias = tuple[int, ...]
_Give: TypeAlias = Callable[[Array, Array, Array, _Windows], Array]
#: Bytes of images whose greatest elements are looked for at a time, in many steps: measured.
_AT_ONCE: Final = 1 << 21
_CUBOID: Final = frozenset({dtypes.float32, dtypes.bfloat16})


# -- the mean ----------------------------------------------------------------------------------


@kernel("AvgPoolGrad", types={"T": FLOATS})
@kernel("AvgPool3DGrad", types={"T": _CUBOID})
def make_avg_pool_grad(attrs: Attrs) -> Kernel:
    """Each gradient, in equal parts, to all that its window saw; padding gets nothing."""
    windows, layout, dtype = tuple(static_windows(attrs)), layout_of(attrs), attrs.dtype("T")
    wide = np.dtype(np.float32) if dtype in NARROW else dtype.numpy

    def avg_pool_grad(sizes: Value, grads: Array) -> Array:
        shape = _shape_in(sizes, layout)
        check_places(shape, grads.shape, windows)
        check_new(shape, dtype.numpy)
        in_c = pool_gradient(shape, grads, windows, "mean") if attrs.accelerate else None
        if in_c is not None:
            return in_c

        def of_some(grads: Array) -> Array:
            parts = grads.astype(wide)
            divide_by_counts(parts, windows, shape[1:-1])
            facts = list(zip(itertools.count(1), windows, fits_of(windows, shape), strict=False))
            for axis, window, fit in reversed(facts):  # in the end along long runs of memory
                parts = spread_along(parts, (axis, window, fit), shape[axis])
            return parts.astype(dtype.numpy, copy=False)

        return by_images(of_some, shape, dtype.numpy, grads)

    return _in_layout(layout, avg_pool_grad, (1,))


def _shape_in(sizes: Value, layout: str) -> _Shape:
    """The shape of the images, with the depth last."""
    if np.ndim(sizes) != 1 or len(sizes) != len(layout):
        raise ValueError(
            f"out_backprop and orig_input_shape must have {len(layout)} elements: "
            f"shape {shape_text(np.shape(sizes))}"
        )
    shape = sizes.tolist()
    if layout[1] == "C":
        shape.append(shape.pop(1))
    if min(shape) < 0:
        raise ValueError(f"Dimension {min(shape)} must be >= 0")
    return tuple(shape)


# -- the greatest ------------------------------------------------------------------------------


@kernel("MaxPoolGrad", "MaxPoolGradGrad", types={"T": REALS})
@kernel("MaxPool3DGrad", types={"T": _CUBOID, "TInput": _CUBOID})
@kernel("MaxPool3DGradGrad", types={"T": _CUBOID})
def make_max_pool_grad(attrs: Attrs) -> Kernel:
    """Each gradient to the greatest that its window saw, or from there back.

    In two dimensions that is the first of the greatest, in three it is all of them.
    """
    windows, layout = static_windows(attrs), layout_of(attrs)
    give, use_c = _GIVES[attrs.op.name], attrs.accelerate

    def max_pool_grad(images: Array, pooled: Array, grads: Array) -> Array:
        return _give_in_parts(give, images, pooled, grads, windows, use_c=use_c)

    return _in_layout(layout, max_pool_grad, (0, 1, 2))


@kernel("MaxPoolGradV2", "MaxPoolGradGradV2", types={"T": REALS})
def make_max_pool_grad_v2(attrs: Attrs) -> Kernel:
    """The same with sizes and strides of the window as inputs."""
    layout = attrs.str("data_format")
    give, use_c = _GIVES[attrs.op.name.removesuffix("V2")], attrs.accelerate

    def max_pool_grad(
        images: Array, pooled: Array, grads: Array, ksize: Value, strides: Value
    ) -> Array:
        sizes, jumps = by_letter(ksize, "ksize", layout), by_letter(strides, "strides", layout)
        windows = _windows_over_places(attrs, sizes, jumps)
        return _give_in_parts(give, images, pooled, grads, windows, use_c=use_c)

    return _in_layout(layout, max_pool_grad, (0, 1, 2))


def _give_in_parts(
    give: _Give, images: Array, pooled: Array, grads: Array, windows: _Windows, *, use_c: bool
) -> Array:
    """Some images at a time; what comes out is like the gradients, seen from the other side."""
    check_places(images.shape, pooled.shape, windows)
    if pooled.size:
        windows = trimmed(windows, images.shape)
    if give is _give_back and use_c and grads.shape == pooled.shape:
        given = pool_gradient(images.shape, grads, windows, "greatest", images)
        if given is not None:
            return given
    if grads.shape not in (images.shape, pooled.shape) or not len(images):
        return give(images, pooled, grads, windows)
    shape = images.shape if give in (_give_back, _give_to_all) else pooled.shape

    def of_some(images: Array, pooled: Array, grads: Array) -> Array:
        return give(images, pooled, grads, windows)

    return by_images(of_some, shape, grads.dtype, images, pooled, grads, at_once=_AT_ONCE)


def _give_back(images: Array, pooled: Array, grads: Array, windows: _Windows) -> Array:
    """Gradients of what came out, given to the first of the greatest that went in."""
    check_places(images.shape, pooled.shape, windows)
    check_like("out_backprop", grads, pooled)
    given = _given_to_tiles(images, pooled, grads, windows)
    if given is None:
        given = _given_to_first(images, grads, windows)
    if given is not None:
        return given
    number_of, nothing = first_greatest(images, windows)[1], grads.dtype.type(0)
    parts = (np.where(number_of == n, grads, nothing) for n in itertools.count())
    return _added_up(parts, images, windows, grads.dtype)


def _given_to_tiles(images: Array, pooled: Array, grads: Array, windows: _Windows) -> Array | None:
    """The same for windows that tile the images, the common case; None for all others.

    Windows do not meet, so that each element is compared once, with what came out of its own.
    NaN and infinity are not looked after here.
    """
    if images.dtype.kind != "f" or len(windows) != 2 or not grads.size:
        return None
    for window, length in zip(windows, images.shape[1:3], strict=True):
        is_tiled = (
            window.size == window.stride and window.dilation == 1 and not length % window.size
        )
        if not is_tiled or window.margins not in {None, (0, 0)}:
            return None
    if not all(np.isfinite(np.add.reduce(values, None)) for values in (pooled, grads)):
        return None
    count, rows, columns, depth = pooled.shape
    tiles = (count, rows, windows[0].size, columns, windows[1].size, depth)
    given = np.empty(images.shape, grads.dtype)
    seen, given_in_tiles, left = images.reshape(tiles), given.reshape(tiles), grads
    for row, column in np.ndindex(windows[0].size, windows[1].size):
        here = kept(gathered(seen[:, :, row, :, column]) == pooled, left)
        put(given_in_tiles[:, :, row, :, column], here)
        left = left - here  # exactly nothing, or everything
    return given


def _given_to_first(images: Array, grads: Array, windows: _Windows) -> Array | None:
    """The same dimension by dimension; None for what is not so simple.

    The first row that has the greatest element gets the gradient, and in it the first column.
    Not simple are integers, and images in which NaN, or the padding, could be the greatest.
    """
    if images.dtype.kind != "f" or not grads.size:
        return None
    fits = fits_of(windows, images.shape)
    joined = [pad(images, fits, -np.inf)]
    facts = list(zip(itertools.count(1), windows, fits, strict=False))
    for axis, window, fit in reversed(facts):
        inside = axis, window, Fit(fit.places, 0, 0)
        joined.append(join_along(joined[-1], inside, Joiner(np.maximum, -np.inf)))
    if not np.isfinite(np.add.reduce(joined[-1], None)):
        return None
    for axis, window, fit in facts:
        greatest = joined.pop()
        grads = _to_first_along(joined[-1], greatest, grads, (axis, window, fit))
    return cut(grads, fits, images.shape)


def _to_first_along(
    seen: Array, greatest: Array, grads: Array, facts: tuple[int, Window, Fit]
) -> Array:
    """Gradients of what is the greatest along a dimension, given to the first that is."""
    axis, window, fit = facts
    spread = np.zeros(seen.shape, grads.dtype)
    is_free = np.ones(greatest.shape, bool)
    for element in range(window.size):
        where = (slice(None),) * axis + (tap(window, fit, element),)
        is_here = is_free
        if element < window.size - 1:  # or else it is what remains
            is_here = gathered(seen[where]) == greatest
            is_here &= is_free
            is_free ^= is_here
        if element < window.stride:  # nothing is there yet
            put(spread[where], kept(is_here, grads))
        else:
            spread[where] += kept(is_here, grads)
    return spread


def _give_to_all(images: Array, pooled: Array, grads: Array, windows: _Windows) -> Array:
    """Gradients of what came out, given to all that are as great."""
    check_places(images.shape, pooled.shape, windows)
    check_like("out_backprop", grads, pooled)
    nothing = grads.dtype.type(0)
    parts = (np.where(seen == pooled, grads, nothing) for seen in _seen(images, windows))
    return _added_up(parts, images, windows, grads.dtype)


def _added_up(
    parts: Iterator[Array], images: Array, windows: _Windows, dtype: np.dtype[Any]
) -> Array:
    """The sum of parts for each element of the window, put where that meets the images."""
    fits, sizes = fits_of(windows, images.shape), images.shape[1:-1]
    outer = [n + fit.before + fit.after for n, fit in zip(sizes, fits, strict=True)]
    wide = np.dtype(np.float32) if dtype.name == "bfloat16" else dtype
    padded = np.zeros((len(images), *outer, images.shape[-1]), wide)
    for where, part in zip(_taps(windows, fits), parts, strict=False):
        padded[where] += part
    return cut(padded, fits, images.shape).astype(dtype, copy=False)


def _take_out(images: Array, pooled: Array, grads: Array, windows: _Windows) -> Array:
    """Gradients of what went in, taken where the first of the greatest were."""
    check_places(images.shape, pooled.shape, windows)
    check_like("grad", grads, images)
    number_of, taken = first_greatest(images, windows)[1], np.zeros(pooled.shape, grads.dtype)
    for number, gradient in enumerate(_seen(grads, windows, 0)):
        np.copyto(taken, gradient, where=number_of == number)
    return taken


def _take_equal(images: Array, pooled: Array, grads: Array, windows: _Windows) -> Array:
    """Gradients of what went in, taken where the first were that are as great; else zero."""
    check_places(images.shape, pooled.shape, windows)
    check_like("grad", grads, images)
    taken, is_free = np.zeros(pooled.shape, grads.dtype), np.ones(pooled.shape, bool)
    for image, gradient in zip(_seen(images, windows), _seen(grads, windows, 0), strict=True):
        is_here = (image == pooled) & is_free
        np.copyto(taken, gradient, where=is_here)
        is_free &= ~is_here
    return taken


def _seen(images: Array, windows: _Windows, fill: float = np.nan) -> Iterator[Array]:
    """What each element of the window sees in all places."""
    fits = fits_of(windows, images.shape)
    padded = pad(images, fits, fill)
    return (padded[where] for where in _taps(windows, fits))


_GIVES: Final[dict[str, _Give]] = {
    "MaxPoolGrad": _give_back,
    "MaxPoolGradGrad": _take_out,
    "MaxPool3DGrad": _give_to_all,
    "MaxPool3DGradGrad": _take_equal,
}


def first_greatest(images: Array, windows: _Windows) -> tuple[Array, Array]:
    """The greatest element under the windows, and its number in the window.

    The first of equals; nothing is greater than NaN if that comes first.
    """
    fits = fits_of(windows, images.shape)
    padded = pad(images, fits, 0)
    is_seen = None if padded is images else _is_seen(images.shape, fits)
    taps = _taps(windows, fits)
    shape = (len(images), *(fit.places for fit in fits), images.shape[-1])
    best, number_of = np.zeros(shape, images.dtype), np.full(shape, -1, np.intp)
    if not best.size:
        return best, number_of
    for number, where in enumerate(taps):
        other = padded[where]
        is_better = (other > best) | (number_of < 0)
        if is_seen is not None:
            is_better &= is_seen[where]
        np.copyto(best, other, where=is_better)
        np.copyto(number_of, number, where=is_better)
    return best, number_of


def _is_seen(shape: _Shape, fits: Sequence[Fit]) -> Array:
    """Which of the padded elements are no padding."""
    inside = np.ones((1, *shape[1:-1], 1), bool)
    return pad(inside, fits, 0)


def fits_of(windows: _Windows, shape: _Shape) -> list[Fit]:
    """How the windows fit images of a shape."""
    return [w.fit(n) for w, n in zip(windows, shape[1:-1], strict=True)]


def _taps(windows: _Windows, fits: Sequence[Fit]) -> Iterator[tuple[slice, ...]]:
    """Where the padded images meet each element of the window, in order."""
    if not all(fit.places for fit in fits):
        return
    for element in itertools.product(*(range(w.size) for w in windows)):
        yield (slice(None), *map(tap, windows, fits, element))


# -- windows -----------------------------------------------------------------------------------


def static_windows(attrs: Attrs) -> list[Window]:
    """How windows slide whose sizes and strides are attributes."""
    layout = layout_of(attrs)
    sizes = per_dimension(attrs, "ksize", layout)
    return _windows_over_places(attrs, sizes, per_dimension(attrs, "strides", layout))


def _windows_over_places(attrs: Attrs, sizes: Any, strides: Any) -> list[Window]:
    check_sizes(sizes, strides)
    if sizes["C"] > 1 or strides["C"] > 1:
        raise UnimplementedError(f"{attrs.op.name} is not yet supported on the depth dimension.")
    return pool_windows(attrs, sizes, strides)


def check_rank(images: Array, rank: int) -> None:
    """Raise unless images are of this rank."""
    if np.ndim(images) != rank:
        raise ValueError(f"tensor_in must be {rank}-dimensional: {shape_text(np.shape(images))}")


def check_places(images: _Shape, pooled: _Shape, windows: _Windows) -> None:
    """Raise unless pooling such images gives such results."""
    expected = (images[0], *(fit.places for fit in fits_of(windows, images)), images[-1])
    if pooled != expected:
        raise ValueError(
            f"Expected orig_output and out_backprop of shape {shape_text(expected)}, "
            f"got {shape_text(pooled)}"
        )


def check_like(name: str, value: Array, other: Array) -> None:
    """Raise unless an input, given by its name, has another's shape."""
    if np.shape(value) != other.shape:
        raise ValueError(
            f"Expected {name} shape to be {shape_text(other.shape)}, "
            f"got {shape_text(np.shape(value))}"
        )


def _in_layout(layout: str, compute: Kernel, places: Sequence[int]) -> Kernel:
    """A function of images in a layout, which are the inputs at these places."""
    rank = len(layout)

    def in_layout(*inputs: Value) -> Array:
        for place in places:
            check_rank(inputs[place], rank)
        if layout[-1] == "C":
            return np.asarray(compute(*inputs))
        turned = [np.moveaxis(x, 1, -1) if at in places else x for at, x in enumerate(inputs)]
        return np.ascontiguousarray(np.moveaxis(compute(*turned), -1, 1))

    return in_layout
