"""``penstock run`` of a graph: tensors by their names in, tensors out.

In:   what to feed, to fetch and to run; values for variables.
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

from penstock.cli.feed_values import parse_feeds
from penstock.cli.fetched import check_path, print_values, write_values
from penstock.cli.model_file import parsed_tags
from penstock.cli.suggest import nothing_to_do
from penstock.config import Config, RunOptions
from penstock.errors import InvalidArgumentError
from penstock.formats.stored_model import StoredModel
from penstock.saved_model.loaded_model import LoadedModel
from penstock.session import Session


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphRun:
    """What is to be run, and with what."""

    path: str
    stored: StoredModel
    tag_set: str | None
    #: The prefix of the values of variables; None for those beside the graph, if there are any.
    checkpoint: str | None
    #: ``NAME=VALUE``
    feeds: tuple[str, ...]
    #: Tensors to fetch.
    fetches: tuple[str, ...]
    #: Nodes to run as well.
    targets: tuple[str, ...]
    #: Nodes to run once, before.
    inits: tuple[str, ...]
    #: Where to write what was fetched; None to print it.
    out: Path | None
    repeat: int
    options: RunOptions
    config: Config

    def run(self) -> list[float]:
        """Run it and hand out what was fetched; returns the seconds of each run."""
        if self.out is not None:
            check_path(self.out, len(self.fetches))
        names = [name if ":" in name else f"{name}:0" for name in self.fetches]
        with self._opened() as model:
            seconds, values = self._run(model.session, names)
        results = dict(zip(names, values, strict=False))
        if self.out is None:
            print_values(results)
        else:
            write_values(self.out, results)
        if not results:
            click.echo(f"ran {', '.join([*self.inits, *self.targets])}", err=True)
        return seconds

    def _opened(self) -> LoadedModel:
        tags, checkpoint = parsed_tags(self.tag_set), self.checkpoint or ""
        model = LoadedModel(self.stored, tags, checkpoint=checkpoint, config=self.config)
        if model.function_graph is not None:
            model.close()
            raise InvalidArgumentError(
                f"{self.path} is {self.stored.what} with functions, which are no parts of a graph",
                next_step="run one of its signatures, by --signature_def; or convert it to a graph",
            )
        if not (self.fetches or self.targets or self.inits):
            with model:
                raise click.UsageError(nothing_to_do(model.session.graph, self.path))
        return model

    def _run(self, session: Session, fetches: list[str]) -> tuple[list[float], list[Any]]:
        """Seconds of each run, and the last run's values."""
        feeds = parse_feeds(self.feeds, session.graph)
        for node in self.inits:
            session.run(node, feeds, self.options)
        wanted = [*fetches, *self.targets]
        seconds: list[float] = []
        values: list[Any] = []
        console, is_quiet = Console(stderr=True), self.repeat == 1
        with Progress(console=console, disable=is_quiet, transient=True) as progress:
            for _ in progress.track(range(self.repeat if wanted else 0), description="running"):
                start = time.perf_counter()
                values = session.run(wanted, feeds, self.options)
                seconds.append(time.perf_counter() - start)
        return seconds, values
