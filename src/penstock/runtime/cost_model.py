"""What each node of a request costs, over the steps that were measured.

In:   the count of steps, and what a watched step recorded.
Out:  which steps are to be watched; a CostGraphDef message of all nodes of the partitions.
Not:  measures nothing itself, and chooses no device: nobody here asks what a node costs.

A step is watched if it is the last of a round of ``every`` steps, the first round beginning
with step ``after``.  Of each node the dearest activation counts.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from threading import Lock
from typing import Any, Final

from penstock.core.shapes import TensorShape
from penstock.defs import schema
from penstock.defs.schema import Message
from penstock.defs.tensors import shape_to_proto
from penstock.graph.graph import Graph, Node
from penstock.graph.roles import Role
from penstock.graph.stages import Partition
from penstock.tracing.described import Seen, read
from penstock.tracing.recorder import Lane, Recording
from penstock.tracing.replay import ran

#: The bytes of a value that nobody saw.
_UNKNOWN: Final = -1
#: More elements of events than that are looked at, though nobody asks, so that memory is freed.
_MOST_UNREAD: Final = 1_000_000


class CostModel:
    """The costs of one request's nodes."""

    def __init__(self, *, every: int = 0, after: int = 0) -> None:
        """Say which steps are measured.

        Args:
            every: one of so many steps is; none if it is not positive.
            after: the number of the first step that counts.

        """
        #: One of so many steps is measured; none if this is not positive.
        self.every: Final = every
        self._after: Final = after
        #: Guards what follows.  Innermost.
        self._lock = Lock()
        self._steps = 0
        #: Microseconds of the dearest activation, by device and node.
        self._micros: dict[tuple[str, str], int] = {}
        #: The largest value at each output, by device, node and slot.
        self._outputs: dict[tuple[str, str, int], Seen] = {}
        #: What was recorded and not looked at yet.
        self._unread: list[Lane] = []

    def is_due(self) -> bool:
        """Count one step; whether it is to be watched."""
        if self.every <= 0:
            return False
        with self._lock:
            measured = self._steps - self._after
            self._steps += 1
        return measured >= 0 and (measured + 1) % self.every == 0

    def add(self, recording: Recording) -> None:
        """Take what one step recorded, node by node; it is looked at when somebody asks."""
        with self._lock:
            self._unread += recording.lanes
            if sum(map(len, self._unread)) > _MOST_UNREAD:
                self._read()

    def _read(self) -> None:
        """Look at what came.  Needs the lock."""
        for lane in self._unread:
            if not lane.function:
                for name, nanos, outputs in ran(lane):
                    self._add(lane.device, name, nanos, outputs)
        self._unread.clear()

    def _add(self, device: str, name: str, nanos: int, outputs: Sequence[Any]) -> None:
        known = self._micros.get((device, name), 0)
        self._micros[device, name] = max(known, nanos // 1000)
        for slot, output in enumerate(outputs):
            if output is not None:
                seen, key = read(output), (device, name, slot)
                if key not in self._outputs or self._outputs[key].size < seen.size:
                    self._outputs[key] = seen

    def to_proto(self, partitions: Iterable[Partition]) -> Message:
        """All nodes with what is known of them; each partition has a source and a sink."""
        proto = schema.CostGraphDef()
        with self._lock:
            self._read()
            for partition in partitions:
                self._add_partition(proto, partition.device, partition.graph)
        return proto

    def _add_partition(self, proto: Any, device: str, graph: Graph) -> None:
        source = len(proto.node)
        proto.node.add(name="_SOURCE", id=source)
        sink = proto.node.add(name="_SINK", id=source + 1, control_input=[source])
        ids = {node: number for number, node in enumerate(graph, source + 2)}
        for node, number in ids.items():
            entry = proto.node.add(
                name=node.name,
                device=device,
                id=number,
                compute_cost=self._micros.get((device, node.name), 0),
                is_final=node.role is Role.SEND,
            )
            for edge in node.inputs:
                if edge is not None:
                    entry.input_info.add(preceding_node=ids[edge.src], preceding_port=edge.src_slot)
            before = [ids[edge.src] for edge in node.control_inputs]
            entry.control_input.extend(before if node.inputs or before else [source])
            self._add_outputs(entry, device, node)
            if not node.out_edges:
                sink.control_input.append(number)

    def _add_outputs(self, entry: Any, device: str, node: Node) -> None:
        for slot in range(len(node.output_types)):
            output = self._outputs.get((device, node.name, slot))
            if output is None:
                info = entry.output_info.add(size=_UNKNOWN, alias_input_port=-1)
                info.shape.unknown_rank = True
            else:
                info = entry.output_info.add(
                    size=output.size, alias_input_port=-1, dtype=output.dtype
                )
                shape_to_proto(TensorShape(output.shape), info.shape)
