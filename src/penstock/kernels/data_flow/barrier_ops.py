"""Barriers: tuples whose components come one by one, by key.

In:   components for some keys; a number of tuples that is wanted.
Out:  complete tuples, those first whose key came first.
Not:  survives no session.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from threading import Lock
from typing import Final

import numpy as np

from penstock.core import dtypes, trees
from penstock.core.dtypes import DType
from penstock.core.shapes import SCALAR, TensorShape
from penstock.core.trees import Tree
from penstock.core.values import Value, as_value, keep, shape_of
from penstock.errors import CancelledError, InvalidArgumentError, OutOfRangeError
from penstock.kernels.api.attrs import Attrs
from penstock.kernels.api.context import Done, OpKernelContext, Waiting
from penstock.kernels.api.registry import Cost, Kernel, async_kernel, context_kernel
from penstock.kernels.api.signatures import types_text
from penstock.kernels.data_flow.queue_state import UNBOUNDED, QueueElement
from penstock.kernels.data_flow.queue_stores import PriorityStore
from penstock.kernels.data_flow.queues import Queue, QueueSpec, shapes_text
from penstock.kernels.state.handles import make_handle, place_of, resource_of
from penstock.kernels.values.arrays import as_array, number_in, shape_text
from penstock.state.cancellation import CancellationManager

_KIND: Final = "Barrier"
_INSERTING: Final = frozenset({"BarrierInsertMany"})
_FIRST: Final = -(2**63)


class Barrier:
    """One barrier; safe to use from several threads.

    Complete tuples stand in a queue by priority, behind a number and their key.  The number
    counts the calls that brought new keys.
    """

    def __init__(
        self, name: str, types: tuple[DType, ...], shapes: tuple[TensorShape, ...]
    ) -> None:
        self.name: Final = name
        self.types: Final = types
        #: One per component.
        self.shapes: Final = shapes
        spec = QueueSpec(
            kind="PriorityQueue",
            types=(dtypes.int64, dtypes.string, *types),
            shapes=(SCALAR, SCALAR, *shapes),
            capacity=UNBOUNDED,
        )
        #: Complete tuples.  Closed once nothing can be completed any more.
        self._ready = Queue(name, spec, PriorityStore())
        #: Guards all that follows.  Taken before the queue's.
        self._lock = Lock()
        #: Tuples by key, behind their number; None for what has not come yet.
        self._incomplete: dict[bytes, tuple[int, list[Value]]] = {}
        #: Whether no new keys come in.  Becomes True once.
        self._is_closed = False
        #: Whether no new components come in either.  Becomes True once.
        self._is_cancelled = False
        #: The number of the next call that brings new keys.
        self._next = _FIRST
        #: How many calls have complete tuples that are not in the queue yet.
        self._on_the_way = 0

    def state(self) -> Tree:
        """What it is, its tuples, and whether more come in."""
        with self._lock:
            incomplete = tuple(
                (key, number, tuple(row)) for key, (number, row) in self._incomplete.items()
            )
            return (
                *(trees.types_of(self.types), tuple(map(trees.sizes_of, self.shapes))),
                *(self._ready.state(), incomplete),
                *(self._is_closed, self._is_cancelled, self._next),
            )

    @classmethod
    def of_state(cls, name: str, state: Tree, there: object) -> Barrier:
        """The barrier that had a state."""
        types, shapes, ready, incomplete, *flags, number = trees.parts(state, 7)
        made = cls(name, trees.types_in(types), tuple(map(trees.shape_in, trees.listed(shapes))))
        queue = Queue.of_state(name, ready, there)
        if queue.spec != made._ready.spec:
            trees.refuse("a queue of other tuples")
        made._ready = queue
        made._incomplete = dict(map(made._row_in, trees.listed(incomplete)))
        made._is_closed, made._is_cancelled = map(trees.flag, flags)
        made._next = trees.number(number, _FIRST)
        return made

    def _row_in(self, tree: Tree) -> tuple[bytes, tuple[int, list[Value]]]:
        """The key, the number and the components of a tuple that lacks some."""
        key, number, row = trees.parts(tree, 3)
        components = [
            trees.optional(functools.partial(trees.value, dtype=dtype), part)
            for part, dtype in zip(trees.parts(row, len(self.types)), self.types, strict=True)
        ]
        return trees.value(key, dtypes.string), (trees.number(number, _FIRST), components)

    @property
    def ready_size(self) -> int:
        """Number of complete tuples."""
        return self._ready.size

    @property
    def incomplete_size(self) -> int:
        """Number of tuples that lack a component."""
        return len(self._incomplete)

    def describe(self, count: int) -> str:
        """What somebody waits for who wants so many tuples."""
        return (
            f"{count} complete tuples of Barrier '{self.name}', which has {self.ready_size} and "
            f"{self.incomplete_size} incomplete ones"
        )

    def end_waits(self) -> None:
        """Cancel whoever waits: the barrier is dropped."""
        self._ready.end_waits()

    def insert(self, keys: Sequence[bytes], values: Sequence[Value], component: int) -> None:
        """Add a component to each key's tuple.

        Raises:
            CancelledError: the barrier is closed.
            InvalidArgumentError: a key has the component already.  Those before it have it now,
                too; tuples that the call has completed are lost, as they are in TensorFlow.

        """
        complete: list[QueueElement] = []
        with self._lock:
            self._check_open(len(keys))
            count, is_new = self._next, False
            for at, (key, value) in enumerate(zip(keys, values, strict=True)):
                is_new |= self._begin(key, at)
                complete += self._add(key, value, component)
            self._next = count + is_new
            self._on_the_way += 1
        for element in complete:
            self._ready.enqueue_at_once(element)
        with self._lock:
            self._on_the_way -= 1
        self._close_if_done()

    def take(
        self, count: int, cancellation: CancellationManager, done: Done, *, may_be_fewer: bool
    ) -> None:
        """Give so many complete tuples, or what is left, as numbers, keys and components."""
        with self._lock:
            if self._is_closed:
                count = self._possible(count, may_be_fewer=may_be_fewer)
        self._ready.dequeue_many(count, cancellation, done, may_be_fewer=may_be_fewer)

    def close(self, *, cancels: bool) -> None:
        """Let no new keys in; nor new components, if that is wanted."""
        with self._lock:
            if self._is_cancelled or (self._is_closed and not cancels):
                raise CancelledError(f"Barrier '{self.name}' is already closed.")
            self._is_closed = True
            if cancels:
                self._is_cancelled = True
                self._incomplete.clear()
        self._close_if_done()

    def _close_if_done(self) -> None:
        """Close the queue if nothing more can come into it."""
        with self._lock:
            is_done = self._is_closed and not self._incomplete and not self._on_the_way
        if is_done:
            self._ready.close()

    def _check_open(self, count: int) -> None:
        if self._is_closed and (self._is_cancelled or not self._incomplete):
            raise CancelledError(
                f"Barrier {self.name} is closed.  Pending enqueues cancelled: "
                f"{int(self._is_cancelled)}.  Number of new insertions: {count}.  "
                f"Number of incomplete keys: {len(self._incomplete)}."
            )

    def _begin(self, key: bytes, at: int) -> bool:
        """Make room for a key's tuple; returns whether the key is new."""
        if key in self._incomplete:
            return False
        if self._is_closed:
            raise CancelledError(
                f"Barrier {self.name} is closed, but attempted to insert a brand new key: "
                f"{_shown(key)}.  Pending enqueues cancelled: {int(self._is_cancelled)}.  "
                f"Insertion index: {at}.  Number of incomplete keys: {len(self._incomplete)}."
            )
        self._incomplete[key] = self._next, [None] * len(self.types)
        return True

    def _add(self, key: bytes, value: Value, component: int) -> list[QueueElement]:
        """Add one component to a tuple; gives the tuple if it is complete now."""
        number, row = self._incomplete[key]
        if row[component] is not None:
            raise InvalidArgumentError(
                f"Key {_shown(key)} already has a value for component {component} in barrier "
                f"{self.name}"
            )
        row[component] = value
        if any(part is None for part in row):
            return []
        del self._incomplete[key]
        return [(np.int64(number), key, *row)]

    def _possible(self, count: int, *, may_be_fewer: bool) -> int:
        """How many tuples of a closed barrier can be given to someone who wants so many."""
        available = self.ready_size
        if may_be_fewer:
            count = min(count, available)
        else:
            available += len(self._incomplete)
        if available < max(count, 1):
            raise OutOfRangeError(
                f"Barrier '{self.name}' is closed and has insufficient elements "
                f"(requested {count}, total size {available})"
            )
        return count


