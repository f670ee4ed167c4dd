"""Pooling over two dimensions, its gradients, and those of convolutions by channel, in C.

In:   images, [batch, rows, columns, depth], of float32; windows; for gradients what came back to
      the places.
Out:  the greatest or the mean of what each place sees; or what the images, or filters, get; None
      where there is no library, or it has no way for such shapes.
Not:  knows no layouts, no ops, no depth-wise pooling; complains about no shape.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Final

import numpy as np

from penstock.core.values import Array
from penstock.kernels.c.address import address
from penstock.kernels.c.filters import FLOAT
from penstock.kernels.c.library import Pooling, library
from penstock.kernels.parallel.contention import contention
from penstock.kernels.parallel.intra_op import HELPERS
from penstock.kernels.values.arrays import check_new
from penstock.kernels.values.windows import Window

#: In the order of ``Way`` in ``pooling.h``.
_WAYS: Final = {"greatest": 0, "mean": 1}
_GRADIENTS: Final = {"greatest": 2, "mean": 3}
_OF_IMAGES, _OF_FILTERS = 4, 5
#: As in ``pooling.c``.  Larger windows are joined along one dimension after the other, by numpy.
_LARGEST: Final = 64
_LONGEST: Final = 1 << 31
#: Fewer channels are less than a vector.
_FEW: Final = 16
#: With fewer elements that are seen, no other thread is asked to help.
_SHARED: Final = 1 << 17


def pool(images: Array, windows: Sequence[Window], way: str) -> Array | None:
    """The ``greatest`` or the ``mean`` of what each place sees; padding does not count."""
    facts = _facts_for(images, windows)
    if facts is None:
        return None
    shape, numbers = facts
    check_new(shape, FLOAT)
    result, images = np.empty(shape, FLOAT), np.ascontiguousarray(images)
    _run(numbers, _WAYS[way], images, None, result)
    return result


def mean_of_places(x: Array) -> Array | None:
    """The mean over rows and columns, [batch, depth]; None also for few channels."""
    if x.ndim != 4 or x.dtype is not FLOAT or x.shape[3] < _FEW:
        return None
    means = pool(x, tuple(Window(size) for size in x.shape[1:3]), "mean") if x.size else None
    return None if means is None else means.reshape(len(x), x.shape[3])


def pool_gradient(
    shape: tuple[int, ...],
    grads: Array,
    windows: Sequence[Window],
    way: str,
    images: Array | None = None,
) -> Array | None:
    """What images of some shape get: each gradient goes to the first greatest, or to all alike.

    The images themselves are needed for the ``greatest``.
    """
    facts = _facts_for(images, windows) if images is not None else _facts_of(shape, windows)
    if facts is None or not _is_like(facts[0], grads):
        return None
    check_new(shape, FLOAT)
    grads = np.ascontiguousarray(grads)
    if images is None:
        result, parts = np.empty(shape, FLOAT), np.empty(grads.shape, FLOAT)
        _run(facts[1], _GRADIENTS[way], None, grads, result, parts=parts)
        return result
    result = (np.empty if _all_are_written(facts[1]) else np.zeros)(shape, FLOAT)
    _run(facts[1], _GRADIENTS[way], np.ascontiguousarray(images), grads, result)
    return result


def images_gradient(
    grads: Array, filters: Array, windows: Sequence[Window], shape: tuple[int, ...]
) -> Array | None:
    """What images of some shape get, of a convolution by filters [rows, columns, depth]."""
    facts = _facts_of(shape, windows)
    if facts is None or filters.dtype is not FLOAT or not _is_like(facts[0], grads):
        return None
    if filters.shape != (windows[0].size, windows[1].size, shape[3]):
        return None
    check_new(shape, FLOAT)
    result, filters = np.zeros(shape, FLOAT), np.ascontiguousarray(filters)
    _run(facts[1], _OF_IMAGES, None, np.ascontiguousarray(grads), result, filters)
    return result


def filters_gradient(images: Array, grads: Array, windows: Sequence[Window]) -> Array | None:
    """What the filters, [rows, columns, depth], of a convolution by channel get."""
    facts = _facts_for(images, windows)
    shape = windows[0].size, windows[-1].size, images.shape[-1]
    if facts is None or not _is_like(facts[0], grads) or shape[0] * shape[1] > _LARGEST:
        return None
    result, images = np.empty(shape, FLOAT), np.ascontiguousarray(images)
    _run(facts[1], _OF_FILTERS, images, np.ascontiguousarray(grads), result)
    return result


def _all_are_written(of: Pooling) -> bool:
    """Whether each element of the images is seen by one window."""
    are_side_by_side = (of.window_rows, of.window_columns) == (of.row_stride, of.column_stride)
    rows_seen = of.rows * of.row_stride - of.rows_before
    columns_seen = of.columns * of.column_stride - of.columns_before
    return are_side_by_side and rows_seen >= of.image_rows and columns_seen >= of.image_columns


def _is_like(shape: tuple[int, ...], grads: Array) -> bool:
    return grads.dtype is FLOAT and grads.shape == shape


def _run(
    numbers: Pooling,
    way: int,
    images: Array | None,
    grads: Array | None,
    out: Array,
    filters: Array | None = None,
    parts: Array | None = None,
) -> None:
    with_c = library()
    assert with_c is not None
    work = Pooling.from_buffer_copy(numbers)
    work.way, work.out = way, address(out)
    given = {"images": images, "gradients": grads, "filters": filters, "parts": parts}
    for name, array in given.items():
        if array is not None:
            setattr(work, name, address(array))
    places = numbers.batch * numbers.rows * numbers.columns * numbers.depth
    is_much = places * numbers.window_rows * numbers.window_columns >= _SHARED
    with_c.pool(work, contention.helpers(HELPERS) if is_much else 0)


#: The shape of the places, and what the library has to know.
_Facts = tuple[tuple[int, ...], Pooling]


def _facts_for(images: Array, windows: Sequence[Window]) -> _Facts | None:
    return _facts_of(images.shape, windows) if images.dtype is FLOAT else None


def _facts_of(shape: tuple[int, ...], windows: Sequence[Window]) -> _Facts | None:
    if library() is None or len(shape) != 4 or len(windows) != 2 or not math.prod(shape):
        return None
    return _facts(shape, tuple(windows))


@functools.lru_cache(maxsize=256)
def _facts(shape: tuple[int, ...], windows: tuple[Window, ...]) -> _Facts | None:
    """What follows from shapes; None if some place would see nothing, or windows are not simple."""
    batch, rows, columns, depth = shape
    above, beside = windows
    fits = above.fit(rows), beside.fit(columns)
    for window, fit, length in zip(windows, fits, (rows, columns), strict=True):
        last = (fit.places - 1) * window.stride - fit.before
        if window.dilation != 1 or fit.places < 1 or fit.before < 0:
            return None
        if max(window.size, window.stride) > _LONGEST:
            return None
        if last >= length or fit.before >= window.size:
            return None
    if fits[0].places * fits[1].places > 1 and above.size * beside.size > _LARGEST:
        return None
    numbers = Pooling(
        batch=batch, image_rows=rows, image_columns=columns, depth=depth,
        rows=fits[0].places, columns=fits[1].places,
        window_rows=above.size, window_columns=beside.size,
        row_stride=above.stride, column_stride=beside.stride,
        rows_before=fits[0].before, columns_before=fits[1].before,
    )  # fmt: skip
    return (batch, numbers.rows, numbers.columns, depth), numbers
