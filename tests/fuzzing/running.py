"""Run a mutant in one way, and note what comes of each step.

In:   a mutant, and a way of running graphs.
Out:  one ``Outcome`` per step, up to the first that makes the others meaningless.
Not:  compares nothing.
"""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import numpy as np

import penstock as ps
from fuzzing.answers import Failure, Outcome, Values
from fuzzing.mutant import Mutant, Run
from fuzzing.orders import keeping_back
from penstock.config import (
    GraphOptions,
    Level,
    OptimizerOptions,
    RewriterConfig,
    Tier,
    Toggle,
)
from support.corpus import replaced
from support.tiers import leaving_some_out

#: An endless loop ends after so many milliseconds.
TIMEOUT_MS: Final = 1500
#: What stands for the folder that steps may write to.
_FOLDER: Final = b"@TMP@"


@dataclass(frozen=True, slots=True)
class Way:
    """One way of running graphs."""

    name: str
    tier: Tier
    options: GraphOptions
    #: Shuffles ready nodes; None takes them as they come.
    order: int | None = None
    #: Nodes that are taken last, by step; the last set is for all later steps as well.
    kept_back: tuple[frozenset[str], ...] = ()
    #: Leaves nodes to the executor by chance; None compiles what can be.
    left_out: int | None = None
    #: Whether graphs are compared with their laws after every pass, and values with their types.
    is_checked: bool = False
    #: How far floats may be from those of the definition, relative to their size.
    tolerance: float = 0.0
    #: How many times more time there is than usually.
    patience: int = 1

    @property
    def is_optimised(self) -> bool:
        """Whether the graph that runs is not the one that was given."""
        return self.options != GraphOptions.nothing()


#: What a graph means.
DEFINITION: Final = Way("executor", Tier.DATAFLOW, GraphOptions.nothing())
#: The same with values compared with their types: who does that sees a mistake earlier.
CHECKED: Final = replace(DEFINITION, name="executor, checked", is_checked=True)
#: The same with the bodies of functions where they are called, so that what they do mixes.
OPENED: Final = Way(
    "executor, functions opened",
    Tier.DATAFLOW,
    GraphOptions(
        optimizer_options=OptimizerOptions(opt_level=Level.L0),
        rewrite_options=RewriterConfig(function_optimization=Toggle.ON),
    ),
)
_EXACT: Final = GraphOptions(rewrite_options=RewriterConfig(remapping=Toggle.OFF))


def ways(seed: int) -> list[Way]:
    """The other ways, some chosen by a seed."""
    plain = GraphOptions.nothing()
    return [
        Way("compiled", Tier.COMPILED, plain),
        Way(f"in parts {seed}", Tier.COMPILED, plain, order=seed, left_out=seed),
        Way("as by default", Tier.COMPILED, GraphOptions(), tolerance=1e-4)
        if seed % 2
        else Way("optimised", Tier.COMPILED, _EXACT, is_checked=True),
        Way(f"optimised, in parts {seed}", Tier.COMPILED, _EXACT, order=seed, left_out=seed)
        if seed % 3
        else Way("optimised, executor", Tier.DATAFLOW, _EXACT, is_checked=True),
    ]


def outcomes(mutant: Mutant, way: Way) -> list[Outcome]:
    """What comes of a mutant's steps."""
    found: list[Outcome] = []
    with (
        tempfile.TemporaryDirectory() as folder,
        _quiet(),
        leaving_some_out(way.left_out),
        keeping_back(way.kept_back) as lateness,
    ):
        try:
            with ps.Session(mutant.graph_bytes, config=_config(mutant, way)) as session:
                for lateness.step, step in enumerate(mutant.steps):
                    found.append(_outcome(session, step, way, folder.encode()))
                    if isinstance(found[-1], Failure):
                        break
        except Exception as error:  # noqa: BLE001  (told apart where outcomes are judged)
            found.append(_failure(error))
        _forget_files(Path(folder))
    return found


def _config(mutant: Mutant, way: Way) -> ps.Config:
    return ps.Config(
        tier=way.tier,
        graph_options=way.options,
        device_count={"CPU": mutant.device_count},
        ready_order_seed=way.order,
        check_graphs=way.is_checked,
        check_outputs=way.is_checked,
        accelerate=False,
        inter_op_parallelism_threads=2 if way.tier is Tier.COMPILED else 1,
    )


def _outcome(session: ps.Session, step: Run, way: Way, folder: bytes) -> Outcome:
    feeds = {name: _in_folder(value, folder) for name, value in step.feeds.items()}
    try:
        options = ps.RunOptions(timeout_in_ms=TIMEOUT_MS * way.patience)
        call = session.make_callable([*step.fetches, *step.targets], list(feeds), options)
        values = call(*feeds.values())[: len(step.fetches)]
    except Exception as error:  # noqa: BLE001  (told apart where outcomes are judged)
        return _failure(error)
    return Values(tuple(_without_folder(value, folder) for value in values))


def _failure(error: Exception) -> Failure:
    if isinstance(error, ps.errors.OpError):
        return Failure(error.code.name, error.node_name or "", error.message)
    return Failure(f"({type(error).__name__})", "", f"{type(error).__name__}: {error}")


def _in_folder(value: Any, folder: bytes) -> Any:
    return replaced(value, _FOLDER, folder) if _is_text(value) else value


def _without_folder(value: Any, folder: bytes) -> Any:
    # As numpy's own kind of text, a scalar would lose its last zeros.
    array = np.array(bytes(value), object) if isinstance(value, bytes) else np.asarray(value)
    return replaced(array, folder, _FOLDER) if _is_text(array) else array


def _is_text(value: Any) -> bool:
    is_object = isinstance(value, np.ndarray) and value.dtype == object
    return is_object and all(isinstance(item, bytes) for item in value.flat)


def _forget_files(folder: Path) -> None:
    """Let the folder be removed, whatever has been made of it."""
    if not folder.is_dir():
        folder.unlink(missing_ok=True)
        folder.mkdir()


@contextmanager
def _quiet() -> Iterator[None]:
    """No warnings, but that of an optimiser which has failed: that is an error here."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.filterwarnings("error", message="The graph runs as it is")
        yield
