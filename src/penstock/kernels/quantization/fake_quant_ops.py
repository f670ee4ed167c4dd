"""Fake quantisation: floating-point numbers rounded as if they went through integers.

In:   numbers, and a range that is constant, one input, or one input per channel.
Out:  the numbers that a network would see after quantisation, or gradients of them.
Not:  makes no integers.

The range is shifted a little first, so that zero is one of the numbers that are possible.
A number half way between two goes where TensorFlow's order of operations takes it: the op
with one variable range divides by the distance of numbers, the others multiply.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from penstock.core.values import Array, Value
from penstock.kernels.api.attrs import Attrs
from penstock.kernels.api.registry import Kernel, kernel
from penstock.kernels.parallel.tiles import by_elements
from penstock.kernels.values.arrays import shape_text


class _Nudged(NamedTuple):
    """A range with zero among its numbers, one or one per channel."""

    low: Any
    high: Any
    #: Distance of neighbouring numbers, and one over it, rounded on its own.
    step: Any
    per_step: Any
    #: How many steps zero is above ``low``.
    zero: Any


class _Nudge:
    """Shifts ranges for integers of so many bits."""

    def __init__(self, attrs: Attrs) -> None:
        bits = attrs.int("num_bits")
        if not 2 <= bits <= 16:
            raise ValueError(f"num_bits must be between 2 and 16, inclusive, got {bits}")
        self._first = np.float32(attrs.bool("narrow_range"))
        self._last = np.float32((1 << bits) - 1)

    def __call__(self, low: Any, high: Any) -> _Nudged:
        """Shift a range; its width stays."""
        first, last = self._first, self._last
        step = (high - low) / (last - first)
        exact = first - low / step
        zero = np.minimum(np.maximum(np.floor(exact + np.float32(0.5)), first), last)
        per_step = (last - first) / (high - low)
        return _Nudged((first - zero) * step, (last - zero) * step, step, per_step, zero - first)


def _above(values: Value, nudged: _Nudged) -> Value:
    """How far numbers, or the ends of the range for those outside, are above its start."""
    above = np.maximum(np.minimum(values, nudged.high), nudged.low)
    above -= nudged.low
    return above


def _rounded(steps: Value, nudged: _Nudged) -> Value:
    """The numbers nearest to so many steps above the start of the range, in place of these."""
    steps -= nudged.zero
    steps += np.float32(0.5)
    rounded = np.floor(steps, out=steps) if isinstance(steps, np.ndarray) else np.floor(steps)
    rounded *= nudged.step
    return rounded


def _constant_range(attrs: Attrs) -> _Nudged:
    low, high = np.float32(attrs.float("min")), np.float32(attrs.float("max"))
    if low >= high:
        raise ValueError(f"min has to be smaller than max, was: {low} >= {high}")
    return _Nudge(attrs)(low, high)


@kernel("FakeQuantWithMinMaxArgs")
def make_fake_quant_args(attrs: Attrs) -> Kernel:
    """Numbers rounded to the nearest of those possible in a constant range."""
    nudged = _constant_range(attrs)
    return by_elements(lambda values: _by_factor(values, nudged))


def _by_factor(values: Value, nudged: _Nudged) -> Value:
    steps = _above(values, nudged)
    steps *= nudged.per_step
    return _rounded(steps, nudged)


def _by_quotient(values: Value, nudged: _Nudged) -> Value:
    steps = _above(values, nudged)
    steps /= nudged.step
    return _rounded(steps, nudged)


@kernel("FakeQuantWithMinMaxArgsGradient")
def make_fake_quant_args_gradient(attrs: Attrs) -> Kernel:
    """The gradient where the input is in the range, zero elsewhere."""
    nudged = _constant_range(attrs)

    def gradient(gradients: Value, values: Value) -> Value:
        _check_same(gradients, values)
        is_inside = (values >= nudged.low) & (values <= nudged.high)
        return np.where(is_inside, gradients, np.float32(0))[()]

    return gradient


def _check_same(gradients: Value, values: Value) -> None:
    if np.shape(gradients) != np.shape(values):
        raise ValueError(
            "gradient and input must be the same size and shape: "
            f"{shape_text(np.shape(gradients))} and {shape_text(np.shape(values))}"
        )


@kernel("FakeQuantWithMinMaxVars")
def make_fake_quant_vars(attrs: Attrs) -> Kernel:
    """Numbers rounded to the nearest of those possible in a range; all zero if it is."""
    nudge = _Nudge(attrs)

    def fake_quant(values: Value, low: Value, high: Value) -> Value:
        _check_scalars(low, high)
        if low == 0 and high == 0:
            return np.zeros_like(values)[()]
        nudged = nudge(low, high)
        return by_elements(lambda some: _by_quotient(some, nudged))(values)

    return fake_quant


@kernel("FakeQuantWithMinMaxVarsPerChannel")
def make_fake_quant_channels(attrs: Attrs) -> Kernel:
    """The form with a range for each index of the last dimension."""
    nudge = _Nudge(attrs)

    def fake_quant(values: Array, low: Array, high: Array) -> Array:
        _check_channels(values, low, high)
        nudged = nudge(low, high)
        rounded = _by_factor(values, nudged)
        return np.where(_is_zero(low, high), np.float32(0), rounded)

    return fake_quant


def _is_zero(low: Value, high: Value) -> Array:
    """Which ranges hold zero alone."""
    return np.asarray((low == 0) & (high == 0))


def _check_scalars(low: Value, high: Value) -> None:
    for name, value in (("min", low), ("max", high)):
        if np.ndim(value):
            raise ValueError(f"`{name}` must be rank 0 but is rank {np.ndim(value)}")


def _check_channels(values: Value, low: Value, high: Value) -> None:
    if not np.ndim(values):
        raise ValueError("inputs must have a dimension of channels, got a scalar")
    for name, value in (("min", low), ("max", high)):
        if np.ndim(value) != 1:
            raise ValueError(f"`{name}` must be rank 1 but is rank {np.ndim(value)}")
        if len(value) != values.shape[-1]:
            raise ValueError(
                f"{name} has incorrect size, expected {values.shape[-1]} was {len(value)}"
            )


@kernel("FakeQuantWithMinMaxVarsGradient")
def make_fake_quant_vars_gradient(attrs: Attrs) -> Kernel:
    """The gradient inside the range for the input, the sums below and above for its ends."""
    nudge = _Nudge(attrs)

    def gradient(
        gradients: Value, values: Value, low: Value, high: Value
    ) -> tuple[Value, Value, Value]:
        _check_same(gradients, values)
        _check_scalars(low, high)
        inside, below, above = _parts(gradients, values, low, high, nudge)
        return inside[()], np.float32(below.sum()), np.float32(above.sum())

    return gradient


@kernel("FakeQuantWithMinMaxVarsPerChannelGradient")
def make_fake_quant_channels_gradient(attrs: Attrs) -> Kernel:
    """The form with a range for each index of the last dimension."""
    nudge = _Nudge(attrs)

    def gradient(
        gradients: Array, values: Array, low: Array, high: Array
    ) -> tuple[Value, Value, Value]:
        _check_same(gradients, values)
        _check_channels(values, low, high)
        inside, below, above = _parts(gradients, values, low, high, nudge)
        others = tuple(range(values.ndim - 1))
        return inside, below.sum(others), above.sum(others)

    return gradient


def _parts(
    gradients: Value, values: Value, low: Value, high: Value, nudge: _Nudge
) -> tuple[Array, Array, Array]:
    """The gradient where the input is in the range, below it and above it; else zero.

    A range of zero alone counts as holding everything.
    """
    is_zero, nudged = _is_zero(low, high), nudge(low, high)
    is_below, is_above = values < nudged.low, values > nudged.high
    is_inside = (values >= nudged.low) & (values <= nudged.high)
    zero = np.float32(0)
    return (
        np.where(is_zero | is_inside, gradients, zero),
        np.where(~is_zero & is_below, gradients, zero),
        np.where(~is_zero & is_above, gradients, zero),
    )
