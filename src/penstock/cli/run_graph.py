"""``penstock run`` of a graph: tensors by their names in, tensors out.

In:   a request, how often to run it, and where to write.
Out:  values on stdout, or a file.
Not:  knows no signatures; ``run_model`` does.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.progress import Progress

from penstock.cli.fetched import check_path, print_values, write_values
from penstock.cli.request import OpenRequest, Request
from penstock.config import RunOptions


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphRun:
    """What is to be run, and how often."""

    request: Request
    #: Where to write what was fetched; None to print it.
    out: Path | None
    repeat: int
    options: RunOptions

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
        count, is_quiet = self.repeat if opened.wanted else 0, self.repeat == 1
        with Progress(console=Console(stderr=True), disable=is_quiet, transient=True) as progress:
            for _ in progress.track(range(count), description="running"):
                start = time.perf_counter()
                values = opened.session.run(opened.wanted, opened.feeds, self.options)
                seconds.append(time.perf_counter() - start)
        return seconds, values
