"""Random ops whose numbers depend on nothing but their inputs.

In:   a shape and a seed of two integers; or a key, a counter and the number of an algorithm.
Out:  an array of random numbers, always the same for the same inputs.
Not:  keeps no state (random_ops).

TensorFlow has a first form of each op, with a seed, and a second one (V2), with what
``StatelessRandomGetKeyCounter`` makes of a seed.
"""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from penstock.core import dtypes
from penstock.core.dtypes import DType
from penstock.core.values import Array, Value, as_value
from penstock.errors import InvalidArgumentError
from penstock.kernels.api.attrs import Attrs
from penstock.kernels.api.registry import Kernel, kernel
from penstock.kernels.api.types import FLOATS
from penstock.kernels.random import random_samplers as samplers
from penstock.kernels.random.philox import Philox, from_seed
from penstock.kernels.random.random_numbers import (
    Draw,
    normal,
    truncated_normal,
    uniform,
    whole,
    whole_between,
)
from penstock.kernels.values.arrays import as_array, check_new, shape_text

_PHILOX: Final = 1
#: Numbers of algorithms that mean Philox here: itself, and the device's own choice.
_ALGORITHMS: Final = frozenset({_PHILOX, 3})
_WHOLE: Final = frozenset({dtypes.int32, dtypes.int64, dtypes.uint32, dtypes.uint64})
_SIGNED: Final = frozenset({dtypes.int32, dtypes.int64})
_WIDE_FLOATS: Final = frozenset({dtypes.float16, dtypes.float32, dtypes.float64})
_RATES: Final = _WIDE_FLOATS | _SIGNED

_DRAWS: Final[dict[str, Any]] = {
    "StatelessRandomUniform": uniform,
    "StatelessRandomNormal": normal,
    "StatelessTruncatedNormal": truncated_normal,
    "StatelessRandomUniformFullInt": whole,
}
_OF_FLOATS: Final = tuple(name for name, draw in _DRAWS.items() if draw is not whole)


def stream_of_seed(seed: Value) -> Philox:
    """The stream that a seed means."""
    if seed.shape != (2,):
        raise InvalidArgumentError(f"seed must have shape [2], not {shape_text(seed.shape)}")
    first, second = seed.tolist()
    return from_seed(first, second)


def stream_of_key(key: Value, counter: Value, alg: Value) -> Philox:
    """The stream that a key and a counter mean."""
    if alg.ndim:
        raise InvalidArgumentError(f"alg must have shape [], not {shape_text(alg.shape)}")
    if int(alg) not in _ALGORITHMS:
        raise InvalidArgumentError(f"Unsupported algorithm id: {alg}")
    if key.shape != (1,):
        raise InvalidArgumentError(f"key must have shape [1], not {shape_text(key.shape)}")
    if counter.ndim != 1 or len(counter) < 2:
        raise InvalidArgumentError(
            f"counter must be a vector with length at least 2; got shape: "
            f"{shape_text(counter.shape)}"
        )
    low, high = counter[:2].tolist()
    return Philox(int(key[0]), low | high << 64)


def sizes_in(shape: Value, dtype: DType) -> tuple[int, ...]:
    """The sizes that an input gives for a new array."""
    if shape.ndim != 1:
        raise InvalidArgumentError(
            f"shape must be a vector of {{int32,int64}}, got shape {shape_text(shape.shape)}"
        )
    sizes = tuple(shape.tolist())
    check_new(sizes, dtype.numpy)
    return sizes


def drawn(draw: Draw, stream: Philox, sizes: tuple[int, ...]) -> Value:
    """Numbers from a stream, in a shape."""
    return as_value(draw(stream, math.prod(sizes)).reshape(sizes))


@kernel("StatelessRandomUniformFullInt", types={"dtype": _WHOLE})
@kernel(*_OF_FLOATS, types={"dtype": FLOATS})
def make_stateless(attrs: Attrs) -> Kernel:
    """Numbers of the kind that the op is named after, from a seed."""
    dtype = attrs.dtype("dtype")
    draw = _DRAWS[attrs.op.name](dtype)
    return lambda shape, seed: drawn(draw, stream_of_seed(seed), sizes_in(shape, dtype))


