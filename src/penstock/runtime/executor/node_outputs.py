"""Tell somebody what every node of a step gives.

In:   a callback, as users write it.
Out:  a hook that tells it of every output, and where in the step it came up.
Not:  calls nobody by itself; the executor does.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from penstock.core.values import DEAD, Value
from penstock.dataclass import dataclass
from penstock.errors import OpError
from penstock.state.frame_and_iter import FrameAndIter
from penstock.state.node_hook import Activation, Instead, NodeHook


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


class Telling(NodeHook):
    """Tells a callback of all outputs of each node, as another hook leaves them."""

    def __init__(self, callback: NodeOutputsCallback, hook: NodeHook | None) -> None:
        self._tell = output_teller_of(callback)
        self._hook = hook or NodeHook()

    def before(self, at: Activation, inputs: Sequence[Value]) -> Sequence[Value] | Instead:
        """See ``NodeHook``."""
        return self._hook.before(at, inputs)

    def dead(self, at: Activation) -> None:
        """See ``NodeHook``."""
        self._hook.dead(at)

    def failed(self, at: Activation, error: OpError) -> None:
        """See ``NodeHook``."""
        self._hook.failed(at, error)

    def after(self, at: Activation, outputs: Sequence[Value]) -> Sequence[Value]:
        """See ``NodeHook``."""
        outputs = self._hook.after(at, outputs)
        context = NodeOutputContext(at.step_id, at.device, at.op, at.frame, at.frame_iter)
        for slot, value in enumerate(outputs):
            self._tell(at.node, slot, value, value is DEAD, context)
        return outputs


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
