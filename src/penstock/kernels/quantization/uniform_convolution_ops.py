"""Convolutions of uniformly quantised integers.

In:   images and filters of any number of dimensions, with their scales and zero points; which
      dimension is which as a message, or none: batch, depth, then the spatial ones.
Out:  integers by other scales and zero points, or numbers.
Not:  no other arithmetic (uniform_arithmetic_ops).
"""

from __future__ import annotations

import math
from typing import Any, Final, NamedTuple

import numpy as np

from penstock.core import dtypes
from penstock.core.values import Array, Value
from penstock.errors import InvalidArgumentError, OpError
from penstock.kernels.api.attrs import Attrs
from penstock.kernels.api.registry import Kernel, kernel
from penstock.kernels.quantization.quantized_ranges import integers_of
from penstock.kernels.quantization.uniform_arithmetic_ops import (
    fitted,
    in_levels,
    less,
    scaled,
    wide,
)
from penstock.kernels.quantization.uniform_quantize_ops import along
from penstock.kernels.values.arrays import as_array, shape_text
from penstock.kernels.xla.xla_products import convolve, fields_of

_QINT8: Final = frozenset({dtypes.qint8})
_QINT32: Final = frozenset({dtypes.qint32})
_FLOAT: Final = frozenset({dtypes.float32})


@kernel("UniformQuantizedConvolution", types={"Tin": _QINT8, "Tout": _QINT32})
def make_convolution(attrs: Attrs) -> Kernel:
    """Images by filters; what pads images stands for zero."""
    facts, fit = _facts(attrs), fitted(attrs, "output_", "Tout")
    axes = [attrs.int(f"{which}_quantization_axis") for which in ("lhs", "rhs", "output")]

    def convolution(lhs: Value, rhs: Value, *scales: Value) -> Value:
        images, filters = integers_of(lhs), integers_of(rhs)
        roles = _checked(facts, images.shape, filters.shape)
        _check_axes(roles, axes[1], axes[2])
        (scale, zero), (other, other_zero) = (
            wide(along(images, scales[0], scales[1], axes[0])),
            wide(along(filters, scales[2], scales[3], axes[1])),
        )
        sums = _convolved(less(images, zero) * 1.0, less(filters, other_zero) * 1.0, facts, roles)
        out, out_zero = wide(along(sums.transpose(roles.back), scales[4], scales[5], axes[2]))
        factor = scale * np.ravel(other) / np.ravel(out)
        return fit((scaled(sums, factor) + np.ravel(out_zero)).transpose(roles.back))

    return convolution


@kernel("UniformQuantizedConvolutionHybrid", types={"Tlhs": _FLOAT, "Trhs": _QINT8, "Tout": _FLOAT})
def make_convolution_hybrid(attrs: Attrs) -> Kernel:
    """Images, each rounded to 256 levels, by quantised filters."""
    facts, axis = _facts(attrs), attrs.int("rhs_quantization_axis")

    def convolution(lhs: Value, rhs: Value, scales: Value, zeros: Value) -> Value:
        images, filters = as_array(lhs), integers_of(rhs)
        roles = _checked(facts, images.shape, filters.shape)
        _check_axes(roles, axis, -1)
        scale, zero = along(filters, scales, zeros, axis)
        numbers = less(filters, zero).astype(np.float32) * scale
        rows = np.moveaxis(images, roles.images[0], 0)
        levels = in_levels(rows.reshape(len(rows), math.prod(rows.shape[1:]))).reshape(rows.shape)
        images = np.moveaxis(levels, 0, roles.images[0])
        return _convolved(images, numbers, facts, roles).transpose(roles.back)

    return convolution


# -- facts about a node -------------------------------------------------------------------------


class _Facts(NamedTuple):
    """The attributes of a node; empty lists stand for ones."""

    fields: dict[int, list[int]]
    padding: str
    explicit: tuple[int, ...]
    strides: tuple[int, ...]
    gaps: tuple[tuple[int, ...], tuple[int, ...]]
    groups: tuple[int, int]


