"""What is asked before and after each node of a step runs, and may change what it gives.

In:   one activation after the other, from whoever drives the step.
Out:  the values that it goes on with.
Not:  names types only; ``runtime/executor/hooked.py`` asks.

The hook is asked on the thread that drives, which waits for the answer, however long that takes:
that is what a debugger is made of.  What fails on another thread is told there.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from penstock.core.dtypes import DType
from penstock.core.values import Value
from penstock.dataclass import dataclass
from penstock.errors import OpError
from penstock.state.frame_and_iter import FrameAndIter


@dataclass(frozen=True, slots=True)
class Instead:
    """Outputs that stand for those of a node, which then does not run."""

    outputs: Sequence[Value]


class LiveTensors(Protocol):
    """What has arrived at the inputs of nodes that have not run yet.

    Seen from one activation: in its iteration, in those around it, and in the loops that were
    entered from there.
    """

    def inputs(self) -> Sequence[Value]:
        """What the activation itself is given, as long as it has not run."""

    def get(self, node: str, slot: int) -> Value | None:
        """The output of a node that somebody is yet to read; None if nobody is."""

    def put(self, node: str, slot: int, value: Value) -> int:
        """Have all who are yet to read it read ``value``; returns how many they are.

        Raises:
            InvalidArgumentError: the output has another type.

        """


class Activation(Protocol):
    """A node in one iteration of the loops around it; the same object before and after it runs.

    It is for the time in which a hook is asked: what somebody wants to know later, must be noted.
    """

    @property
    def step_id(self) -> int:
        """The number of the step."""

    @property
    def node(self) -> str:
        """The node's name."""

    @property
    def op(self) -> str:
        """Its op."""

    @property
    def function(self) -> str:
        """The function whose body the node is from; empty for the graph's own."""

    @property
    def device(self) -> str:
        """Full name of the executor's device."""

    @property
    def output_types(self) -> tuple[DType, ...]:
        """The declared type of each output."""

    @property
    def frame(self) -> str:
        """The loops around the node, for people: ``outer[3]/inner``; empty outside of all."""

    @property
    def frame_iter(self) -> FrameAndIter:
        """The same in numbers, as keys of rendezvous have it."""

    @property
    def iterations(self) -> tuple[int, ...]:
        """The iteration of each loop around it, the outermost first."""

    @property
    def iteration(self) -> int:
        """The iteration of the innermost loop, from 0; 0 outside of all."""

    @property
    def call_depth(self) -> int:
        """How many calls it is inside of that are not inlined."""

    @property
    def live(self) -> LiveTensors:
        """What has arrived at inputs."""


class NodeHook:
    """Asked about each activation of a step.  What it raises is the node's error."""

    def before(self, at: Activation, inputs: Sequence[Value]) -> Sequence[Value] | Instead:
        """What the node reads: ``inputs`` as they are, others, or its outputs instead.

        A Merge has None in the place of what has not come.
        """
        del at
        return inputs

    def after(self, at: Activation, outputs: Sequence[Value]) -> Sequence[Value]:
        """What the node gives to others; DEAD stands for an output that is."""
        del at
        return outputs

    def dead(self, at: Activation) -> None:
        """The node is dead, so it has not run."""

    def failed(self, at: Activation, error: OpError) -> None:
        """The node has failed; its step ends with this, or with an earlier error.

        Nobody is told of nodes that fail because the step was ended by its caller.
        """
