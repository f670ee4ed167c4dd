"""One step, as something that can be run any number of times.

In:   a graph, the state before, feeds and fetches.
Out:  what comes of it, in an order that somebody notes or demands.
Not:  knows no files and no particular order.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple, Self

from penstock.config import Config, GraphOptions, RunOptions, Tier
from penstock.core import trees
from penstock.core.trees import Tree
from penstock.core.values import Value
from penstock.dataclass import dataclass
from penstock.defs.schema import Message
from penstock.errors import Code, OpError
from penstock.replays.datasets import before_datasets, lost
from penstock.replays.digests import digest_of_state, digest_of_value
from penstock.session.session import Session
from penstock.session.snapshot import Snapshot
from penstock.state.step_order import StepOrder

#: More devices of a type than this no step asks for.
_MOST_DEVICES: Final = 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Of a session's options those that say what runs, and in which pieces."""

    devices: Mapping[str, int]
    optimizes: bool
    lowers_functions: bool
    flushes_denormals: bool

    @classmethod
    def of(cls, config: Config) -> Settings:
        """Those of a configuration; what adapts or accelerates is left out."""
        return cls(
            devices=dict(config.device_count),
            optimizes=not config.graph_options.rewrite_options.disable_meta_optimizer,
            lowers_functions=not config.disable_functional_ops_lowering,
            flushes_denormals=config.flush_denormals,
        )

    def config(self, *, threads: int, allow_files: bool) -> Config:
        """A configuration under which a step runs node by node, with so many threads."""
        return Config(
            device_count=dict(self.devices),
            graph_options=GraphOptions() if self.optimizes else GraphOptions.nothing(),
            disable_functional_ops_lowering=not self.lowers_functions,
            flush_denormals=self.flushes_denormals,
            inter_op_parallelism_threads=threads,
            allow_files=allow_files,
            tier=Tier.DATAFLOW,
            accelerate=False,
            adaptive=False,
        )

    def as_tree(self) -> Tree:
        """All of it as a tree."""
        devices = tuple(sorted(self.devices.items()))
        return devices, self.optimizes, self.lowers_functions, self.flushes_denormals

    @classmethod
    def of_tree(cls, tree: Tree) -> Settings:
        """What a tree says."""
        devices, *flags = trees.parts(tree, 4)
        pairs = [trees.parts(pair, 2) for pair in trees.listed(devices)]
        optimizes, lowers, flushes = map(trees.flag, flags)
        return cls(
            devices={trees.text(kind): _count(number) for kind, number in pairs},
            optimizes=optimizes,
            lowers_functions=lowers,
            flushes_denormals=flushes,
        )


def _count(tree: Tree) -> int:
    found = trees.number(tree)
    if found > _MOST_DEVICES:
        trees.refuse(f"{found} devices of a type")
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """A step, with all that it depends on but its order."""

    #: A GraphDef message of what the step needs.
    graph: Message
    settings: Settings
    #: Endpoints that are fetched, and nodes that are run.
    fetches: tuple[str, ...]
    targets: tuple[str, ...]
    #: By endpoint.
    feeds: Mapping[str, Value]
    #: The state before the step.
    before: Snapshot


class Attempt(NamedTuple):
    """What came of a step."""

    #: What is fetched, by endpoint; empty if the step failed.
    results: Mapping[str, Any]
    error: OpError | None
    #: The state afterwards.
    after: Snapshot

    @property
    def ending(self) -> Ending:
        """The same as something that can be compared, and kept."""
        return Ending(
            digests={name: digest_of_value(value) for name, value in self.results.items()},
            code=Code.OK if self.error is None else self.error.code,
            message="" if self.error is None else self.error.message,
            state=digest_of_state(self.after),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """What came of a step."""

    #: The digest of each fetched value, by endpoint; empty if the step failed.
    digests: Mapping[str, int]
    #: The step's error, and what it said; OK if there was none.
    code: Code
    message: str
    #: The digest of the session's state afterwards.
    state: int

    def as_tree(self) -> Tree:
        """All of it as a tree."""
        return tuple(self.digests.items()), self.code.name, self.message, self.state

    @classmethod
    def of_tree(cls, tree: Tree) -> Ending:
        """What a tree says."""
        digests, code, message, state = trees.parts(tree, 4)
        pairs = [trees.parts(pair, 2) for pair in trees.listed(digests)]
        return cls(
            digests={trees.text(name): trees.number(digest) for name, digest in pairs},
            code=Code[trees.text(code)],
            message=trees.text(message),
            state=trees.number(state),
        )


class Stage:
    """A session in which one task is run any number of times; a context manager."""

    def __init__(self, task: Task, *, threads: int = 1, allow_files: bool = True) -> None:
        """Open it.

        Args:
            task: what is run.
            threads: how many threads run it.
            allow_files: whether it may reach files, and functions of Python.

        Raises:
            OpError: the graph is not acceptable, or a dataset cannot be made.

        """
        self._task: Final = task
        config = task.settings.config(threads=threads, allow_files=allow_files)
        self._session: Final = Session(task.graph, config=config)
        makers = lost(task.before)
        if makers:
            self._session.restore(before_datasets(task.before))
            self._session.run(makers)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._session.close()

    def attempt(self, order: StepOrder, timeout_in_ms: int = 0) -> Attempt:
        """Run the step once, from the state before it.

        Raises:
            OpError: the state cannot be had; not the step's own error.

        """
        session, task = self._session, self._task
        session.restore(task.before)
        results, error = [], None
        options = RunOptions(order=order, timeout_in_ms=timeout_in_ms)
        try:
            results = session.run([*task.fetches, *task.targets], task.feeds, options)
        except OpError as found:
            error = found
        after = session.snapshot(skip_unsupported=True)
        return Attempt(dict(zip(task.fetches, results, strict=False)), error, after)
