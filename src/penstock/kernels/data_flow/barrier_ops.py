"""Barriers: tuples whose components come one by one, by key.

In:   components for some keys; a number of tuples that is wanted.
Out:  complete tuples, in the order in which they became complete.
Not:  survives no session.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from penstock.core.dtypes import DType
from penstock.core.shapes import TensorShape
from penstock.core.values import Value, keep, shape_of
from penstock.errors import CancelledError, InvalidArgumentError, OutOfRangeError
from penstock.kernels.arrays import number_in, shape_text, zeros
from penstock.kernels.attrs import Attrs
from penstock.kernels.batches import stack
from penstock.kernels.context import Done, OpKernelContext, Waiting
from penstock.kernels.registry import Cost, Kernel, async_kernel, context_kernel
from penstock.kernels.state.handles import make_handle, place_of, resource_of
from penstock.kernels.strings import items_of, string_array
from penstock.kernels.waiting import NOT_YET, Awaited, Line

_KIND = "Barrier"
_INSERTING = frozenset({"BarrierInsertMany"})
_FIRST = -(2**63)


class Barrier(Awaited):
    """One barrier; what its methods do happens under the line's lock."""

    def __init__(
        self, name: str, types: tuple[DType, ...], shapes: tuple[TensorShape, ...]
    ) -> None:
        self.name: Final = name
        self.types: Final = types
        #: One per component; none if tuples may have any shapes.
        self.shapes: Final = shapes
        self.line = Line("Dequeue operation was cancelled")
        self.is_closed = False
        self.is_cancelled = False
        #: Tuples by key, with the number of the key; None for what has not come yet.
        self.incomplete: dict[bytes, tuple[int, list[Value]]] = {}
        self.ready: dict[int, tuple[bytes, list[Value]]] = {}
        #: The number of the next key.
        self._next = _FIRST

    def describe(self, count: int) -> str:
        """What somebody waits for who wants so many tuples."""
        return (
            f"{count} complete tuples of Barrier '{self.name}', which has {len(self.ready)} and "
            f"{len(self.incomplete)} incomplete ones"
        )

    def insert(self, keys: Sequence[bytes], values: Sequence[Value], component: int) -> None:
        """Add a component to each key's tuple."""
        for key in keys:
            self._check_insert(key, component)
        for key, value in zip(keys, values, strict=True):
            if key not in self.incomplete:
                self.incomplete[key] = self._next, [None] * len(self.types)
                self._next += 1
            number, row = self.incomplete[key]
            if row[component] is not None:
                raise InvalidArgumentError(_twice(key, component, self.name))
            row[component] = value
            if all(part is not None for part in row):
                del self.incomplete[key]
                self.ready[number] = key, row

    def _check_insert(self, key: bytes, component: int) -> None:
        if self.is_cancelled or (self.is_closed and key not in self.incomplete):
            raise CancelledError(
                f"Barrier '{self.name}' is closed. Pending enqueues cancelled: "
                f"{int(self.is_cancelled)}. Number of new insertions: 1. "
                f"Number of incomplete keys: {len(self.incomplete)}."
            )
        if key in self.incomplete and self.incomplete[key][1][component] is not None:
            raise InvalidArgumentError(_twice(key, component, self.name))

    def take(self, count: int, *, may_be_fewer: bool) -> object:
        """So many complete tuples, in the order in which they became complete."""
        available = len(self.ready)
        if available < count:
            if not self.is_closed or (self.incomplete and not self.is_cancelled):
                return NOT_YET
            if not may_be_fewer or not available:
                raise OutOfRangeError(
                    f"Barrier '{self.name}' is closed and has insufficient elements "
                    f"(requested {count}, total size {available})."
                )
        numbers = list(self.ready)[:count]
        taken = [self.ready.pop(number) for number in numbers]
        indices = np.array(numbers, np.int64)
        keys = string_array((key for key, _ in taken), (len(taken),))
        columns = [
            stack([row[at] for _, row in taken], dtype) if taken else self._nothing(at)
            for at, dtype in enumerate(self.types)
        ]
        return (indices, keys, *columns)

    def _nothing(self, at: int) -> Value:
        sizes = self.shapes[at].dims or () if self.shapes else ()
        return zeros((0, *(size or 0 for size in sizes)), self.types[at])

    def close(self, *, cancels: bool) -> None:
        """Let no new keys in; nor new components, if that is wanted."""
        if self.is_cancelled or (self.is_closed and not cancels):
            raise CancelledError(f"Barrier '{self.name}' is already closed.")
        self.is_closed = True
        if cancels:
            self.is_cancelled = True
            self.incomplete.clear()


def _twice(key: bytes, component: int, name: str) -> str:
    shown = key.decode("utf-8", "replace")
    return f"Key {shown} already has a value for component {component} in barrier {name}"


