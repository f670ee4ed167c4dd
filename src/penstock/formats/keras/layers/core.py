"""Dense, Activation and those that only pass on what they get."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from penstock.builder import ops
from penstock.builder.tensor import Tensor
from penstock.core import dtypes
from penstock.errors import UnimplementedError
from penstock.formats.keras.activations import (
    activated,
    bounded_relu,
    elu,
    leaky,
    softmax,
)
from penstock.formats.keras.config import EXPORT, Config
from penstock.formats.keras.layer import Layer, Masking, Weight, layer
from penstock.formats.keras.symbol import Nest, Shape, Symbol, constant_like


def kernel_and_bias(config: Config) -> list[Weight]:
    """The weights of most layers."""
    has_bias = config.flag("use_bias", default=True)
    return [Weight("kernel"), Weight("bias")] if has_bias else [Weight("kernel")]


def refuse_variants(config: Config) -> None:
    """Say so if a layer was quantized, or its weights are a product of two.

    Raises:
        UnimplementedError: it was.

    """
    if config.settings.get("lora_rank") is not None:
        raise config.unsupported("weights in two factors (LoRA)")
    if config.settings.get("quantization_config") is not None:
        raise config.unsupported("quantized weights")


# -- products -------------------------------------------------------------------------------------


@layer("Dense", weights=kernel_and_bias, masking=Masking.PASSES)
def dense(self: Layer, x: Symbol) -> Symbol:
    """Give x · kernel + bias along the last dimension."""
    refuse_variants(self.config)
    x = as_real(self, x)
    units = self.config.integer("units", at_least=1)
    kernel = self.weight("kernel", (x.shape[-1], units))
    made = multiplied(x, kernel, units)
    if "bias" in self.arrays:
        made = made.made(ops.bias_add(made.tensor, self.weight("bias", (units,))))
    return activated(self.config, made)


def as_real(self: Layer, x: Symbol) -> Symbol:
    """Whole numbers in the type of the layer: counts, for example, are int64 in Keras 3."""
    return x if x.tensor.dtype.is_floating else x.made(ops.cast(x.tensor, self.config.dtype))


def multiplied(x: Symbol, kernel: Tensor, units: int) -> Symbol:
    """Give x · kernel along the last dimension of x, of any rank."""
    shape = (*x.shape[:-1], units)
    if x.rank == 2:
        return x.made(ops.mat_mul(x.tensor, kernel), shape)
    return x.made(ops.batch_mat_mul_v2(x.tensor, kernel), shape)


def _einsum_weights(config: Config) -> list[Weight]:
    """A kernel, and a bias if there are dimensions for it."""
    has_bias = config.settings.get("bias_axes") is not None
    return [Weight("kernel"), Weight("bias")] if has_bias else [Weight("kernel")]


@layer("EinsumDense", weights=_einsum_weights, masking=Masking.PASSES)
def einsum_dense(self: Layer, x: Symbol) -> Symbol:
    """A product along the dimensions that an equation names, and a bias."""
    refuse_variants(self.config)
    kernel = self.array("kernel")
    x = as_real(self, x)
    product = einsum_of(
        self.config, self.config.text("equation"), x, Symbol(self.weight("kernel"), kernel.shape)
    )
    made = product.tensor
    if "bias" in self.arrays:
        made = made + self.weight("bias")
    return activated(self.config, product.made(made))


def einsum_of(config: Config, equation: str, first: Symbol, second: Symbol) -> Symbol:
    """The product of two tensors along the dimensions that an equation names."""
    full = _full_equation(equation, first.rank)
    shape = _einsum_shape(config, full, first.shape, second.shape)
    return first.made(ops.einsum([first.tensor, second.tensor], equation=full), shape)


def _full_equation(equation: str, rank: int) -> str:
    """An equation with letters in place of an ellipsis, which stands for what x has more."""
    plain = equation.replace(" ", "")
    first = plain.split("->")[0].split(",")[0]
    if "..." not in first:
        return plain
    free = [c for c in "ABCDEFGHIJKLMNOPQRSTUVWXYZ" if c not in plain]
    return plain.replace("...", "".join(free[: max(rank - len(first) + 3, 0)]))


def _einsum_shape(config: Config, equation: str, first: Shape, second: Shape) -> Shape:
    """The shape of a product of two, by its equation."""
    operands, arrow, result = equation.partition("->")
    terms = operands.split(",")
    if not arrow or [len(term) for term in terms] != [len(first), len(second)]:
        raise config.error("its equation does not fit its input and its kernel")
    size_of = dict(zip(terms[0], first, strict=True))
    for letter, size in zip(terms[1], second, strict=True):
        if size_of.get(letter) is None:
            size_of[letter] = size
    if not set(result) <= set(size_of):
        raise config.error("its equation makes a dimension out of nothing")
    return tuple(size_of[letter] for letter in result)


# -- functions ------------------------------------------------------------------------------------


@layer("Activation", masking=Masking.PASSES)
def activation_layer(self: Layer, x: Symbol) -> Symbol:
    """A function of each number."""
    return activated(self.config, x)


@layer("ReLU", masking=Masking.PASSES)
def relu(self: Layer, x: Symbol) -> Symbol:
    """The positive part; see ``bounded_relu``."""
    return x.made(bounded_relu(self.config)(x.tensor))


@layer("LeakyReLU", masking=Masking.PASSES)
def leaky_relu(self: Layer, x: Symbol) -> Symbol:
    """The positive part, and a part of the negative one."""
    return x.made(leaky(self.config)(x.tensor))


@layer("ELU", masking=Masking.PASSES)
def elu_layer(self: Layer, x: Symbol) -> Symbol:
    """The positive part, and an exponential below zero."""
    return x.made(elu(x.tensor, self.config.number("alpha", 1.0)))


@layer("ThresholdedReLU", masking=Masking.PASSES)
def thresholded_relu(self: Layer, x: Symbol) -> Symbol:
    """What is larger than theta, and 0 elsewhere."""
    is_large = x.tensor > constant_like(self.config.number("theta", 1.0), x.tensor)
    return x.made(x.tensor * ops.cast(is_large, x.tensor.dtype))


@layer("PReLU", weights=lambda _: [Weight("alpha")], masking=Masking.PASSES)
def prelu(self: Layer, x: Symbol) -> Symbol:
    """The positive part, and each number's own part of the negative one."""
    negative = -ops.relu(-x.tensor)
    return x.made(ops.relu(x.tensor) + self.weight("alpha") * negative)


