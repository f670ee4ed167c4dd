"""Tell somebody what every node of a step gives.

In:   a callback, as users write it.
Out:  one that is told of every output, and where in the step it came up.
Not:  calls nobody by itself; the executor does.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from penstock.core.values import DEAD, Value
from penstock.state.frame_and_iter import FrameAndIter


@dataclass(frozen=True, slots=True)
class NodeOutputContext:
    """Where in a step a node has run."""

    step_id: int
    #: Full name of the executor's device.
    device: str
    #: The node's op.
    op: str
    #: The loops around the node, for people: ``outer[3]/inner``; empty outside of all.  Each is
    #: followed by its iteration, but for the innermost, whose iteration is ``iteration``.
    frame: str
    #: The same in numbers, as keys of rendezvous have it.
    frame_iter: FrameAndIter

    @property
    def iteration(self) -> int:
        """The iteration of the innermost loop, from 0; 0 outside of all."""
        return self.frame_iter.iteration


#: Told (node, output slot, value, whether it is dead) of every output; and as a fifth argument
#: where it came up, if it cannot be called with four.
NodeOutputsCallback: TypeAlias = (
    Callable[[str, int, Value, bool], object]
    | Callable[[str, int, Value, bool, NodeOutputContext], object]
)
#: Told of one output, and always where it came up.
OutputTeller: TypeAlias = Callable[[str, int, Value, bool, NodeOutputContext], object]
#: Told of all outputs of one activation: the node, its outputs, and where it came up.
Teller: TypeAlias = Callable[[str, Sequence[Value], NodeOutputContext], None]


def teller_of(callback: NodeOutputsCallback) -> Teller:
    """What tells ``callback`` of one activation after the other."""
    told = output_teller_of(callback)

    def tell(node: str, outputs: Sequence[Value], context: NodeOutputContext) -> None:
        for slot, value in enumerate(outputs):
            told(node, slot, value, value is DEAD, context)

    return tell


def output_teller_of(callback: NodeOutputsCallback) -> OutputTeller:
    """What tells ``callback`` of one output after the other."""
    told: Callable[..., object] = callback
    if not _takes_four(told):
        return told
    return lambda node, slot, value, is_dead, _context: told(node, slot, value, is_dead)


def _takes_four(callback: Callable[..., Any]) -> bool:
    """Whether it can be called with four arguments, as all callbacks once were."""
    try:
        inspect.signature(callback).bind("", 0, None, False)  # noqa: FBT003  (a value, not a flag)
    except TypeError:
        return False
    except ValueError:  # it is written in C, and does not say what it takes
        return True
    return True
