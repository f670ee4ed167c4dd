"""A trace as TensorFlow's step statistics.

In:   a ``Trace``.
Out:  a StepStats message, filled as TensorFlow's executor fills it.
Not:  has no record of dead nodes, of what failed, and of Send and Recv: TensorFlow has none either.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any, Final

from penstock.core.collector import collector_paused
from penstock.core.shapes import TensorShape
from penstock.defs import schema
from penstock.defs.schema import Message
from penstock.defs.tensors import shape_to_proto
from penstock.printable import printable
from penstock.tracing.trace import Activation, Buffer, Output, Sort, Trace

#: What TensorFlow calls the allocator of a CPU device.
_ALLOCATOR: Final = "cpu"
#: Ops whose kernels keep their value from step to step.
_KEPT: Final = frozenset({"Const", "HostConst", "Variable", "VariableV2"})
_MASK32: Final = 0xFFFFFFFF


@collector_paused
def step_stats_of(trace: Trace) -> Message:
    """One record for each activation, by device, in the order of their starts."""
    proto, made = schema.StepStats(), _made(trace.buffers)
    by_device: defaultdict[str, list[tuple[int, Activation]]] = defaultdict(list)
    for number, activation in enumerate(trace.activations):
        if is_recorded(activation):
            by_device[activation.place.device].append((number, activation))
    for device, activations in by_device.items():
        device_proto = proto.dev_stats.add(device=device)
        for number, activation in activations:
            node = device_proto.node_stats.add()
            _fill(node, activation)
            _fill_memory(node, activation, trace.buffers, made[number])
        for thread in {activation.thread for _, activation in activations}:
            name = printable(trace.threads.get(thread, ""))
            device_proto.thread_names[thread & _MASK32] = name or f"thread {thread}"
    return proto


def is_recorded(activation: Activation) -> bool:
    """Whether TensorFlow would have a record of it."""
    left_out = activation.is_transfer or activation.is_dead or activation.error
    return not left_out and activation.sort is not Sort.INSIDE


def _made(buffers: Sequence[Buffer]) -> dict[int, list[int]]:
    """The numbers of the buffers that each activation made."""
    made: defaultdict[int, list[int]] = defaultdict(list)
    for number, buffer in enumerate(buffers):
        made[buffer.maker].append(number)
    return made


def _fill(node: Message, activation: Activation) -> None:
    start = activation.start
    begin, end, told = (
        at - start for at in (activation.op_start, activation.op_end, activation.end)
    )
    node.node_name = activation.name
    node.scheduled_nanos, node.scheduled_micros = activation.scheduled, activation.scheduled // 1000
    node.all_start_nanos, node.all_start_micros = start, start // 1000
    node.op_start_rel_nanos, node.op_start_rel_micros = begin, begin // 1000
    # Readers take what lasts no microsecond for something that never happened.
    node.op_end_rel_nanos, node.op_end_rel_micros = end, max(1, end // 1000)
    node.all_end_rel_nanos, node.all_end_rel_micros = told, max(1, end // 1000, told // 1000)
    # What a constant waits for is left out, as TensorFlow does.
    inputs = ", ".join(() if activation.op in _KEPT else activation.inputs)
    node.timeline_label = f"{activation.name} = {activation.op or 'Region'}({inputs})"
    node.thread_id = activation.thread & _MASK32
    for output in activation.outputs:
        _fill_output(node.output.add(slot=output.slot), output)


def _fill_output(node: Message, output: Output) -> None:
    description = node.tensor_description
    description.dtype = output.dtype
    shape_to_proto(TensorShape(output.shape), description.shape)
    allocation = description.allocation_description
    allocation.requested_bytes = output.size
    allocation.allocator_name = _ALLOCATOR


def _fill_memory(
    node: Message, activation: Activation, buffers: Sequence[Buffer], made: Sequence[int]
) -> None:
    """What the node allocated, and when that was given back; which memory its outputs have."""
    for output, proto in zip(activation.outputs, node.output, strict=True):
        if output.buffer >= 0:
            allocation: Any = proto.tensor_description.allocation_description
            is_own = buffers[output.buffer].maker >= 0
            # Numbers begin at 1: 0 is what nobody filled in.
            allocation.ptr = output.buffer + 1
            allocation.allocation_id = output.buffer + 1 if is_own else 0
            allocation.allocated_bytes = output.size if is_own else 0
            allocation.has_single_reference = output.buffer in made
    node.memory_stats.SetInParent()
    if activation.op in _KEPT:
        node.memory_stats.persistent_memory_size = sum(o.size for o in activation.outputs)
    found = [buffers[number] for number in made if buffers[number].size]
    if found:
        total = sum(buffer.size for buffer in found)
        memory = node.memory.add(
            allocator_name=_ALLOCATOR, total_bytes=total, peak_bytes=total, live_bytes=total
        )
        for buffer in found:
            memory.allocation_records.add(
                alloc_micros=buffer.start // 1000, alloc_bytes=buffer.size
            )
            memory.allocation_records.add(alloc_micros=buffer.end // 1000, alloc_bytes=-buffer.size)
