"""All that a report holds, as plain values.

In:   what ``collect_graph``, ``collect_step``, ``code`` and ``summaries`` find.
Out:  ``Report``.
Not:  finds and writes nothing.

Times are nanoseconds from the beginning of the step.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from penstock.dataclass import dataclass
from penstock.printable import printable


class NodeFact(NamedTuple):
    """A node of the graph as it is run, before it is optimised."""

    name: str
    op: str
    #: Full name; empty if it lies nowhere.
    device: str
    #: The loops that it is in, as ``outer › inner``; empty outside of all.
    frame: str
    #: The function that it was written in; empty for the graph's own.
    function: str
    #: The numbers of the nodes that it reads, with slots; slot -1 if it only waits for one.
    inputs: tuple[tuple[int, int], ...]
    #: Type, and shape as far as it is known, of each output.
    outputs: tuple[str, ...]
    #: ``name=value``
    attrs: tuple[str, ...]


class Fate(NamedTuple):
    """What a pass made of a node."""

    name: str
    op: str
    #: The pass.
    by: str
    #: What became of it, and what for.
    text: str
    #: The nodes that stand in its place, or do its work.
    instead: tuple[str, ...]


class LeftOut(NamedTuple):
    """A node that the step does not need."""

    name: str
    op: str


class CodeLine(NamedTuple):
    """A line of generated Python."""

    text: str
    #: The node that it is for; empty for what holds the others together.
    node: str
    #: What stands beside it if it is for no node.
    label: str


class LeftToExecutor(NamedTuple):
    """A node that no generated Python computes."""

    name: str
    op: str
    reason: str


@dataclass(frozen=True, slots=True)
class GraphFacts:
    """A graph as it is run, and what the optimiser makes of it."""

    nodes: Sequence[NodeFact]
    fates: Sequence[Fate] = ()
    left_out: Sequence[LeftOut] = ()
    #: Why the graph cannot be prepared; empty if it can.
    trouble: str = ""


@dataclass(frozen=True, slots=True)
class Code:
    """The generated Python of a request."""

    lines: Sequence[CodeLine] = ()
    left: Sequence[LeftToExecutor] = ()


class Activity(NamedTuple):
    """A node that ran once."""

    name: str
    op: str
    device: str
    thread: str
    #: The loops around it with their iterations, as errors show them; empty outside of all.
    frame: str
    iteration: int
    start: int
    duration: int


class Cost(NamedTuple):
    """What one node took in the whole step."""

    name: str
    op: str
    runs: int
    #: How often it had no value, so did not run.
    dead: int
    #: What its kernel took, and how long it waited while its thread did other things.
    nanos: int
    waited: int
    #: The bytes that it made.
    bytes: int


class Lifetime(NamedTuple):
    """The memory of a tensor, as long as the step needed it."""

    #: The node that made it.
    name: str
    size: int
    start: int
    duration: int


class Iteration(NamedTuple):
    """One iteration of a loop, on one device."""

    frame: str
    number: int
    device: str
    start: int
    duration: int
    #: How many nodes ran, and how many were dead.
    runs: int
    dead: int


class Summary(NamedTuple):
    """What one value is like."""

    name: str
    slot: int
    frame: str
    iteration: int
    #: Type and shape.
    type: str
    size: int
    #: Of what is a number and finite; None if nothing is.
    least: float | None
    most: float | None
    mean: float | None
    nans: int
    infinite: int
    #: How many finite numbers are in each of as many parts of equal width.
    histogram: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class StepFacts:
    """What a step did."""

    nanos: int
    activities: Sequence[Activity]
    #: So many more ran, and are in ``costs`` only.
    more_activities: int
    costs: Sequence[Cost]
    lifetimes: Sequence[Lifetime]
    #: So many smaller tensors are left out.
    more_lifetimes: int
    iterations: Sequence[Iteration]
    #: What the end of the step waited for, oldest first: positions in ``activities``.
    critical: Sequence[int]
    #: Why the step ended early; empty if it did not.
    error: str = ""


class Content(NamedTuple):
    """Something that a report holds, or does not, which its reader should know."""

    what: str
    is_there: bool
    text: str


@dataclass(frozen=True, slots=True, repr=False)
class Report:
    """All that is shown."""

    title: str
    graph: GraphFacts
    code: Code = Code()
    #: None if nothing was run.
    step: StepFacts | None = None
    #: None if nobody asked for them.
    summaries: Sequence[Summary] | None = None

    def __repr__(self) -> str:
        ran = f"a step of {self.step.nanos / 1e6:.3f} ms" if self.step else "nothing run"
        return f"<Report of {printable(self.title)}: {len(self.graph.nodes)} nodes, {ran}>"