@context_kernel("Barrier", cost=Cost.CHEAP)
def make_barrier(attrs: Attrs) -> Kernel:
    """A handle of the barrier."""
    types, shapes = attrs.list("component_types"), attrs.list("shapes")
    if shapes and len(shapes) != len(types):
        raise InvalidArgumentError("All of the component shapes must be specified")
    if attrs.int("capacity") != -1:
        raise InvalidArgumentError("Barrier only accepts capacity=-1")
    if any(shape.dims is not None and 0 in shape.dims for shape in shapes):
        raise InvalidArgumentError("Empty tensors are not supported in a barrier")

    def barrier(context: OpKernelContext) -> Value:
        handle, found = make_handle(
            context, attrs, _KIND, lambda name: Barrier(name, types, shapes)
        )
        if found.types != types:
            raise InvalidArgumentError(
                f"Shared barrier '{found.name}' has component types {found.types} but "
                f"requested component types were {types}"
            )
        return handle

    return barrier


def _barrier(context: OpKernelContext, handle: Value) -> Barrier:
    found: Barrier = resource_of(context, handle, _KIND)
    return found


@context_kernel("BarrierInsertMany")
def make_barrier_insert_many(attrs: Attrs) -> Kernel:
    """Nothing; each key's tuple has the component."""
    component, dtype = attrs.int("component_index"), attrs.dtype("T")

    def insert(context: OpKernelContext, handle: Value, keys: Value, values: Value) -> None:
        barrier = _barrier(context, handle)
        _check_values(barrier, component, dtype, keys, values)
        rows = list(keep(values))
        barrier.line.run(lambda: barrier.insert(items_of(keys), rows, component))

    return insert


def _check_values(
    barrier: Barrier, component: int, dtype: DType, keys: Value, values: Value
) -> None:
    if not 0 <= component < len(barrier.types):
        raise InvalidArgumentError(
            f"The component ID is out of range {component} > num_components = {len(barrier.types)}"
        )
    if barrier.types[component] is not dtype:
        raise InvalidArgumentError(
            f"Type mismatch for component {component}. Expected "
            f"{barrier.types[component]}, got {dtype}"
        )
    shape = shape_of(values)
    if len(shape_of(keys)) != 1 or not shape or shape[0] != shape_of(keys)[0]:
        raise InvalidArgumentError(
            "keys and values must have the same first size: "
            f"{shape_text(shape_of(keys))} vs. {shape_text(shape)}"
        )
    if barrier.shapes and not barrier.shapes[component].accepts(shape[1:]):
        raise InvalidArgumentError(
            f"Shape mismatch in tuple component {component}. Expected "
            f"{barrier.shapes[component]}, got {shape_text(shape[1:])}"
        )


@async_kernel("BarrierTakeMany")
def make_barrier_take_many(attrs: Attrs) -> Kernel:
    """Numbers, keys and components of complete tuples, once there are enough."""
    types, may_be_fewer = attrs.list("component_types"), attrs.bool("allow_small_batch")
    if attrs.int("timeout_ms") != -1:
        raise InvalidArgumentError("Timeout not supported yet.")

    def take(context: OpKernelContext, done: Done, handle: Value, n: Value) -> None:
        barrier, count = _barrier(context, handle), number_in(n)
        if barrier.types != types:
            raise InvalidArgumentError(
                f"Barrier '{barrier.name}' has component types {barrier.types}, asked for {types}"
            )
        if count < 0:
            raise InvalidArgumentError(f"num_elements {count} must not be negative")

        def attempt() -> Any:
            return barrier.take(count, may_be_fewer=may_be_fewer)

        describe = functools.partial(barrier.describe, count)
        context.waits_for = Waiting(describe, _INSERTING, place_of(handle))
        barrier.line.submit(attempt, context.cancellation_manager, done)

    return take


@context_kernel("BarrierClose")
def make_barrier_close(attrs: Attrs) -> Kernel:
    """Nothing; the barrier takes no new keys."""
    cancels = attrs.bool("cancel_pending_enqueues")

    def close(context: OpKernelContext, handle: Value) -> None:
        barrier = _barrier(context, handle)
        barrier.line.run(lambda: barrier.close(cancels=cancels))

    return close


@context_kernel("BarrierReadySize", cost=Cost.CHEAP)
def make_barrier_ready_size(_attrs: Attrs) -> Kernel:
    """Number of complete tuples."""
    return lambda context, handle: np.int32(len(_barrier(context, handle).ready))


@context_kernel("BarrierIncompleteSize", cost=Cost.CHEAP)
def make_barrier_incomplete_size(_attrs: Attrs) -> Kernel:
    """Number of tuples of which something is missing."""
    return lambda context, handle: np.int32(len(_barrier(context, handle).incomplete))
