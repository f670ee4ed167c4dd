"""Drive workers, in turn, and gather what they say.

In:   a case, and an interpreter for each engine.
Out:  one ``Measurement`` for each.
Not:  runs no graph in this process.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import tempfile
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from benchmarks.cases import ROOT, Case, agree, read_arrays

#: A case whose first load takes longer than this is not loaded again.
SLOW_LOAD = 4.0
#: Seconds of a load, or of some steps, after which an engine is given up unless somebody says
#: otherwise.
PATIENCE: Final = 60.0


@dataclass(frozen=False, slots=True)
class Measurement:
    """What one engine did with one case."""

    #: Seconds of each load: from the GraphDef's bytes to the first result.
    loads: list[float] = field(default_factory=list)
    #: The median step of each round, in seconds.
    rounds: list[float] = field(default_factory=list)
    #: What loading and stepping added to the process at its peak.
    bytes: int = 0
    results: list[Any] = field(default_factory=list)
    #: Why there is nothing else here; empty if there is.
    error: str = ""

    @property
    def step(self) -> float:
        """Seconds of the median round's median step."""
        return statistics.median(self.rounds)

    @property
    def load(self) -> float:
        """Seconds of the median load."""
        return statistics.median(self.loads)

    def as_json(self, case: Case) -> dict[str, Any]:
        """The numbers, without the results."""
        if self.error:
            return {"group": case.group, "error": self.error}
        return {
            "group": case.group,
            "step_seconds": self.step,
            "seconds_per_unit": self.step / case.units,
            "load_seconds": self.load,
            "peak_bytes": self.bytes,
            "rounds": self.rounds,
            "loads": self.loads,
        }


def plain_environment() -> dict[str, str]:
    """The environment without what a shell may force, and users have otherwise.

    Numpy's library takes the processor for what it is, and what is imported has its bytecode.
    """
    forced = {"OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE", "PYTHONDONTWRITEBYTECODE"}
    return {name: value for name, value in os.environ.items() if name not in forced}


class WorkerError(Exception):
    """The engine said why it cannot do what it was asked."""


class Client:
    """A worker process, from outside."""

    def __init__(
        self,
        engine: str,
        python: str,
        case: Case,
        settings: Mapping[str, str] | None = None,
        limit: float | None = None,
    ) -> None:
        """Start it; a reply that takes more than ``limit`` seconds ends it with a WorkerError."""
        self._limit = limit
        #: Whether the process was ended since a reply took too long; set before it ends.
        self._is_late = False
        self._process = subprocess.Popen(
            [python, "-m", "benchmarks.worker", engine, str(case.folder)],
            cwd=ROOT,
            env={**plain_environment(), **(settings or {})},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        try:
            self._reply()
        except WorkerError:
            self.close()
            raise

    def ask(self, *command: Any) -> dict[str, Any]:
        """Send a command and wait for what it gives; raises WorkerError."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(command) + "\n")
        self._process.stdin.flush()
        return self._reply()

    def _reply(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        late = threading.Timer(self._limit, self._end_late) if self._limit is not None else None
        if late is not None:
            late.start()
        line = self._process.stdout.readline()
        if late is not None:
            late.cancel()
        if not line:
            raise WorkerError(
                f"took more than {self._limit:g} s" if self._is_late else "the process ended"
            )
        reply: dict[str, Any] = json.loads(line)
        if "error" in reply:
            raise WorkerError(reply["error"])
        return reply

    def _end_late(self) -> None:
        self._is_late = True
        self._process.kill()

    def close(self) -> None:
        """End the process."""
        self._process.communicate()


def measure(
    case: Case,
    pythons: Mapping[str, str],
    rounds: int,
    seconds: float,
    *,
    threads: int | None = None,
    limit: float | None = None,
) -> dict[str, Measurement]:
    """Measure a case with each engine, alternately, so that what slows the machine slows all.

    Args:
        case: what is measured.
        pythons: the interpreter of each engine.
        rounds: how often each is loaded and makes steps.
        seconds: how long the steps of a round go on.
        threads: how many make steps side by side, of which the mean counts; None for one by one.
        limit: seconds after which an engine that is still loading or at its steps is given up.

    """
    command = ("steps", seconds) if threads is None else ("threads", threads, seconds)
    found = {engine: Measurement() for engine in pythons}
    clients: dict[str, Client] = {}
    try:
        for engine, python in pythons.items():
            try:
                clients[engine] = Client(engine, python, case, limit=limit)
            except WorkerError as error:
                found[engine].error = str(error)
        for _ in range(rounds):
            for engine, client in clients.items():
                _measure_once(client, found[engine], command)
        for engine, client in clients.items():
            _take_results(client, found[engine])
    finally:
        for client in clients.values():
            client.close()
    return found


def _measure_once(client: Client, found: Measurement, command: tuple[Any, ...]) -> None:
    if found.error:
        return
    try:
        if not found.loads or found.loads[0] < SLOW_LOAD:
            found.loads.append(client.ask("load")["seconds"])
        reply = client.ask(*command)
    except WorkerError as error:
        found.error = str(error).splitlines()[0]
        return
    found.rounds.append(reply["seconds"])
    found.bytes = max(found.bytes, reply["bytes"])


def _take_results(client: Client, found: Measurement) -> None:
    if found.error:
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "results.npz"
        client.ask("results", str(path))
        found.results = read_arrays(path)


def verdict(case: Case, found: Sequence[Measurement]) -> str:
    """``""`` if all results are the stored ones, or else each other's; or what is wrong."""
    wrong = next((one.error for one in found if one.error), "")
    if wrong:
        return wrong
    wanted = case.expected() or found[0].results
    return (
        "" if all(agree(one.results, wanted, case.tolerance) for one in found) else "WRONG RESULT"
    )
