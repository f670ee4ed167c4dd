"""Normal numbers between two bounds: each batch with a mean, a deviation and bounds of its own.

In:   a shape and four parameters; the stream from attributes, or from a seed.
Out:  an array of random numbers, the same ones as TensorFlow's on one thread (on several it
      draws other ones for large arrays); float16 is left out.
Not:  numbers cut at two deviations (random_numbers).

Robert, "Simulation of truncated normal variables", 1995: normal numbers are tried if many of
them lie between the bounds, else uniform ones, or in a long tail exponential ones.  Batches
draw from one stream, each from a new counter on.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np

from penstock.core import dtypes
from penstock.core.dtypes import DType
from penstock.core.values import Array, Value, as_value
from penstock.errors import InternalError, InvalidArgumentError
from penstock.kernels.api.attrs import Attrs
from penstock.kernels.api.registry import Kernel, kernel
from penstock.kernels.random.node_stream import stream_of
from penstock.kernels.random.philox import Philox
from penstock.kernels.random.random_numbers import (
    normal_float32,
    normal_float64,
    uniform_float32,
    uniform_float64,
)
from penstock.kernels.random.stateless_random_ops import sizes_in, stream_of_seed
from penstock.kernels.values.arrays import shape_text

_TYPES: Final = frozenset({dtypes.float32, dtypes.float64})
#: Bounds beyond this many deviations, on the mean's other side, leave enough normal numbers.
_FAR: Final = 1.3
#: So many candidates are reserved for each number.
_RESERVED: Final = 2000
#: If all parameters are single numbers, batches have this size.
_BATCH: Final = 100
#: After so many counters without a number, there will be none.
_PATIENCE: Final = 1000
#: From words to candidates, and which of them are taken; one row per counter.
_Try: TypeAlias = Callable[[Array], tuple[Array, Array]]


class _Bounds(NamedTuple):
    """One batch's distribution."""

    mean: Any
    deviation: Any
    low: Any
    high: Any


def _samples(stream: Philox, bounds: _Bounds, count: int, dtype: DType) -> tuple[Array, Philox]:
    """So many numbers, and the rest of the stream."""
    mean, deviation, low, high = bounds
    if not (deviation > 0 and low < high and (math.isfinite(low) or math.isfinite(high))):
        raise InvalidArgumentError("Invalid parameters")
    if math.isinf(low) or high < mean:
        low, high, deviation = high, low, -deviation
    attempt = _method((low - mean) / deviation, (high - mean) / deviation, dtype)
    found: list[Array] = []
    wanted, idle = count, 0
    while wanted:
        size = wanted // dtype.numpy.itemsize * 2 + 8  # Even: counters may come in pairs.
        candidates, is_good = attempt(stream.blocks(size).reshape(-1))
        good = np.cumsum(is_good.sum(1))
        used = min(int(np.searchsorted(good, wanted)) + 1, size)
        numbers = candidates[:used][is_good[:used]][:wanted]
        found.append(numbers)
        stream, wanted = stream.skip(used), wanted - len(numbers)
        idle = 0 if len(numbers) else idle + size
        if idle > _PATIENCE:
            raise InternalError("TruncatedNormal rejection sampler failed to accept a sample.")
    numbers = np.concatenate(found) if found else np.empty(0, dtype.numpy)
    return numbers * deviation + mean, stream


def _method(low: Any, high: Any, dtype: DType) -> _Try:
    """How numbers of mean 0 and deviation 1 are found."""
    if (low < -_FAR and high >= 0) or (high > _FAR and low <= 0):
        return _normal(low, high, dtype)
    root = np.sqrt(low * low + 4)
    widest = 2 * np.exp(0.5 + low * (low - root) / 4) / (low + root)
    if high - low < widest:
        return _uniform(low, high, dtype)
    return _exponential(low, high, (low + root) / 2, dtype)


