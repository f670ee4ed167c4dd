"""Other forms of the same numbers, borders cut off and added, and numbers repeated."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from penstock.builder import ops
from penstock.formats.keras.config import Config, is_whole
from penstock.formats.keras.layer import Layer, layer
from penstock.formats.keras.symbol import Size, Symbol, pack, product, reshape, transpose
from penstock.formats.keras.windows import channels_last, in_channels_last

#: TensorFlow's kernels of ways to resize, where these look at all points.
_KERNELS: Final = {
    "bilinear": "triangle",
    "bicubic": "keyscubic",
    **{name: name for name in ("lanczos3", "lanczos5", "gaussian", "mitchellcubic")},
}


@layer("Flatten")
def flatten(self: Layer, x: Symbol) -> Symbol:
    """All numbers of an example in one row."""
    if self.config.is_channels_first and x.rank > 2:
        x = channels_last(x)
    if x.rank == 1:
        return x.made(ops.expand_dims(x.tensor, 1), (x.shape[0], 1))
    count = product(x.shape[1:])
    if count is None:
        rest = ops.prod(x.sizes_tensor()[1:], [0])
        wanted = ops.pack([x.size(0), rest])
        return x.made(ops.reshape(x.tensor, wanted), (x.shape[0], None))
    sizes: list[Size] = [x.size(0) if x.shape[0] is not None or count == 0 else -1, count]
    return x.made(ops.reshape(x.tensor, pack(sizes)), (x.shape[0], count))


@layer("Reshape")
def reshape_layer(self: Layer, x: Symbol) -> Symbol:
    """The numbers of each example in another form, of which -1 is one size."""
    target = list(self.config.items("target_shape"))
    if not all(item is None or (is_whole(item) and item >= -1) for item in target):
        raise self.config.error("'target_shape' must be sizes")
    sizes = [-1 if item is None else int(item) for item in target]
    if sizes.count(-1) > 1:
        raise self.config.error("'target_shape' has more than one unknown size")
    count = product(x.shape[1:])
    known = [size for size in sizes if size >= 0]
    if count is not None and -1 in sizes and product(known):
        sizes[sizes.index(-1)] = count // (product(known) or 1)
    shape = (x.shape[0], *(None if size < 0 else size for size in sizes))
    batch: Size = -1 if -1 not in sizes and 0 not in sizes else x.size(0)
    return x.made(ops.reshape(x.tensor, pack([batch, *sizes])), shape)


@layer("Permute")
def permute(self: Layer, x: Symbol) -> Symbol:
    """The dimensions of each example in another order, counted from 1."""
    order = self.config.integers("dims", x.rank - 1)
    if sorted(order) != list(range(1, x.rank)):
        raise self.config.error(f"'dims' must be an order of the numbers 1 to {x.rank - 1}")
    return transpose(x, [0, *order])


@layer("RepeatVector")
def repeat_vector(self: Layer, x: Symbol) -> Symbol:
    """Each row so many times, one below the other."""
    count = self.config.integer("n", at_least=1)
    tiled = ops.tile(ops.expand_dims(x.tensor, 1), np.array([1, count, 1], np.int32))
    return x.made(tiled, (x.shape[0], count, x.shape[1]))


# -- borders --------------------------------------------------------------------------------------


def borders(config: Config, key: str, space: int) -> list[tuple[int, int]]:
    """What is before and behind each dimension of space, from any form in which Keras takes it."""
    value: Any = config.get(key)
    given = value if isinstance(value, list) else [value] * space
    if space == 1 and len(given) == 2:
        given = [given]
    pairs = [item if isinstance(item, list) else [item, item] for item in given]
    if len(pairs) != space or not all(
        len(pair) == 2 and all(is_whole(n) and 0 <= n < 2**31 for n in pair) for pair in pairs
    ):
        raise config.error(f"'{key}' must be what is before and behind {space} dimensions")
    return [(int(before), int(behind)) for before, behind in pairs]


def _space(name: str) -> int:
    """The number of dimensions in a class's name."""
    return int(name[-2])


@layer("ZeroPadding1D", "ZeroPadding2D", "ZeroPadding3D")
def zero_padding(self: Layer, x: Symbol) -> Symbol:
    """Zeros around each channel."""
    around = borders(self.config, "padding", _space(self.config.class_name))

    def padded(x: Symbol) -> Symbol:
        space = [
            None if size is None else size + sum(pair)
            for size, pair in zip(x.shape[1:-1], around, strict=True)
        ]
        table = np.array([(0, 0), *around, (0, 0)], np.int32)
        return x.made(ops.pad(x.tensor, table), (x.shape[0], *space, x.shape[-1]))

    return in_channels_last(x, padded, is_channels_first=self.config.is_channels_first)


