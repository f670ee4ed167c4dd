"""Convolutions over two or three dimensions, by the library in C.

In:   images, [batch, rows, columns, depth], or the planes of a volume, and filters, [rows, columns,
      depth, count], with planes before rows for volumes, or by channel [rows, columns, depth];
      both of float32; perhaps a number for each filter, and one for each result.
Out:  the sum of each window times each filter, plus these numbers, between limits, or the gradient
      by the filters; None where there is no library, or it has no way for such shapes.
Not:  knows no padding by name, no layouts, no ops.

Windows of three by three may have fewer products, with errors about twice as large.  Results are
the same to the last bit for any number of threads, and on all processors that multiply and add at
once.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Final, TypeAlias

import numpy as np

from penstock.core.values import Array
from penstock.kernels.api.constants import is_constant
from penstock.kernels.c.address import address
from penstock.kernels.c.filters import FLOAT, Factors, factors_of, transformed
from penstock.kernels.c.library import library
from penstock.kernels.c.repeated import SHARED, Compute, Repeated
from penstock.kernels.c.sliding import Way, sliding
from penstock.kernels.parallel.contention import contention
from penstock.kernels.parallel.intra_op import HELPERS
from penstock.kernels.values.windows import Window

#: Makes the windows for filters of some size.
MakeWindows: TypeAlias = Callable[[tuple[int, ...]], tuple[Window, ...]]
#: The least and the largest result.
Limits: TypeAlias = tuple[float, float]
NO_LIMITS: Final[Limits] = (-math.inf, math.inf)
#: Dimensions of filters, by what they are for.
BY_CHANNEL, OF_IMAGES, OF_VOLUMES = 3, 4, 5

_BYTES: Final = FLOAT.itemsize


class Convolver:
    """What convolves for one node."""

    __slots__ = ("_facts", "_known", "_limits", "_rank")

    def __init__(
        self, make_windows: MakeWindows, limits: Limits = NO_LIMITS, *, rank: int = OF_IMAGES
    ) -> None:
        """Say how windows slide.

        Args:
            make_windows: makes the windows for filters of some size.
            limits: what all results are kept between; NaN stays.
            rank: how many dimensions filters have: whether they are by channel, of images or of
                volumes.

        """
        self._limits: Final = limits
        self._rank: Final = rank
        #: The last convolution by constants.  Each access is one operation.
        self._known: Repeated | None = None
        dimensions = 2 if rank == BY_CHANNEL else rank - 2
        self._facts: Final = functools.lru_cache(maxsize=16)(
            lambda shape, strides, sizes, has_gaps: sliding(
                shape,
                strides,
                sizes,
                make_windows(sizes[:dimensions]),
                at_once=_widest(),
                has_gaps=has_gaps,
                is_by_channel=rank == BY_CHANNEL,
            )
        )

    def __call__(
        self,
        images: Array,
        filters: Array,
        bias: Array | None = None,
        added: Array | None = None,
        into: Array | None = None,
    ) -> Array | None:
        """Convolve; None if that is for others to do, or to complain about.

        Args:
            images: what windows slide over.
            filters: what windows are multiplied by.
            bias: a number for each filter.
            added: as large as the results, to which it is added after the bias.
            into: where to put the results, if that is not to be new: of their shape; without gaps
                if something is added or each channel is by itself, and otherwise those of one
                place follow each other.

        Raises:
            ValueError: a window is larger than what it slides over.

        """
        known = self._known
        result = known(images, filters, bias, added) if known and into is None else None
        return self._anew(images, filters, bias, added, into) if result is None else result

    def _anew(
        self,
        images: Array,
        filters: Array,
        bias: Array | None,
        added: Array | None,
        into: Array | None,
    ) -> Array | None:
        """The same, by other constants than the last time or of images that lie otherwise."""
        with_c = library()
        if with_c is None or not _fit(images, filters, bias, self._rank):
            return None
        if images.strides[3] != _BYTES:
            images = np.ascontiguousarray(images)
        has_gaps = into is not None and not into.flags.c_contiguous
        facts = self._facts(images.shape, images.strides, filters.shape, has_gaps)
        if facts is None or (added is not None and not _is_like(facts.shape, added)):
            return None
        bias = None if bias is None else np.ascontiguousarray(bias)
        added = None if added is None else np.ascontiguousarray(added)
        helpers = contention.helpers(HELPERS) if facts.products >= SHARED else 0
        result = np.empty(facts.shape, FLOAT) if into is None else into
        usual = facts.with_fewer_products
        if usual is None or (facts.is_for_constants and not is_constant(filters)):
            usual = facts.direct

        def run(way: Way, factors: Factors, function: Compute) -> bool:
            work, _framed = way.work(images, result)
            work.low, work.high = self._limits
            factors.give_to(work)
            work.bias = address(bias) if bias is not None else None
            work.added = address(added) if added is not None else None
            is_done = function(work, helpers) is not False
            is_settled = factors.packing is None and is_constant(filters)
            if is_done and is_settled and into is None and way is usual:
                of = images, filters, bias
                self._known = Repeated(work, function, of, factors.numbers, way, facts)
            return is_done

        if self._rank == BY_CHANNEL:
            run(usual, Factors(np.ascontiguousarray(filters)), with_c.slide)
        elif usual is facts.direct or not run(
            usual, Factors(transformed(filters)), with_c.winograd
        ):
            run(facts.direct, factors_of(filters), with_c.convolve)
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
    facts = _sliding_back(images.shape, images.strides, shape, windows)
    if facts is None or not _is_like(facts.shape, grads):
        return None
    grads, result = np.ascontiguousarray(grads), np.empty(shape, FLOAT)
    work, _framed = facts.direct.work(images, result)
    work.filters = address(grads)
    with_c.correlate(work, contention.helpers(HELPERS) if facts.products >= SHARED else 0)
    return result


_sliding_back: Final = functools.lru_cache(maxsize=64)(sliding)


@functools.lru_cache(maxsize=64)
def convolver_for(windows: tuple[Window, ...], limits: Limits = NO_LIMITS) -> Convolver:
    """What convolves by these windows, for filters that are other ones each time."""
    return Convolver(lambda _sizes: windows, limits, rank=len(windows) + 2)


@functools.lru_cache(maxsize=64)
def channel_convolver_for(windows: tuple[Window, ...]) -> Convolver:
    """The same for filters of each channel."""
    return Convolver(lambda _sizes: windows, rank=BY_CHANNEL)


def _widest() -> int:
    """How many places are read side by side."""
    with_c = library()
    return with_c.widest if with_c is not None else 1


def _fit(images: Array, filters: Array, bias: Array | None, rank: int) -> bool:
    """Whether there is a way for such inputs."""
    if images.dtype is not FLOAT or filters.dtype is not FLOAT or images.ndim != 4:
        return False
    if not filters.size or not images.size or filters.ndim != rank:
        return False
    if images.shape[3] != filters.shape[2 if rank == BY_CHANNEL else -2]:
        return False
    return bias is None or (bias.dtype is FLOAT and bias.shape == filters.shape[-1:])


def _is_like(shape: tuple[int, ...], added: Array) -> bool:
    return added.dtype is FLOAT and added.shape == shape
