"""The order in which the nodes of one step take effect: noted, or demanded.

In:   what may go on in a step, from its executors.
Out:  what of it goes on now.
Not:  makes no order itself; ``penstock.replays`` does.

A step has an order only if somebody asks for one; its executors are then of a kind of their own,
which does one thing after the other.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from threading import RLock
from typing import NamedTuple, Protocol, TypeAlias, runtime_checkable

from penstock.core.values import Value
from penstock.errors import OpError

#: What a node gave: its outputs, None if it was dead, or its error.
Outcome: TypeAlias = Sequence[Value] | OpError | None


class NodeRun(NamedTuple):
    """One run of one node."""

    #: Which executor of the step, in the order in which they began: those of its devices, and those
    #: of the functions that are called.
    executor: int
    node: str
    #: The dynamic name of the frame; empty outside of loops.
    frame: str
    iteration: int


class Participant(Protocol):
    """An executor of a step that has an order."""

    @property
    def is_waiting(self) -> bool:
        """Whether the outcome of something is still to come."""

    def wake(self) -> None:
        """Ask the order again, soon, what may go on."""

    def end_step(self, error: OpError) -> None:
        """End the step."""


@runtime_checkable
class StepOrder(Protocol):
    """An order, as the executors of the step see it."""

    #: Held while one of the methods is called, and while anything goes on that another part of the
    #: step may notice: kernels with effects, too.  Taken before the locks that kernels take.
    lock: RLock

    def join(self, participant: Participant) -> int:
        """An executor begins; returns its number."""

    def leave(self, number: int) -> None:
        """An executor has ended."""

    def choose(
        self, number: int, ready: Collection[NodeRun], came: Collection[NodeRun]
    ) -> NodeRun | None:
        """What an executor does now; None if nothing, until it is woken or something comes.

        Args:
            number: the executor's.
            ready: what may begin, in the order in which it became ready.
            came: that whose outcome is there, in the order in which it came, and may travel.

        """

    def begins(self, node_run: NodeRun, *, has_effects: bool) -> None:
        """A kernel is called now, which perhaps does more than compute."""

    def ends(self, node_run: NodeRun, outcome: Outcome) -> None:
        """The outcome of a node travels now."""
