"""A trace as tracks of slices, counters and arrows: what viewers of traces have in common.

In:   a ``Trace``.
Out:  a ``Timeline``.
Not:  knows no file format.

On one track, slices stand one after the other or one within the other, which is what viewers can
show.  So what waits, and iterations that go on at the same time, are dealt out to as many tracks as
they need.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from typing import Any, Final, NamedTuple

from penstock.core import dtypes
from penstock.dataclass import dataclass
from penstock.printable import printable
from penstock.tracing.trace import Activation, Counter, Output, Place, Sort, Span, Trace

#: What a slice is of, as viewers filter by it.
_CATEGORIES: Final = {
    Sort.NODE: "node", Sort.PYTHON: "region,python", Sort.ONNX: "region,onnx",
    Sort.PROGRAM: "region,program", Sort.INSIDE: "node,inside",
}  # fmt: skip


class Slice(NamedTuple):
    """Something that took time; or took none, if it ends when it starts."""

    name: str
    category: str
    start: int
    end: int
    args: Mapping[str, Any]
    #: The numbers of the arrows that begin here, and that end here.
    sends: tuple[int, ...] = ()
    receives: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Track:
    """Slices of which none overlaps another one in part."""

    name: str
    #: By their starts; of those that start together, the longest first.
    slices: list[Slice]
    #: The thread, if it is one; else 0.
    thread: int = 0


@dataclass(frozen=True, slots=True)
class Group:
    """The tracks of one device."""

    name: str
    tracks: list[Track] = field(default_factory=list)
    counters: list[Counter] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Timeline:
    """What a viewer shows."""

    groups: Sequence[Group]
    #: When the first thing happened, in nanoseconds since 1970.
    start: int


class _Named(NamedTuple):
    """A slice, and the track that it is on: its name, its thread, and whether it is dealt out."""

    name: str
    slice: Slice
    thread: int = 0
    is_dealt: bool = False


def timeline_of(trace: Trace) -> Timeline:
    """The tracks of a trace: one group for the steps, and one for each device."""
    by_group: defaultdict[str, list[_Named]] = defaultdict(list)
    if trace.steps:
        title = printable(trace.title)
        by_group["steps"] = [
            _Named("steps", Slice(f"step {n}", "step", start, end, {"graph": title}))
            for n, (start, end) in enumerate(trace.steps)
        ]
    devices = trace.devices
    for device in devices:
        by_group[device] = []
    for device, named in _named(trace):
        by_group[device].append(named)
    groups = [Group(printable(name), _tracks(found)) for name, found in by_group.items()]
    for group, name in zip(groups, by_group, strict=True):
        group.counters.extend(c for c in trace.counters if c.device == name)
    return Timeline(groups, trace.start)


def _named(trace: Trace) -> Iterator[tuple[str, _Named]]:
    sends, receives = defaultdict[int, list[int]](list), defaultdict[int, list[int]](list)
    for number, flow in enumerate(trace.flows, 1):
        sends[flow.source].append(number)
        receives[flow.target].append(number)
    for number, activation in enumerate(trace.activations):
        arrows = tuple(sends[number]), tuple(receives[number])
        yield activation.place.device, _activation(trace, activation, *arrows)
    for dead in trace.dead:
        args = _where(dead.place) | {"op": printable(dead.op)}
        made = Slice(printable(dead.name), "dead", dead.at, dead.at, args)
        yield dead.place.device, _Named("dead nodes", made)
    for span in trace.spans:
        yield span.place.device, _span(span)
    for sample in trace.samples:
        args = _where(sample.place) | {"op": printable(sample.op)}
        made = Slice(printable(sample.name), "sample", sample.at, sample.at, args)
        yield sample.place.device, _Named(f"at node, {_thread(trace, sample.thread)}", made)


def _activation(
    trace: Trace, activation: Activation, sends: tuple[int, ...], receives: tuple[int, ...]
) -> _Named:
    category = _CATEGORIES[activation.sort]
    if activation.is_async:
        category += ",wait"
    made = Slice(
        printable(activation.name), category, activation.op_start,
        max(activation.op_end, activation.op_start), _args(activation), sends, receives,
    )  # fmt: skip
    if activation.is_async:
        return _Named("waits", made, is_dealt=True)
    return _Named(_thread(trace, activation.thread), made, activation.thread)


def _thread(trace: Trace, thread: int) -> str:
    return printable(trace.threads.get(thread, "")) or f"thread {thread}"


def _args(activation: Activation) -> dict[str, Any]:
    args: dict[str, Any] = {"op": printable(activation.op), **_where(activation.place)}
    waited = activation.start - activation.scheduled
    args |= {"ready for (ns)": max(waited, 0), "outputs": list(map(_shown, activation.outputs))}
    if activation.inputs:
        args["inputs"] = list(map(printable, activation.inputs))
    if activation.waits_for:
        args["waits for"] = printable(activation.waits_for)
    if activation.key:
        args["key"] = printable(activation.key)
    if activation.is_dead:
        args["dead"] = True
    if activation.error:
        args["error"] = activation.error
    return args


def _where(place: Place) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if place.frame:
        found |= {"frame": printable(place.frame), "iteration": place.iteration}
    if place.function:
        found["function"] = printable(place.function)
    return found


def _shown(output: Output) -> str:
    name = dtypes.of_number(output.dtype).name
    return f"{output.slot}: {name}[{','.join(map(str, output.shape))}], {output.size} bytes"


def _span(span: Span) -> _Named:
    frame = printable(span.place.frame)
    name = f"{frame}[{span.place.iteration}]" if span.is_iteration else frame
    category = "iteration" if span.is_iteration else "frame"
    made = Slice(name, category, span.start, span.end, _where(span.place))
    what = "iterations" if span.is_iteration else "loops"
    return _Named(what, made, is_dealt=True)


def _tracks(found: Sequence[_Named]) -> list[Track]:
    """The tracks of a group: threads first, then the others, each by its name."""
    by_name: defaultdict[tuple[bool, str, int], list[_Named]] = defaultdict(list)
    for named in found:
        by_name[not named.thread, named.name, named.thread].append(named)
    tracks: list[Track] = []
    for (_, name, thread), members in sorted(by_name.items()):
        slices = sorted((n.slice for n in members), key=lambda s: (s.start, -s.end))
        is_dealt = members[0].is_dealt
        rows = _dealt(slices) if is_dealt else [list(_nested(slices))]
        for number, row in enumerate(rows):
            title = f"{name} {number + 1}" if len(rows) > 1 else name
            tracks.append(Track(title, row, thread))
    return tracks


def _dealt(slices: Iterable[Slice]) -> list[list[Slice]]:
    """Rows in each of which one thing comes after the other."""
    rows: list[list[Slice]] = []
    for one in slices:
        row = next((row for row in rows if row[-1].end <= one.start), None)
        if row is None:
            rows.append([one])
        else:
            row.append(one)
    return rows


def _nested(slices: Iterable[Slice]) -> Iterator[Slice]:
    """The same, each ending where the one around it ends, if it would go on."""
    around: list[int] = []
    for one in slices:
        while around and around[-1] <= one.start and around[-1] < one.end:
            around.pop()
        end = min(one.end, around[-1]) if around else one.end
        yield one._replace(end=max(end, one.start))
        around.append(end)
