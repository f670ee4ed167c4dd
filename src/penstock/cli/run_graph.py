"""``penstock run`` of a graph: tensors by their names in, tensors out.

In:   a request, how often to run it, and where to write.
Out:  values on stdout, or a file.
Not:  knows no signatures; ``run_model`` does.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.progress import Progress

from penstock.cli.fetched import check_path, print_values, write_values
from penstock.cli.live_view import live_view
from penstock.cli.request import OpenRequest, Request
from penstock.config import RunOptions
from penstock.dataclass import dataclass
from penstock.tracing.counting import CountingRecorder


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphRun:
    """What is to be run, and how often."""

    request: Request
    #: Where to write what was fetched; None to print it.
    out: Path | None
    repeat: int
    options: RunOptions
    #: Whether to show how far the steps are while they run, node by node.
    is_live: bool

    def run(self) -> list[float]:
        """Run it and hand out what was fetched; returns the seconds of each run."""
        request = self.request
        if self.out is not None:
            check_path(self.out, len(request.fetches))
        with request.opened(self.options) as opened:
            seconds, values = self._run(opened)
        results = dict(zip(request.tensors, values, strict=False))
        if self.out is None:
            print_values(results)
        else:
            write_values(self.out, results)
        if not results:
            click.echo(f"ran {', '.join([*request.inits, *request.targets])}", err=True)
        return seconds

    def _run(self, opened: OpenRequest) -> tuple[list[float], list[Any]]:
        """Seconds of each run, and the last run's values."""
        seconds: list[float] = []
        values: list[Any] = []
        with self._shown(self.repeat if opened.wanted else 0) as (turns, options):
            for _ in turns:
                start = time.perf_counter()
                values = opened.session.run(opened.wanted, opened.feeds, options)
                seconds.append(time.perf_counter() - start)
        return seconds, values

    @contextmanager
    def _shown(self, count: int) -> Iterator[tuple[Iterable[int], RunOptions]]:
        """The turns, and the options of each; how far they are is shown as long as they go on."""
        if self.is_live:
            recorder = CountingRecorder()
            with live_view(recorder):
                yield range(count), dataclasses.replace(self.options, recorder=recorder)
            return
        console, is_quiet = Console(stderr=True), self.repeat == 1
        with Progress(console=console, disable=is_quiet, transient=True) as progress:
            yield progress.track(range(count), description="running"), self.options
