"""Conditional accumulators: gradients that wait until there are enough of them.

In:   gradients, each with the step for which it was computed; a number that is wanted.
Out:  their mean, or their sum.
Not:  gradients for steps that are over are dropped without a word, and without a look.

An accumulator is known by its name alone: the first node that asks for it says what it is, and
what others want it to be is not compared.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any, Final, NamedTuple, Self

import numpy as np

from penstock.core import dtypes, trees
from penstock.core.dtypes import DType
from penstock.core.shapes import TensorShape
from penstock.core.trees import Tree
from penstock.core.values import Array, Value, as_value, shape_of
from penstock.errors import InvalidArgumentError, NotFoundError
from penstock.kernels.api.attrs import Attrs
from penstock.kernels.api.context import Done, OpKernelContext, Waiting
from penstock.kernels.api.registry import Cost, Kernel, async_kernel, context_kernel
from penstock.kernels.api.signatures import type_text
from penstock.kernels.api.types import FLOATS
from penstock.kernels.api.wait_queue import NOT_YET, Awaited, WaitQueue
from penstock.kernels.state.handles import make_handle, place_of, resource_of
from penstock.kernels.values.arrays import as_array, number_in, shape_text

_KIND: Final = "Accumulator"
_APPLYING: Final = frozenset(
    {
        "AccumulatorApplyGradient",
        "ResourceAccumulatorApplyGradient",
        "SparseAccumulatorApplyGradient",
    }
)
_TYPES: Final = FLOATS - {dtypes.bfloat16}


class Accumulator(Awaited):
    """Dense gradients; what the methods do happens under the lock of ``waits``."""

    def __init__(self, name: str, dtype: DType, shape: TensorShape, *, is_mean: bool) -> None:
        self.name: Final = name
        self.dtype: Final = dtype
        self.shape: Final = shape
        self.is_mean: Final = is_mean
        self.waits = WaitQueue("TakeGrad operation was cancelled")
        #: Gradients for earlier steps are dropped.
        self.global_step = 0
        #: How many gradients the sum is of.
        self.count = 0
        #: Of the gradients of this step; None if there are none.
        self._sum: Any = None

    def state(self) -> Tree:
        """What it is, and the gradients so far."""
        return (
            *(self.dtype.name, trees.sizes_of(self.shape), self.is_mean),
            *(self.global_step, self.count, self._sum_state()),
        )

    @classmethod
    def of_state(cls, name: str, state: Tree, there: object) -> Self:  # noqa: ARG003
        """The accumulator that had a state."""
        kind, shape, is_mean, step, count, total = trees.parts(state, 6)
        dtype = trees.dtype_named(kind)
        made = cls(name, dtype, trees.shape_in(shape), is_mean=trees.flag(is_mean))
        made.global_step = trees.number(step, trees.LEAST)
        made.count = trees.number(count)
        made._sum = trees.optional(made._sum_in, total)
        return made

    def _sum_state(self) -> Tree:
        return self._sum

    def _sum_in(self, tree: Tree) -> Any:
        return np.array(trees.value(tree, self.dtype))

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
        if not self.shape.accepts(shape_of(gradient)):
            raise _mismatch(f"expected {self.shape}, got {shape_text(shape_of(gradient))}")
        if self._sum is None:
            self._sum = np.array(gradient)
            return
        if self._sum.shape != shape_of(gradient):
            raise _mismatch(
                f"expected {shape_text(self._sum.shape)}, got {shape_text(shape_of(gradient))}"
            )
        self._sum = self._sum + gradient

    def _result(self) -> object:
        if not self.is_mean:
            return as_value(self._sum)
        return as_value((self._sum / self.dtype.numpy.type(self.count)).astype(self.dtype.numpy))


class RowGradient(NamedTuple):
    """The gradient of some rows."""

    rows: Array
    values: Array
    #: The sizes of all rows together; None if they are not to be believed.
    shape: Sequence[int] | None


class _RowSums(NamedTuple):
    """Sums by row, each of so many gradients; rows in no certain order, perhaps repeated."""

    rows: list[int]
    counts: Array
    values: Array


class SparseAccumulator(Accumulator):
    """Gradients of some rows; each row's mean is over the gradients that had it."""

    def _sum_state(self) -> Tree:
        if self._sum is None:
            return None
        return tuple(self._sum.rows), self._sum.counts, self._sum.values

    def _sum_in(self, tree: Tree) -> Any:
        rows, counts, values = trees.parts(tree, 3)
        listed = [trees.number(row, trees.LEAST) for row in trees.listed(rows)]
        numbers, kept = trees.value(counts, dtypes.int64), trees.value(values, self.dtype)
        if not len(listed) == len(numbers) == len(kept):
            trees.refuse("not one gradient for each row")
        return _RowSums(listed, numbers, kept)

    def _add(self, gradient: RowGradient) -> None:
        rows, values = gradient.rows, gradient.values
        if rows.ndim != 1:
            raise InvalidArgumentError(
                f"Input indices should be vector but received shape: {shape_text(rows.shape)}"
            )
        if values.ndim == 0:
            raise InvalidArgumentError("Values cannot be 0-dimensional.")
        if len(rows) != len(values):
            raise InvalidArgumentError(
                f"Expected {len(rows)} non-empty input values, got {len(values)}"
            )
        self._check_shape(gradient)
        new = _RowSums(rows.tolist(), np.ones(len(rows), np.int64), values.copy())
        self._sum = new if self._sum is None else _merged(self._sum, new)

    def _check_shape(self, gradient: RowGradient) -> None:
        """Raise unless rows, sizes and values are those of the accumulator."""
        wanted = self.shape.dims or ()
        if gradient.shape is not None:
            _check_sizes("shape", wanted, gradient.shape, first=0)
        if wanted and wanted[0] is not None:
            for at in np.flatnonzero(gradient.rows >= wanted[0]).tolist()[:1]:
                raise _mismatch(
                    f"index of slice {at} exceeded limits of shape; index is "
                    f"{gradient.rows[at]} exceeded {wanted[0]}"
                )
        if self._sum is None:
            _check_sizes("values", wanted, gradient.values.shape, first=1)
            return
        known = self._sum.values.shape
        if gradient.values.ndim != len(known):
            raise _mismatch(f"expected values rank {len(known)}, got {gradient.values.ndim}")
        _check_sizes("values", known, gradient.values.shape, first=1)

    def _result(self) -> object:
        rows, counts, values = self._sum
        if self.is_mean:
            divisors = counts.reshape(-1, *[1] * (values.ndim - 1))
            values = (values / divisors.astype(values.dtype)).astype(self.dtype.numpy)
        wanted = self.shape.dims or (None,)
        first = -1 if wanted[0] is None else wanted[0]
        return np.array(rows, np.int64), values, np.array((first, *values.shape[1:]), np.int64)


