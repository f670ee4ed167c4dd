"""Random ops whose stream is kept in a variable: what ``tf.random.Generator`` is made of.

In:   a resource variable with a counter and a key; shapes and limits.
Out:  random numbers; the counter is moved on.
Not:  knows Philox only.
"""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from penstock.core import dtypes
from penstock.core.values import Array, Ref, Value, as_value
from penstock.errors import FailedPreconditionError, InvalidArgumentError
from penstock.kernels.api.attrs import Attrs
from penstock.kernels.api.context import OpKernelContext
from penstock.kernels.api.registry import Kernel, context_kernel, kernel
from penstock.kernels.api.types import FLOATS
from penstock.kernels.random.philox import Philox
from penstock.kernels.random.random_numbers import normal, truncated_normal, uniform, whole
from penstock.kernels.random.stateless_random_ops import between, drawn, sizes_in
from penstock.kernels.state.variables import find_variable
from penstock.kernels.values.arrays import as_array

_WORD: Final = (1 << 64) - 1
_PHILOX: Final = 1
#: So many counters are passed over for each number.
_STEP: Final = 256
_WHOLE: Final = frozenset({dtypes.int32, dtypes.int64, dtypes.uint32, dtypes.uint64})
_DRAWS: Final[dict[str, Any]] = {
    "StatefulUniform": uniform,
    "StatefulStandardNormalV2": normal,
    "StatefulTruncatedNormal": truncated_normal,
    "StatefulUniformFullInt": whole,
}


def _advance(context: OpKernelContext, handle: Value, algorithm: Value, delta: int) -> Array:
    """Move the counter on by so many numbers; returns the state as it was."""
    if int(algorithm) != _PHILOX:
        raise InvalidArgumentError(f"Unsupported algorithm id: {algorithm}")
    ref: Ref | None = find_variable(context, handle)
    if ref is None:
        raise FailedPreconditionError("The state of the generator has not been initialized")
    with ref.lock:
        state = as_array(ref.value)
        if state.dtype != np.int64 or state.ndim != 1 or len(state) < 3:
            raise InvalidArgumentError(
                "The state of a Philox generator must be a vector of at least 3 int64, got "
                f"{state.dtype}{list(state.shape)}"
            )
        words = state.view(np.uint64).tolist()
        counter = (words[0] | words[1] << 64) + delta * _STEP
        moved = [counter & _WORD, counter >> 64 & _WORD, *words[2:]]
        ref.assign(np.array(moved, np.uint64).view(np.int64))
    return state


def _stream(state: Array) -> Philox:
    low, high, key = state.view(np.uint64).tolist()[:3]
    return Philox(key, low | high << 64)


@context_kernel("StatefulUniformFullInt", types={"dtype": _WHOLE})
@context_kernel(
    "StatefulUniform", "StatefulStandardNormalV2", "StatefulTruncatedNormal",
    types={"dtype": FLOATS},
)  # fmt: skip
def make_stateful(attrs: Attrs) -> Kernel:
    """Numbers of the kind that the op is named after."""
    dtype = attrs.dtype("dtype")
    draw = _DRAWS[attrs.op.name](dtype)

    def compute(context: OpKernelContext, handle: Value, algorithm: Value, shape: Value) -> Value:
        sizes = sizes_in(as_array(shape), dtype)
        stream = _stream(_advance(context, handle, algorithm, math.prod(sizes)))
        return drawn(draw, stream, sizes)

    return compute


@context_kernel("StatefulUniformInt", types={"dtype": _WHOLE})
def make_stateful_uniform_int(attrs: Attrs) -> Kernel:
    """Integers between two limits."""
    dtype = attrs.dtype("dtype")

    def compute(
        context: OpKernelContext,
        handle: Value,
        algorithm: Value,
        shape: Value,
        low: Value,
        high: Value,
    ) -> Value:
        sizes = sizes_in(as_array(shape), dtype)
        draw = between(dtype, low, high, sizes)
        return drawn(draw, _stream(_advance(context, handle, algorithm, math.prod(sizes))), sizes)

    return compute


@context_kernel("RngSkip")
def make_rng_skip(_: Attrs) -> Kernel:
    """Nothing; so many numbers are passed over."""

    def skip(context: OpKernelContext, handle: Value, algorithm: Value, delta: Value) -> None:
        _advance(context, handle, algorithm, int(delta))

    return skip


@context_kernel("RngReadAndSkip")
def make_rng_read_and_skip(_: Attrs) -> Kernel:
    """The state as it was; so many numbers are passed over."""

    def skip(context: OpKernelContext, handle: Value, algorithm: Value, delta: Value) -> Value:
        return _advance(context, handle, algorithm, int(delta))

    return skip


@kernel("NonDeterministicInts", types={"dtype": _WHOLE})
def make_non_deterministic_ints(attrs: Attrs) -> Kernel:
    """Whole numbers that nobody can foresee."""
    dtype, chance = attrs.dtype("dtype"), attrs.chance()

    def compute(shape: Value) -> Value:
        sizes = sizes_in(as_array(shape), dtype)
        data = chance.take(math.prod(sizes) * dtype.numpy.itemsize)
        return as_value(np.frombuffer(data, dtype.numpy).reshape(sizes))

    return compute
