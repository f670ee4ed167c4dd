"""Convolutions of Keras 2 with other weights at each place."""

from __future__ import annotations

import numpy as np

from penstock.builder import ops
from penstock.formats.keras.activations import activated
from penstock.formats.keras.layer import Layer, layer
from penstock.formats.keras.layers.core import kernel_and_bias
from penstock.formats.keras.symbol import Symbol, pack
from penstock.formats.keras.windows import window_sizes


@layer("LocallyConnected1D", "LocallyConnected2D", weights=kernel_and_bias)
def locally_connected(self: Layer, x: Symbol) -> Symbol:
    """Each window times the kernel of its place, and a bias."""
    config = self.config
    space = int(config.class_name[-2])
    if config.integer("implementation", 1) != 1 or config.is_channels_first:
        raise config.unsupported("kernels in another order than that of windows")
    if x.rank != space + 2 or None in x.shape[1:]:
        raise config.error(f"it takes {space} dimensions of known size, and gets {x.shape}")
    sizes, strides = (config.integers(key, space) for key in ("kernel_size", "strides"))
    places = window_sizes(x.shape[1:-1], sizes, strides, "valid")
    count = int(np.prod([place or 0 for place in places]))
    filters = config.integer("filters", at_least=1)
    feature = int(np.prod(sizes)) * (x.shape[-1] or 0)
    kernel = self.weight("kernel", (count, feature, filters))
    image = x.tensor if space == 2 else ops.expand_dims(x.tensor, 1)
    ones = [1] * (2 - space)
    pieces = ops.extract_image_patches(
        image,
        ksizes=[1, *ones, *sizes, 1],
        strides=[1, *ones, *strides, 1],
        rates=[1, 1, 1, 1],
        padding="VALID",
    )
    # For each place a product of all examples with its kernel.
    by_place = ops.transpose(
        ops.reshape(pieces, pack([-1, count, feature])), np.array([1, 0, 2], np.int32)
    )
    made = ops.transpose(ops.batch_mat_mul_v2(by_place, kernel), np.array([1, 0, 2], np.int32))
    result = ops.reshape(made, pack([-1, *(place or 0 for place in places), filters]))
    if "bias" in self.arrays:
        result = result + self.weight("bias", (*places, filters))
    return activated(config, x.made(result, (x.shape[0], *places, filters)))