def _mismatch(what: str) -> InvalidArgumentError:
    return InvalidArgumentError(f"Shape mismatch: {what}")


def _check_sizes(what: str, wanted: Sequence[int | None], given: Sequence[int], first: int) -> None:
    """Raise unless there are as many sizes, and the same from the ``first`` on where known."""
    if len(given) < len(wanted):
        raise _mismatch(f"expected {what} rank at least {len(wanted)}, got {len(given)}")
    for at, (size, other) in enumerate(zip(wanted, given, strict=False)):
        if at >= first and size not in (None, other):
            raise _mismatch(f"expected {what} dim {at} to be {size}, got {other}")


def _merged(old: _RowSums, new: _RowSums) -> _RowSums:
    """Both sums together, row by row, as if the rows of each were in ascending order.

    Where they are not, a row may stand in the result twice, as it does in TensorFlow's.
    """
    rows: list[int] = []
    places: tuple[list[int], list[int]] = ([], [])
    i = j = 0
    while i < len(old.rows) or j < len(new.rows):
        takes_old = j == len(new.rows) or (i < len(old.rows) and old.rows[i] <= new.rows[j])
        takes_new = i == len(old.rows) or (j < len(new.rows) and new.rows[j] <= old.rows[i])
        if takes_old:
            places[0].append(len(rows))
        if takes_new:
            places[1].append(len(rows))
        rows.append(old.rows[i] if takes_old else new.rows[j])
        i, j = i + takes_old, j + takes_new
    counts = np.zeros(len(rows), np.int64)
    values = np.zeros((len(rows), *old.values.shape[1:]), old.values.dtype)
    for part, at in zip((old, new), places, strict=True):
        counts[at] += part.counts
        values[at] += part.values
    return _RowSums(rows, counts, values)


