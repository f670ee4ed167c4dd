"""What a step did: what ran when, what took time and memory, and each iteration of its loops.

In:   a ``Trace``, and how names of nodes are shown.
Out:  ``StepFacts``.
Not:  runs and measures nothing.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Final

from penstock.core.collector import collector_paused
from penstock.core.dtypes import of_number
from penstock.reporting.critical_path import critical_path
from penstock.reporting.facts import Activity, Cost, Iteration, Lifetime, StepFacts
from penstock.tracing.trace import Activation, Place, Trace

#: How many activations and tensors a report shows one by one.
MAX_SHOWN: Final = 100_000

_Shown = Callable[[str], str]


@collector_paused
def step_facts(trace: Trace, shown: _Shown, error: str = "", *, most: int = MAX_SHOWN) -> StepFacts:
    """What a step did.

    Args:
        trace: of the step.
        shown: says how a node is called.
        error: why it ended early.
        most: how many activations, and tensors, are told one by one.

    """
    activations, start = trace.activations, trace.start
    lifetimes = _lifetimes(trace, start, shown)
    critical = [number for number in critical_path(trace) if number < most]
    return StepFacts(
        nanos=sum(end - start for start, end in trace.steps),
        activities=[_activity(one, start, trace.threads, shown) for one in activations[:most]],
        more_activities=max(0, len(activations) - most),
        costs=_costs(trace, shown),
        lifetimes=sorted(lifetimes[:most], key=lambda one: one.start),
        more_lifetimes=max(0, len(lifetimes) - most),
        iterations=list(_iterations(trace, start)),
        critical=critical,
        error=error,
    )


@collector_paused
def types_of(trace: Trace, shown: _Shown) -> dict[tuple[str, int], str]:
    """Type and shape of what nodes gave, by name and slot; of the last time if they differ."""
    return {
        (shown(one.name), output.slot): _type(output.dtype, output.shape)
        for one in trace.activations
        for output in one.outputs
    }


@lru_cache
def _type(number: int, shape: tuple[int, ...]) -> str:
    return f"{of_number(number).name}{list(shape)}"


def _activity(one: Activation, start: int, threads: Mapping[int, str], shown: _Shown) -> Activity:
    place = one.place
    thread = "waits" if one.is_async else threads.get(one.thread, "") or str(one.thread)
    return Activity(
        shown(one.name), one.op or one.sort.value, place.device, thread, place.frame,
        place.iteration, one.op_start - start, one.op_end - one.op_start,
    )  # fmt: skip


def _costs(trace: Trace, shown: _Shown) -> list[Cost]:
    """One row for each node, those that take most time first."""
    runs, dead, nanos, waited, made = (Counter[tuple[str, str]]() for _ in range(5))
    keys = [(shown(one.name), one.op or one.sort.value) for one in trace.activations]
    for key, one in zip(keys, trace.activations, strict=True):
        runs[key] += 1
        (waited if one.is_async else nanos)[key] += one.op_end - one.op_start
    for node in trace.dead:
        dead[shown(node.name), node.op] += 1
    for buffer in trace.buffers:
        if buffer.maker >= 0:
            made[keys[buffer.maker]] += buffer.size
    found = [
        Cost(*key, runs[key], dead[key], nanos[key], waited[key], made[key])
        for key in runs.keys() | dead.keys()
    ]
    return sorted(found, key=lambda cost: (-cost.nanos, cost.name))


def _lifetimes(trace: Trace, start: int, shown: _Shown) -> list[Lifetime]:
    """The memory that nodes of the step made, the largest first."""
    made = [buffer for buffer in trace.buffers if buffer.maker >= 0 and buffer.size]
    made.sort(key=lambda buffer: (-buffer.size, buffer.start))
    makers = [shown(trace.activations[buffer.maker].name) for buffer in made]
    return [
        Lifetime(name, buffer.size, buffer.start - start, buffer.end - buffer.start)
        for name, buffer in zip(makers, made, strict=True)
    ]


def _iterations(trace: Trace, start: int) -> Iterator[Iteration]:
    """One row for each iteration of each loop."""
    runs = _by_place([one.place for one in trace.activations])
    dead = _by_place([one.place for one in trace.dead])
    for span in trace.spans:
        if span.is_iteration:
            place = span.place
            key = place.device, place.frame, place.iteration
            yield Iteration(
                place.frame, place.iteration, place.device, span.start - start,
                span.end - span.start, runs[key], dead[key],
            )  # fmt: skip


def _by_place(places: Sequence[Place]) -> defaultdict[tuple[str, str, int], int]:
    found: defaultdict[tuple[str, str, int], int] = defaultdict(int)
    for place in places:
        if place.frame:
            found[place.device, place.frame, place.iteration] += 1
    return found
