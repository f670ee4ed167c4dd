"""What the runtime calls while a step is recorded.

In:   events, as bare tuples, from any thread.
Out:  the same in their order, by *lane*: what one executor, or one compiled function, does once.
Not:  gives events no meaning; ``replay`` does, later and only if somebody asks.

A recorder costs nothing where there is none: an executor that is recorded is another class.  Where
there is one, an event is added to a list (100 ns or so), so that a step takes less than twice the
time.
"""

from __future__ import annotations

import enum
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any, Final, NamedTuple, Protocol, TypeAlias

from penstock.defs.schema import Message

#: Takes one event; atomic, so that threads need no lock.
Note: TypeAlias = Callable[[tuple[Any, ...]], object]


class Now(NamedTuple):
    """What an executor has in one frame at this moment."""

    #: The loop, without the iterations around it: ``outer/inner``; empty outside of all.
    frame: str
    #: The newest iteration.
    iteration: int
    #: Nodes that could run, but have to wait for their turn.
    ready: int
    #: Nodes whose kernels compute.
    running: int
    #: Nodes that wait: for inputs, some of which have come; or for others, in a queue for instance.
    waiting: int


#: What an executor has at this moment, by frame; any thread may ask.
Ask: TypeAlias = Callable[[], Sequence[Now]]


class Detail(enum.Enum):
    """How closely compiled regions are looked at."""

    #: Each region is one thing.
    REGIONS = "regions"
    #: The same, and now and then somebody looks which node a region is at.
    LINES = "lines"
    #: There is no generated Python: everything runs node by node.
    NODES = "nodes"
    #: The same, and so is what ONNX Runtime or a program in C would compute; the last bits of
    #: results may differ.
    INSIDE = "inside"

    #: Whether nodes are run one by one.
    is_by_node: bool

    def __init__(self, value: str) -> None:
        self.is_by_node = value in ("nodes", "inside")


_MAIN: Final = threading.main_thread().ident
#: How often clocks are compared: each takes a quarter of a microsecond.
_READINGS: Final = 3


class Event(enum.IntEnum):
    """What the first element of an event says; integers, since one is made per activation.

    Times are nanoseconds of ``perf_counter_ns``; *ready* is how many nodes are ready after that.
    """

    #: kind, thread, at, ready: a thread begins to drive.
    THREAD = 0
    #: kind, item, frame, iteration, start, begin, end, all_end, outputs (None if dead), ready
    RAN = 1
    #: kind, item, frame, iteration, at, ready
    DEAD = 2
    #: kind, item, frame, iteration, start, begin, end, ready, number, what it waits for: its
    #: outputs will come.
    LEFT = 3
    #: kind, number, at, thread: they have come, or the error has.
    POSTED = 4
    #: kind, number, begin, end, thread: the kernel ran on another thread.
    ELSEWHERE = 5
    #: kind, number, at, all_end, outputs (None if dead), ready: they have been handed on.
    DONE = 6
    #: kind, item, frame, iteration, start, begin, end, ready, number (0 if it was not left), code
    FAILED = 7
    #: kind, at: what was ready is dropped.
    DROPPED = 8
    #: kind, what has a title, of which sort, start, end, thread, outputs: a compiled function ran.
    REGION = 9
    #: kind, title, op, of which sort, start, end, thread: a region of another library's, or a node
    #: inside of one.
    OPAQUE = 10
    #: kind, node, op, frame, iteration, at, thread: what a compiled function is at.
    SAMPLE = 11


#: How many elements an event of each kind has.
_SIZES: Final = {
    Event.THREAD: 4, Event.RAN: 10, Event.DEAD: 6, Event.LEFT: 10, Event.POSTED: 4,
    Event.ELSEWHERE: 5, Event.DONE: 6, Event.FAILED: 10, Event.DROPPED: 2, Event.REGION: 7,
    Event.OPAQUE: 7, Event.SAMPLE: 7,
}  # fmt: skip