class _Roles(NamedTuple):
    """Dimensions in order: batch, spatial ones, depth; of filters spatial ones, depth, count."""

    images: list[int]
    filters: list[int]
    back: list[int]


def _facts(attrs: Attrs) -> _Facts:
    features, batches = attrs.int("feature_group_count"), attrs.int("batch_group_count")
    for name, count in (("feature_group_count", features), ("batch_group_count", batches)):
        if count < 1:
            raise InvalidArgumentError(f"{name} must be a positive integer, given: {count}")
    padding, explicit = attrs.str("padding"), attrs.list("explicit_padding")
    if padding not in {"EXPLICIT", "SAME", "VALID"}:
        raise InvalidArgumentError(
            f"padding Attr must be one of [EXPLICIT | SAME | VALID], but given: {padding}"
        )
    if padding != "EXPLICIT" and explicit:
        raise InvalidArgumentError(
            "If padding Attr is not 'EXPLICIT', explicit_padding Attr must be empty. "
            f"Given padding {padding} and explicit_padding of size {len(explicit)}"
        )
    strides, gaps = attrs.list("window_strides"), ("lhs_dilation", "rhs_dilation")
    for name in ("window_strides", *gaps):
        if any(number < 1 for number in attrs.list(name)):
            raise InvalidArgumentError(
                f"All elements of {name} must be >= 1. Given {list(attrs.list(name))}"
            )
    lhs_gaps, rhs_gaps = (attrs.list(name) for name in gaps)
    message = _fields(attrs.bytes("dimension_numbers"))
    return _Facts(message, padding, explicit, strides, (lhs_gaps, rhs_gaps), (features, batches))


def _fields(data: bytes) -> dict[int, list[int]]:
    try:
        return dict(fields_of(data))
    except (OpError, ValueError, IndexError):
        raise InvalidArgumentError("Error parsing convolution dimension numbers.") from None


def _roles(fields: dict[int, list[int]], rank: int) -> _Roles:
    """Numbers of the message: batch 1, depth 2, spatial 3; of filters 4 to 6, of results 7 to 9."""
    if not fields:
        spatial = list(range(2, rank))
        plain = [0, *spatial, 1]
        return _Roles(plain, [*spatial, 1, 0], np.argsort(plain).tolist())

    def one(field: int) -> int:
        return fields.get(field, [0])[-1]

    places = [fields.get(field, []) for field in (3, 6, 9)]
    for dims in places:
        if len(dims) != rank - 2:
            raise InvalidArgumentError(
                f"Spatial dimensions size must be rank - 2. Given rank {rank} and spatial "
                f"dimensions size {len(dims)}"
            )
    images, output = [one(1), *places[0], one(2)], [one(7), *places[2], one(8)]
    filters = [*places[1], one(4), one(5)]
    for dims in (images, filters, output):
        if sorted(dims) != list(range(rank)):
            raise InvalidArgumentError(f"dimension numbers {dims} are not those of rank {rank}")
    return _Roles(images, filters, np.argsort(output).tolist())


# -- checks of a call ------------------------------------------------------------------------------


def _checked(facts: _Facts, lhs: tuple[int, ...], rhs: tuple[int, ...]) -> _Roles:
    """What dimensions are for, if all fits together."""
    if len(lhs) != len(rhs):
        raise InvalidArgumentError(
            "lhs and rhs must have same dims. Given lhs and rhs of shapes: "
            f"{shape_text(lhs)}{shape_text(rhs)}"
        )
    rank = len(lhs)
    if rank < 3:
        raise InvalidArgumentError(f"lhs and rhs shape dims must be at least 3. Given: {rank}")
    names = ("window_strides", "lhs_dilation", "rhs_dilation")
    for name, numbers in zip(names, (facts.strides, *facts.gaps), strict=True):
        if len(numbers) not in {0, rank - 2}:
            raise InvalidArgumentError(f"Size of {name} Attr must be dims - 2.")
    _check_explicit(facts, rank)
    roles = _roles(facts.fields, rank)
    _check_groups(facts.groups, roles, lhs, rhs)
    return roles