@kernel("StatelessRandomUniformFullIntV2", types={"dtype": _WHOLE})
@kernel(*(f"{name}V2" for name in _OF_FLOATS), types={"dtype": FLOATS})
def make_stateless_v2(attrs: Attrs) -> Kernel:
    """Numbers of the kind that the op is named after, from a key and a counter."""
    dtype = attrs.dtype("dtype")
    draw = _DRAWS[attrs.op.name.removesuffix("V2")](dtype)

    def compute(shape: Value, key: Value, counter: Value, alg: Value) -> Value:
        return drawn(draw, stream_of_key(key, counter, alg), sizes_in(shape, dtype))

    return compute


@kernel("StatelessRandomUniformInt", types={"dtype": _SIGNED})
def make_stateless_int(attrs: Attrs) -> Kernel:
    """Integers between two limits, from a seed."""
    dtype = attrs.dtype("dtype")

    def compute(shape: Value, seed: Value, low: Value, high: Value) -> Value:
        sizes = sizes_in(shape, dtype)
        return drawn(between(dtype, low, high, sizes), stream_of_seed(seed), sizes)

    return compute


@kernel("StatelessRandomUniformIntV2", types={"dtype": _SIGNED})
def make_stateless_int_v2(attrs: Attrs) -> Kernel:
    """Integers between two limits, from a key and a counter."""
    dtype = attrs.dtype("dtype")

    def compute(
        shape: Value, key: Value, counter: Value, alg: Value, low: Value, high: Value
    ) -> Value:
        sizes = sizes_in(shape, dtype)
        return drawn(between(dtype, low, high, sizes), stream_of_key(key, counter, alg), sizes)

    return compute


def between(dtype: DType, low: Value, high: Value, sizes: tuple[int, ...]) -> Draw:
    """How integers between two limits are drawn; raises unless there are some."""
    for name, limit in (("minval", low), ("maxval", high)):
        if limit.ndim:
            raise InvalidArgumentError(f"{name} must be 0-D, got shape {shape_text(limit.shape)}")
    if 0 in sizes:
        return whole(dtype)
    if low >= high:
        raise InvalidArgumentError(f"Need minval < maxval, got {low} >= {high}")
    return whole_between(dtype, int(low), int(high))


@kernel("StatelessRandomGetKeyCounter")
def make_key_counter(_: Attrs) -> Kernel:
    """The key and the counter that a seed means."""

    def compute(seed: Value) -> tuple[Array, Array]:
        stream = stream_of_seed(seed)
        return np.array([stream.key], np.uint64), np.array([0, stream.counter >> 64], np.uint64)

    return compute


@kernel("StatelessRandomGetKeyCounterAlg")
def make_key_counter_alg(attrs: Attrs) -> Kernel:
    """The key and the counter that a seed means, and the number of the algorithm."""
    key_counter = make_key_counter(attrs)
    return lambda seed: (*key_counter(seed), np.int32(_PHILOX))


@kernel("StatelessRandomGetAlg")
def make_alg(_: Attrs) -> Kernel:
    """The number of the algorithm, which is Philox."""
    return lambda: np.int32(_PHILOX)


@kernel("StatelessShuffle")
def make_stateless_shuffle(_: Attrs) -> Kernel:
    """The slices along the first axis in random order."""

    def compute(value: Value, key: Value, counter: Value, alg: Value) -> Value:
        stream, value = stream_of_key(key, counter, alg), as_array(value)
        return value[samplers.shuffled(stream, len(value))] if value.ndim else as_value(value)

    return compute


@kernel("StatelessMultinomial", types={"T": FLOATS, "output_dtype": _SIGNED})
def make_stateless_multinomial(attrs: Attrs) -> Kernel:
    """For each row of logits random classes, each as likely as its exponential says."""
    dtype = attrs.dtype("output_dtype").numpy

    def compute(logits: Value, num_samples: Value, seed: Value) -> Array:
        count = samples_in(logits, num_samples)
        return samplers.choices(stream_of_seed(seed), logits, count).astype(dtype, copy=False)

    return compute


def samples_in(logits: Value, num_samples: Value) -> int:
    """How many samples of each row are wanted; raises unless there is something to choose."""
    if logits.ndim != 2:
        raise InvalidArgumentError(
            f"logits should be a matrix, got shape {shape_text(logits.shape)}"
        )
    if num_samples.ndim:
        raise InvalidArgumentError(
            f"num_samples should be a scalar, got shape {shape_text(num_samples.shape)}"
        )
    if num_samples < 0:
        raise InvalidArgumentError(f"num_samples should be non-negative, got {num_samples}")
    if logits.shape[1] == 0 and len(logits):
        raise InvalidArgumentError("num_classes should be positive, got 0")
    check_new((len(logits), int(num_samples)), np.dtype(np.float64))
    return int(num_samples)