class Lane:
    """What one executor, or one compiled function, does once.

    Events lie one after the other in one list: tuples that are kept would be looked at by Python's
    garbage collector again and again, which takes longer than all the rest.
    """

    __slots__ = ("_elements", "device", "function", "note", "opened")

    def __init__(self, device: str, function: str, note: Note | None = None) -> None:
        self.device: Final = device
        #: The function whose body it is; empty for the graph's own nodes.
        self.function: Final = function
        #: When it was opened.
        self.opened: Final = time.perf_counter_ns()
        self._elements: Final[list[Any]] = []
        #: Adds an event.
        self.note: Final[Note] = note or self._elements.extend

    def __len__(self) -> int:
        """How many elements its events have."""
        return len(self._elements)

    def __iter__(self) -> Iterator[Sequence[Any]]:
        """The events, oldest first."""
        elements, at = self._elements, 0
        while at < len(elements):
            end = at + _SIZES[elements[at]]
            yield elements[at:end]
            at = end


class Recorder(Protocol):
    """What the runtime asks of whoever records a step."""

    @property
    def detail(self) -> Detail:
        """How closely regions are looked at."""

    def lane(self, device: str, function: str = "", ask: Ask | None = None) -> Lane:
        """Where one executor, or compiled function, notes what it does; who asks how far it is."""

    def sampled(self, thread: int, note: Note) -> AbstractContextManager[object] | None:
        """Have somebody look now and then what a thread is at; None if nobody wants to know."""

    def step_ended(self, start: int) -> None:
        """A step that began then is over, whether it succeeded or not."""


class Sampling(Protocol):
    """Looks at threads now and then."""

    def watch(self, thread: int, note: Note) -> AbstractContextManager[object]:
        """Look at a thread as long as the context lasts."""


class Recording:
    """The events of one or more steps; a ``Recorder``."""

    def __init__(
        self, detail: Detail = Detail.NODES, sampling: Sampling | None = None, title: str = ""
    ) -> None:
        #: How closely regions are looked at.
        self.detail: Final = detail
        self.title: Final = title
        self._sampling: Final = sampling
        #: In the order in which they were opened.  These grow; ``append`` is atomic.
        self.lanes: Final[list[Lane]] = []
        #: When each step began and ended.
        self.steps: Final[list[tuple[int, int]]] = []
        #: What other tasks recorded, as StepStats messages.
        self.remote: Final[list[Message]] = []
        #: The names of threads that ran steps, by number.
        self._threads: Final[dict[int, str]] = {}
        #: Nanoseconds since 1970 when ``perf_counter_ns`` was 0.
        self.epoch: Final = _epoch()

    @property
    def threads(self) -> dict[int, str]:
        """The names of threads, by number: those that ran steps, and all that there are now."""
        return {t.ident or 0: t.name for t in threading.enumerate()} | self._threads

    def lane(
        self,
        device: str,
        function: str = "",
        ask: Ask | None = None,  # noqa: ARG002  (for those who look while it runs)
    ) -> Lane:
        """Where one executor, or compiled function, notes what it does."""
        made = Lane(device, function)
        self.lanes.append(made)
        return made

    def sampled(self, thread: int, note: Note) -> AbstractContextManager[object] | None:
        """Have somebody look now and then what a thread is at; None if nobody wants to know."""
        if self._sampling is None or self.detail is not Detail.LINES:
            return None
        return self._sampling.watch(thread, note)

    def step_ended(self, start: int) -> None:
        """A step that began then is over, whether it succeeded or not."""
        self.steps.append((start, time.perf_counter_ns()))
        thread = threading.get_ident()
        # The main thread is there as long as anybody asks for names.
        if thread != _MAIN and thread not in self._threads:
            self._threads[thread] = threading.current_thread().name


def _epoch() -> int:
    """Nanoseconds since 1970 when ``perf_counter_ns`` was 0.

    Two clocks cannot be read at once, and this thread may have to wait in between: of some readings
    the closest counts, so that what several recorders note fits together.
    """
    readings = []
    for _ in range(_READINGS):
        before, now, after = time.perf_counter_ns(), time.time_ns(), time.perf_counter_ns()
        readings.append((after - before, now - (before + after) // 2))
    return min(readings)[1]
