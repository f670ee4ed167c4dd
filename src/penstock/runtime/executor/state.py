"""What changes during a step: frames and iterations, made on demand and thrown away.

Laws.  A frame lives from its first Enter until all its Enters have fired and its last
iteration is gone.  An iteration lives from the first value that enters it until nothing
in it, in an inner frame, or in an earlier iteration is outstanding.  Only the propagator
changes these objects.
"""

from __future__ import annotations

from collections import deque
from typing import Any, Protocol, TypeAlias

from penstock.core.values import Value
from penstock.runtime.executor.graph_view import FrameInfo, NodeItem
from penstock.state.frame_and_iter import frame_id

#: What stands in an input place: a value, a Ref, or None as long as nothing came.  Deadness
#: is never stored; it is counted.
Entry: TypeAlias = Any
#: One activation, the unit of scheduling: node, frame, iteration, and whether it is dead.  A
#: bare tuple, since one is made per activation (30 ns; a record would be 120 ns or more).
TaggedNode: TypeAlias = "tuple[NodeItem, FrameState, IterationState, bool]"


class ReadyQueue(Protocol):
    """Nodes that can run now.  A deque, or something that shuffles in tests."""

    def append(self, tagged: TaggedNode, /) -> None:
        """Add an activation."""

    def popleft(self) -> TaggedNode:
        """Take the next one."""

    def clear(self) -> None:
        """Drop all."""

    def __len__(self) -> int: ...


class IterationState:
    """One iteration of one loop; of the root frame there is only number 0."""

    __slots__ = ("child_frames", "children", "counts", "inputs", "number", "outstanding")

    def __init__(self, info: FrameInfo, number: int) -> None:
        self.number = number
        #: What has arrived, by input place.  Emptied as soon as a node has used it.
        self.inputs: list[Entry] = [None] * info.total_inputs
        #: Pending and dead counts, by pending id.
        self.counts: list[int] = info.pending_counts.initial[:]
        #: Activations that are ready or running here.
        self.outstanding = 0
        #: Inner frames that are alive.
        self.child_frames = 0
        #: The same frames by static name.
        self.children: dict[str, FrameState] = {}


class FrameState:
    """One dynamic frame: a loop, in one iteration of the loop around it."""

    __slots__ = (
        "_id",
        "dead_exits",
        "deferred",
        "info",
        "invariants",
        "iteration_count",
        "iterations",
        "max_parallel_iterations",
        "num_pending_inputs",
        "parent",
        "parent_iteration",
    )

    def __init__(
        self,
        info: FrameInfo,
        parent: FrameState | None,
        parent_iteration: IterationState | None,
        max_parallel_iterations: int,
    ) -> None:
        self.info = info
        self.parent = parent
        self.parent_iteration = parent_iteration
        self.max_parallel_iterations = max_parallel_iterations
        #: Enters of the frame that have not fired yet.
        self.num_pending_inputs = info.input_count
        #: Number of the newest iteration.
        self.iteration_count = 0
        #: Iterations that are not collected yet, by number, oldest first.
        self.iterations: dict[int, IterationState] = {0: IterationState(info, 0)}
        #: Values for the next iteration, kept back while too many are alive.
        self.deferred: deque[tuple[NodeItem, tuple[Value, ...]]] = deque()
        #: Loop constants and their values (None for a dead one), for iterations to come.
        self.invariants: list[tuple[NodeItem, tuple[Value, ...] | None]] = []
        #: Exits that were dead in the newest iteration.
        self.dead_exits: list[NodeItem] = []
        self._id: int | None = None

    @property
    def name(self) -> str:
        """The dynamic name: parent's name; parent's iteration; static name."""
        parts = []
        frame: FrameState = self
        while frame.parent is not None:
            assert frame.parent_iteration is not None
            parts.append(f"{frame.parent_iteration.number};{frame.info.name}")
            frame = frame.parent
        return "".join(f";{part}" for part in reversed(parts))

    @property
    def label(self) -> str:
        """The name for people: ``outer[3]/inner``; empty for the root."""
        parts = []
        frame, within = self, ""
        while frame.parent is not None:
            assert frame.parent_iteration is not None
            parts.append(frame.info.name + within)
            within = f"[{frame.parent_iteration.number}]"
            frame = frame.parent
        return "/".join(reversed(parts))

    @property
    def path(self) -> str:
        """The loops, whatever their iterations: ``outer/inner``; empty for the root."""
        names = []
        frame: FrameState = self
        while frame.parent is not None:
            names.append(frame.info.name)
            frame = frame.parent
        return "/".join(reversed(names))

    @property
    def id(self) -> int:
        """A number that all partitions give the same dynamic frame; 0 for the root."""
        if self._id is None:
            self._id = self._new_id()
        return self._id

    def _new_id(self) -> int:
        if self.parent is None:
            return 0
        assert self.parent_iteration is not None
        return frame_id(self.parent.id, self.parent_iteration.number, self.info.name)
