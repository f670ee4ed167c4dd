"""Queues: FIFO, padding, shuffling and by priority.

In:   a handle, elements or batches of them, numbers of elements.
Out:  elements or batches; an operation that cannot go on yet finishes later.
Not:  keeps nothing itself; queues live as long as their session and are found by container
      and name.

A handle is a resource (V2) or a reference to two strings; the generations differ in nothing
else.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, Final

import numpy as np

from penstock.core import dtypes
from penstock.core.dtypes import DType
from penstock.core.shapes import SCALAR, TensorShape
from penstock.core.values import Ref, ResourceHandle, Value
from penstock.errors import InvalidArgumentError, OpError
from penstock.kernels.api.attrs import Attrs
from penstock.kernels.api.context import Done, OpKernelContext, StepContext, Waiting
from penstock.kernels.api.registry import Cost, Kernel, async_kernel, context_kernel
from penstock.kernels.api.signatures import signature_mismatch, types_text
from penstock.kernels.api.try_kernel import WOULD_BLOCK, TryKernel
from penstock.kernels.data_flow.queue_state import UNBOUNDED, ElementStore
from penstock.kernels.data_flow.queue_stores import FifoStore, PriorityStore, ShuffleStore
from penstock.kernels.data_flow.queues import Queue, QueueSpec, shapes_text
from penstock.kernels.random.philox import Philox
from penstock.kernels.random.plain_random import Words
from penstock.kernels.state.handles import place_of
from penstock.kernels.values.arrays import number_in
from penstock.kernels.values.strings import string_array
from penstock.state.resources import DEFAULT_CONTAINER

_KIND: Final = "Queue"
_WORD: Final = (1 << 64) - 1
#: The ops that give a queue elements, and those that take some.
_PUTTING: Final = frozenset(
    {"QueueEnqueue", "QueueEnqueueV2", "QueueEnqueueMany", "QueueEnqueueManyV2"}
)
_TAKING: Final = frozenset(
    {
        *("QueueDequeue", "QueueDequeueV2", "QueueDequeueMany", "QueueDequeueManyV2"),
        *("QueueDequeueUpTo", "QueueDequeueUpToV2", "ReaderRead", "ReaderReadV2"),
    }
)


def queue_of(context: OpKernelContext, handle: Value) -> Queue:
    """The queue that a handle of either generation means."""
    return queue_in(context.step, handle)


def queue_in(step: StepContext, handle: Value) -> Queue:
    """The queue that a handle of either generation means in a step."""
    resources = step.resources
    if type(handle) is ResourceHandle:
        resources = resources.at(handle.device)
        container, name = handle.container, handle.name
    else:
        container, name = place_of(handle, _KIND)
    found: Queue = resources.lookup(container, name, _KIND)
    return found


def waiting_for(queue: Queue, handle: Value, count: int = 1) -> Waiting:
    """What somebody waits for who wants so many elements."""
    what = "an element of" if count == 1 else f"{count} elements of"
    return Waiting(partial(queue.describe, what), _PUTTING, place_of(handle))


def _waiting_for_room(queue: Queue, handle: Value) -> Waiting:
    return Waiting(partial(queue.describe, "room in"), _TAKING, place_of(handle))


# -- making ----------------------------------------------------------------------------


def _spec(
    attrs: Attrs, types: tuple[DType, ...], shapes: tuple[TensorShape, ...] | None
) -> QueueSpec:
    if shapes is not None and len(shapes) != len(types):
        raise InvalidArgumentError(
            f"Different number of component types.  Types: {types_text(types)}, "
            f"Shapes: {shapes_text(shapes)}"
        )
    capacity = attrs.int("capacity")
    return QueueSpec(
        kind=attrs.op.name.removesuffix("V2"),
        types=types,
        shapes=shapes,
        capacity=UNBOUNDED if capacity < 0 else capacity,
    )


def _maker(attrs: Attrs, spec: QueueSpec, make_store: Callable[[], ElementStore]) -> Kernel:
    """A kernel that finds or makes the queue and hands out its handle."""
    container = attrs.str("container") or DEFAULT_CONTAINER
    name = attrs.own_name
    has_resource = attrs.output_types[0] is dtypes.resource

    def queue(context: OpKernelContext) -> Value:
        found: Queue = context.resources.lookup_or_create(
            container, name, _KIND, lambda: Queue(name, spec, make_store())
        )
        if found.spec != spec:
            check_shared(found, spec, attrs.op.name)
        if has_resource:
            return ResourceHandle(attrs.device, container, name, _KIND)
        return Ref(name, dtypes.string, string_array((container.encode(), name.encode()), (2,)))

    return queue


@context_kernel("FIFOQueue", "FIFOQueueV2", cost=Cost.CHEAP)
def make_fifo_queue(attrs: Attrs) -> Kernel:
    """A queue from which elements come in the order in which they went in."""
    shapes = attrs.list("shapes") or None
    for shape in shapes or ():
        if not shape.is_fully_defined:
            raise InvalidArgumentError(f"Shape {shape} is not fully defined")
    return _maker(attrs, _spec(attrs, attrs.list("component_types"), shapes), FifoStore)


@context_kernel("PaddingFIFOQueue", "PaddingFIFOQueueV2", cost=Cost.CHEAP)
def make_padding_fifo_queue(attrs: Attrs) -> Kernel:
    """Like FIFOQueue, but batches are padded where sizes are not known beforehand."""
    types, shapes = attrs.list("component_types"), attrs.list("shapes")
    if len(shapes) != len(types):
        raise InvalidArgumentError(
            f"Shapes must be provided for all components, but received {len(types)} dtypes "
            f"and {len(shapes)} shapes."
        )
    return _maker(attrs, _spec(attrs, types, shapes), FifoStore)


@context_kernel("RandomShuffleQueue", "RandomShuffleQueueV2", cost=Cost.CHEAP)
def make_random_shuffle_queue(attrs: Attrs) -> Kernel:
    """A queue from which elements come in random order."""
    spec = _spec(attrs, attrs.list("component_types"), attrs.list("shapes") or None)
    least = attrs.int("min_after_dequeue")
    if least < 0:
        raise InvalidArgumentError(f"min_after_dequeue {least} must be >= 0")
    if least >= spec.capacity:
        raise InvalidArgumentError(f"min_after_dequeue {least} must be < capacity {spec.capacity}")
    seeds = attrs.int("seed"), attrs.int("seed2")
    full, chance = replace(spec, min_after_dequeue=least, seeds=seeds), attrs.chance()

    def make_store() -> ElementStore:
        first, second = seeds if any(seeds) else (chance.seed(), chance.seed())
        stream = Philox(first & _WORD, (second & _WORD) << 64)
        return ShuffleStore(least, Words(stream))

    return _maker(attrs, full, make_store)


@context_kernel("PriorityQueue", "PriorityQueueV2", cost=Cost.CHEAP)
def make_priority_queue(attrs: Attrs) -> Kernel:
    """A queue whose elements begin with a priority; the smallest one comes out first."""
    types = (dtypes.int64, *attrs.list("component_types"))
    shapes = (SCALAR, *attrs.list("shapes"))
    return _maker(attrs, _spec(attrs, types, shapes), PriorityStore)


def check_shared(found: Queue, wanted: QueueSpec, op: str) -> None:
    """Raise InvalidArgumentError if a node wants another queue than the one of that name."""
    there = found.spec
    if there.kind != wanted.kind:
        raise InvalidArgumentError(f"Expected {there.kind}, found {op}")
    for what, mine, its in (
        ("capacity", there.capacity, wanted.capacity),
        ("min_after_dequeue", there.min_after_dequeue, wanted.min_after_dequeue),
        ("component types", types_text(there.types), types_text(wanted.types)),
    ):
        if mine != its:
            raise _conflict(found, what, mine, its)
    if not _are_shared(there, wanted):
        shapes = shapes_text(there.shapes), shapes_text(wanted.shapes)
        raise _conflict(found, "component shapes", *shapes)
    if any(wanted.seeds) and there.seeds != wanted.seeds:
        raise InvalidArgumentError(
            f"Shared queue '{found.name}' has random seeds {there.seeds} but requested seeds are "
            f"{wanted.seeds}."
        )


def _are_shared(there: QueueSpec, wanted: QueueSpec) -> bool:
    """Whether shapes are the same; sizes that a padding queue does not know fit any."""
    if there.kind != "PaddingFIFOQueue" or there.shapes is None or wanted.shapes is None:
        return there.shapes == wanted.shapes
    pairs = zip(there.shapes, wanted.shapes, strict=True)
    return all(mine.is_compatible_with(its) for mine, its in pairs)


def _conflict(found: Queue, what: str, mine: object, its: object) -> InvalidArgumentError:
    were = "were" if what.endswith("s") else "was"
    return InvalidArgumentError(
        f"Shared queue '{found.name}' has {what} {mine} but requested {what} {were} {its}"
    )


# -- using -----------------------------------------------------------------------------


def _refuse_timeout(attrs: Attrs) -> None:
    if attrs.int("timeout_ms") != -1:
        raise InvalidArgumentError("Timeout not supported yet.")


def _wrong_inputs(attrs: Attrs, queue: Queue, given: tuple[DType, ...]) -> OpError:
    handle = attrs.input_types[0]
    return signature_mismatch(((handle, *given), ()), ((handle, *queue.spec.types), ()))


def _check_outputs(attrs: Attrs, queue: Queue, given: tuple[DType, ...]) -> None:
    if given != queue.spec.types:
        handle = attrs.input_types[0]
        raise signature_mismatch(((handle,), given), ((handle,), queue.spec.types))


@async_kernel("QueueEnqueue", "QueueEnqueueV2", "QueueEnqueueMany", "QueueEnqueueManyV2")
def make_queue_enqueue(attrs: Attrs) -> Kernel:
    """Nothing, once an element, or all rows of a batch, are in the queue."""
    _refuse_timeout(attrs)
    types = attrs.list("Tcomponents")
    is_many = "Many" in attrs.op.name
    put = Queue.enqueue_many if is_many else Queue.enqueue

    def find(step: StepContext, handle: Value) -> Queue:
        queue = queue_in(step, handle)
        if types != queue.spec.types:
            raise _wrong_inputs(attrs, queue, types)
        return queue

    def enqueue(context: OpKernelContext, done: Done, handle: Value, *components: Value) -> None:
        queue = find(context.step, handle)
        context.waits_for = _waiting_for_room(queue, handle)
        put(queue, components, context.step.cancellation_manager, done)

    put_at_once = Queue.enqueue_many_at_once if is_many else Queue.enqueue_at_once

    def try_compute(step: StepContext, handle: Value, *components: Value) -> Any:
        queue: Any = step.resources.find_of(handle) if type(handle) is ResourceHandle else None
        if type(queue) is not Queue or queue.spec.types != types:
            queue = find(step, handle)
        return None if put_at_once(queue, components) else WOULD_BLOCK

    return TryKernel(try_compute, enqueue)


@async_kernel("QueueDequeue", "QueueDequeueV2")
def make_queue_dequeue(attrs: Attrs) -> Kernel:
    """The components of one element."""
    _refuse_timeout(attrs)
    types = attrs.list("component_types")

    def dequeue(context: OpKernelContext, done: Done, handle: Value) -> None:
        queue = queue_of(context, handle)
        _check_outputs(attrs, queue, types)
        context.waits_for = waiting_for(queue, handle)
        queue.dequeue(context.cancellation_manager, done)

    def try_compute(step: StepContext, handle: Value) -> Any:
        queue = queue_in(step, handle)
        _check_outputs(attrs, queue, types)
        element = queue.dequeue_at_once()
        return WOULD_BLOCK if element is None else element

    return TryKernel(try_compute, dequeue)


@async_kernel("QueueDequeueMany", "QueueDequeueManyV2", "QueueDequeueUpTo", "QueueDequeueUpToV2")
def make_queue_dequeue_many(attrs: Attrs) -> Kernel:
    """The components of several elements, batched; UpTo takes fewer of a closed queue."""
    _refuse_timeout(attrs)
    types = attrs.list("component_types")
    may_be_fewer = "UpTo" in attrs.op.name
    op = "DequeueUpToOp" if may_be_fewer else "DequeueManyOp"

    def find(step: StepContext, handle: Value, n: Value) -> tuple[Queue, int]:
        queue, count = queue_in(step, handle), number_in(n)
        if count < 0:
            raise InvalidArgumentError(f"{op} requested {count} < 0 elements")
        _check_outputs(attrs, queue, types)
        return queue, count

    def dequeue_many(context: OpKernelContext, done: Done, handle: Value, n: Value) -> None:
        queue, count = find(context.step, handle, n)
        context.waits_for = waiting_for(queue, handle, count)
        queue.dequeue_many(count, context.cancellation_manager, done, may_be_fewer=may_be_fewer)

    def try_compute(step: StepContext, handle: Value, n: Value) -> Any:
        queue, count = find(step, handle, n)
        batch = queue.dequeue_many_at_once(count)
        return WOULD_BLOCK if batch is None else batch

    return TryKernel(try_compute, dequeue_many)


@async_kernel("QueueClose", "QueueCloseV2")
def make_queue_close(attrs: Attrs) -> Kernel:
    """Nothing, once the queue is closed."""
    cancels = attrs.bool("cancel_pending_enqueues")

    def close(context: OpKernelContext, done: Done, handle: Value) -> None:
        queue = queue_of(context, handle)
        if cancels:
            queue.close()
            done(None)
        else:
            context.waits_for = _waiting_for_room(queue, handle)
            queue.close_in_turn(context.cancellation_manager, done)

    return close


@context_kernel("QueueSize", "QueueSizeV2", cost=Cost.CHEAP)
def make_queue_size(_attrs: Attrs) -> Kernel:
    """Number of elements in the queue."""
    return lambda context, handle: np.int32(queue_of(context, handle).size)


@context_kernel("QueueIsClosed", "QueueIsClosedV2", cost=Cost.CHEAP)
def make_queue_is_closed(_attrs: Attrs) -> Kernel:
    """Whether nothing more can be put into the queue."""
    return lambda context, handle: np.bool_(queue_of(context, handle).is_closed)
