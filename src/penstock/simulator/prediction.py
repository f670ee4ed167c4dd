"""What a simulated step came to.

In:   a schedule, the activations that it is about, the names of tasks.
Out:  seconds; how busy each task is; bytes on each link; a StepStats message; a Chrome trace.
Not:  simulates nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, Final, NamedTuple

from penstock.dataclass import dataclass
from penstock.defs import schema
from penstock.defs.schema import Message
from penstock.printable import printable
from penstock.simulator.activations import Activations
from penstock.simulator.engine import Schedule, Transfer

#: Where the Chrome trace shows transfers.
_NETWORK: Final = "network"


class Span(NamedTuple):
    """An activation that took time."""

    task: str
    device: str
    name: str
    op: str
    #: Seconds since the step began.
    start: float
    end: float


@dataclass(frozen=True)
class Prediction:
    """What is predicted of one step."""

    work: Activations
    schedule: Schedule
    #: The names of tasks, and the cores of each.
    tasks: Sequence[str]
    cores: Sequence[int]
    #: For each replica, the number of the task that each device is.
    tasks_of: Sequence[Sequence[int]]
    #: Seconds for calls and answers, beside what the schedule has.
    overhead: float = 0.0

    @property
    def seconds(self) -> float:
        """How long the step takes."""
        return self.schedule.seconds + self.overhead

    @cached_property
    def utilisation(self) -> Mapping[str, float]:
        """The part of the step's time that each task's cores are busy, 0 to 1."""
        whole = self.seconds or 1.0
        rows = zip(self.tasks, self.schedule.busy, self.cores, strict=True)
        return {task: busy / (cores * whole) for task, busy, cores in rows}

    @cached_property
    def traffic(self) -> Mapping[tuple[str, str], int]:
        """The bytes that each task sends to another one, by both."""
        bytes_of: Counter[tuple[str, str]] = Counter()
        for transfer in self.schedule.transfers:
            ends = self._task(transfer.sender), self._task(transfer.receiver)
            bytes_of[self.tasks[ends[0]], self.tasks[ends[1]]] += transfer.size
        return bytes_of

    @property
    def total_bytes(self) -> int:
        """All that tasks send to each other."""
        return sum(transfer.size for transfer in self.schedule.transfers)

    def spans(self, replicas: int = 1) -> Iterator[Span]:
        """What took time in the first replicas, in no order."""
        work, schedule = self.work, self.schedule
        for number in range(min(replicas, len(self.tasks_of)) * len(work)):
            one = number % len(work)
            start, end = schedule.starts[number], schedule.ends[number]
            if end > start:
                task = self.tasks[self._task(number)]
                device = f"{task}/device:{work.devices[work.place[one]].rpartition('device:')[2]}"
                yield Span(task, device, work.names[one], work.ops[one], start, end)

    def step_stats(self, replicas: int = 1) -> Message:
        """The first replicas as a StepStats message, whose steps begin at 0."""
        proto = schema.StepStats()
        devices: dict[str, Any] = {}
        for span in sorted(self.spans(replicas), key=lambda span: span.start):
            if span.device not in devices:
                devices[span.device] = proto.dev_stats.add(device=span.device)
            nanos, taken = round(span.start * 1e9), round((span.end - span.start) * 1e9)
            devices[span.device].node_stats.add(
                node_name=span.name,
                all_start_micros=nanos // 1000,
                all_start_nanos=nanos,
                scheduled_micros=nanos // 1000,
                scheduled_nanos=nanos,
                op_end_rel_micros=max(1, taken // 1000),
                op_end_rel_nanos=taken,
                all_end_rel_micros=max(1, taken // 1000),
                all_end_rel_nanos=taken,
                timeline_label=f"{span.name} = {span.op}()",
            )
        return proto

    def chrome_trace(self, replicas: int = 1) -> dict[str, Any]:
        """The first replicas for chrome://tracing or Perfetto: a row for each core and link."""
        spans = sorted(self.spans(replicas), key=lambda span: (span.start, span.end))
        processes = {
            task: number for number, task in enumerate(dict.fromkeys(s.task for s in spans))
        }
        rows = _TraceLanes()
        events = [
            _event(span.name, span.op, processes[span.task], rows.free(span.task, span), span)
            for span in spans
        ]
        processes[_NETWORK] = len(processes)
        links: dict[str, int] = {}
        events += [
            self._transfer_event(transfer, processes[_NETWORK], links)
            for transfer in self.schedule.transfers
            if transfer.sender < replicas * len(self.work)
        ]
        names = [
            {"name": "process_name", "ph": "M", "pid": number, "args": {"name": name}}
            for name, number in processes.items()
        ]
        return {"displayTimeUnit": "ms", "traceEvents": [*names, *events]}

    def _transfer_event(self, found: Transfer, process: int, links: dict[str, int]) -> Any:
        ends = (self.tasks[self._task(end)] for end in (found.sender, found.receiver))
        link = " -> ".join(ends)
        name = self.work.names[found.receiver % len(self.work)]
        row = links.setdefault(link, len(links))
        span = Span(link, link, name, "RecvTensor", found.start, found.end)
        return {
            **_event(name, span.op, process, row, span),
            "args": {"bytes": found.size, "link": link},
        }

    def _task(self, number: int) -> int:
        replica, one = divmod(number, len(self.work))
        return self.tasks_of[replica][self.work.place[one]]


class _TraceLanes:
    """The rows of a trace: in each, one thing after the other."""

    def __init__(self) -> None:
        self._ends: dict[str, list[float]] = {}

    def free(self, task: str, span: Span) -> int:
        """The first row of a task in which nothing else goes on; spans come by their starts."""
        ends = self._ends.setdefault(task, [])
        for row, end in enumerate(ends):
            if end <= span.start:
                ends[row] = span.end
                return row
        ends.append(span.end)
        return len(ends) - 1


def _event(name: str, category: str, process: int, row: int, span: Span) -> dict[str, Any]:
    return {
        "name": printable(name), "cat": printable(category), "ph": "X", "pid": process, "tid": row,
        "ts": span.start * 1e6, "dur": (span.end - span.start) * 1e6,
    }  # fmt: skip
