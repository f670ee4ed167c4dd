"""Convolutions over two dimensions, by the library in C.

In:   images, [batch, rows, columns, depth], and filters, [rows, columns, depth, count], or by
      channel [rows, columns, depth]; both of float32; perhaps a number for each filter,
      and one for each result.
Out:  the sum of each window times each filter, plus these numbers, between limits, or the gradient
      by the filters; None where there is no library, or it has no way for such shapes.
Not:  knows no padding by name, no layouts, no ops.

Results are the same to the last bit for any number of threads, and on all processors that multiply
and add at once.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple, TypeAlias

import numpy as np

from penstock.core.values import Array
from penstock.kernels.c.address import address
from penstock.kernels.c.filters import FLOAT, packed
from penstock.kernels.c.library import Convolution, library
from penstock.kernels.c.spare import spare_numbers
from penstock.kernels.parallel.contention import contention
from penstock.kernels.parallel.intra_op import HELPERS
from penstock.kernels.values.arrays import check_new
from penstock.kernels.values.windows import Fit, Window

#: Makes the windows for filters of some size.
MakeWindows: TypeAlias = Callable[[tuple[int, ...]], tuple[Window, ...]]
#: The least and the largest result.
Limits: TypeAlias = tuple[float, float]
NO_LIMITS: Final[Limits] = (-math.inf, math.inf)

_BYTES: Final = FLOAT.itemsize
#: With fewer multiplications no other thread is asked to help: two microseconds of one core.
_SHARED: Final = 200_000


class Convolver:
    """What convolves for one node."""

    __slots__ = ("_facts", "_is_by_channel", "_limits")

    def __init__(
        self, make_windows: MakeWindows, limits: Limits = NO_LIMITS, *, is_by_channel: bool = False
    ) -> None:
        """Say how windows slide.

        Args:
            make_windows: makes the windows for filters of some size.
            limits: what all results are kept between; NaN stays.
            is_by_channel: whether each channel is by itself.

        """
        self._limits: Final = limits
        self._is_by_channel: Final = is_by_channel
        self._facts: Final = functools.lru_cache(maxsize=16)(
            lambda shape, strides, sizes: _facts(
                shape, strides, sizes, make_windows(sizes[:2]), 1 if is_by_channel else _widest()
            )
        )

    def __call__(
        self,
        images: Array,
        filters: Array,
        bias: Array | None = None,
        added: Array | None = None,
    ) -> Array | None:
        """Convolve; None if that is for others to do, or to complain about.

        Raises:
            ValueError: a window is larger than what it slides over.

        """
        with_c = library()
        if with_c is None or not _fit(images, filters, bias, is_by_channel=self._is_by_channel):
            return None
        if images.strides[3] != _BYTES:
            images = np.ascontiguousarray(images)
        facts = self._facts(images.shape, images.strides, filters.shape)
        if facts is None or (added is not None and not _is_like(facts.shape, added)):
            return None
        work = Convolution.from_buffer_copy(facts.numbers)
        work.low, work.high = self._limits
        result = np.empty(facts.shape, FLOAT)
        framed = np.empty(facts.framed, FLOAT) if facts.framed is not None else None
        used = np.ascontiguousarray(filters) if self._is_by_channel else packed(filters)
        work.images, work.filters, work.out = map(address, (images, used, result))
        if framed is not None:
            work.framed = address(framed)
        if bias is not None:
            bias = np.ascontiguousarray(bias)
            work.bias = address(bias)
        if added is not None:
            added = np.ascontiguousarray(added)
            work.added = address(added)
        run = with_c.slide if self._is_by_channel else with_c.convolve
        run(work, contention.helpers(HELPERS) if facts.products >= _SHARED else 0)
        return result


def correlate(
    images: Array, grads: Array, windows: tuple[Window, ...], shape: tuple[int, ...]
) -> Array | None:
    """The gradient of filters of some shape; None if that is for others to do.

    Args:
        images: [batch, rows, columns, depth], what was convolved.
        grads: [batch, rows, columns, count], by the results.
        windows: how they slide.
        shape: that of the filters.

    """
    with_c = library()
    if with_c is None or images.ndim != 4 or len(shape) != 4 or not math.prod(shape):
        return None
    if images.dtype is not FLOAT or grads.dtype is not FLOAT or not images.size:
        return None
    if images.shape[3] != shape[2]:
        return None
    if images.strides[3] != _BYTES:
        images = np.ascontiguousarray(images)
    facts = _facts_of_gradient(images.shape, images.strides, shape, windows)
    if facts is None or not _is_like(facts.shape, grads):
        return None
    grads, result = np.ascontiguousarray(grads), np.empty(shape, FLOAT)
    framed = np.empty(facts.framed, FLOAT) if facts.framed is not None else None
    work = Convolution.from_buffer_copy(facts.numbers)
    work.images, work.filters, work.out = map(address, (images, grads, result))
    if framed is not None:
        work.framed = address(framed)
    with_c.correlate(work, contention.helpers(HELPERS) if facts.products >= _SHARED else 0)
    return result


@functools.lru_cache(maxsize=64)
def convolver_for(windows: tuple[Window, ...]) -> Convolver:
    """What convolves by these windows, for filters that are other ones each time."""
    return Convolver(lambda _sizes: windows)


def _widest() -> int:
    """How many places are read side by side."""
    with_c = library()
    return with_c.widest if with_c is not None else 1


def _fit(images: Array, filters: Array, bias: Array | None, *, is_by_channel: bool) -> bool:
    """Whether there is a way for such inputs."""
    if images.dtype is not FLOAT or filters.dtype is not FLOAT or images.ndim != 4:
        return False
    if not filters.size or not images.size or filters.ndim != (3 if is_by_channel else 4):
        return False
    if images.shape[3] != filters.shape[2]:
        return False
    return bias is None or (bias.dtype is FLOAT and bias.shape == filters.shape[-1:])


def _is_like(shape: tuple[int, ...], added: Array) -> bool:
    return added.dtype is FLOAT and added.shape == shape


class _ShapeFacts(NamedTuple):
    """What follows from shapes."""

    #: The result's shape.
    shape: tuple[int, ...]
    #: That of images with zeros around them, or room between pixels; None if they stay where
    #: they are.
    framed: tuple[int, ...] | None
    #: How many products there are.
    products: int
    #: What the library has to know of all that.
    numbers: Convolution


def _facts(
    shape: tuple[int, ...],
    strides: tuple[int, ...],
    filter_shape: tuple[int, ...],
    windows: Sequence[Window],
    at_once: int = 1,
) -> _ShapeFacts | None:
    """What follows from shapes, with so many places at once; None if nothing is to be computed."""
    above, beside = windows
    fits = above.fit(shape[1]), beside.fit(shape[2])
    if not all(fit.places for fit in fits) or any(min(f.before, f.after) < 0 for f in fits):
        return None
    batch, image_rows, image_columns, depth = shape
    count = filter_shape[-1]
    rows, columns = (fit.places for fit in fits)
    work = Convolution(
        batch=batch, image_rows=image_rows, image_columns=image_columns, depth=depth,
        image_step=strides[0], row_step=strides[1], column_step=strides[2],
        rows=rows, columns=columns, count=count, window_rows=above.size, window_columns=beside.size,
    )  # fmt: skip
    is_framed = any(fit.before or fit.after for fit in fits)
    is_product = above.size == beside.size == above.stride == beside.stride == 1
    if is_product and not is_framed and strides == _steps(shape):
        # Pixels are rows of a matrix: all of them are one row of places.
        work.batch, work.image_rows = 1, batch * image_rows
        work.rows, work.columns = 1, batch * rows * columns
    step = (depth * _BYTES if is_framed else strides[2]) * beside.stride
    uses = math.inf if is_framed else count * above.size * beside.size
    spare = spare_numbers(step, min(at_once, work.columns), uses)
    framed = _framed(work, fits, spare) if spare or is_framed else None
    steps = strides if framed is None else _steps(framed)
    _check_inside(fits, windows, shape)
    work.seen_image_step = steps[0]
    work.seen_row_step, work.element_row_step = steps[1] * above.stride, steps[1] * above.dilation
    work.seen_column_step = steps[2] * beside.stride
    work.element_column_step = steps[2] * beside.dilation
    result = batch, rows, columns, count
    check_new(result, FLOAT)
    products = math.prod(result) * math.prod(filter_shape[:-1])
    return _ShapeFacts(result, framed, products, work)


_facts_of_gradient: Final = functools.lru_cache(maxsize=64)(_facts)


def _steps(shape: Sequence[int]) -> tuple[int, ...]:
    """The strides of an array whose elements follow each other."""
    return tuple(_BYTES * math.prod(shape[axis + 1 :]) for axis in range(len(shape)))


def _framed(work: Convolution, fits: Sequence[Fit], spare: int) -> tuple[int, ...]:
    """The shape of images with zeros around them, and so many numbers more for each pixel."""
    work.rows_before, work.columns_before = (fit.before for fit in fits)
    work.framed_rows = work.image_rows + fits[0].before + fits[0].after
    work.framed_columns = work.image_columns + fits[1].before + fits[1].after
    work.framed_column_step = (work.depth + spare) * _BYTES
    shape = work.batch, work.framed_rows, work.framed_columns, work.depth + spare
    check_new(shape, FLOAT)
    return shape


def _check_inside(fits: Sequence[Fit], windows: Sequence[Window], shape: Sequence[int]) -> None:
    """See to it that no window sees anything outside of memory."""
    for fit, window, length in zip(fits, windows, shape[1:3], strict=True):
        last = (fit.places - 1) * window.stride + window.extent
        if last > length + fit.before + fit.after:
            raise AssertionError(f"{window} goes beyond {length} elements")