def _check_explicit(facts: _Facts, rank: int) -> None:
    if facts.padding == "EXPLICIT" and len(facts.explicit) != 2 * (rank - 2):
        raise InvalidArgumentError(
            "Size of explicit_padding Attr must be 2 * (rank - 2). Given rank "
            f"{rank} and explicit_padding of size {len(facts.explicit)}"
        )
    if any(number < 0 for number in facts.explicit):
        raise InvalidArgumentError(
            f"All explicit_padding elems must be >= 0, Given {list(facts.explicit)}"
        )


def _check_groups(
    groups: tuple[int, int], roles: _Roles, lhs: tuple[int, ...], rhs: tuple[int, ...]
) -> None:
    features, batches = groups
    batch, depth = lhs[roles.images[0]], lhs[roles.images[-1]]
    filter_depth, count = rhs[roles.filters[-2]], rhs[roles.filters[-1]]
    if filter_depth and depth % filter_depth:
        raise InvalidArgumentError(
            "rhs input feature dimension must divide lhs feature dimension size, but "
            f"{filter_depth} does not divide {depth}"
        )
    if filter_depth * features != depth:
        raise InvalidArgumentError(
            "lhs feature dimension size divided by feature_group_count must equal the rhs "
            f"input feature dimension size, but {depth} / {features} != {filter_depth}"
        )
    if count % features:
        raise InvalidArgumentError(
            "rhs output dimension size must be a multiple of feature_group_count, but "
            f"{count} is not a multiple of {features}"
        )
    if batch % batches:
        raise InvalidArgumentError(
            "batch_group_count must divide lhs batch dimension size, but "
            f"{batches} does not divide {batch}"
        )


def _check_axes(roles: _Roles, filter_axis: int, output_axis: int) -> None:
    if filter_axis not in {-1, roles.filters[-1]}:
        raise InvalidArgumentError(
            "rhs_quantization_axis Attr must be -1 (per-tensor) or "
            "dimension_numbers.kernel_output_feature_dimension (per-channel)."
        )
    depth = roles.back.index(len(roles.back) - 1)
    if output_axis not in {-1, depth}:
        raise InvalidArgumentError(
            "output_quantization_axis Attr must be -1 (per-tensor) or "
            "dimension_numbers.output_feature_dimension (per-channel)."
        )
    if filter_axis == -1 and output_axis != -1:
        raise InvalidArgumentError(
            "If rhs is per-tensor quantized, output must be also per-tensor quantized."
        )


# -- the convolution itself ------------------------------------------------------------------------


def _convolved(images: Array, filters: Array, facts: _Facts, roles: _Roles) -> Array:
    """Sums, with dimensions in the order batch, spatial ones, count."""
    x, w = images.transpose(roles.images), filters.transpose(roles.filters)
    ones = (1,) * (x.ndim - 2)
    strides = facts.strides or ones
    gaps = np.array(facts.gaps[0] or ones), np.array(facts.gaps[1] or ones)
    padding = _padding(facts, x.shape[1:-1], w.shape[:-2], strides, gaps)
    sides = padding[:, 0].tolist(), padding[:, 1].tolist()
    spread = gaps[0].tolist(), gaps[1].tolist()
    return convolve(x, w, strides, sides, spread, facts.groups)


def _padding(
    facts: _Facts, images: Any, filters: Any, strides: tuple[int, ...], gaps: tuple[Array, Array]
) -> Array:
    """Elements before and after each spatial dimension."""
    if facts.padding == "VALID":
        return np.zeros((len(strides), 2), np.intp)
    if facts.padding == "EXPLICIT":
        return np.array(facts.explicit, np.intp).reshape(-1, 2)
    before = np.maximum((np.array(images) - 1) * gaps[0] + 1, 0)
    window = np.maximum((np.array(filters) - 1) * gaps[1] + 1, 0)
    after = -(-before // np.array(strides))
    total = np.maximum((after - 1) * np.array(strides) + window - before, 0)
    return np.stack([total // 2, total - total // 2], -1)