def samples_of(
    shape: tuple[int, ...], *parameters: Value
) -> tuple[tuple[int, ...], tuple[Array, ...]]:
    """How samples are laid out, and the parameters of each, one after the other.

    Each parameter has its samples in a row: of a shape [3, 2] and two rates there come three
    samples of the first rate, then three of the second.  The layout is the shape of that.
    """
    wide = [np.asarray(p).astype(np.float64) for p in parameters]
    batch = np.broadcast_shapes(*(p.shape for p in wide))
    if shape[len(shape) - len(batch) :] != batch:
        raise InvalidArgumentError("Shape passed in must end with broadcasted shape.")
    count, size = math.prod(shape[: len(shape) - len(batch)]), math.prod(batch)
    lanes = tuple(np.repeat(np.broadcast_to(p, batch).reshape(-1), count) for p in wide)
    return (size, count), lanes


def laid_out(samples: Array, layout: tuple[int, ...], shape: tuple[int, ...], to: DType) -> Value:
    """The samples of ``samples_of`` in the shape that was asked for."""
    return as_value(samples.reshape(layout).T.reshape(shape).astype(to.numpy))


@kernel("StatelessRandomGammaV2", types={"dtype": _WIDE_FLOATS})
def make_stateless_gamma_v2(attrs: Attrs) -> Kernel:
    """Gamma variables of shapes alpha, from a seed."""
    dtype = attrs.dtype("dtype")
    return lambda shape, seed, alpha: gammas(
        stream_of_seed(seed), sizes_in(shape, dtype), alpha, dtype
    )


@kernel("StatelessRandomGammaV3", types={"dtype": _WIDE_FLOATS})
def make_stateless_gamma_v3(attrs: Attrs) -> Kernel:
    """Gamma variables of shapes alpha, from a key and a counter."""
    dtype = attrs.dtype("dtype")

    def compute(shape: Value, key: Value, counter: Value, alg: Value, alpha: Value) -> Value:
        return gammas(stream_of_key(key, counter, alg), sizes_in(shape, dtype), alpha, dtype)

    return compute


def gammas(stream: Philox, shape: tuple[int, ...], alpha: Value, dtype: DType) -> Value:
    """Gamma variables in a shape that ends with that of alpha."""
    layout, (alphas,) = samples_of(shape, alpha)
    return laid_out(samplers.gamma(stream, alphas), layout, shape, dtype)


@kernel("StatelessRandomPoisson", types={"Rtype": _RATES, "dtype": _RATES})
def make_stateless_poisson(attrs: Attrs) -> Kernel:
    """Poisson variables of rates lambda, from a seed."""
    dtype = attrs.dtype("dtype")
    return lambda shape, seed, rate: poissons(
        stream_of_seed(seed), sizes_in(shape, dtype), rate, dtype
    )


def poissons(stream: Philox, shape: tuple[int, ...], rate: Value, dtype: DType) -> Value:
    """Poisson variables in a shape that ends with that of the rates."""
    layout, (rates,) = samples_of(shape, rate)
    limits: Any = np.finfo if dtype.is_floating else np.iinfo
    largest = float(limits(dtype.numpy).max)
    if not (rates <= largest).all():
        raise InvalidArgumentError(f"rates must be finite and at most {largest} for {dtype}")
    return laid_out(samplers.poisson(stream, rates, largest), layout, shape, dtype)


@kernel("StatelessRandomBinomial", types={"T": _WIDE_FLOATS, "dtype": _RATES})
def make_stateless_binomial(attrs: Attrs) -> Kernel:
    """Binomial variables: successes in so many trials of such a chance, from a seed."""
    dtype = attrs.dtype("dtype")

    def compute(shape: Value, seed: Value, counts: Value, chances: Value) -> Value:
        stream, sizes = stream_of_seed(seed), sizes_in(shape, dtype)
        try:
            layout, parameters = samples_of(sizes, counts, chances)
        except ValueError:
            raise InvalidArgumentError(
                "counts and probs must have compatible batch dimensions: "
                f"{shape_text(counts.shape)} vs. {shape_text(chances.shape)}"
            ) from None
        samples = samplers.binomial(stream, *parameters)
        if not dtype.is_floating:
            samples = np.nan_to_num(samples)
        return laid_out(samples, layout, sizes, dtype)

    return compute
