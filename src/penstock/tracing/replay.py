"""From events to facts: what ran when, and when it could have run.

In:   a ``Recording``.
Out:  a ``Trace``.
Not:  knows nothing of values but what was noted of them.

Ready nodes stand in a queue, first in, first out.  So the number of ready nodes after each event
tells how many it added, and the time at which a node was taken up tells which of these it was: when
it was made ready need not be noted.  (Where a seed shuffles the queue, each node gets the time of
the one that waited longest.)
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, Final, NamedTuple

from penstock.core.collector import collector_paused
from penstock.tracing.buffers import BufferFinder
from penstock.tracing.counters import accumulated, changes
from penstock.tracing.described import Seen, each, read
from penstock.tracing.recorder import Event, Lane, Recording
from penstock.tracing.spans import flows_of, spans_of
from penstock.tracing.trace import (
    Activation,
    Counter,
    DeadNode,
    Output,
    Place,
    Sample,
    Sort,
    Trace,
)

#: Ops of regions, as nodes of their own.
_SORTS: Final = {
    "_Region": Sort.PYTHON, "_OnnxRegion": Sort.ONNX, "_NativeRegion": Sort.PROGRAM,
}  # fmt: skip


#: What is said of an activation for which its step did not wait.
UNFINISHED: Final = "UNFINISHED"


class Run(NamedTuple):
    """One activation of an item, with what only the events of one step have."""

    item: Any
    frame: Any
    number: int
    activation: Activation
    #: What was noted of its outputs, by slot.
    seen: tuple[Seen | None, ...]


def ran(lane: Lane) -> Iterator[tuple[str, int, Sequence[Any]]]:
    """Name, nanoseconds and noted outputs of what a lane ran, transfers left out."""
    left: dict[int, tuple[Any, int]] = {}
    for event in lane:
        kind = event[0]
        if kind == Event.RAN:
            if not event[1].is_transfer:
                yield event[1].name, event[6] - event[4], each(event[8])
        elif kind == Event.LEFT:
            left[event[8]] = event[1], event[4]
        elif kind == Event.DONE:
            item, start = left.pop(event[1])
            if not item.is_transfer:
                yield item.name, event[2] - start, each(event[4])


@collector_paused
def trace_of(recording: Recording) -> Trace:
    """What was recorded, as facts."""
    last = max((end for _, end in recording.steps), default=0)
    lanes = [_Replay(lane, recording.epoch, last).done() for lane in list(recording.lanes)]
    buffers, activations = BufferFinder(), list[Activation]()
    activations += buffers.placed([lane.runs for lane in lanes])
    for lane in lanes:
        activations += lane.others
    order = sorted(range(len(activations)), key=lambda n: activations[n].start)
    ordered = [activations[number] for number in order]
    counters = [counter for lane in lanes for counter in lane.counters]
    return Trace(
        title=recording.title,
        steps=[(s + recording.epoch, e + recording.epoch) for s, e in recording.steps],
        activations=ordered,
        dead=[dead for lane in lanes for dead in lane.dead],
        spans=[span for lane in lanes for span in spans_of(lane.runs)],
        flows=flows_of(ordered),
        counters=[*_summed(counters), *buffers.live_bytes()],
        samples=sorted((s for lane in lanes for s in lane.samples), key=lambda s: s.at),
        buffers=buffers.with_makers({old: new for new, old in enumerate(order)}),
        threads=recording.threads,
    )


def _summed(counters: Sequence[Counter]) -> Iterator[Counter]:
    """One counter for each device and name: lanes that overlap add up."""
    by_name: defaultdict[tuple[str, str], list[tuple[int, int]]] = defaultdict(list)
    for counter in counters:
        by_name[counter.device, counter.name] += changes(counter.points)
    for (device, name), found in by_name.items():
        yield Counter(device, name, "nodes", accumulated(found))


class _Replay:
    """One lane, event by event."""

    def __init__(self, lane: Lane, epoch: int, end: int) -> None:
        """Begin.

        Args:
            lane: what is to be replayed.
            epoch: what is to be added to its times.
            end: when the last step was over, by its clock.

        """
        self._lane = lane
        self._end = end
        self._epoch = epoch
        self._thread = 0
        #: When the nodes that are ready now became so.
        self._ready: deque[int] = deque()
        #: What was left by its driver: item, frame, iteration, times, and what it waits for.
        self._left: dict[int, tuple[Any, ...]] = {}
        self._posted: dict[int, tuple[int, int]] = {}
        self._elsewhere: dict[int, tuple[int, int, int]] = {}
        self._points: list[tuple[int, int]] = []
        self._names: set[str] = set()
        self.runs: list[Run] = []
        #: Regions, and what is inside of them.
        self.others: list[Activation] = []
        self.dead: list[DeadNode] = []
        self.samples: list[Sample] = []
        self.counters: list[Counter] = []

    def done(self) -> _Replay:
        """Look at all events."""
        handlers: dict[int, Callable[..., None]] = {
            Event.THREAD: self._driven, Event.RAN: self._ran, Event.DEAD: self._dead,
            Event.LEFT: self._went, Event.POSTED: self._came, Event.ELSEWHERE: self._computed,
            Event.DONE: self._finished, Event.FAILED: self._failed, Event.DROPPED: self._dropped,
            Event.REGION: self._region, Event.OPAQUE: self._opaque, Event.SAMPLE: self._sample,
        }  # fmt: skip
        for event in self._lane:
            handlers[event[0]](*event[1:])
        for mark, (_, _, _, times, _, _) in list(self._left.items()):
            end = max(self._end, times[2])  # the step ended without it
            self._add_left(mark, end, end, None, UNFINISHED)
        if self._points:
            points = tuple([(at + self._epoch, ready) for at, ready in self._points])
            self.counters.append(Counter(self._lane.device, "ready nodes", "nodes", points))
        # A node of the executor's is one thing, whether its kernel says what it is at or not.
        self.others = [a for a in self.others if a.sort is Sort.INSIDE or a.name not in self._names]
        return self

    # -- what each event means --------------------------------------------------------------

    def _driven(self, thread: int, at: int, ready: int) -> None:
        self._thread = thread
        self._ready.extend([self._lane.opened] * (ready - len(self._ready)))
        self._points.append((at, ready))

    def _ran(
        self, item: Any, frame: Any, number: int, start: int, begin: int, end: int, told: int,
        outputs: tuple[Any, ...] | None, ready: int,
    ) -> None:  # fmt: skip
        scheduled = self._taken(start)
        times = scheduled, start, begin, end, told
        self._add(item, frame, number, times, self._thread, outputs)
        self._grown(told, ready)

    def _dead(self, item: Any, frame: Any, number: int, at: int, ready: int) -> None:
        self._taken(at)
        place = self._place(item, frame, number)
        self.dead.append(DeadNode(place, item.name, item.op, self._thread, at + self._epoch))
        self._grown(at, ready)

    def _went(
        self, item: Any, frame: Any, number: int, start: int, begin: int, end: int, ready: int,
        mark: int, waits_for: str | None,
    ) -> None:  # fmt: skip
        times = self._taken(start), start, begin, end
        self._left[mark] = item, frame, number, times, self._thread, waits_for or ""
        self._grown(end, ready)

    def _came(self, mark: int, at: int, thread: int) -> None:
        self._posted[mark] = at, thread

    def _computed(self, mark: int, begin: int, end: int, thread: int) -> None:
        self._elsewhere[mark] = begin, end, thread

    def _finished(
        self, mark: int, at: int, told: int, outputs: tuple[Any, ...] | None, ready: int
    ) -> None:
        self._add_left(mark, at, told, outputs)
        self._grown(told, ready)

    def _failed(
        self, item: Any, frame: Any, number: int, start: int, begin: int, end: int, ready: int,
        mark: int, code: str,
    ) -> None:  # fmt: skip
        if mark:
            self._add_left(mark, end, end, None, code)
        else:
            times = self._taken(start), start, begin, end, end
            self._add(item, frame, number, times, self._thread, None, error=code)
        self._grown(end, ready)

    def _dropped(self, at: int) -> None:
        self._ready.clear()
        self._points.append((at, 0))

    def _region(
        self, region: Any, sort: str, start: int, end: int, thread: int, outputs: tuple[Any, ...]
    ) -> None:
        self._add_other(region.title, "", Sort(sort), start, end, thread, outputs)

    def _opaque(self, title: str, op: str, sort: str, start: int, end: int, thread: int) -> None:
        kind = Sort.INSIDE if sort == "node" else Sort(sort)
        self._add_other(title, op, kind, start, end, thread, ())

    def _sample(self, node: str, op: str, frame: str, iteration: int, at: int, thread: int) -> None:
        place = Place(self._lane.device, frame, iteration, self._lane.function)
        self.samples.append(Sample(place, node, op, thread, at + self._epoch))

    # -- what they have in common -------------------------------------------------------------

    def _taken(self, start: int) -> int:
        """When the node became ready that is taken up now."""
        return min(self._ready.popleft(), start) if self._ready else start

    def _grown(self, at: int, ready: int) -> None:
        """So many nodes are ready now."""
        new = ready - len(self._ready)
        if new > 0:
            self._ready.extend([at] * new)
        self._points.append((at, ready))

    def _add_left(
        self, mark: int, at: int, told: int, outputs: tuple[Any, ...] | None, error: str = ""
    ) -> None:
        item, frame, number, times, thread, waits_for = self._left.pop(mark)
        scheduled, start, begin, _ = times
        elsewhere, posted = self._elsewhere.pop(mark, None), self._posted.pop(mark, None)
        if elsewhere is not None:
            # What the driver did was to hand it over.
            begin, end, thread = elsewhere
            times = scheduled, begin, begin, end, end
        else:
            end = posted[0] if posted is not None else at
            times = scheduled, start, begin, end, max(told, end)
        self._add(
            item, frame, number, times, thread, outputs, error=error,
            is_async=elsewhere is None, waits_for=waits_for,
        )  # fmt: skip

    def _add(
        self, item: Any, frame: Any, number: int, times: Sequence[int], thread: int,
        outputs: tuple[Any, ...] | None, *, error: str = "", is_async: bool = False,
        waits_for: str = "",
    ) -> None:  # fmt: skip
        scheduled, start, begin, end, told = (at + self._epoch for at in times)
        key = f"{item.key_prefix}{frame.id}:{number}" if item.key_prefix else ""
        activation = Activation(
            self._place(item, frame, number), item.name, item.op, inputs_of(item),
            _SORTS.get(item.op, Sort.NODE), thread,
            scheduled, start, begin, end, told, (), is_async, waits_for, key,
            outputs is None and not error, error, item.is_transfer,
        )  # fmt: skip
        self._names.add(item.name)
        seen = [None if one is None else read(one) for one in each(outputs)]
        if item.is_merge and not any(slot for slot, _, _ in item.data_edges):
            # Which input it was is asked for by nobody; TensorFlow notes it only if it is.
            del seen[1:]
        self.runs.append(Run(item, frame, number, activation, tuple(seen)))

    def _add_other(
        self, title: str, op: str, sort: Sort, start: int, end: int, thread: int,
        outputs: tuple[Any, ...],
    ) -> None:  # fmt: skip
        begin, stop = start + self._epoch, end + self._epoch
        place = Place(self._lane.device, function=self._lane.function)
        made = Activation(place, title, op, (), sort, thread, begin, begin, begin, stop, stop)
        found = [None if one is None else read(one) for one in each(outputs)]
        self.others.append(replace(made, outputs=plain_outputs(found)))

    def _place(self, item: Any, frame: Any, number: int) -> Place:
        return Place(self._lane.device, frame.label, number if frame.label else 0, item.function)


def plain_outputs(seen: Sequence[Seen | None]) -> tuple[Any, ...]:
    """Outputs whose memory nobody follows."""
    return tuple(
        Output(slot, one.dtype, one.shape, one.size)
        for slot, one in enumerate(seen)
        if one is not None
    )


def inputs_of(item: Any) -> tuple[str, ...]:
    """What a node reads, as labels have it."""
    return tuple(
        f"^{source.name}" if slot < 0 else f"{source.name}:{slot}" if slot else source.name
        for source, slot in item.in_edges
    )