@layer("Cropping1D", "Cropping2D", "Cropping3D")
def cropping(self: Layer, x: Symbol) -> Symbol:
    """Each channel without its borders."""
    around = borders(self.config, "cropping", _space(self.config.class_name))

    def cropped(x: Symbol) -> Symbol:
        space = [
            None if size is None else size - sum(pair)
            for size, pair in zip(x.shape[1:-1], around, strict=True)
        ]
        if any(size is not None and size <= 0 for size in space):
            raise self.config.error(f"it cuts off more than the shape {x.shape} has")
        inner = [slice(before, -behind if behind else None) for before, behind in around]
        return x.made(x.tensor[(slice(None), *inner)], (x.shape[0], *space, x.shape[-1]))

    return in_channels_last(x, cropped, is_channels_first=self.config.is_channels_first)


# -- more of the same -----------------------------------------------------------------------------


@layer("UpSampling1D", "UpSampling2D", "UpSampling3D")
def up_sampling(self: Layer, x: Symbol) -> Symbol:
    """Each number several times in each direction, or numbers in between."""
    space = _space(self.config.class_name)
    factors = self.config.integers("size", space, self.config.settings.get("length", 2))
    method = self.config.text("interpolation", "nearest")

    def sampled(x: Symbol) -> Symbol:
        if method != "nearest":
            return _interpolated(self.config, x, factors, method)
        return repeated(x, factors)

    return in_channels_last(x, sampled, is_channels_first=self.config.is_channels_first)


def repeated(x: Symbol, factors: Sequence[int]) -> Symbol:
    """Each number as often as the factors say, beside itself."""
    space = [None if n is None else n * f for n, f in zip(x.shape[1:-1], factors, strict=True)]
    shape = (x.shape[0], *space, x.shape[-1])
    if len(factors) == 2:
        sizes = pack([n * f for n, f in zip(x.sizes()[1:-1], factors, strict=True)])
        made = ops.resize_nearest_neighbor(x.tensor, sizes, half_pixel_centers=True)
        return x.made(made, shape)
    wide = x.tensor
    for axis in range(len(factors)):
        wide = ops.expand_dims(wide, 2 * axis + 2)
    tiled = ops.tile(wide, np.array([1, *(n for f in factors for n in (1, f)), 1], np.int32))
    sizes = [n * f for n, f in zip(x.sizes()[1:-1], factors, strict=True)]
    return x.made(reshape(x.made(tiled), [x.size(0), *sizes, x.size(-1)]).tensor, shape)


def _interpolated(config: Config, x: Symbol, factors: Sequence[int], method: str) -> Symbol:
    """An image that is larger by whole factors."""
    sizes = [n * f for n, f in zip(x.sizes()[1:-1], factors, strict=True)]
    return resized(config, x, sizes, method)


def resized(
    config: Config, x: Symbol, sizes: Sequence[Size], method: str, *, is_smooth: bool = False
) -> Symbol:
    """An image of another size; a smooth one is smaller without taking single points."""
    if len(sizes) != 2:
        raise config.unsupported(f"the interpolation '{method}' in {len(sizes)} dimensions")
    wanted = pack(sizes)
    known = [size if isinstance(size, int) else None for size in sizes]
    shape = (x.shape[0], *known, x.shape[-1])
    if is_smooth and method in _KERNELS:
        made = _by_kernel(x, wanted, _KERNELS[method], is_smooth=True)
    elif method == "nearest":
        made = ops.resize_nearest_neighbor(x.tensor, wanted, half_pixel_centers=True)
    elif method == "bilinear":
        made = ops.resize_bilinear(x.tensor, wanted, half_pixel_centers=True)
    elif method == "bicubic":
        made = ops.resize_bicubic(x.tensor, wanted, half_pixel_centers=True)
    elif method == "area":
        made = ops.resize_area(x.tensor, wanted)
    elif method in _KERNELS:
        made = _by_kernel(x, wanted, _KERNELS[method], is_smooth=False)
    else:
        raise config.unsupported(f"the interpolation '{method}'")
    return x.made(ops.cast(made, x.tensor.dtype), shape)


def _by_kernel(x: Symbol, wanted: Any, method: str, *, is_smooth: bool) -> Any:
    """An image of which each point is a mean of those around it, by the weights of a kernel."""
    factors = ops.real_div(
        ops.cast(ops.pack(list(wanted)) if isinstance(wanted, list) else wanted, "float32"),
        ops.cast(x.sizes_tensor()[1:3], "float32"),
    )
    return ops.scale_and_translate(
        x.tensor, wanted, factors, np.zeros(2, np.float32), kernel_type=method, antialias=is_smooth
    )