def _normal(low: Any, high: Any, dtype: DType) -> _Try:
    draw = normal_float64 if dtype is dtypes.float64 else normal_float32

    def attempt(words: Array) -> tuple[Array, Array]:
        z = draw(words).reshape(len(words) // 4, -1)
        return z, (z >= low) & (z <= high)

    return attempt


def _uniform(low: Any, high: Any, dtype: DType) -> _Try:
    """One counter gives candidates, the next one says which of them are likely enough."""
    most = low * low if low > 0 else dtype.numpy.type(0)
    draw = uniform_float64 if dtype is dtypes.float64 else uniform_float32

    def attempt(words: Array) -> tuple[Array, Array]:
        fractions = draw(words).reshape(len(words) // 4, -1)
        z = fractions * (high - low) + low
        is_good = np.zeros(z.shape, np.bool_)
        # The second counter of each pair stands for both.
        is_good[1::2] = fractions[1::2] <= np.exp((most - z[0::2] * z[0::2]) / 2)
        z[1::2] = z[0::2]
        return z, is_good

    return attempt


def _exponential(low: Any, high: Any, rate: Any, dtype: DType) -> _Try:
    draw = uniform_float64 if dtype is dtypes.float64 else uniform_float32

    def attempt(words: Array) -> tuple[Array, Array]:
        fractions = draw(words).reshape(len(words) // 4, -1)
        z = -np.log(fractions[:, 0::2]) / rate + low
        off = z - rate
        return z, (fractions[:, 1::2] <= np.exp(-off * off / 2)) & (z < high)

    return attempt


def _in_turn(stream: Philox, batches: Sequence[_Bounds], count: int, dtype: DType) -> list[Array]:
    numbers = []
    for bounds in batches:
        some, stream = _samples(stream, bounds, count, dtype)
        numbers.append(some)
    return numbers


@kernel("StatelessParameterizedTruncatedNormal", types={"dtype": _TYPES})
def make_stateless_bounded_normal(attrs: Attrs) -> Kernel:
    """Numbers from a seed; the shape ends with that of the parameters."""
    dtype = attrs.dtype("dtype")

    def compute(shape: Value, seed: Value, *parameters: Value) -> Value:
        stream, sizes = stream_of_seed(seed), sizes_in(shape, dtype)
        batch = _common_shape(parameters)
        if batch is None or sizes[len(sizes) - len(batch) :] != batch:
            raise InvalidArgumentError("Shape passed in must end with broadcasted shape.")
        if 0 in sizes:
            return np.empty(sizes, dtype.numpy)
        bounds = _bounds([np.broadcast_to(p, batch).reshape(-1) for p in parameters])
        columns = _in_turn(stream, bounds, math.prod(sizes) // len(bounds), dtype)
        return as_value(np.stack(columns, -1).reshape(sizes))

    return compute


def _common_shape(parameters: Sequence[Value]) -> tuple[int, ...] | None:
    try:
        return np.broadcast_shapes(*(p.shape for p in parameters))
    except ValueError:
        return None


def _bounds(parameters: Sequence[Array]) -> list[_Bounds]:
    return [_Bounds(*row) for row in zip(*parameters, strict=True)]


@kernel("ParameterizedTruncatedNormal", types={"dtype": _TYPES})
def make_bounded_normal(attrs: Attrs) -> Kernel:
    """Other numbers each time; the parameters have one number, or one per row."""
    dtype, generator = attrs.dtype("dtype"), stream_of(attrs)

    def compute(shape: Value, *parameters: Value) -> Value:
        sizes = sizes_in(shape, dtype)
        if not sizes:
            raise InvalidArgumentError("Shape tensor must not be empty, got []")
        rows, count = sizes[0], math.prod(sizes[1:])
        for name, given in zip(("means", "stdevs", "minvals", "maxvals"), parameters, strict=True):
            if given.ndim > 1 or (given.ndim and len(given) not in (1, rows)):
                raise InvalidArgumentError(
                    f"Input {name} should have length 1 or shape[0], got shape: "
                    f"{shape_text(given.shape)}"
                )
        if 0 in sizes:
            return np.empty(sizes, dtype.numpy)
        if all(given.ndim == 0 for given in parameters):
            rows, count = -(-rows * count // _BATCH), _BATCH
        stream = generator.reserve(rows * _RESERVED * (count + 3) // 4)
        bounds = _bounds([np.broadcast_to(given, rows) for given in parameters])
        numbers = np.concatenate(_in_turn(stream, bounds, count, dtype))
        return numbers[: math.prod(sizes)].reshape(sizes)

    return compute
