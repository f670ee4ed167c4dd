"""A bound on the memory of a step's tensors.

In:   how many bytes there may be; what the session keeps; each node, before and after it runs.
Out:  ResourceExhaustedError at the node that passes the bound, which says what else there is.
Not:  sees no memory inside of kernels, nor that of programs that nodes were compiled to.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from penstock.advice import MoreMemory
from penstock.core.byte_counts import in_units
from penstock.core.values import Value
from penstock.errors import OpError, ResourceExhaustedError
from penstock.runtime.coming_outputs import ComingOutputs
from penstock.runtime.live_tensors import LiveTensors, Owner
from penstock.state.contents import contents
from penstock.state.device_resources import DeviceResources
from penstock.state.node_hook import Activation, Instead, NodeHook

#: How many tensors an error names.
_NAMED: Final = 3


class MemoryBound(NodeHook):
    """Counts the tensors of one step, and ends it when they are too many."""

    def __init__(
        self,
        max_bytes: int,
        coming: ComingOutputs,
        resources: DeviceResources,
        hook: NodeHook | None = None,
    ) -> None:
        """Begin with what there is before the step.

        Args:
            max_bytes: how many there may be.
            coming: tells what nodes are about to make.
            resources: what the session keeps.
            hook: is asked as well, and may change values.

        """
        self._max_bytes: Final = max_bytes
        self._coming: Final = coming
        self._hook: Final = hook or NodeHook()
        self._tensors: Final = LiveTensors()
        add_kept(self._tensors, resources)

    def before(self, at: Activation, inputs: Sequence[Value]) -> Sequence[Value] | Instead:
        """Refuse to make what is too much by itself; see ``NodeHook``."""
        wanted = self._hook.before(at, inputs)
        if at.function or isinstance(wanted, Instead):
            return wanted
        size = self._coming.size(at.device, at.node, wanted)
        if size > self._max_bytes:
            raise self._error(f"It would make {in_units(size)} of tensors")
        return wanted

    def after(self, at: Activation, outputs: Sequence[Value]) -> Sequence[Value]:
        """Count what a node has made; see ``NodeHook``."""
        outputs = self._hook.after(at, outputs)
        for slot, value in enumerate(outputs):
            self._tensors.add(owner_of(at, slot), value)
        total = self._tensors.total()
        if total > self._max_bytes:
            raise self._error(f"{in_units(total)} of tensors are alive")
        return outputs

    def dead(self, at: Activation) -> None:
        """See ``NodeHook``."""
        self._hook.dead(at)

    def failed(self, at: Activation, error: OpError) -> None:
        """See ``NodeHook``."""
        self._hook.failed(at, error)

    def _error(self, what: str) -> ResourceExhaustedError:
        largest = ", ".join(
            f"{one.owner.name}:{one.owner.slot} ({one.owner.op}) {in_units(one.size)}"
            for one in self._tensors.alive()[:_NAMED]
        )
        others = f"; the largest are {largest}" if largest else ""
        return ResourceExhaustedError(
            f"{what}, of {in_units(self._max_bytes)} that may be{others}", next_step=MoreMemory()
        )


def add_kept(tensors: LiveTensors, resources: DeviceResources) -> None:
    """Count what a session keeps."""
    for manager in resources.managers:
        for (_, kind, name), resource in manager.everything():
            for array in contents(resource).arrays:
                tensors.add(Owner(name, kind, device=manager.device), array)


def owner_of(at: Activation, slot: int) -> Owner:
    """The owner of what a node has made."""
    return Owner(at.node, at.op, slot, at.device, at.frame, at.iteration)
