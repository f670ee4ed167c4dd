"""What is read off activations: loops with their iterations, and what was sent to whom.

In:   activations.
Out:  ``Span`` and ``Flow``.
Not:  knows no events.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterator, Sequence
from typing import Any

from penstock.tracing.trace import Activation, Flow, Place, Span


def spans_of(runs: Sequence[Any]) -> Iterator[Span]:
    """Each loop of an executor from its first node to its last, and each of its iterations."""
    ends: dict[tuple[int, int], list[int]] = {}
    places: dict[int, Place] = {}
    for run in runs:
        activation = run.activation
        if not activation.place.frame:
            continue
        key = id(run.frame)
        places[key] = activation.place
        for number in (-1, run.number):
            known = ends.setdefault((key, number), [activation.start, activation.end])
            known[0] = min(known[0], activation.start)
            known[1] = max(known[1], activation.end)
    numbers = {key: number for number, key in enumerate(places)}
    for (key, iteration), (start, end) in ends.items():
        place = places[key]._replace(iteration=max(iteration, 0))
        yield Span(place, start, end, iteration >= 0, numbers[key])


def flows_of(activations: Sequence[Activation]) -> list[Flow]:
    """Which Recv got what which Send gave, by their keys; the first one gets the first."""
    sent: defaultdict[str, deque[int]] = defaultdict(deque)
    wanted: defaultdict[str, deque[int]] = defaultdict(deque)
    for number, activation in enumerate(activations):
        if activation.key and not activation.error:
            is_send = activation.op in ("_Send", "_HostSend")
            (sent if is_send else wanted)[activation.key].append(number)
    return [
        Flow(source, target, key)
        for key, sources in sent.items()
        for source, target in zip(sources, wanted[key], strict=False)
    ]
