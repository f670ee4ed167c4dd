"""Ops that repeat an array or change the order along its dimensions.

In:   an array, and which dimensions to reverse, roll or repeat, and how.
Out:  the same elements in another order, where possible as a view; or repeated.
Not:  exchanges no dimensions, shape_ops does.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from penstock.core import dtypes
from penstock.core.values import Array, Value, as_value
from penstock.errors import InvalidArgumentError
from penstock.kernels.api.attrs import Attrs
from penstock.kernels.api.constants import is_constant
from penstock.kernels.api.registry import Cost, Kernel, kernel
from penstock.kernels.api.types import OBJECTS, PLAIN
from penstock.kernels.parallel.strided_copies import gathered
from penstock.kernels.values.arrays import boxing, check_new, shape_text

_INDEX: Final = frozenset({dtypes.int32, dtypes.int64})
_REVERSIBLE: Final = PLAIN | {dtypes.string}
_BACKWARDS: Final = slice(None, None, -1)


@kernel("Reverse", types={"T": _REVERSIBLE}, cost=Cost.CHEAP)
def make_reverse(attrs: Attrs) -> Kernel:
    """The input backwards along the dimensions that are marked."""

    def reverse(values: Array, dims: Value) -> Value:
        if dims.ndim != 1:
            raise InvalidArgumentError(f"'dims' must be 1-dimension, not {dims.ndim}")
        if len(dims) != len(values.shape):
            raise InvalidArgumentError(
                "'dims' must have the same number of values as 'input' has dimensions. "
                f"'input' has {len(values.shape)}'dims' has {len(dims)} values"
            )
        if values.shape[:1] == (0,):
            raise InvalidArgumentError("Invalid input first dimension. Found 0.")
        index = tuple(_BACKWARDS if marked else slice(None) for marked in dims.tolist())
        return as_value(gathered(values[index]))

    return boxing(attrs, "T", reverse)


@kernel("ReverseV2", types={"T": _REVERSIBLE, "Tidx": _INDEX}, cost=Cost.CHEAP)
def make_reverse_v2(attrs: Attrs) -> Kernel:
    """The input backwards along the dimensions that are listed."""

    def reverse_v2(values: Array, axes: Value) -> Value:
        if axes.ndim != 1:
            raise InvalidArgumentError(f"'dims' must be 1-dimension, not {axes.ndim}")
        rank = len(values.shape)
        if 0 in values.shape or rank == 0:
            return as_value(values)  # nothing to reverse: no axis is looked at
        index = [slice(None)] * rank
        for i, axis in enumerate(axes.tolist()):
            if not -rank <= axis < rank:
                raise InvalidArgumentError(
                    f"'axis'[{i}] = {axis} is out of valid range [0, {rank - 1}]"
                )
            if index[axis] is _BACKWARDS:
                raise InvalidArgumentError(f"axis {axis % rank} specified more than once.")
            index[axis] = _BACKWARDS
        return gathered(values[tuple(index)])

    return boxing(attrs, "T", reverse_v2)


@kernel("ReverseSequence", types={"T": _REVERSIBLE})
def make_reverse_sequence(attrs: Attrs) -> Kernel:
    """Each part of a batch with its first few elements backwards."""
    seq_dim, batch_dim = attrs.int("seq_dim"), attrs.int("batch_dim")

    def reverse_sequence(values: Array, lengths: Value) -> Array:
        _check_sequence(values, lengths, seq_dim, batch_dim)
        steps = np.arange(values.shape[seq_dim])
        ends = lengths.astype(np.int64)[:, None]
        sources = np.where(steps < ends, ends - 1 - steps, steps)
        batches = np.moveaxis(values, (batch_dim, seq_dim), (0, 1))
        turned = batches[np.arange(len(batches))[:, None], sources]
        return np.moveaxis(turned, (0, 1), (batch_dim, seq_dim))

    return boxing(attrs, "T", reverse_sequence)


def _check_sequence(values: Array, lengths: Value, seq_dim: int, batch_dim: int) -> None:
    if lengths.ndim != 1:
        raise InvalidArgumentError(f"seq_lengths must be 1-dim, not {lengths.ndim}")
    rank = len(values.shape)
    for name, dim in (("batch_dim", batch_dim), ("seq_dim", seq_dim)):
        if dim < 0:
            raise InvalidArgumentError(f"Invalid {name} {dim}")
        if dim >= rank:
            raise InvalidArgumentError(f"{name} must be < input rank ( {dim} vs. {rank})")
    if batch_dim == seq_dim:
        raise InvalidArgumentError(f"batch_dim == seq_dim == {seq_dim}")
    if len(lengths) != values.shape[batch_dim]:
        raise InvalidArgumentError(
            f"Length of seq_lengths != input.dims({batch_dim}), "
            f"({len(lengths)} vs. {values.shape[batch_dim]})"
        )
    for i, length in enumerate(lengths.tolist()):
        if length < 0:
            raise InvalidArgumentError(f"seq_lens({i}) < 0")
        if length > values.shape[seq_dim]:
            raise InvalidArgumentError(f"seq_lens({i}) > input.dims({seq_dim})")


@kernel("Roll", types={"T": PLAIN | OBJECTS})
def make_roll(attrs: Attrs) -> Kernel:
    """The input with its elements moved along dimensions; what leaves enters again."""

    def roll(values: Array, shift: Value, axis: Value) -> Array:
        rank = len(values.shape)
        if rank == 0:
            raise InvalidArgumentError("input must be 1-D or higher")
        for name, value in (("shift", shift), ("axis", axis)):
            if value.ndim > 1:
                raise InvalidArgumentError(
                    f"{name} must be a scalar or a 1-D vector. Found: {shape_text(value.shape)}"
                )
        if shift.shape != axis.shape:
            raise InvalidArgumentError("shift and axis must have the same size")
        axes = axis.reshape(-1).tolist()
        for number in axes:
            if not -rank <= number < rank:
                raise InvalidArgumentError(f"axis {number} is out of range")
        return np.roll(values, tuple(shift.reshape(-1).tolist()), tuple(axes))

    return boxing(attrs, "T", roll)


@kernel("Tile", types={"Tmultiples": _INDEX})
def make_tile(attrs: Attrs) -> Kernel:
    """The input repeated as a whole along each dimension."""
    #: Multiples and shape of the last call, and how such an array is repeated.
    last: tuple[Value, tuple[int, ...], Kernel] = (make_tile, (), make_tile)

    def tile(values: Array, multiples: Value) -> Value:
        nonlocal last
        known, shape, repeat = last
        if multiples is not known or values.shape != shape:
            repeat = _repeater(_times_in(multiples, values.shape), values)
            if is_constant(multiples):
                last = multiples, values.shape, repeat
        return repeat(values)

    return boxing(attrs, "T", tile)


def _times_in(multiples: Value, shape: tuple[int, ...]) -> list[int]:
    """How often the input is repeated along each dimension."""
    if multiples.ndim != 1:
        raise InvalidArgumentError(
            f"Expected multiples to be 1-D, but got shape {shape_text(multiples.shape)}"
        )
    times: list[int] = multiples.tolist()
    if len(times) != len(shape):
        raise InvalidArgumentError(
            f"Expected multiples argument to be a vector of length {len(shape)} but got "
            f"length {len(times)}"
        )
    if times and min(times) < 0:
        raise _negative(times)
    return times


def _negative(times: list[int]) -> InvalidArgumentError:
    i, count = next((i, count) for i, count in enumerate(times) if count < 0)
    return InvalidArgumentError(f"Expected multiples[{i}] >= 0, but got {count}")


def _repeater(times: list[int], like: Array) -> Kernel:
    """Repeats as a whole: numpy copies once, into an array with a dimension per repetition."""
    shape, dtype = like.shape, like.dtype
    sizes = [count * size for count, size in zip(times, shape, strict=True)]
    check_new(sizes, dtype)
    pairs: Any = zip(times, shape, strict=True)
    with_repetitions = [n for pair in pairs for n in pair]
    as_source = [n for size in shape for n in (1, size)]

    def repeat(values: Array) -> Value:
        repeated = np.empty(with_repetitions, dtype)
        repeated[...] = values.reshape(as_source)
        return repeated.reshape(sizes) if sizes else as_value(repeated)

    def repeat_one(values: Array) -> Value:
        repeated = np.empty(sizes, dtype)
        repeated[...] = values
        return repeated if sizes else as_value(repeated)

    return repeat_one if like.size == 1 and not dtype.hasobject else repeat
