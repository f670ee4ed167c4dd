"""Conditional accumulators: gradients that wait until there are enough of them.

In:   gradients, each with the step for which it was computed; a number that is wanted.
Out:  their mean, or their sum.
Not:  gradients for steps that are over are dropped without a word.
"""

from __future__ import annotations

import functools
from typing import Any, Final

import numpy as np

from penstock.core.dtypes import DType
from penstock.core.shapes import TensorShape
from penstock.core.values import Value, as_value, shape_of
from penstock.errors import InvalidArgumentError
from penstock.kernels.arrays import as_array, number_in, shape_text
from penstock.kernels.attrs import Attrs
from penstock.kernels.context import Done, OpKernelContext, Waiting
from penstock.kernels.registry import Cost, Kernel, async_kernel, context_kernel
from penstock.kernels.signatures import type_text
from penstock.kernels.state.handles import make_handle, place_of, resource_of
from penstock.kernels.types import FLOATS
from penstock.kernels.waiting import NOT_YET, Awaited, Line

_KIND: Final = "Accumulator"
_APPLYING: Final = frozenset(
    {
        "AccumulatorApplyGradient",
        "ResourceAccumulatorApplyGradient",
        "SparseAccumulatorApplyGradient",
    }
)
_TYPES: Final = FLOATS


class Accumulator(Awaited):
    """Dense gradients; what the methods do happens under the line's lock."""

    def __init__(self, name: str, dtype: DType, shape: TensorShape, *, is_mean: bool) -> None:
        self.name: Final = name
        self.dtype: Final = dtype
        self.shape: Final = shape
        self.is_mean: Final = is_mean
        self.line = Line("TakeGrad operation was cancelled")
        #: Gradients for earlier steps are dropped.
        self.global_step = 0
        #: How many gradients the sum is of.
        self.count = 0
        self._sum: Any = None

    def describe(self, required: int) -> str:
        """What somebody waits for who wants the result of so many gradients."""
        return f"{required} gradients of Accumulator '{self.name}', which has {self.count}"

    def apply(self, step: int, gradient: Any) -> None:
        """Add a gradient, unless it comes too late."""
        if step < self.global_step:
            return
        self._add(gradient)
        self.count += 1

    def take(self, required: int) -> object:
        """The result of at least so many gradients; then all starts anew."""
        if self.count < required:
            return NOT_YET
        result = self._result()
        self._sum, self.count = None, 0
        self.global_step += 1
        return result

    def set_global_step(self, step: int) -> None:
        """Drop gradients for earlier steps from now on."""
        self.global_step = step

    def _add(self, gradient: Any) -> None:
        if self._sum is None:
            self._sum = np.array(gradient)
            return
        if self._sum.shape != shape_of(gradient):
            raise InvalidArgumentError(
                f"Shape mismatch: expected {shape_text(self._sum.shape)}, "
                f"got {shape_text(shape_of(gradient))}"
            )
        self._sum = self._sum + gradient

    def _result(self) -> object:
        if not self.is_mean:
            return as_value(self._sum)
        return as_value((self._sum / self.dtype.numpy.type(self.count)).astype(self.dtype.numpy))


class SparseAccumulator(Accumulator):
    """Gradients of some rows; each row's mean is over the gradients that had it."""

    def _add(self, gradient: Any) -> None:
        if self._sum is None:
            self._sum = {}
        for row, value in zip(*gradient, strict=True):
            known = self._sum.get(row)
            self._sum[row] = (value, 1) if known is None else (known[0] + value, known[1] + 1)

    def _result(self) -> object:
        rows = sorted(self._sum)
        kind = self.dtype.numpy
        values = [
            self._sum[row][0] / kind.type(self._sum[row][1]) if self.is_mean else self._sum[row][0]
            for row in rows
        ]
        known = self.shape.dims or ()
        inner = shape_of(values[0]) if values else tuple(size or 0 for size in known[1:])
        stacked = np.array(values, kind).reshape(len(rows), *inner)
        first = known[0] if known and known[0] is not None else -1
        return np.array(rows, np.int64), stacked, np.array((first, *inner), np.int64)


def _maker(attrs: Attrs, kind: type[Accumulator]) -> Kernel:
    dtype, shape = attrs.dtype("dtype"), attrs.shape("shape")
    is_mean = attrs.str("reduction_type") == "MEAN"

    def make(context: OpKernelContext) -> Value:
        handle, found = make_handle(
            context, attrs, _KIND, lambda name: kind(name, dtype, shape, is_mean=is_mean)
        )
        if found.dtype is not dtype or found.shape != shape:
            raise InvalidArgumentError(
                f"Shared conditional accumulator '{found.name}' has data type "
                f"{type_text(found.dtype)} and shape {found.shape} but requested were "
                f"{type_text(dtype)} and {shape}"
            )
        return handle

    return make


