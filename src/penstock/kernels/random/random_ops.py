"""Random ops that go on in their stream from call to call.

In:   shapes and parameters; the stream from the attributes ``seed`` and ``seed2``.
Out:  arrays of random numbers, the same sequence of them in every session; if both seeds
      are 0, another one each time.
Not:  no seed among the inputs (stateless_random_ops).

A call reserves more of the stream than it uses, so that it does not matter how many
candidates were rejected.
"""

from __future__ import annotations

import math
from typing import Any, Final

from penstock.core import dtypes
from penstock.core.values import Array, Value, as_value
from penstock.kernels.api.attrs import Attrs
from penstock.kernels.api.registry import Kernel, kernel
from penstock.kernels.api.types import FLOATS
from penstock.kernels.random import random_samplers as samplers
from penstock.kernels.random.node_stream import stream_of
from penstock.kernels.random.random_numbers import normal, truncated_normal, uniform
from penstock.kernels.random.stateless_random_ops import (
    between,
    drawn,
    gammas,
    poissons,
    samples_in,
    sizes_in,
)
from penstock.kernels.values.arrays import as_array

#: So many counters are reserved for each number.
_RESERVED: Final = samplers.RESERVED
_SIGNED: Final = frozenset({dtypes.int32, dtypes.int64})
_WIDE_FLOATS: Final = frozenset({dtypes.float16, dtypes.float32, dtypes.float64})
_RATES: Final = _WIDE_FLOATS | _SIGNED

_DRAWS: Final[dict[str, Any]] = {
    "RandomUniform": uniform,
    "RandomStandardNormal": normal,
    "TruncatedNormal": truncated_normal,
}


@kernel(*_DRAWS, types={"dtype": FLOATS})
def make_random(attrs: Attrs) -> Kernel:
    """Numbers of the kind that the op is named after."""
    dtype, generator = attrs.dtype("dtype"), stream_of(attrs)
    draw = _DRAWS[attrs.op.name](dtype)

    def compute(shape: Value) -> Value:
        sizes = sizes_in(shape, dtype)
        return drawn(draw, generator.reserve(math.prod(sizes) * _RESERVED), sizes)

    return compute


@kernel("RandomUniformInt", types={"Tout": _SIGNED})
def make_random_int(attrs: Attrs) -> Kernel:
    """Integers between two limits."""
    dtype, generator = attrs.dtype("Tout"), stream_of(attrs)

    def compute(shape: Value, low: Value, high: Value) -> Value:
        sizes = sizes_in(shape, dtype)
        draw = between(dtype, low, high, sizes)
        return drawn(draw, generator.reserve(math.prod(sizes) * _RESERVED), sizes)

    return compute


@kernel("RandomShuffle")
def make_random_shuffle(attrs: Attrs) -> Kernel:
    """The slices along the first axis in random order."""
    generator = stream_of(attrs)

    def compute(value: Value) -> Value:
        value = as_array(value)
        if value.ndim == 0 or len(value) <= 1:
            return as_value(value)
        stream = generator.reserve(-(-(len(value) - 1) // 4))
        return value[samplers.shuffled(stream, len(value))]

    return compute


@kernel("Multinomial", types={"T": FLOATS, "output_dtype": _SIGNED})
def make_multinomial(attrs: Attrs) -> Kernel:
    """For each row of logits random classes, each as likely as its exponential says."""
    dtype, generator = attrs.dtype("output_dtype").numpy, stream_of(attrs)

    def compute(logits: Value, num_samples: Value) -> Array:
        count = samples_in(logits, num_samples)
        by_four = -(-count // 4) * 4
        stream = generator.reserve(len(logits) * by_four * 2 * _RESERVED)
        return samplers.choices(stream, logits, count).astype(dtype, copy=False)

    return compute


@kernel("RandomGamma", types={"T": FLOATS})
def make_random_gamma(attrs: Attrs) -> Kernel:
    """Gamma variables of shapes alpha: a sample of each of them for each place of a shape."""
    dtype, generator = attrs.dtype("T"), stream_of(attrs)

    def compute(shape: Value, alpha: Value) -> Value:
        sizes = (*sizes_in(shape, dtype), *alpha.shape)
        stream = generator.reserve(math.prod(sizes) * _RESERVED)
        return gammas(stream, sizes, alpha, dtype)

    return compute


@kernel("RandomPoisson", types={"dtype": _WIDE_FLOATS})
@kernel("RandomPoissonV2", types={"R": _RATES, "dtype": _RATES})
def make_random_poisson(attrs: Attrs) -> Kernel:
    """Poisson variables: a sample of each of the rates for each place of a shape."""
    dtype, generator = attrs.dtype("dtype"), stream_of(attrs)

    def compute(shape: Value, rate: Value) -> Value:
        sizes = (*sizes_in(shape, dtype), *rate.shape)
        stream = generator.reserve(math.prod(sizes) * _RESERVED)
        return poissons(stream, sizes, rate, dtype)

    return compute
