"""How far steps are, while they run.

In:   the events of executors and compiled functions, as they come; what executors say when asked.
Out:  counts by frame, for whoever asks, from any thread.
Not:  keeps no events, so that a step may take a day.

All turns of a loop are one frame here, wherever in the loops around it they are.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from penstock.tracing.recorder import Ask, Detail, Event, Lane, Now, Recording

_RAN: Final = int(Event.RAN)
_DEAD: Final = int(Event.DEAD)
_DONE: Final = int(Event.DONE)
_REGION: Final = int(Event.REGION)


class FrameProgress(NamedTuple):
    """How far one frame is."""

    device: str
    #: The function whose body it is in; empty for the graph's own nodes.
    function: str
    now: Now
    #: Activations, of all steps, that are done, and that were dead.
    ran: int
    dead: int


class _Count:
    """Activations of one frame.  Changed by one driver at a time, read by anybody."""

    __slots__ = ("dead", "ran")

    def __init__(self) -> None:
        self.ran = 0
        self.dead = 0


class CountingLane(Lane):
    """What one executor, or one compiled function, has done."""

    __slots__ = ("_counts", "ask")

    def __init__(
        self, device: str, function: str, counts: dict[str, _Count], ask: Ask | None
    ) -> None:
        super().__init__(device, function, self._count)
        #: Shared by all lanes of the same function on the same device.
        self._counts: Final = counts
        self.ask: Final = ask

    def _count(self, event: tuple[Any, ...]) -> None:
        kind = event[0]
        if kind == _RAN:
            self._of(event[2].path).ran += 1
        elif kind == _DEAD:
            self._of(event[2].path).dead += 1
        elif kind in (_DONE, _REGION):
            # Which frame it was in is not said: a rare event, and what waits is asked for.
            self._of("").ran += 1

    def _of(self, frame: str) -> _Count:
        found = self._counts.get(frame)
        return self._counts.setdefault(frame, _Count()) if found is None else found


class CountingRecorder(Recording):
    """Counts what steps do, node by node; there is nothing to be read of them later."""

    def __init__(self) -> None:
        super().__init__(Detail.NODES)
        #: By device and function.  These grow by single operations.
        self._counts: Final[dict[tuple[str, str], dict[str, _Count]]] = {}
        #: Of the step that is under way.
        self._asked: list[CountingLane] = []

    def lane(self, device: str, function: str = "", ask: Ask | None = None) -> Lane:
        """Where one executor, or compiled function, notes what it does."""
        made = CountingLane(device, function, self._counts.setdefault((device, function), {}), ask)
        self._asked.append(made)
        return made

    def step_ended(self, start: int) -> None:
        """A step is over: forget its executors."""
        super().step_ended(start)
        self._asked = []

    def progress(self) -> list[FrameProgress]:
        """How far each frame is, by device, function and frame."""
        now: dict[tuple[str, str, str], Now] = {}
        for lane in list(self._asked):
            for one in lane.ask() if lane.ask is not None else ():
                key = lane.device, lane.function, one.frame
                now[key] = _both(now.get(key), one)
        keys = dict.fromkeys(
            (device, function, frame)
            for (device, function), counts in list(self._counts.items())
            for frame in list(counts)
        )
        return [self._row(key, now.get(key)) for key in keys | dict.fromkeys(now)]

    def _row(self, key: tuple[str, str, str], now: Now | None) -> FrameProgress:
        device, function, frame = key
        count = self._counts[device, function].get(frame) or _Count()
        return FrameProgress(device, function, now or Now(frame, 0, 0, 0, 0), count.ran, count.dead)


def _both(one: Now | None, other: Now) -> Now:
    """Two executors of the same function, such as two calls; or two turns of an inner loop."""
    if one is None:
        return other
    return Now(
        one.frame,
        max(one.iteration, other.iteration),
        one.ready + other.ready,
        one.running + other.running,
        one.waiting + other.waiting,
    )
