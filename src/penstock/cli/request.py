"""A step as the command line asks for it: of which graph, what is fed, fetched and run.

In:   the options that commands share which run one step of a graph, or a signature of a model.
Out:  an open session, and what to ask of it.
Not:  runs nothing but what is to be run before.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import click

from penstock.cli.feed_values import parse_feeds
from penstock.cli.model_file import (
    STDIN,
    checkpoint_option,
    model_argument,
    parsed_tags,
    path_given,
    read_stored,
    refuse,
    signature_in,
    signature_option,
    tag_set_option,
)
from penstock.cli.signature_inputs import check_given, parse_inputs
from penstock.cli.suggest import nothing_to_do
from penstock.config import Config, RunOptions
from penstock.core.byte_counts import parse_bytes
from penstock.dataclass import dataclass
from penstock.errors import InvalidArgumentError
from penstock.formats.stored_model import StoredModel
from penstock.saved_model.loaded_model import LoadedModel
from penstock.session import Session


def request_options(command: Any) -> Any:
    """Add GRAPH, and all that says which step of it is run: what ``Request.of`` takes."""
    of_model = model_argument, tag_set_option, signature_option, checkpoint_option
    return _with(command, *of_model, *_STEP, *_CONFIG)


def step_options(command: Any) -> Any:
    """Add what is fed, fetched and run."""
    return _with(command, *_STEP)


def _with(command: Any, *options: Callable[[Any], Any]) -> Any:
    """Add options, which ``--help`` lists in this order."""
    return functools.reduce(lambda changed, add: add(changed), reversed(options), command)


_STEP = (
    click.option(
        "--feed",
        "feeds",
        multiple=True,
        metavar="NAME=VALUE",
        help="Feed a tensor, as penstock run --help says; may be repeated.",
    ),
    click.option(
        "--fetch",
        "fetches",
        multiple=True,
        metavar="NAME",
        help="Fetch a tensor; may be repeated.",
    ),
    click.option("--target", "targets", multiple=True, metavar="NODE", help="Run a node as well."),
    click.option("--init", "inits", multiple=True, metavar="NODE", help="Run a node once, before."),
)
_CONFIG = (
    click.option(
        "--timeout", type=click.FloatRange(min=0), metavar="SECONDS", help="Fail after this time."
    ),
    click.option(
        "--devices", type=click.IntRange(1, 1024), default=1, show_default=True, help="CPU devices."
    ),
    click.option(
        "--max-memory",
        default="0",
        metavar="SIZE",
        help="Fail at the node whose tensors make it more: 2G, 300M. Runs node by node.",
    ),
    click.option(
        "--no-files", is_flag=True, help="Refuse ops that use files: for untrusted graphs."
    ),
)


@dataclass(frozen=True, slots=True)
class OpenRequest:
    """A session, and what is to be asked of it."""

    session: Session
    #: Names of tensors, then of nodes to run as well.
    wanted: list[str]
    feeds: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What is to be run, and with what."""

    path: str
    stored: StoredModel
    tag_set: str | None
    signature_def: str | None
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
    config: Config

    @classmethod
    def of(cls, options: dict[str, Any]) -> Request:
        """Take what ``request_options`` adds out of a command's options.

        Raises:
            click.UsageError: there is no model, or there are two; or stdin is to be two things.
            OpError: what is there is no model.

        """
        path = path_given(options.pop("graph"), options.pop("model_dir"))
        _check_stdin(path, *options["feeds"])
        config = Config(
            device_count={"CPU": options.pop("devices")},
            allow_files=not options.pop("no_files"),
            operation_timeout_in_ms=round((options.pop("timeout") or 0) * 1000),
            max_memory_in_bytes=parse_bytes(options.pop("max_memory")),
        )
        names = ("tag_set", "signature_def", "checkpoint", "feeds", "fetches", "targets", "inits")
        return cls(
            path=path, stored=read_stored(path), config=config,
            **{name: options.pop(name) for name in names},
        )  # fmt: skip

    @property
    def is_of_graph(self) -> bool:
        """Whether names mean tensors and nodes of a graph; else inputs of a signature."""
        return self.stored.is_bare or bool(self.fetches or self.targets or self.inits)

    @property
    def tensors(self) -> list[str]:
        """The names of the tensors to fetch, with their slots."""
        return [name if ":" in name else f"{name}:0" for name in self.fetches]

    @contextmanager
    def opened(
        self, options: RunOptions | None = None, *, needs_step: bool = True
    ) -> Iterator[OpenRequest]:
        """A session for the time of a ``with`` block, in which ``--init`` has been done.

        Args:
            options: of the steps that ``--init`` runs.
            needs_step: whether something must be asked for.

        Raises:
            click.UsageError: nothing is to be run.
            OpError: the graph cannot be loaded or initialised.

        """
        if self.is_of_graph:
            refuse("a graph", signature_def=self.signature_def)
        else:
            refuse("a model that has signatures", checkpoint=self.checkpoint)
        with self._loaded() as model:
            session = model.session
            if not self.is_of_graph:
                _, signature = signature_in(model.signatures, self.signature_def)
                given = parse_inputs(self.feeds, signature)
                check_given(given, signature, self.path)
                yield OpenRequest(session, *signature.request(**given))
                return
            if needs_step and not (self.fetches or self.targets or self.inits):
                raise click.UsageError(nothing_to_do(session.graph, self.path))
            feeds = parse_feeds(self.feeds, session.graph)
            for node in self.inits:
                session.run(node, feeds, options)
            yield OpenRequest(session, [*self.tensors, *self.targets], feeds)

    def _loaded(self) -> LoadedModel:
        tags, checkpoint = parsed_tags(self.tag_set), self.checkpoint or ""
        model = LoadedModel(self.stored, tags, checkpoint=checkpoint, config=self.config)
        if self.is_of_graph and model.function_graph is not None:
            model.close()
            raise InvalidArgumentError(
                f"{self.path} is {self.stored.what} with functions, which are no parts of a graph",
                next_step="run one of its signatures, by --signature_def NAME; or convert it to a "
                "graph, by penstock convert",
            )
        return model


def _check_stdin(*texts: str) -> None:
    """Raise click.UsageError if stdin would have to be two things."""
    from_stdin = [text for text in texts if text == STDIN or text.endswith(f"={STDIN}")]
    if len(from_stdin) > 1:
        raise click.UsageError(f"stdin can be one thing, but stands for {' and '.join(from_stdin)}")
