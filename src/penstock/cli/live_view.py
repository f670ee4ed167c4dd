"""``penstock run --live``: how far the steps are, shown while they run.

In:   a ``CountingRecorder``, and what the steps under way say of themselves.
Out:  a table that changes, on a terminal; the last one alone where there is none.
Not:  counts nothing.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from rich import live
from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from penstock.printable import printable
from penstock.session.registry import all_under_way
from penstock.tracing.counting import CountingRecorder, FrameProgress

#: Times a second; more would not be seen.
_RATE: Final = 8
#: How many frames, and how many lines about nodes, are shown.
_FRAMES: Final = 20
_LINES: Final = 8
#: Columns for the names of frames.
_WIDTH: Final = 32
#: Lines of a step's own report that say what it is at.
_TELLING: Final = ("running", "waiting", "deadlock")
_NUMBERS: Final = ("iteration", "ready", "running", "waiting", "dead", "ran", "ran/s")


@contextmanager
def live_view(recorder: CountingRecorder) -> Iterator[None]:
    """Show what is recorded, as long as the block lasts; what is there at its end stays."""
    picture = _Picture(recorder)
    console = Console(stderr=True)
    with live.Live(get_renderable=picture.drawn, console=console, refresh_per_second=_RATE):
        yield


class _Picture:
    """What is shown.  Drawn by one thread at a time: Rich's lock sees to it."""

    def __init__(self, recorder: CountingRecorder) -> None:
        self._recorder: Final = recorder
        self._start: Final = time.monotonic()
        #: When it was drawn last, and how many activations had run in each frame.
        self._drawn = self._start
        self._ran: dict[tuple[str, str, str], int] = {}

    def drawn(self) -> RenderableType:
        """The picture of this moment."""
        now = time.monotonic()
        rows = self._recorder.progress()
        steps = len(self._recorder.steps)
        title = f"{now - self._start:.1f} s, {steps} steps done"
        table = Table(title=title, title_justify="left", title_style="", box=None)
        table.add_column("frame")
        for name in _NUMBERS:
            table.add_column(name, justify="right")
        several = len({row.device for row in rows}) > 1
        for row in rows[:_FRAMES]:
            table.add_row(*self._cells(row, now - self._drawn, with_device=several))
        if len(rows) > _FRAMES:
            table.add_row(f"… and {len(rows) - _FRAMES} more")
        self._drawn = now
        self._ran = {_key(row): row.ran for row in rows}
        return Group(table, *(Text(line, overflow="ellipsis", no_wrap=True) for line in _told()))

    def _cells(self, row: FrameProgress, seconds: float, *, with_device: bool) -> list[Text]:
        name = row.now.frame or row.function or "graph"
        if row.function and row.now.frame:
            name = f"{row.function}: {name}"
        if with_device:
            name = f"{name} on {row.device.rpartition('/')[2]}"
        rate = (row.ran - self._ran.get(_key(row), 0)) / seconds if seconds > 0 else 0
        now = row.now
        iteration = str(now.iteration) if now.frame else ""
        numbers = (now.ready, now.running, now.waiting, row.dead, row.ran, round(rate))
        return [Text(_end_of(printable(name))), Text(iteration), *(Text(f"{n:,}") for n in numbers)]


def _end_of(name: str) -> str:
    """What of a long name fits: its end, which says most."""
    return name if len(name) <= _WIDTH else f"…{name[1 - _WIDTH :]}"


def _key(row: FrameProgress) -> tuple[str, str, str]:
    return row.device, row.function, row.now.frame


def _told() -> list[str]:
    """What nodes are at, by what the steps say of themselves."""
    lines = [
        line.strip()
        for step in all_under_way()
        for line in step.dump_state().splitlines()
        if line.strip().startswith(_TELLING)
    ]
    more = [f"… and {len(lines) - _LINES} more"] if len(lines) > _LINES else []
    return [printable(line) for line in lines[:_LINES]] + more
