"""Record what ran when, as TensorFlow's step statistics.

In:   activations, as the executors report them.
Out:  a StepStats message, and the same as records.
Not:  times nothing itself; Send and Recv give no record, nor do dead nodes.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from threading import get_ident
from typing import NamedTuple

from penstock.core.shapes import TensorShape
from penstock.core.values import DEAD, Ref, Value, dtype_of, shape_of, size_in_bytes
from penstock.defs import schema
from penstock.defs.schema import Message
from penstock.defs.tensors import shape_to_proto
from penstock.runtime.executor.graph_view import NodeItem


class Output(NamedTuple):
    """A value that came out of a node."""

    slot: int
    #: The number of its element type in TensorFlow's messages.
    dtype: int
    shape: tuple[int, ...]
    #: Bytes.
    size: int


@dataclass(frozen=True, slots=True)
class Activation:
    """One activation; times are seconds of ``perf_counter``."""

    item: NodeItem
    scheduled: float
    start: float
    end: float
    thread: int
    #: The live ones.
    outputs: tuple[Output, ...]


class DeviceStats:
    """Records of one step on one device; an executor's observer."""

    def __init__(self) -> None:
        #: Records in order of completion; ``append`` is atomic, so threads need no lock.
        self.records: list[Activation] = []

    def computed(
        self, item: NodeItem, scheduled: float, start: float, end: float, outputs: Sequence[Value]
    ) -> None:
        """Note one activation."""
        if item.is_transfer:
            return
        described = tuple(
            Output(slot, dtype_of(v).number, shape_of(v), size_in_bytes(v))
            for slot, v in enumerate(map(_behind_reference, outputs))
            if v is not DEAD and v is not None
        )
        self.records.append(Activation(item, scheduled, start, end, get_ident(), described))


def _behind_reference(value: Value) -> Value:
    return value.value if isinstance(value, Ref) else value


class FunctionStats:
    """Records of the functions that one step calls, by device."""

    def __init__(self) -> None:
        #: Grows; ``setdefault`` is atomic, so threads need no lock.
        self.devices: dict[str, DeviceStats] = {}

    def on(self, device: str) -> DeviceStats:
        """What watches on a device."""
        return self.devices.setdefault(device, DeviceStats())


class StatsCollector:
    """Records of one step on all its devices."""

    def __init__(self, devices: Sequence[str]) -> None:
        self.devices = {device: DeviceStats() for device in devices}
        #: Nodes of the functions that the step calls; names of theirs may be those of its own.
        self.functions = FunctionStats()
        #: What other tasks recorded, as StepStats messages.  Grows; ``append`` is atomic.
        self.remote: list[Message] = []
        # perf_counter has no defined zero; messages want microseconds since 1970.
        self._epoch = time.time() - time.perf_counter()

    def step_stats(self) -> Message:
        """Everything as a StepStats message."""
        proto = schema.StepStats()
        called = self.functions.devices
        for device in dict.fromkeys([*self.devices, *called]):
            device_proto = proto.dev_stats.add(device=device)
            found = [by.get(device) for by in (self.devices, called)]
            records = [record for stats in found if stats for record in stats.records]
            for record in sorted(records, key=lambda r: r.start):
                self._add_node(device_proto, record)
        for recorded in self.remote:
            proto.MergeFrom(recorded)
        return proto

    def _add_node(self, device_proto: Message, record: Activation) -> None:
        start = record.start + self._epoch
        node = device_proto.node_stats.add(
            node_name=record.item.name,
            all_start_micros=int(start * 1e6),
            all_start_nanos=int(start * 1e9),
            scheduled_micros=int((record.scheduled + self._epoch) * 1e6),
            scheduled_nanos=int((record.scheduled + self._epoch) * 1e9),
            op_end_rel_micros=max(1, int((record.end - record.start) * 1e6)),
            op_end_rel_nanos=int((record.end - record.start) * 1e9),
            all_end_rel_micros=max(1, int((record.end - record.start) * 1e6)),
            all_end_rel_nanos=int((record.end - record.start) * 1e9),
            timeline_label=_label(record.item),
            thread_id=record.thread & 0xFFFFFFFF,
        )
        for output in record.outputs:
            description = node.output.add(slot=output.slot).tensor_description
            description.dtype = output.dtype
            shape_to_proto(TensorShape(output.shape), description.shape)
            description.allocation_description.requested_bytes = output.size
            description.allocation_description.allocator_name = "cpu"

    def records(self) -> dict[str, Sequence[Activation]]:
        """What the step's own nodes did, by device, in order of completion."""
        return {device: stats.records for device, stats in self.devices.items()}


def _label(item: NodeItem) -> str:
    """``name = Op(inputs)``, as timelines read it."""
    inputs = [
        f"^{source.name}" if slot < 0 else f"{source.name}:{slot}" if slot else source.name
        for source, slot in item.in_edges
    ]
    return f"{item.name} = {item.op}({', '.join(inputs)})"
