"""What one or more steps did and when: facts that no longer change.

In:   what ``replay`` and ``from_step_stats`` make of events and messages.
Out:  ``Trace``.
Not:  measures and writes nothing.

Times are nanoseconds since 1970 of the machine on which something happened.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import NamedTuple

from penstock.dataclass import dataclass


class Sort(enum.Enum):
    """What an activation is of."""

    #: A node of the graph, or of a function.
    NODE = "node"
    #: A compiled function: generated Python text.
    PYTHON = "python"
    #: A region that ONNX Runtime computes.
    ONNX = "onnx"
    #: A region, most often a loop, that is a program in C.
    PROGRAM = "program"
    #: A node inside of such a region, computed by itself so that it can be seen.
    INSIDE = "inside"


class Place(NamedTuple):
    """Where something happened."""

    device: str
    #: The loop's frame, as errors show it; empty outside of loops.
    frame: str = ""
    iteration: int = 0
    #: The function whose body it is in; empty for the graph's own nodes.
    function: str = ""


@dataclass(frozen=True, slots=True)
class Output:
    """A value that came out of a node."""

    slot: int
    #: The number of its element type in TensorFlow's messages.
    dtype: int
    shape: tuple[int, ...]
    #: Bytes.
    size: int
    #: The number of its memory in ``Trace.buffers``; -1 if nobody knows.
    buffer: int = -1


@dataclass(frozen=True, slots=True)
class Activation:
    """One node, or compiled region, that ran once."""

    place: Place
    name: str
    op: str
    #: What it reads: ``node``, ``node:slot`` or ``^node``.
    inputs: tuple[str, ...]
    sort: Sort
    #: The thread that ran its kernel, or began it.
    thread: int
    #: When it could have run; when somebody took it up; when its kernel began and ended; and when
    #: all was told that waited for it.
    scheduled: int
    start: int
    op_start: int
    op_end: int
    end: int
    outputs: tuple[Output, ...] = ()
    #: Whether its kernel returned before it was done, and its thread did other things meanwhile.
    is_async: bool = False
    #: What it waited for, in words; empty if it did not, or did not say.
    waits_for: str = ""
    #: The key under which a Send or Recv meets its partner; empty for others.
    key: str = ""
    #: Whether there was no value: only what sends and receives runs all the same.
    is_dead: bool = False
    #: The name of the error that it ended with; empty if it did not.
    error: str = ""
    #: Whether it waits for, or hands on, what others compute; such have no record in step stats.
    is_transfer: bool = False


@dataclass(frozen=True, slots=True)
class DeadNode:
    """A node that did not run, since it has no value."""

    place: Place
    name: str
    op: str
    thread: int
    at: int


@dataclass(frozen=True, slots=True)
class Span:
    """A loop, from its first node to its last, or one iteration of it."""

    place: Place
    start: int
    end: int
    #: Whether it is one iteration.
    is_iteration: bool
    #: Tells the loop's runs apart: those in different iterations of the loop around it.
    number: int


@dataclass(frozen=True, slots=True)
class Flow:
    """A value that went from a Send to a Recv, or from one task to another."""

    #: Positions in ``Trace.activations``.
    source: int
    target: int
    #: The rendezvous key; or the name of the tensor.
    key: str


@dataclass(frozen=True, slots=True)
class Counter:
    """How a number changed."""

    device: str
    name: str
    #: ``bytes`` or ``nodes``.
    unit: str
    #: When, and what it was from then on.
    points: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class Sample:
    """A node that a compiled region was at when somebody looked."""

    place: Place
    name: str
    op: str
    thread: int
    at: int


@dataclass(frozen=True, slots=True)
class Buffer:
    """The memory of a value, and for how long the step needed it."""

    size: int
    #: When its maker's kernel began, and when nobody read it any more.
    start: int
    end: int
    #: The position of the activation that made it; -1 if it was there before the step.
    maker: int


@dataclass(frozen=True, slots=True)
class Trace:
    """What one or more steps did and when."""

    title: str = ""
    #: When each step began and ended.
    steps: Sequence[tuple[int, int]] = ()
    #: By their starts.
    activations: Sequence[Activation] = ()
    dead: Sequence[DeadNode] = ()
    spans: Sequence[Span] = ()
    flows: Sequence[Flow] = ()
    counters: Sequence[Counter] = ()
    samples: Sequence[Sample] = ()
    buffers: Sequence[Buffer] = ()
    #: The names of threads, by number.
    threads: Mapping[int, str] = field(default_factory=dict)

    @property
    def devices(self) -> list[str]:
        """The devices on which something ran, in the order of their names."""
        return sorted({a.place.device for a in self.activations})

    @property
    def start(self) -> int:
        """When it begins."""
        starts = [start for start, _ in self.steps] + [a.scheduled for a in self.activations]
        return min(starts, default=0)

    def __repr__(self) -> str:
        return (
            f"<Trace: {len(self.steps)} steps, {len(self.activations)} activations, "
            f"{len(self.dead)} dead, on {len(self.devices)} devices>"
        )
