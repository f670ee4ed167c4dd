"""Worker processes with limits: each judges one recipe after the other, and may die of it.

In:   recipes.
Out:  a ``Report`` for each, in any order; a worker that takes too long, or dies, is a finding.
Not:  knows nothing of graphs.
"""

from __future__ import annotations

import json
import os
import selectors
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Final

from fuzzing.recipe import Recipe
from fuzzing.verdict import Kind

#: What each run of each graph may take: seconds of processors, and bytes.
SECONDS: Final = 5.0
BYTES: Final = 4 << 30
#: Seconds by the clock, after which a run is taken to hang.
_HANGING: Final = 300.0
#: A worker makes way for a new one after so many recipes, so that what leaks does not add up.
_LIFE: Final = 300
_TESTS: Final = Path(__file__).parent.parent


@dataclass(frozen=True, slots=True)
class Report:
    """What became of one recipe."""

    recipe: Recipe
    kind: str
    #: How the definition ended.
    ending: str
    reason: str
    trail: tuple[str, ...]
    seconds: float

    def as_json(self) -> dict[str, Any]:
        """All of it, to be written down; ``Recipe.of`` takes it."""
        return {**self.recipe.as_json(), "reason": self.reason, "trail": self.trail}


class Worker:
    """One process."""

    def __init__(self) -> None:
        search = os.pathsep.join([str(_TESTS), *filter(None, sys.path)])
        self._process = subprocess.Popen(
            [sys.executable, "-m", "fuzzing.worker", str(BYTES)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": search},
        )
        assert self._process.stdout is not None
        self.output: IO[bytes] = self._process.stdout
        os.set_blocking(self.output.fileno(), False)
        self.done = 0
        #: What it works on; None if it waits.
        self.recipe: Recipe | None = None
        #: What it does with that, and how many times more time it has for it than usually.
        self._way, self._patience = "", 1
        self._begun = self._since = self._used = 0.0
        self._read = b""

    def give(self, recipe: Recipe) -> None:
        """Have it work on something."""
        assert self._process.stdin is not None
        self.recipe = recipe
        self._begun = time.monotonic()
        self._starts("starting", 1)
        self._process.stdin.write(json.dumps(recipe.as_json()).encode() + b"\n")
        self._process.stdin.flush()

    def hear(self) -> Report | None:
        """What it says; a report if it is done, or dead."""
        assert self.recipe is not None
        data = self.output.read()
        if not data:
            return self._found(f"died while it was {self._way}: {self._status()}")
        self._read += data
        *lines, self._read = self._read.split(b"\n")
        for line in lines:
            said = json.loads(line)
            if "way" in said:
                self._starts(said["way"], said["patience"])
                continue
            self.done += 1
            return self._report(said["verdict"], said["ending"], said["reason"], said["trail"])
        return None

    def _starts(self, way: str, patience: int) -> None:
        self._way, self._patience = way, patience
        self._since, self._used = time.monotonic(), self._processor_seconds()

    def late(self) -> Report | None:
        """A report if it has taken too long; it is ended then."""
        if self.recipe is None:
            return None
        used = self._processor_seconds() - self._used
        seconds = time.monotonic() - self._since
        # The first thing that a process does is to import everything.
        if self._way == "starting":
            used = 0.0
        if used <= SECONDS * self._patience and seconds <= _HANGING * self._patience:
            return None
        self.end()
        return self._found(f"{self._way}: {used:.1f} processor seconds in {seconds:.1f} seconds")

    def _processor_seconds(self) -> float:
        """What the process has had of all processors."""
        try:
            text = Path(f"/proc/{self._process.pid}/stat").read_text("utf-8")
        except OSError:
            return 0.0
        user, system = text.rpartition(")")[2].split()[11:13]
        return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")

    def end(self) -> None:
        """End the process."""
        with self._process:
            self._process.kill()

    def _status(self) -> int:
        return self._process.wait()

    def _found(self, reason: str) -> Report:
        self.done = _LIFE
        mutant = None if self._way == "making it" else self.recipe and self.recipe.mutant()
        return self._report(Kind.FINDING.name, "none", reason, mutant.trail if mutant else [])

    def _report(self, kind: str, ending: str, reason: str, trail: list[str]) -> Report:
        recipe, self.recipe = self.recipe, None
        assert recipe is not None
        return Report(recipe, kind, ending, reason, tuple(trail), time.monotonic() - self._begun)


def judged(recipes: Iterable[Recipe], jobs: int) -> Iterator[Report]:
    """Reports of recipes, as they come."""
    waiting = iter(recipes)
    workers = [Worker() for _ in range(jobs)]
    try:
        while True:
            _hand_out(workers, waiting)
            if not any(worker.recipe for worker in workers):
                return
            yield from _heard(workers)
    finally:
        for worker in workers:
            worker.end()


def _hand_out(workers: list[Worker], waiting: Iterator[Recipe]) -> None:
    for index, worker in enumerate(workers):
        if worker.recipe is not None:
            continue
        recipe = next(waiting, None)
        if recipe is None:
            return
        if worker.done >= _LIFE:
            worker.end()
            workers[index] = Worker()
        workers[index].give(recipe)


def _heard(workers: list[Worker]) -> Iterator[Report]:
    """What workers say within a moment."""
    with selectors.DefaultSelector() as selector:
        for worker in workers:
            if worker.recipe is not None:
                selector.register(worker.output, selectors.EVENT_READ, worker)
        for key, _ in selector.select(0.2):
            worker = key.data
            report = worker.hear()
            if report is not None:
                yield report
    for worker in workers:
        report = worker.late()
        if report is not None:
            yield report
