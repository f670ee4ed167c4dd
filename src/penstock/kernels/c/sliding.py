"""How windows slide over images, as the library in C is told.

In:   shapes and strides of images, the shape of filters, and their windows; those of volumes are
      planes, which follow each other as images do, with what is around them.
Out:  ``Sliding``: the shape of results, and each way in which images can be read for them.
Not:  computes nothing, and sees no array but to give its address.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np

from penstock.core.values import Array
from penstock.kernels.c.address import address
from penstock.kernels.c.filters import FLOAT
from penstock.kernels.c.library import Convolution
from penstock.kernels.c.spare import spare_numbers
from penstock.kernels.values.arrays import check_new
from penstock.kernels.values.windows import Fit, Window

_BYTES: Final = FLOAT.itemsize
#: What sees one image, or plane, at a time.
_ONE_PLANE: Final = Window(1)
#: Results of a tile in either direction; fewer tiles than that read their weights too seldom, and
#: channels and filters must fill half of a vector.  What tiles of more channels see stays in no
#: cache.
_TILE: Final = 4
_FEWEST_TILES: Final = 12
#: As many pay for a transformation of the filters that is for one step alone.
_TILES_OF_ONE_STEP: Final = 64
_HALF_A_VECTOR: Final = 8
_MOST_DEPTH: Final = 1_024
#: Channels, on all planes of a window, times filters: fewer products than that pay for no
#: transformation of what tiles see, and of their sums.
_FEWEST_PRODUCTS: Final = 192


class Way(NamedTuple):
    """How images are read to convolve them."""

    #: The shape of images with zeros around them, or room between pixels; None if they stay where
    #: they are.
    framed: tuple[int, ...] | None
    #: What the library has to know of all that.
    numbers: Convolution

    def work(self, images: Array, result: Array) -> tuple[Convolution, Array | None]:
        """What the library is told; and what must live as long as it works."""
        work = Convolution.from_buffer_copy(self.numbers)
        work.images, work.out = address(images), address(result)
        steps = [step // _BYTES for step in result.strides[:3]]
        work.out_image_step, work.out_row_step, work.out_column_step = steps
        framed = np.empty(self.framed, FLOAT) if self.framed is not None else None
        if framed is not None:
            work.framed = address(framed)
        return work, framed


class Sliding(NamedTuple):
    """What follows from shapes."""

    #: The result's shape.
    shape: tuple[int, ...]
    #: How many products there are.
    products: int
    direct: Way
    #: None if that takes longer, or is not possible.
    with_fewer_products: Way | None
    #: Whether it takes longer for filters that change with every step.
    is_for_constants: bool


def sliding(
    shape: tuple[int, ...],
    strides: tuple[int, ...],
    filter_shape: tuple[int, ...],
    windows: Sequence[Window],
    at_once: int = 1,
    *,
    has_gaps: bool = False,
    is_by_channel: bool = False,
) -> Sliding | None:
    """What follows from shapes; None if nothing is to be computed.

    Args:
        shape: of images, or of the planes of a volume, [batch, rows, columns, depth].
        strides: of the same.
        filter_shape: of filters.
        windows: by planes, if they see several, by rows and by columns.
        at_once: how many places are read side by side; 1 for gradients.
        has_gaps: whether results do not follow each other in memory.
        is_by_channel: whether windows see one channel each.

    Raises:
        ValueError: a window is larger than what it slides over.

    """
    windows = (_ONE_PLANE,) * (3 - len(windows)) + tuple(windows)
    fits = [window.fit(length) for window, length in zip(windows, shape, strict=False)]
    if not all(fit.places for fit in fits) or any(min(f.before, f.after) < 0 for f in fits):
        return None
    planes, image_rows, image_columns, depth = shape
    batch, rows, columns = (fit.places for fit in fits)
    count = filter_shape[-1]
    work = Convolution(
        batch=batch, image_rows=image_rows, image_columns=image_columns, depth=depth,
        image_step=strides[0], row_step=strides[1], column_step=strides[2],
        planes=planes, rows=rows, columns=columns, count=count,
    )  # fmt: skip
    work.window_planes, work.window_rows, work.window_columns = (w.size for w in windows)
    _check_inside(fits, windows, shape)
    result = batch, rows, columns, count
    check_new(result, FLOAT)
    products = math.prod(result) * math.prod(filter_shape[:-1])
    where_they_are, fewer = _where_they_are(work, fits, windows), None
    if is_by_channel:
        direct = where_they_are
    else:
        direct = _directly(work, fits, windows, at_once, has_gaps=has_gaps)
        fewer = where_they_are if at_once > 1 and is_tiled(result, depth, windows) else None
    is_for_constants = not is_tiled(result, depth, windows, changes=True)
    return Sliding(result, products, direct, fewer, is_for_constants)


def is_tiled(
    shape: Sequence[int], depth: int, windows: Sequence[Window], *, changes: bool = False
) -> bool:
    """Whether results are computed four by four, from fewer products.

    Args:
        shape: of results, [batch, rows, columns, count]; planes of a volume are a batch.
        depth: the channels of images.
        windows: by planes, if they see several, by rows and by columns.
        changes: whether filters are other ones in each step.

    """
    fewest = _TILES_OF_ONE_STEP if changes else _FEWEST_TILES
    *deep, above, beside = windows
    batch, *places, count = shape
    return (
        all((window.stride, window.dilation) == (1, 1) for window in windows)
        and above.size == beside.size == 3
        and depth % _HALF_A_VECTOR == 0
        and depth <= _MOST_DEPTH
        and count % _HALF_A_VECTOR == 0
        and math.prod(window.size for window in deep) * depth * count >= _FEWEST_PRODUCTS
        and batch * math.prod(-(-number // _TILE) for number in places) >= fewest
    )


def _directly(
    work: Convolution,
    fits: Sequence[Fit],
    windows: Sequence[Window],
    at_once: int,
    *,
    has_gaps: bool,
) -> Way:
    """Windows as they are, so many places at once."""
    work = Convolution.from_buffer_copy(work)
    beside = windows[-1]
    is_framed = any(fit.before or fit.after for fit in fits)
    is_product = all(window.size == window.stride == 1 for window in windows)
    shape = work.batch, work.image_rows, work.image_columns, work.depth
    steps: tuple[int, ...] = work.image_step, work.row_step, work.column_step, _BYTES
    if is_product and not is_framed and not has_gaps and steps == _steps(shape):
        # Pixels are rows of a matrix: all of them are one row of places.
        work.columns = work.batch * work.rows * work.columns
        work.batch, work.planes, work.rows, work.image_rows = 1, 1, 1, shape[0] * shape[1]
    step = (work.depth * _BYTES if is_framed else work.column_step) * beside.stride
    uses = math.inf if is_framed else work.count * math.prod(window.size for window in windows)
    spare = spare_numbers(step, min(at_once, work.columns), uses)
    framed = _framed(work, fits, spare) if spare or is_framed else None
    _see(work, steps if framed is None else _steps(framed), windows)
    return Way(framed, work)


def _where_they_are(work: Convolution, fits: Sequence[Fit], windows: Sequence[Window]) -> Way:
    """Windows that see images where they are, and zeros around them."""
    work = Convolution.from_buffer_copy(work)
    work.planes_before, work.rows_before, work.columns_before = (fit.before for fit in fits)
    _, above, beside = windows
    work.row_stride, work.row_dilation = above.stride, above.dilation
    work.column_stride, work.column_dilation = beside.stride, beside.dilation
    _see(work, (work.image_step, work.row_step, work.column_step), windows)
    return Way(None, work)


def _see(work: Convolution, steps: Sequence[int], windows: Sequence[Window]) -> None:
    """Say how far apart places, and elements of windows, see."""
    deep, above, beside = windows
    work.seen_image_step, work.element_plane_step = steps[0] * deep.stride, steps[0] * deep.dilation
    work.seen_row_step, work.element_row_step = steps[1] * above.stride, steps[1] * above.dilation
    work.seen_column_step = steps[2] * beside.stride
    work.element_column_step = steps[2] * beside.dilation


def _steps(shape: Sequence[int]) -> tuple[int, ...]:
    """The strides of an array whose elements follow each other."""
    return tuple(_BYTES * math.prod(shape[axis + 1 :]) for axis in range(len(shape)))


def _framed(work: Convolution, fits: Sequence[Fit], spare: int) -> tuple[int, ...]:
    """The shape of images with zeros around them, and so many numbers more for each pixel."""
    deep, above, beside = fits
    work.planes_before, work.framed_planes = deep.before, work.planes + deep.before + deep.after
    work.rows_before, work.columns_before = above.before, beside.before
    work.framed_rows = work.image_rows + above.before + above.after
    work.framed_columns = work.image_columns + beside.before + beside.after
    work.framed_column_step = (work.depth + spare) * _BYTES
    shape = work.framed_planes, work.framed_rows, work.framed_columns, work.depth + spare
    check_new(shape, FLOAT)
    return shape


def _check_inside(fits: Sequence[Fit], windows: Sequence[Window], shape: Sequence[int]) -> None:
    """See to it that no window sees anything outside of memory."""
    for fit, window, length in zip(fits, windows, shape, strict=False):
        last = (fit.places - 1) * window.stride + window.extent
        if last > length + fit.before + fit.after:
            raise AssertionError(f"{window} goes beyond {length} elements")
