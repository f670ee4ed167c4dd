"""Queues of elements that steps hand to each other.

In:   elements with components of fixed types, and requests for some.
Out:  calls of ``done``, at once or when the time has come, from whatever thread.
Not:  blocks nobody; knows no graph and no handles.

``queue_state`` decides what happens; how one waits is said in ``state/waits.py``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from numpy import ndarray

from penstock.core import trees
from penstock.core.dtypes import DType
from penstock.core.shapes import UNKNOWN, TensorShape
from penstock.core.trees import Tree
from penstock.core.values import Value, keep, shape_of
from penstock.dataclass import dataclass
from penstock.errors import InvalidArgumentError, OpError
from penstock.kernels.api.context import Done
from penstock.kernels.data_flow.queue_state import (
    Close,
    ElementStore,
    Put,
    QueueElement,
    QueueRequest,
    QueueState,
    Take,
)
from penstock.kernels.data_flow.queue_stores import FifoStore, PriorityStore, ShuffleStore
from penstock.kernels.random.philox import Philox
from penstock.kernels.random.plain_random import Words
from penstock.kernels.values.arrays import shape_text, zeros
from penstock.kernels.values.batches import stack_padded
from penstock.state.cancellation import CancellationManager
from penstock.state.waits import Monitor, Wait, tell_all


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueSpec:
    """What a queue is; two nodes that share a queue must agree on it."""

    #: ``FIFOQueue``, ``RandomShuffleQueue`` and so on.
    kind: str
    types: tuple[DType, ...]
    #: One shape per component; None if elements may have any.
    shapes: tuple[TensorShape, ...] | None
    capacity: int
    min_after_dequeue: int = 0
    #: What the order of a shuffled queue follows from; chance if both are zero.
    seeds: tuple[int, int] = (0, 0)


class Queue(Monitor[QueueRequest]):
    """One queue; safe to use from several threads."""

    def __init__(self, name: str, spec: QueueSpec, store: ElementStore) -> None:
        super().__init__()
        self.name: Final = name
        self.spec: Final = spec
        self.title: Final = f"{spec.kind} '{name}'"
        #: Guarded by the monitor's lock.
        self._state: Final = QueueState(self.title, spec.capacity, store)
        #: The sizes that each component must have; None where they are not all known.
        self._sizes = None if spec.shapes is None else [shape.dims for shape in spec.shapes]
        #: Those of the only component; None if there are several, or they are not known.
        self._only_size = self._sizes[0] if self._sizes and len(self._sizes) == 1 else None

    @property
    def size(self) -> int:
        """Number of elements."""
        with self._lock:
            return len(self._state.store)

    @property
    def is_closed(self) -> bool:
        """Whether nothing more comes in."""
        return self._state.is_closed

    def describe(self, what: str) -> str:
        """What a request waits for, as text."""
        with self._lock:
            return f"{what} {self._state.describe()}"

    def end_waits(self) -> None:
        """Cancel whoever waits: the queue is dropped."""
        self._change(self._state.end_waits)

    def state(self) -> Tree:
        """What it is, whether it is closed, and its elements."""
        spec = self.spec
        shapes = None if spec.shapes is None else tuple(map(trees.sizes_of, spec.shapes))
        with self._lock:
            return (
                *(spec.kind, trees.types_of(spec.types), shapes, spec.capacity),
                *(spec.min_after_dequeue, spec.seeds),
                *(self._state.is_closed, self._state.store.state()),
            )

    @classmethod
    def of_state(cls, name: str, state: Tree, there: object) -> Queue:  # noqa: ARG003
        """The queue that had a state."""
        kind, types, shapes, capacity, least, seeds, is_closed, elements = trees.parts(state, 8)
        first, second = trees.parts(seeds, 2)
        spec = QueueSpec(
            kind=trees.text(kind),
            types=trees.types_in(types),
            shapes=None if shapes is None else tuple(map(trees.shape_in, trees.listed(shapes))),
            capacity=trees.number(capacity),
            min_after_dequeue=trees.number(least),
            seeds=(trees.number(first, trees.LEAST), trees.number(second, trees.LEAST)),
        )
        made = cls(name, spec, _empty_store(spec))
        made._state.store.restore(elements, spec.types)
        made._state.is_closed = trees.flag(is_closed)
        return made

    # -- requests ----------------------------------------------------------------------

    def enqueue_at_once(self, components: tuple[Value, ...]) -> bool:
        """Put one element in, unless that has to wait; returns whether it is in."""
        value, element = components[0], components
        if type(value) is ndarray and value.shape == self._only_size and value.base is None:
            # As ``keep`` does; this comes a thousand times a step.
            value.setflags(False)  # type: ignore[call-arg]  # noqa: FBT003
        else:
            element = self._element(components)
        with self._lock:
            settled = self._state.put_at_once(element)
        if settled:
            tell_all(settled)
        return settled is not None

    def enqueue_many_at_once(self, components: Sequence[Value]) -> bool:
        """Put the rows of the components in, unless one has to wait; returns whether all are in."""
        elements = self._elements(components)
        with self._lock:
            settled = self._state.put_all_at_once(elements)
        if settled:
            tell_all(settled)
        return settled is not None

    def enqueue(
        self, components: tuple[Value, ...], cancellation: CancellationManager, done: Done
    ) -> None:
        """Put one element in, when there is room."""
        self._submit(Put(done, [self._element(components)]), cancellation)

    def _element(self, components: tuple[Value, ...]) -> QueueElement:
        """Components as they are kept; raises if they do not fit the queue."""
        if self._sizes is not None:
            for at, value in enumerate(components):
                shape = value.shape if type(value) is ndarray else ()
                if shape != self._sizes[at]:
                    self._check_shape(at, shape, self._shape(at))
        return tuple(map(keep, components))

    def enqueue_many(
        self, components: Sequence[Value], cancellation: CancellationManager, done: Done
    ) -> None:
        """Put the rows of the components in, each when there is room for it."""
        elements = self._elements(components)
        if elements:
            self._submit(Put(done, elements), cancellation)
        else:
            done(None)

    def _elements(self, components: Sequence[Value]) -> list[QueueElement]:
        """Rows as they are kept; raises if they do not fit the queue."""
        count = _rows(components)
        for at, value in enumerate(components):
            row = self._shape(at).dims
            self._check_shape(at, shape_of(value)[:1], TensorShape((count,)))
            if row is not None:
                self._check_shape(at, shape_of(value), TensorShape((count, *row)))
        return list(zip(*map(keep, components), strict=True))

    def dequeue_at_once(self) -> QueueElement | None:
        """Take one element out; None if that has to wait."""
        with self._lock:
            taken = self._state.take_at_once(1)
        return taken[0] if taken is not None else None

    def dequeue_many_at_once(self, count: int) -> tuple[Value, ...] | None:
        """Take so many elements out as a batch; None if that has to wait."""
        shapes = self._known_shapes()
        if count == 0:
            return tuple(map(_no_rows, shapes, self.spec.types))
        with self._lock:
            taken = self._state.take_at_once(count)
        return self._batch(taken) if taken is not None else None

    def dequeue(self, cancellation: CancellationManager, done: Done) -> None:
        """Take one element out, when there is one."""
        request = Take(lambda error: done(error or request.taken[0]), 1)
        self._submit(request, cancellation)

    def dequeue_many(
        self,
        count: int,
        cancellation: CancellationManager,
        done: Done,
        *,
        may_be_fewer: bool = False,
    ) -> None:
        """Take so many elements out, when they are there, as a batch.

        Args:
            count: how many.
            cancellation: what ends the wait.
            done: gets the batch, or the error.
            may_be_fewer: whether fewer will do when the queue is closed.

        """
        batch = self.dequeue_many_at_once(count)
        if batch is not None:
            done(batch)
            return

        def report(error: OpError | None) -> None:
            try:
                outcome: object = error or self._batch(request.taken)
            except MemoryError as cause:
                outcome = cause
            done(outcome)

        request = Take(report, count, may_be_fewer=may_be_fewer)
        self._submit(request, cancellation)

    def close_in_turn(self, cancellation: CancellationManager, done: Done) -> None:
        """Let nothing more in, once all that waits is in."""
        self._submit(Close(done), cancellation)

    def close(self) -> None:
        """Let nothing more in, and cancel everything that waits to get in."""
        self._change(self._state.close)

    def _add(self, request: QueueRequest) -> list[Wait]:
        return self._state.add(request)

    def _cancel(self, request: QueueRequest) -> list[Wait]:
        return self._state.cancel(request)

    def _batch(self, elements: list[QueueElement]) -> tuple[Value, ...]:
        """Elements as one tensor per component."""
        columns = zip(*elements, strict=True)
        return tuple(map(stack_padded, columns, self.spec.types))

    # -- shapes ------------------------------------------------------------------------

    def _known_shapes(self) -> tuple[TensorShape, ...]:
        """The shape of each component; raises if elements may have any."""
        if self.spec.shapes is None:
            raise InvalidArgumentError(
                f"{self.spec.kind}'s DequeueMany and DequeueUpTo require the components "
                "to have specified shapes."
            )
        return self.spec.shapes

    def _shape(self, at: int) -> TensorShape:
        return UNKNOWN if self.spec.shapes is None else self.spec.shapes[at]

    @staticmethod
    def _check_shape(at: int, shape: tuple[int, ...], expected: TensorShape) -> None:
        if not expected.accepts(shape):
            raise InvalidArgumentError(
                f"Shape mismatch in tuple component {at}. Expected {expected}, "
                f"got {shape_text(shape)}"
            )


def _empty_store(spec: QueueSpec) -> ElementStore:
    """A store for the elements of a queue, whose random words are still to come."""
    if spec.kind == "RandomShuffleQueue":
        return ShuffleStore(spec.min_after_dequeue, Words(Philox(0, 0)))
    if spec.kind == "PriorityQueue":
        return PriorityStore()
    if spec.kind not in ("FIFOQueue", "PaddingFIFOQueue"):
        trees.refuse(f"no kind of queue {spec.kind[:40]!r}")
    return FifoStore()


def _rows(components: Sequence[Value]) -> int:
    """How many elements a batch holds."""
    shape = shape_of(components[0])
    if not shape:
        raise InvalidArgumentError(
            "Shape mismatch in tuple component 0. Expected at least a vector, got []"
        )
    return shape[0]


def _no_rows(shape: TensorShape, dtype: DType) -> Value:
    """A batch of no elements; sizes that are not known count as zero."""
    return zeros((0, *(size or 0 for size in shape.dims or ())), dtype)


def shapes_text(shapes: tuple[TensorShape, ...] | None) -> str:
    """Shapes of components as messages list them."""
    return f"[{', '.join(map(str, shapes or ()))}]"
