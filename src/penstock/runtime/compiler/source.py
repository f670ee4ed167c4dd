"""Python text as a function that tracebacks can show.

In:   lines, each with the node that it is for, and the objects that the text refers to.
Out:  ``Source``: the text, the function, and where in the graph an error in it arose.
Not:  writes no text.
"""

from __future__ import annotations

import itertools
import linecache
import sys
import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import FrameType, TracebackType
from typing import Any, Final, NamedTuple

from penstock.graph.graph import Node

#: Tells apart the file names of texts; ``next`` on it is atomic enough, since a lost number
#: would only repeat a name that a lock below guards.
_numbers: Final = itertools.count(1)


class Turns(NamedTuple):
    """A loop that a line stands in: its frame's name, and the name that counts its turns."""

    frame: str
    counter: str


class Line(NamedTuple):
    """One line of text."""

    text: str
    #: The node that it is for; None for what holds the others together.
    node: Node | None = None
    #: The loops around it, outermost first.
    loops: tuple[Turns, ...] = ()


class Place(NamedTuple):
    """Where in a graph something happened."""

    node: Node
    #: The dynamic frame, as errors show it; empty outside of loops.
    frame: str
    iteration: int

    def within(self, frame: str, iteration: int) -> Place:
        """The same place, if the text itself runs in a turn of a loop."""
        if not frame:
            return self
        if not self.frame:
            return Place(self.node, frame, iteration)
        return Place(self.node, f"{frame}[{iteration}]/{self.frame}", self.iteration)


@dataclass(frozen=True, slots=True, weakref_slot=True)
class Source:
    """One text, and the function that it defines."""

    lines: Sequence[Line]
    function: Callable[..., Any]
    filename: str
    #: Whether the function asks its first argument for more than ``interrupt``.
    needs_context: bool

    @property
    def text(self) -> str:
        """The text, as ``penstock show --python`` prints it."""
        return "".join(f"{line.text}\n" for line in self.lines)

    def place_of(self, traceback: TracebackType | None) -> Place | None:
        """The node in whose line an exception arose, or None if it was in none."""
        frames: list[tuple[FrameType, int]] = []
        while traceback is not None:
            frames.append((traceback.tb_frame, traceback.tb_lineno))
            traceback = traceback.tb_next
        return self._place_in(frames)

    def place_now(self, thread: int) -> Place | None:
        """The node that a thread is at, or None if it is elsewhere.

        Without the GIL the thread goes on meanwhile, and nobody else may look at its frames:
        then it is None as well.
        """
        if not _has_gil():
            return None
        frames: list[tuple[FrameType, int]] = []
        frame = sys._current_frames().get(thread)
        while frame is not None:
            frames.insert(0, (frame, frame.f_lineno))
            frame = frame.f_back
        return self._place_in(frames)

    def _place_in(self, frames: Sequence[tuple[FrameType, int]]) -> Place | None:
        """The innermost line of a node, among the frames of a stack, outermost first."""
        found: Place | None = None
        counters: dict[str, int] = {}
        for frame, number in frames:
            if frame.f_code.co_filename == self.filename:
                line = self.lines[number - 1]
                # A part of a loop's body may be a function of its own.
                known = counters | frame.f_locals
                counters = {t.counter: known.get(t.counter, 0) for t in line.loops}
                if line.node is not None:
                    found = _place(line, counters)
        return found


def _has_gil() -> bool:
    """Whether threads take turns, which on some Pythons may change while they run."""
    is_enabled: Callable[[], bool] = getattr(sys, "_is_gil_enabled", lambda: True)
    return is_enabled()


def _place(line: Line, counters: Mapping[str, int]) -> Place:
    assert line.node is not None
    if not line.loops:
        return Place(line.node, "", 0)
    parts = [f"{loop.frame}[{counters[loop.counter]}]" for loop in line.loops[:-1]]
    innermost = line.loops[-1]
    return Place(line.node, "/".join([*parts, innermost.frame]), counters[innermost.counter])


def make_source(
    name: str,
    lines: Sequence[Line],
    function: str,
    objects: dict[str, Any],
    *,
    needs_context: bool,
) -> Source:
    """Compile a text and take the function ``function`` out of it.

    The text is known to tracebacks and debuggers for as long as the source lives.
    """
    filename = f"<penstock {name} {next(_numbers)}>"
    text = "".join(f"{line.text}\n" for line in lines)
    exec(compile(text, filename, "exec"), objects)
    source = Source(tuple(lines), objects[function], filename, needs_context)
    linecache.cache[filename] = (len(text), None, text.splitlines(keepends=True), filename)
    weakref.finalize(source, linecache.cache.pop, filename, None)
    return source
