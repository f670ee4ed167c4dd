"""A trace as Perfetto's own format: packets of track events.

In:   a ``Timeline``.
Out:  the bytes of a ``.pftrace`` file.
Not:  writes no file.

Each group is a process; tracks of threads are threads of it, all others plain tracks.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any, Final

from penstock.defs.perfetto_schema import DebugAnnotation, Trace, TracePacket
from penstock.tracing.trace import Counter
from penstock.tracing.tracks import Group, Slice, Timeline, Track

#: All packets come from one writer, whose state begins with the first of them.
_WRITER: Final = 1
_STATE_BEGINS: Final = 1
_BEGIN, _END, _INSTANT, _COUNTER = 1, 2, 3, 4
_UNITS: Final = {"nodes": 2, "bytes": 3}
_MAX_INT32: Final = 0x7FFFFFFF


def perfetto_trace_of(timeline: Timeline) -> bytes:
    """The whole timeline; packets of a track stand in the order of time."""
    proto, uuids = Trace(), itertools.count(1)
    for number, group in enumerate(timeline.groups, 1):
        proto.packet.extend(_group(group, number, uuids))
    if proto.packet:
        proto.packet[0].sequence_flags = _STATE_BEGINS
    written: bytes = proto.SerializeToString()
    return written


def _packet() -> Any:
    return TracePacket(trusted_packet_sequence_id=_WRITER)


def _group(group: Group, process: int, uuids: Iterator[int]) -> Iterator[Any]:
    own = next(uuids)
    packet = _packet()
    descriptor = packet.track_descriptor
    descriptor.uuid, descriptor.process.pid = own, process
    descriptor.process.process_name = group.name
    yield packet
    for track in group.tracks:
        uuid = next(uuids)
        yield _track(track, uuid, own, process)
        for at, event in _events(track.slices, uuid):
            packet = _packet()
            packet.timestamp = at
            packet.track_event.CopyFrom(event)
            yield packet
    for counter in group.counters:
        yield from _counter(counter, next(uuids), own)


def _track(track: Track, uuid: int, parent: int, process: int) -> Any:
    packet = _packet()
    descriptor = packet.track_descriptor
    descriptor.uuid, descriptor.parent_uuid = uuid, parent
    if track.thread:
        thread = descriptor.thread
        # Numbers of threads may be addresses; processes are numbered from 1 in the same way.
        thread.pid, thread.tid = process, (track.thread ^ track.thread >> 31) & _MAX_INT32
        thread.thread_name = track.name
    else:
        descriptor.name = track.name
    return packet


def _events(slices: list[Slice], uuid: int) -> Iterator[tuple[int, Any]]:
    """Beginnings and ends in the order of time; what is within ends before what is around it."""
    open_ends: list[int] = []
    for one in sorted(_with_arrivals(slices), key=lambda s: (s.start, -s.end)):
        while open_ends and open_ends[-1] <= one.start:
            yield _end(open_ends.pop(), uuid)
        is_instant = one.end == one.start
        yield one.start, _event(one, uuid, _INSTANT if is_instant else _BEGIN)
        if not is_instant:
            open_ends.append(one.end)
    while open_ends:
        yield _end(open_ends.pop(), uuid)


def _with_arrivals(slices: list[Slice]) -> Iterator[Slice]:
    """The same, with a moment within each at which its arrows end.

    Who receives may begin before who sends, and an arrow must not end before it begins.
    """
    for one in slices:
        if one.receives and one.end > one.start:
            yield one._replace(receives=())
            yield Slice("received", "rendezvous", one.end - 1, one.end - 1, {}, (), one.receives)
        else:
            yield one


def _end(at: int, uuid: int) -> tuple[int, Any]:
    event = TracePacket().track_event
    event.type, event.track_uuid = _END, uuid
    return at, event


def _event(one: Slice, uuid: int, kind: int) -> Any:
    event = TracePacket().track_event
    event.type, event.track_uuid, event.name = kind, uuid, one.name
    event.categories.extend(one.category.split(","))
    event.flow_ids.extend(one.sends)
    event.terminating_flow_ids.extend(one.receives)
    event.debug_annotations.extend(_annotation(value, name) for name, value in one.args.items())
    return event


def _annotation(value: Any, name: str = "") -> Any:
    made = DebugAnnotation()
    if name:
        made.name = name
    if isinstance(value, bool):
        made.bool_value = value
    elif isinstance(value, int):
        made.int_value = value
    elif isinstance(value, list):
        made.array_values.extend(map(_annotation, value))
    else:
        made.string_value = str(value)
    return made


def _counter(counter: Counter, uuid: int, parent: int) -> Iterator[Any]:
    packet = _packet()
    descriptor = packet.track_descriptor
    descriptor.uuid, descriptor.parent_uuid, descriptor.name = uuid, parent, counter.name
    descriptor.counter.unit = _UNITS[counter.unit]
    yield packet
    for at, value in counter.points:
        packet = _packet()
        packet.timestamp = at
        event = packet.track_event
        event.type, event.track_uuid, event.counter_value = _COUNTER, uuid, value
        yield packet