def _shown(key: bytes) -> str:
    return key.decode("utf-8", "replace")


@context_kernel("Barrier", cost=Cost.CHEAP)
def make_barrier(attrs: Attrs) -> Kernel:
    """A handle of the barrier."""
    types, shapes = attrs.list("component_types"), attrs.list("shapes")
    if len(shapes) != len(types):
        raise InvalidArgumentError("All of the component shapes must be specified")
    for shape in shapes:
        if shape.dims is not None and not shape.is_fully_defined:
            raise InvalidArgumentError(f"Shape {shape} is not fully defined")
    if attrs.int("capacity") != -1:
        raise InvalidArgumentError(
            "Barrier only accepts capacity=-1.  Feed the inputs to your Barrier through a queue to "
            "enforce a limited capacity."
        )

    def barrier(context: OpKernelContext) -> Value:
        handle, found = make_handle(
            context, attrs, _KIND, lambda name: Barrier(name, types, shapes)
        )
        for what, mine, its in (
            ("types", types_text(found.types), types_text(types)),
            ("shapes", shapes_text(found.shapes), shapes_text(shapes)),
        ):
            if mine != its:
                raise InvalidArgumentError(
                    f"Shared barrier '{found.name}' has component {what} {mine} but requested "
                    f"component {what} were {its}"
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
        barrier, listed = _barrier(context, handle), as_array(keys).ravel().tolist()
        rows = as_array(values)
        _check_values(barrier, component, dtype, keys, rows[None] if rows.ndim == 0 else rows)
        rows = keep(rows).reshape(len(listed), *rows.shape[1:])
        barrier.insert(listed, [as_value(row) for row in rows], component)

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
    if shape[0] != as_array(keys).size:
        raise InvalidArgumentError(
            "keys and values must have the same first size: "
            f"{shape_text(shape_of(keys))} vs. {shape_text(shape)}"
        )
    if not barrier.shapes[component].accepts(shape[1:]):
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
        barrier = _barrier(context, handle)
        if shape_of(n):
            raise InvalidArgumentError("num_elements must be a scalar.")
        count = number_in(n)
        if barrier.types != types:
            raise InvalidArgumentError(
                f"Barrier '{barrier.name}' has component types {barrier.types}, asked for {types}"
            )
        if count < 0:
            raise InvalidArgumentError(f"num_elements {count} must not be negative")
        describe = functools.partial(barrier.describe, count)
        context.waits_for = Waiting(describe, _INSERTING, place_of(handle))
        barrier.take(count, context.cancellation_manager, done, may_be_fewer=may_be_fewer)

    return take


@context_kernel("BarrierClose")
def make_barrier_close(attrs: Attrs) -> Kernel:
    """Nothing; the barrier takes no new keys."""
    cancels = attrs.bool("cancel_pending_enqueues")

    def close(context: OpKernelContext, handle: Value) -> None:
        _barrier(context, handle).close(cancels=cancels)

    return close


@context_kernel("BarrierReadySize", cost=Cost.CHEAP)
def make_barrier_ready_size(_attrs: Attrs) -> Kernel:
    """Number of complete tuples."""
    return lambda context, handle: np.int32(_barrier(context, handle).ready_size)


@context_kernel("BarrierIncompleteSize", cost=Cost.CHEAP)
def make_barrier_incomplete_size(_attrs: Attrs) -> Kernel:
    """Number of tuples of which something is missing."""
    return lambda context, handle: np.int32(_barrier(context, handle).incomplete_size)