@layer("Softmax", masking=Masking.PASSES)
def softmax_layer(self: Layer, x: Symbol, mask: Any = None) -> Symbol:
    """exp(x) over the sum of exp(x) along some dimensions; what is masked does not count."""
    axes = self.config.axes("axis", x.rank, -1)
    keep = mask.tensor if isinstance(mask, Symbol) else mask
    keep = x.mask if keep is None else keep
    return x.made(masked_softmax(x.tensor, axes, x.rank, keep, self.config))


def masked_softmax(
    x: Tensor, axes: tuple[int, ...], rank: int, keep: Tensor | None, config: Config
) -> Tensor:
    """A softmax in which only what is kept counts; Keras 3 makes the rest exactly 0."""
    if keep is not None:
        x = _without_masked(x, keep, config)
    if len(axes) > 1:
        shifted = ops.exp(x - ops.max(x, list(axes), keep_dims=True))
        made = ops.real_div(shifted, ops.sum(shifted, list(axes), keep_dims=True))
    else:
        made = softmax(x, -1 if axes[0] == rank - 1 else axes[0])
    if keep is not None and config.is_keras_3:
        made = ops.select_v2(keep, made, constant_like(0, made))
    return made


def _without_masked(x: Tensor, keep: Tensor, config: Config) -> Tensor:
    """A number so low that its softmax is 0 where nothing is kept; or that much less."""
    lowest = -3e4 if x.dtype is dtypes.float16 else -1e9
    if config.is_keras_3:
        return ops.select_v2(keep, x, constant_like(lowest, x))
    lowest = float(np.finfo(np.float16).min) / 2 if x.dtype is dtypes.float16 else -1e9
    return x + (constant_like(1, x) - ops.cast(keep, x.dtype)) * constant_like(lowest, x)


@layer("LayerScale", weights=lambda _: [Weight("gamma")])
def layer_scale(self: Layer, x: Symbol) -> Symbol:
    """Each channel times a number (ConvNeXt's, Liu et al. 2022)."""
    return x.made(x.tensor * self.weight("gamma", (x.shape[-1],)))


@layer("CustomScaleLayer")
def custom_scale(self: Layer, inputs: Sequence[Symbol]) -> Symbol:
    """The first input plus a part of the second (InceptionResNetV2's)."""
    first, second = inputs
    return first.made(
        first.tensor + second.tensor * constant_like(self.config.number("scale"), second.tensor)
    )


# -- what does something in training only ---------------------------------------------------------


@layer(
    "Dropout",
    "SpatialDropout1D",
    "SpatialDropout2D",
    "SpatialDropout3D",
    "AlphaDropout",
    "GaussianDropout",
    "GaussianNoise",
    "ActivityRegularization",
    "Identity",
    masking=Masking.PASSES,
)
def passed_on(_: Layer, x: Nest, **_unused: Any) -> Nest:
    """The inputs: what such layers do, they do in training."""
    return x


@layer("InputLayer", masking=Masking.OWN, converts=False)
def input_layer(_: Layer, x: Symbol) -> Symbol:
    """The input itself."""
    return x


@layer("Masking", masking=Masking.OWN)
def masking(self: Layer, x: Symbol) -> Symbol:
    """Zeros, and a mask, where all features of a time step have one value."""
    value = constant_like(self.config.number("mask_value", 0.0), x.tensor)
    differs = ops.not_equal(x.tensor, value)
    kept = ops.any(differs, -1, keep_dims=True)
    made = x.made(x.tensor * ops.cast(kept, x.tensor.dtype))
    return made.masked(ops.squeeze(kept, squeeze_dims=[-1]))


@layer("Lambda", converts=False)
def code(self: Layer, *_: Any, **_unused: Any) -> Nest:
    """Nothing: a file's own code is never run.

    Raises:
        UnimplementedError: always.

    """
    raise UnimplementedError(
        f"{self.config} holds Python code of the file's author, which is never run",
        next_step=f"replace it by a layer that says what it does; or {EXPORT}",
    )
