"""StepStats messages as a trace: what other tasks, or TensorFlow, recorded.

In:   a StepStats message, of however many tasks.
Out:  a ``Trace``.
Not:  finds no frames, dead nodes and waits: such messages have none.

The times of each task are its own clock's.  What a task receives was sent before: a task whose
clock says otherwise is moved until that holds, so that all are on one axis.
"""

from __future__ import annotations

import itertools
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from penstock.tracing.counters import accumulated
from penstock.tracing.trace import Activation, Counter, Flow, Output, Place, Sort, Trace

#: A label: name, op and inputs.
_LABEL: Final = re.compile(r"(.*) = (.*)\((.*)\)", re.DOTALL)
#: What the splitter, and TensorFlow's, put behind the name of a node that is received.
_RECEIVED: Final = re.compile(r"(.+)/_\d+")
#: What a value is called that goes along with a task's call.
_GIVEN: Final = re.compile(r"(.+/_\d+)/_Arg")
_FED: Final = frozenset({"_Arg", "_DeviceArg"})
#: Between two tasks, this often at most: clocks that contradict each other cannot be mended.
_ROUNDS: Final = 3


def trace_of_step_stats(stats: Any, title: str = "") -> Trace:
    """What the message says, with arrows from task to task and from device to device."""
    threads, activations = dict[int, str](), list[Activation]()
    counters: list[Counter] = []
    for device in stats.dev_stats:
        threads |= {int(thread): str(name) for thread, name in device.thread_names.items()}
        activations += (_activation(device.device, node) for node in device.node_stats)
        changes = [
            (int(record.alloc_micros) * 1000, int(record.alloc_bytes))
            for node in device.node_stats
            for memory in node.memory
            for record in memory.allocation_records
        ]
        if changes:
            counters.append(Counter(device.device, "live bytes", "bytes", accumulated(changes)))
    offsets = _offsets(activations)
    moved = [_moved(a, offsets.get(task_of(a.place.device), 0)) for a in activations]
    moved.sort(key=lambda a: a.start)
    step = (min(a.scheduled for a in moved), max(a.end for a in moved)) if moved else None
    return Trace(
        title=title,
        steps=[step] if step is not None else [],
        activations=moved,
        flows=list(_flows(moved)),
        counters=[
            replace(c, points=tuple((at + _of(offsets, c), value) for at, value in c.points))
            for c in counters
        ],
        threads=threads,
    )


def task_of(device: str) -> str:
    """The task that a device belongs to."""
    return device.partition("/device:")[0]


def _of(offsets: Mapping[str, int], counter: Counter) -> int:
    return offsets.get(task_of(counter.device), 0)


def _activation(device: str, node: Any) -> Activation:
    label = _LABEL.fullmatch(node.timeline_label)
    op, inputs = (label[2], tuple(filter(None, label[3].split(", ")))) if label else ("", ())
    start = node.all_start_nanos or node.all_start_micros * 1000
    begin = node.op_start_rel_nanos or node.op_start_rel_micros * 1000
    end = node.op_end_rel_nanos or node.op_end_rel_micros * 1000
    told = node.all_end_rel_nanos or node.all_end_rel_micros * 1000
    outputs = tuple(_output(output) for output in node.output)
    return Activation(
        Place(device), node.node_name, op or node.node_name, inputs, Sort.NODE, node.thread_id,
        node.scheduled_nanos or node.scheduled_micros * 1000 or start, start, start + begin,
        start + max(end, begin), start + max(told, end, begin), outputs,
        is_transfer=node.node_name == "RecvTensor",
    )  # fmt: skip


def _output(output: Any) -> Output:
    described = output.tensor_description
    shape = tuple(int(dim.size) for dim in described.shape.dim)
    size = int(described.allocation_description.requested_bytes)
    return Output(output.slot, int(described.dtype), shape, size)


def _moved(activation: Activation, by: int) -> Activation:
    if not by:
        return activation
    return replace(
        activation,
        scheduled=activation.scheduled + by, start=activation.start + by,
        op_start=activation.op_start + by, op_end=activation.op_end + by, end=activation.end + by,
    )  # fmt: skip


def _flows(activations: Sequence[Activation]) -> Iterator[Flow]:
    """From who computed a value to who read it on another device.

    What ran as often there as here is matched one by one, as in the iterations of a loop.
    """
    made: defaultdict[str, dict[str, list[int]]] = defaultdict(dict)
    turns: list[int] = []
    for number, activation in enumerate(activations):
        same = made[activation.name].setdefault(activation.place.device, [])
        turns.append(len(same))
        same.append(number)
    for number, activation in enumerate(activations):
        device = activation.place.device
        given = _GIVEN.fullmatch(activation.name)
        for name in [given[1]] if given is not None else activation.inputs:
            node = name.lstrip("^").partition(":")[0]
            received = _RECEIVED.fullmatch(node)
            if received is None or device in made.get(node, ()):
                continue
            elsewhere = (n for d, n in made.get(received[1], {}).items() if d != device)
            for sources in itertools.islice(elsewhere, 1):
                source = sources[min(turns[number], len(sources) - 1)]
                # What is fed goes out with a step's calls, whenever its own node runs.
                if activations[source].op not in _FED:
                    yield Flow(source, number, name)


def _offsets(activations: Sequence[Activation]) -> dict[str, int]:
    """By how many nanoseconds each task's times must be moved."""
    offsets: dict[str, int] = {}
    flows = list(_flows(activations))
    for _ in range(_ROUNDS):
        is_changed = False
        for flow in flows:
            source, target = activations[flow.source], activations[flow.target]
            ends = task_of(source.place.device), task_of(target.place.device)
            if ends[0] == ends[1]:
                continue
            sent = source.op_end + offsets.get(ends[0], 0)
            late = sent - (target.op_start + offsets.get(ends[1], 0))
            if late > 0:
                offsets[ends[1]] = offsets.get(ends[1], 0) + late
                is_changed = True
        if not is_changed:
            break
    return offsets
