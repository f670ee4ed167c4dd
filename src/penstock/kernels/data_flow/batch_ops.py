"""Batches of several requests for one function, as servers of models make them.

In:   tensors with one row per example; a function of whole batches.
Out:  the function's results for these examples; or a batch, whose it is, and each one's part.
Not:  waits for no other request: each call is a batch of its own, as it is in TensorFlow when
      the time runs out.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, Final

import numpy as np

from penstock.core.values import Array, Value
from penstock.errors import DeadlineExceededError, FailedPreconditionError, InvalidArgumentError
from penstock.kernels.api.attrs import Attrs
from penstock.kernels.api.context import Done, OpKernelContext
from penstock.kernels.api.registry import Kernel, async_kernel, kernel
from penstock.kernels.control_flow.functional_ops import call, expecting
from penstock.kernels.values.arrays import as_array, shape_text


class _Sizes:
    """How large batches may be."""

    def __init__(self, attrs: Attrs) -> None:
        self.largest: Final = attrs.int("max_batch_size")
        self.allowed: Final = attrs.list("allowed_batch_sizes")
        splits = attrs.values.get("enable_large_batch_splitting", False)
        if any(a >= b for a, b in pairwise(self.allowed)):
            raise InvalidArgumentError(
                "allowed_batch_sizes entries must be monotonically increasing"
            )
        if self.allowed and self.allowed[-1] > self.largest:
            raise InvalidArgumentError(
                "final entry in allowed_batch_sizes must be less than or equal to max_batch_size"
            )
        if self.allowed and not splits and self.allowed[-1] != self.largest:
            raise InvalidArgumentError(
                "final entry in allowed_batch_sizes must equal max_batch_size when "
                "enable_large_batch_splitting is False"
            )
        #: The largest batch that the function sees.
        self.step: Final = self.allowed[-1] if self.allowed else self.largest

    def rows_of(self, tensors: Sequence[Value]) -> int:
        """How many examples there are; raises unless all tensors have as many."""
        listed = [f"  - shape {shape_text(tensor.shape)}" for tensor in tensors]
        if any(tensor.ndim == 0 for tensor in tensors):
            raise InvalidArgumentError(
                "Batching input tensors must have at least one dimension.", details=listed
            )
        sizes = {len(tensor) for tensor in tensors}
        if len(sizes) > 1:
            raise InvalidArgumentError(
                "Batching input tensors supplied in a given op invocation must have equal "
                "0th-dimension size.",
                details=listed,
            )
        size = sizes.pop()
        if size > self.largest:
            raise InvalidArgumentError(
                f"Task size {size} is larger than maximum input batch size {self.largest}"
            )
        return size

    def padded(self, tensor: Array) -> Array:
        """The rows, and the first one again as often as an allowed size takes."""
        size = len(tensor)
        more = next((size_ for size_ in self.allowed if size_ >= size), size) - size
        return np.concatenate([tensor, tensor[:1].repeat(more, 0)]) if more and size else tensor


@async_kernel("BatchFunction")
def make_batch_function(attrs: Attrs) -> Kernel:
    """The function's results for these examples, without those of padding."""
    sizes, func, types = _Sizes(attrs), attrs.func("f"), attrs.output_types
    count = len(attrs.list("Tin"))

    def batch_function(context: OpKernelContext, done: Done, *inputs: Value) -> None:
        tensors, captured = [*map(as_array, inputs[:count])], inputs[count:]
        rows = sizes.rows_of(tensors)
        parts: list[tuple[Array, ...]] = []

        def go_on(start: int) -> None:
            piece = [sizes.padded(tensor[start : start + sizes.step]) for tensor in tensors]
            have = min(sizes.step, rows - start)

            def take(outcome: Any) -> None:
                if isinstance(outcome, BaseException):
                    done(outcome)
                    return
                try:
                    parts.append(_without_padding(outcome, len(piece[0]), have))
                except FailedPreconditionError as error:
                    done(error)
                    return
                if start + have < rows:
                    go_on(start + have)
                else:
                    done(_joined(parts))

            call(context, func, [*piece, *captured], expecting(types, take))

        if not rows:
            # TensorFlow does not call the function either, and forgets the shapes.
            done(tuple(np.empty(0, dtype.numpy) for dtype in types))
            return
        go_on(0)

    return batch_function


def _without_padding(outputs: Sequence[Value], size: int, have: int) -> tuple[Array, ...]:
    for output in outputs:
        if output.ndim == 0:
            raise FailedPreconditionError("Batched output tensor has 0 dimensions")
        if len(output) != size:
            raise FailedPreconditionError(
                "Batched output tensor's 0th dimension does not equal the sum of the 0th "
                f"dimension sizes of the input tensors: {len(output)} and {size}"
            )
    return tuple(output[:have] for output in outputs)


def _joined(parts: Sequence[tuple[Array, ...]]) -> tuple[Array, ...]:
    if len(parts) == 1:
        return parts[0]
    return tuple(np.concatenate(column) for column in zip(*parts, strict=True))


@kernel("Batch")
def make_batch(attrs: Attrs) -> Kernel:
    """The tensors, padded; where the caller's rows are in them, and the caller's number."""
    sizes, chance = _Sizes(attrs), attrs.chance()

    def batch(*inputs: Value) -> tuple[Value, ...]:
        tensors = [*map(as_array, inputs)]
        rows = sizes.rows_of(tensors)
        number = np.int64(chance.fixed_seeds()[0] >> 1)
        index = np.array([[number, 0, rows]], np.int64)
        return (*map(sizes.padded, tensors), index, number)

    return batch


@kernel("Unbatch")
def make_unbatch(_: Attrs) -> Kernel:
    """The rows of a batch that belong to a caller."""

    def unbatch(tensor: Value, index: Value, number: Value) -> Array:
        start, end = _part_of(index, number)
        if not 0 <= start <= end <= len(tensor):
            raise InvalidArgumentError(
                "Sum of split sizes must not exceed dim0-size of input tensor"
            )
        rows: Array = tensor[start:end]
        return rows

    return unbatch


@kernel("UnbatchGrad")
def make_unbatch_grad(_: Attrs) -> Kernel:
    """The gradient of a batch that has one caller: what the caller sends back."""

    def unbatch_grad(_original: Value, index: Value, grad: Value, number: Value) -> Value:
        _part_of(index, number)
        if len(index) > 1:
            raise _nothing_arrives()
        return grad

    return unbatch_grad


def _part_of(index: Value, number: Value) -> tuple[int, int]:
    """Where the rows of a caller begin and end in a batch."""
    if number.ndim:
        raise InvalidArgumentError(f"id must be a scalar, got shape {shape_text(number.shape)}")
    if index.ndim != 2 or index.shape[1] != 3:
        raise InvalidArgumentError(
            f"batch_index must have shape [n,3], got {shape_text(index.shape)}"
        )
    for owner, start, end in index.tolist():
        if owner == number:
            return start, end
    raise _nothing_arrives()


def _nothing_arrives() -> DeadlineExceededError:
    """The error for a request that waits for another one's batch."""
    return DeadlineExceededError("Batched data did not arrive within timeout window.")
