"""What the runtime asks of other tasks: that they run a part of a request's graph.

In:   the part of a graph that lies on another task's devices.
Out:  ``RemoteGraph``, which stands among a step's executors; the meeting place of its steps.
Not:  knows no protocol: whoever opens a session with workers brings them along.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol

from penstock.core.values import Value
from penstock.defs.schema import Message
from penstock.errors import OpError
from penstock.graph.graph import Graph
from penstock.passes.exchange import Exchange
from penstock.runtime.executor.params import DoneCallback
from penstock.runtime.stats import StatsCollector
from penstock.state.rendezvous import Rendezvous
from penstock.state.step_state import StepState


class RemoteGraph(Protocol):
    """A part of a request's graph, ready to be run by another task any number of times."""

    @property
    def task(self) -> str:
        """The task's name."""

    @property
    def exchange(self) -> Exchange:
        """The values that go along with its runs, and need not be sent."""

    def run_async(
        self,
        step: StepState,
        feeds: Sequence[Value],
        stats: list[Message] | None,
        done: DoneCallback,
    ) -> None:
        """Start one step there.

        Args:
            step: the step, whose rendezvous is one that these workers made.
            feeds: the request's, by number.
            stats: gets what the task recorded, as StepStats messages; None if nobody asks.
            done: called once, with None or the error, when the task is done.

        """


class EndableStep(Protocol):
    """One run of a request, in this process and in others; used once."""

    #: Whether somebody may go before the step is done, though no deadline is given.
    is_async: bool

    @property
    def stats(self) -> StatsCollector | None:
        """What is recorded; None if nothing is."""

    def cancel(self, reason: OpError | None = None) -> None:
        """End the step early; ``run`` raises ``reason``, unless it is done already."""

    def dump_state(self) -> str:
        """What it is doing, or waits for."""

    def run(self, feeds: Sequence[Value], timeout_in_ms: int) -> Sequence[Value | None]:
        """Run to the end; returns fetched values, None for dead ones.

        Raises:
            OpError: the step's error, DeadlineExceededError or CancelledError included.

        """

    def keep_fetched(self, fetches: Iterable[str]) -> None:
        """Let the session keep the tensors whose handles were fetched."""


class Workers(Protocol):
    """The tasks of a cluster, as the session of one of them sees them."""

    @property
    def numbers(self) -> Iterator[int]:
        """Numbers of this session's that no inserted node's name has had.

        A task may know nodes of a session by their names alone, whichever graph they are of.
        """

    def task_of(self, device: str) -> str:
        """The name of the task that a device belongs to."""

    def is_own(self, device: str) -> bool:
        """Whether a device is this task's."""

    def register(self, task: str, graph: Graph, exchange: Exchange) -> RemoteGraph:
        """Have another task get ready to run a part of a graph.

        Args:
            task: the task's name.
            graph: the part.
            exchange: the values that may go along with its runs, if the task can do that.

        Raises:
            OpError: the task cannot be reached, or refuses the graph.

        """

    def exchanged_step(self, remote: Sequence[RemoteGraph], own: EndableStep) -> EndableStep:
        """A step of which the other tasks' parts are run first, and then the own one.

        Args:
            remote: the parts, all of whose values go along with calls.
            own: what takes the request's feeds, and after them what the parts answer.

        """

    def new_rendezvous(self, remote: Sequence[RemoteGraph]) -> Rendezvous:
        """Where the parts of one new step meet; gives up all of it when the step ends."""
