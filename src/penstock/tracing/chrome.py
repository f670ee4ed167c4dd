"""A trace as Chrome's JSON, which chrome://tracing and Perfetto show.

In:   a ``Timeline``.
Out:  a dictionary for ``json.dumps``.
Not:  writes no file.

Each group is a process, each track a thread of it; times are microseconds since the trace began.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from penstock.tracing.trace import Counter
from penstock.tracing.tracks import Group, Slice, Timeline


def chrome_trace_of(timeline: Timeline) -> dict[str, Any]:
    """The whole timeline."""
    events = [
        event
        for number, group in enumerate(timeline.groups, 1)
        for event in _group(group, number, timeline.start)
    ]
    return {
        "displayTimeUnit": "ns",
        "otherData": {"start_ns": str(timeline.start)},
        "traceEvents": events,
    }


def _group(group: Group, process: int, start: int) -> Iterator[dict[str, Any]]:
    yield _name("process", group.name, process, 0)
    yield {"name": "process_sort_index", "ph": "M", "pid": process, "tid": 0,
           "args": {"sort_index": process}}  # fmt: skip
    for row, track in enumerate(group.tracks, 1):
        yield _name("thread", track.name, process, row)
        yield {"name": "thread_sort_index", "ph": "M", "pid": process, "tid": row,
               "args": {"sort_index": row}}  # fmt: skip
        for one in track.slices:
            yield from _slice(one, process, row, start)
    for counter in group.counters:
        yield from _counter(counter, process, start)


def _name(what: str, name: str, process: int, row: int) -> dict[str, Any]:
    return {
        "name": f"{what}_name", "ph": "M", "pid": process, "tid": row, "args": {"name": name}
    }  # fmt: skip


def _slice(one: Slice, process: int, row: int, start: int) -> Iterator[dict[str, Any]]:
    at, taken = (one.start - start) / 1e3, (one.end - one.start) / 1e3
    place = {"pid": process, "tid": row}
    base = {"name": one.name, "cat": one.category, "ts": at, "args": dict(one.args), **place}
    if one.end > one.start:
        yield {**base, "ph": "X", "dur": taken}
    else:
        yield {**base, "ph": "i", "s": "t"}
    # An arrow belongs to the slice that is there at its time.
    for number in one.sends:
        yield {"name": "sent", "cat": "rendezvous", "ph": "s", "id": number, "ts": at, **place}
    for number in one.receives:
        yield {"name": "sent", "cat": "rendezvous", "ph": "f", "bp": "e", "id": number,
               "ts": at + max(taken - 1e-3, 0.0), **place}  # fmt: skip


def _counter(counter: Counter, process: int, start: int) -> Iterator[dict[str, Any]]:
    for at, value in counter.points:
        yield {
            "name": counter.name, "ph": "C", "pid": process, "ts": (at - start) / 1e3,
            "args": {counter.unit: value},
        }  # fmt: skip