@context_kernel(
    "ConditionalAccumulator",
    "ResourceConditionalAccumulator",
    types={"dtype": _TYPES},
    cost=Cost.CHEAP,
)
def make_conditional_accumulator(attrs: Attrs) -> Kernel:
    """A handle of an accumulator of dense gradients."""
    return _maker(attrs, Accumulator)


@context_kernel("SparseConditionalAccumulator", types={"dtype": _TYPES}, cost=Cost.CHEAP)
def make_sparse_conditional_accumulator(attrs: Attrs) -> Kernel:
    """A handle of an accumulator of sparse gradients."""
    return _maker(attrs, SparseAccumulator)


def _accumulator(context: OpKernelContext, handle: Value, dtype: DType | None = None) -> Any:
    found: Accumulator = resource_of(context, handle, _KIND)
    if dtype is not None and found.dtype is not dtype:
        raise InvalidArgumentError(
            f"Expected data type {type_text(found.dtype)} but got {type_text(dtype)}"
        )
    return found


@context_kernel("AccumulatorApplyGradient", "ResourceAccumulatorApplyGradient")
def make_accumulator_apply_gradient(attrs: Attrs) -> Kernel:
    """Nothing; the gradient is added, unless its step is over."""
    dtype = attrs.dtype("dtype")

    def apply(context: OpKernelContext, handle: Value, local_step: Value, gradient: Value) -> None:
        found, step = _accumulator(context, handle, dtype), number_in(local_step)
        if not found.shape.accepts(shape_of(gradient)):
            raise InvalidArgumentError(
                f"Shape mismatch: expected {found.shape}, got {shape_text(shape_of(gradient))}"
            )
        found.line.run(lambda: found.apply(step, gradient))

    return apply


@context_kernel("SparseAccumulatorApplyGradient")
def make_sparse_accumulator_apply_gradient(attrs: Attrs) -> Kernel:
    """Nothing; the rows of the gradient are added, unless its step is over."""
    dtype, has_shape = attrs.dtype("dtype"), attrs.bool("has_known_shape")

    def apply(
        context: OpKernelContext, handle: Value, local_step: Value,
        indices: Value, values: Value, shape: Value,
    ) -> None:  # fmt: skip
        found, step = _accumulator(context, handle, dtype), number_in(local_step)
        rows = as_array(indices)
        if rows.ndim != 1 or shape_of(values)[:1] != rows.shape:
            raise InvalidArgumentError(
                "gradient_indices must be a vector with one element for each row of "
                f"gradient_values, got shapes {shape_text(rows.shape)} and "
                f"{shape_text(shape_of(values))}"
            )
        sizes = tuple(as_array(shape).tolist()) if has_shape else (None, *values.shape[1:])
        if not found.shape.is_compatible_with(TensorShape.of(sizes)):
            raise InvalidArgumentError(f"Shape mismatch: expected {found.shape}, got {sizes}")
        gradient = rows.tolist(), list(values)
        found.line.run(lambda: found.apply(step, gradient))

    return apply


@async_kernel(
    "AccumulatorTakeGradient",
    "ResourceAccumulatorTakeGradient",
    "SparseAccumulatorTakeGradient",
)
def make_accumulator_take_gradient(attrs: Attrs) -> Kernel:
    """The mean or the sum of the gradients, once there are enough."""
    dtype = attrs.dtype("dtype")

    def take(context: OpKernelContext, done: Done, handle: Value, num_required: Value) -> None:
        found, count = _accumulator(context, handle, dtype), number_in(num_required)
        if count < 1:
            raise InvalidArgumentError(f"Argument num_required must be >= 1, got {count}")
        describe = functools.partial(found.describe, count)
        context.waits_for = Waiting(describe, _APPLYING, place_of(handle))
        found.line.submit(lambda: found.take(count), context.cancellation_manager, done)

    return take


@context_kernel("AccumulatorNumAccumulated", "ResourceAccumulatorNumAccumulated", cost=Cost.CHEAP)
def make_accumulator_num_accumulated(_attrs: Attrs) -> Kernel:
    """Number of gradients that wait."""
    return lambda context, handle: np.int32(_accumulator(context, handle).count)


@context_kernel("AccumulatorSetGlobalStep", "ResourceAccumulatorSetGlobalStep", cost=Cost.CHEAP)
def make_accumulator_set_global_step(_attrs: Attrs) -> Kernel:
    """Nothing; gradients for earlier steps are dropped from now on."""

    def set_step(context: OpKernelContext, handle: Value, step: Value) -> None:
        found, number = _accumulator(context, handle), number_in(step)
        found.line.run(lambda: found.set_global_step(number))

    return set_step