def _maker(attrs: Attrs, kind: type[Accumulator]) -> Kernel:
    dtype, shape = attrs.dtype("dtype"), attrs.shape("shape")
    is_mean = attrs.str("reduction_type") == "MEAN"

    def make(context: OpKernelContext) -> Value:
        handle, _ = make_handle(
            context, attrs, _KIND, lambda name: kind(name, dtype, shape, is_mean=is_mean)
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


def _scalar(name: str, value: Value) -> int:
    """A number; raises InvalidArgumentError for an array."""
    if shape_of(value):
        raise InvalidArgumentError(
            f"Argument {name} must be scalar, but had bad shape {shape_text(shape_of(value))}"
        )
    return number_in(value)


@context_kernel("AccumulatorApplyGradient", "ResourceAccumulatorApplyGradient")
def make_accumulator_apply_gradient(attrs: Attrs) -> Kernel:
    """Nothing; the gradient is added, unless its step is over."""
    dtype = attrs.dtype("dtype")

    def apply(context: OpKernelContext, handle: Value, local_step: Value, gradient: Value) -> None:
        found, step = _accumulator(context, handle, dtype), _scalar("local_step", local_step)
        if isinstance(found, SparseAccumulator):
            raise NotFoundError(
                f"No attr named 'has_known_shape' in NodeDef: accumulator '{found.name}' is of "
                "sparse gradients"
            )
        found.waits.run(lambda: found.apply(step, gradient))

    return apply


@context_kernel("SparseAccumulatorApplyGradient")
def make_sparse_accumulator_apply_gradient(attrs: Attrs) -> Kernel:
    """Nothing; the rows of the gradient are added, unless its step is over."""
    dtype, has_shape = attrs.dtype("dtype"), attrs.bool("has_known_shape")

    def apply(
        context: OpKernelContext, handle: Value, local_step: Value,
        indices: Value, values: Value, shape: Value,
    ) -> None:  # fmt: skip
        found, step = _accumulator(context, handle, dtype), _scalar("local_step", local_step)
        if not isinstance(found, SparseAccumulator):
            raise InvalidArgumentError(
                f"Unknown input name: gradient: accumulator '{found.name}' is of dense gradients"
            )
        sizes = as_array(shape).ravel().tolist() if has_shape else None
        gradient = RowGradient(as_array(indices), as_array(values), sizes)
        found.waits.run(lambda: found.apply(step, gradient))

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
        found, count = _accumulator(context, handle, dtype), _scalar("num_required", num_required)
        if count < 1:
            raise InvalidArgumentError(f"Argument num_required must be positive, but was {count}")
        describe = functools.partial(found.describe, count)
        context.waits_for = Waiting(describe, _APPLYING, place_of(handle))
        found.waits.submit(lambda: found.take(count), context.cancellation_manager, done)

    return take


@context_kernel("AccumulatorNumAccumulated", "ResourceAccumulatorNumAccumulated", cost=Cost.CHEAP)
def make_accumulator_num_accumulated(_attrs: Attrs) -> Kernel:
    """Number of gradients that wait."""
    return lambda context, handle: np.int32(_accumulator(context, handle).count)


@context_kernel("AccumulatorSetGlobalStep", "ResourceAccumulatorSetGlobalStep", cost=Cost.CHEAP)
def make_accumulator_set_global_step(_attrs: Attrs) -> Kernel:
    """Nothing; gradients for earlier steps are dropped from now on."""

    def set_step(context: OpKernelContext, handle: Value, step: Value) -> None:
        # The name of another argument, but this is how TensorFlow calls it.
        found, number = _accumulator(context, handle), _scalar("num_required", step)
        found.waits.run(lambda: found.set_global_step(number))

    return set_step
