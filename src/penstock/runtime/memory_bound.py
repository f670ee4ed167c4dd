"""A bound on the memory of a step's tensors.

In:   how many bytes there may be; what the session keeps; what each node gives.
Out:  ResourceExhaustedError at the node that passes the bound, which says what else there is.
Not:  sees no memory inside of kernels, nor that of programs that nodes were compiled to.
"""

from __future__ import annotations

from typing import Final

from penstock.advice import MoreMemory
from penstock.core.byte_counts import in_units
from penstock.core.values import Value
from penstock.errors import ResourceExhaustedError
from penstock.runtime.executor.node_outputs import (
    NodeOutputContext,
    NodeOutputsCallback,
    output_teller_of,
)
from penstock.runtime.live_tensors import LiveTensors, Owner
from penstock.state.contents import contents
from penstock.state.device_resources import DeviceResources

#: How many tensors an error names.
_NAMED: Final = 3


class MemoryBound:
    """Counts the tensors of one step, and ends it when they are too many."""

    def __init__(
        self,
        max_bytes: int,
        resources: DeviceResources,
        also: NodeOutputsCallback | None = None,
    ) -> None:
        """Begin with what there is before the step.

        Args:
            max_bytes: how many there may be.
            resources: what the session keeps.
            also: is told of all outputs as well.

        """
        self._max_bytes: Final = max_bytes
        self._also: Final = None if also is None else output_teller_of(also)
        self._tensors: Final = LiveTensors()
        add_kept(self._tensors, resources)

    def __call__(
        self,
        node: str,
        slot: int,
        value: Value,
        dead: bool,  # noqa: FBT001  (so it is called)
        context: NodeOutputContext,
    ) -> None:
        """Count an output of a node; see ``RunOptions.node_outputs``.

        Raises:
            ResourceExhaustedError: there are more bytes than may be.

        """
        self._tensors.add(owner_of(node, slot, context), value)
        if self._also is not None:
            self._also(node, slot, value, dead, context)
        total = self._tensors.total()
        if total > self._max_bytes:
            raise self._error(total)

    def _error(self, total: int) -> ResourceExhaustedError:
        largest = ", ".join(
            f"{one.owner.name}:{one.owner.slot} ({one.owner.op}) {in_units(one.size)}"
            for one in self._tensors.alive()[:_NAMED]
        )
        return ResourceExhaustedError(
            f"{in_units(total)} of tensors are alive, of {in_units(self._max_bytes)} that may be; "
            f"the largest are {largest}",
            next_step=MoreMemory(),
        )


def add_kept(tensors: LiveTensors, resources: DeviceResources) -> None:
    """Count what a session keeps."""
    for manager in resources.managers:
        for (_, kind, name), resource in manager.everything():
            for array in contents(resource).arrays:
                tensors.add(Owner(name, kind, device=manager.device), array)


def owner_of(node: str, slot: int, context: NodeOutputContext) -> Owner:
    """The owner of what a node made."""
    return Owner(node, context.op, slot, context.device, context.frame, context.iteration)
