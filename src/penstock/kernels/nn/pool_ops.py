"""Pooling over two or three spatial dimensions.

In:   images and the size of a window.
Out:  at each place of the sliding window, the greatest or the mean of what is under it.
Not:  no gradients, no index of the greatest.

A window is a rectangle or a block, so pooling along one dimension after the other gives the
same with fewer comparisons or additions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeAlias

import numpy as np

from penstock.core import dtypes
from penstock.core.values import Array, Value
from penstock.errors import UnimplementedError
from penstock.kernels.api.attrs import Attrs
from penstock.kernels.api.registry import Kernel, kernel
from penstock.kernels.api.types import FLOATS, REALS
from penstock.kernels.c.pooling import pool as pool_in_c
from penstock.kernels.narrow.precision import NARROW
from penstock.kernels.nn.window_reduction import Joiner, divide_by_counts, join_windows
from penstock.kernels.values.windows import Window, centred, margins_of, per_dimension

_Pool: TypeAlias = Callable[[Array], Array]
_Sizes: TypeAlias = Mapping[str, int]
_COMPARED: Final = REALS - {dtypes.uint32, dtypes.uint64}
#: Types that are pooled over three dimensions.
_CUBOID: Final = frozenset({dtypes.float32, dtypes.bfloat16})


@kernel("MaxPool", types={"T": _COMPARED})
@kernel("MaxPool3D", types={"T": _CUBOID})
def make_max_pool(attrs: Attrs) -> Kernel:
    """The greatest element under a window, or of neighbouring channels.

    Under a window NaN does not count, and nothing is less than the least finite number.
    """
    layout = attrs.str("data_format")
    sizes = per_dimension(attrs, "ksize", layout)
    strides = per_dimension(attrs, "strides", layout)
    return _max_pool(attrs, sizes, strides)


@kernel("MaxPoolV2", types={"T": _COMPARED})
def make_max_pool_v2(attrs: Attrs) -> Kernel:
    """MaxPool with the sizes and strides of the window as inputs."""
    layout = attrs.str("data_format")

    def max_pool_v2(images: Array, ksize: Value, strides: Value) -> Array:
        sizes = by_letter(ksize, "ksize", layout)
        return _max_pool(attrs, sizes, by_letter(strides, "strides", layout))(images)

    return max_pool_v2


def by_letter(value: Value, name: str, layout: str) -> _Sizes:
    """An input that has one number for each letter of the layout."""
    numbers = np.ravel(value).tolist()
    if len(numbers) != len(layout):
        raise ValueError(
            f"Sliding window {name} field must specify {len(layout)} dimensions: {numbers}"
        )
    return dict(zip(layout, numbers, strict=True))


def _max_pool(attrs: Attrs, sizes: _Sizes, strides: _Sizes) -> _Pool:
    """The function that does it for these sizes."""
    check_sizes(sizes, strides)
    layout = attrs.str("data_format")
    if sizes["C"] > 1:
        return _in_layout(layout, _max_of_depth(sizes, strides))
    windows = pool_windows(attrs, sizes, strides)
    for window in windows:
        if window.margins and max(window.margins) >= window.size:
            raise ValueError(
                f"Padding {max(window.margins)} needs to be smaller than the window size "
                f"{window.size}"
            )
    least = _least(attrs.dtype("T").numpy)
    greater = np.fmax if attrs.dtype("T").is_floating else np.maximum

    def finish(greatest: Array, _rows: slice) -> None:
        if not np.isfinite(np.add.reduce(greatest, None)):  # which is cheap to find out
            greater(greatest, least, out=greatest)

    def max_pool(images: Array) -> Array:
        result = pool_in_c(images, windows, "greatest") if attrs.accelerate else None
        if result is not None:
            return result
        return join_windows(_centred(images, windows), windows, Joiner(greater, least), finish)

    return _in_layout(layout, max_pool)


def _least(dtype: np.dtype[Any]) -> Any:
    """The least finite number of a type."""
    if dtype.kind in "iu":
        return dtype.type(np.iinfo(dtype).min)
    return np.nextafter(dtype.type(-np.inf), dtype.type(0))


def _max_of_depth(sizes: _Sizes, strides: _Sizes) -> _Pool:
    size = sizes["C"]
    if any(sizes[letter] > 1 for letter in sizes.keys() - {"N", "C"}):
        raise UnimplementedError(
            "MaxPooling supports exactly one of pooling across depth or pooling across "
            "width/height."
        )
    if strides["C"] != size:
        raise UnimplementedError(
            "Depthwise max pooling requires the depth window to equal the depth stride: "
            f"{size}, {strides['C']}"
        )

    def max_of_depth(images: Array) -> Array:
        *places, depth = images.shape
        if depth % size:
            raise UnimplementedError(
                "Depthwise max pooling requires the depth window to evenly divide the input "
                f"depth: {size}, {depth}"
            )
        in_groups = images.reshape(*places, depth // size, size)
        greatest = in_groups[..., 0]
        for channel in range(1, size):  # unlike np.maximum this keeps NaN only if it is first
            other = in_groups[..., channel]
            greatest = np.where(greatest < other, other, greatest)
        return greatest

    return max_of_depth


@kernel("AvgPool", types={"T": FLOATS})
@kernel("AvgPool3D", types={"T": _CUBOID})
def make_avg_pool(attrs: Attrs) -> Kernel:
    """The mean of what is under a window; padding does not count."""
    layout = attrs.str("data_format")
    sizes = per_dimension(attrs, "ksize", layout)
    strides = per_dimension(attrs, "strides", layout)
    check_sizes(sizes, strides)
    if sizes["C"] > 1:
        raise UnimplementedError("Non-spatial pooling is not yet supported.")
    windows = pool_windows(attrs, sizes, strides)
    dtype = attrs.dtype("T")
    wide = np.dtype(np.float32) if dtype in NARROW else dtype.numpy

    def avg_pool(images: Array) -> Array:
        result = pool_in_c(images, windows, "mean") if attrs.accelerate else None
        if result is not None:
            return result
        seen, lengths = _centred(images.astype(wide, copy=False), windows), images.shape[1:-1]

        def finish(sums: Array, rows: slice) -> None:
            divide_by_counts(sums, windows, lengths, rows)

        means = join_windows(seen, windows, Joiner(np.add, wide.type(0)), finish)
        return means.astype(dtype.numpy, copy=False)

    return _in_layout(layout, avg_pool)


def _centred(images: Array, windows: Sequence[Window]) -> Array:
    return centred(images, windows) if images.ndim > 4 else images


def check_sizes(sizes: _Sizes, strides: _Sizes) -> None:
    """Raise unless windows and strides are positive, and leave the batch alone."""
    if min(sizes.values()) < 1:
        raise ValueError(
            "Sliding window ksize must be positive. The specified or inferred ksize is: "
            f"{','.join(map(str, sizes.values()))}"
        )
    if min(strides.values()) < 1:
        raise ValueError(f"Stride must be > 0, but got {min(strides.values())}")
    if sizes["N"] != 1 or strides["N"] != 1:
        raise UnimplementedError("Pooling is not yet supported on the batch dimension.")


def pool_windows(attrs: Attrs, sizes: _Sizes, strides: _Sizes) -> list[Window]:
    """How windows of these sizes slide, by spatial dimension."""
    layout = layout_of(attrs)
    spatial = [letter for letter in layout if letter not in "NC"]
    return [
        Window(sizes[letter], strides[letter], margins=margin)
        for letter, margin in zip(spatial, margins_of(attrs, layout), strict=True)
    ]


def layout_of(attrs: Attrs) -> str:
    """The order of an op's dimensions; some ops know only one."""
    return attrs.str("data_format") if "data_format" in attrs.values else "NHWC"


def _in_layout(layout: str, pool: _Pool) -> _Pool:
    """A function of images in a layout from one of images with the depth last."""
    if layout not in ("NHWC", "NCHW", "NDHWC", "NCDHW"):
        raise UnimplementedError(f"pooling of images in the layout {layout}")

    def pool_images(images: Array) -> Array:
        if np.ndim(images) != len(layout):
            raise ValueError(
                f"tensor_in_shape must have {len(layout) - 2} spatial dimensions: "
                f"shape {np.shape(images)}"
            )
        if layout[-1] == "C":
            return pool(images)
        return np.ascontiguousarray(np.moveaxis(pool(np.moveaxis(images, 1, -1)), -1, 1))

    return pool_images
