"""One engine on one graph in a process of its own, at the command of ``measure``.

    python -m benchmarks.worker ENGINE FOLDER

In:   commands, one JSON list per line: ``["load"]``, ``["steps", seconds]``,
      ``["threads", count, seconds]``, ``["results", path]``, ``["follow", path, steps]``,
      ``["turn_to", folder]``.
Out:  one JSON object per line; ``{"error": text}`` if the engine cannot do it.
Not:  compares nothing and takes no medians over rounds.

The first line it writes comes when the engine is imported and the feeds are read.
"""

from __future__ import annotations

import json
import os
import statistics
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Protocol

from benchmarks.cases import Case, agree, write_arrays

#: Steps before the clock starts, unless they are long.
WARM_STEPS, WARM_SECONDS = 20, 0.2
LEAST_STEPS = 3


class Model(Protocol):
    """A graph in a session."""

    def run(self) -> list[Any]:
        """Make one step."""

    def close(self) -> None:
        """Give up the session."""


class PenstockModel:
    """A graph in a session of Penstock."""

    def __init__(self, case: Case, data: bytes, feeds: list[Any]) -> None:
        import penstock as ps  # noqa: PLC0415  (its cost is measured)

        config = ps.Config(device_count={"CPU": case.devices})
        self._session = ps.Session(data, config=config)
        if case.init_op:
            self._session.run(case.init_op)
        self._call = self._session.make_callable(case.fetches, list(case.feeds))
        self._feeds = feeds

    def run(self) -> list[Any]:
        """Make one step."""
        results: list[Any] = self._call(*self._feeds)
        return results

    def close(self) -> None:
        """Give up the session."""
        self._session.close()


class TensorFlowModel:
    """A graph in a session of TensorFlow, by the way its own users go."""

    def __init__(self, case: Case, data: bytes, feeds: list[Any]) -> None:
        import tensorflow as tf  # noqa: PLC0415  (not every interpreter has it)

        tf1 = tf.compat.v1
        graph_def = tf1.GraphDef()
        graph_def.ParseFromString(data)
        graph = tf1.Graph()
        with graph.as_default():
            tf1.import_graph_def(graph_def, name="")
        config = tf1.ConfigProto(device_count={"CPU": case.devices})
        self._session = tf1.Session(graph=graph, config=config)
        if case.init_op:
            self._session.run(case.init_op)
        fed = [graph.get_tensor_by_name(name) for name in case.feeds]
        self._call = self._session.make_callable(case.fetches, fed)
        self._feeds = feeds

    def run(self) -> list[Any]:
        """Make one step."""
        results: list[Any] = self._call(*self._feeds)
        return results

    def close(self) -> None:
        """Give up the session."""
        self._session.close()


ENGINES: dict[str, tuple[str, Callable[[Case, bytes, list[Any]], Model]]] = {
    "penstock": ("penstock", PenstockModel),
    "tensorflow": ("tensorflow", TensorFlowModel),
}


class Worker:
    """What the commands are about."""

    def __init__(self, engine: str, case: Case) -> None:
        module, self._make = ENGINES[engine]
        __import__(module)
        self._case, self._feeds = case, case.fed()
        self._data = case.graph_bytes
        self._model: Model | None = None
        self._first: list[Any] = []
        #: Resident bytes before any graph was loaded.
        self._at_rest = memory("VmRSS")

    def turn_to(self, folder: str) -> dict[str, Any]:
        """Leave this case for another."""
        if self._model is not None:
            self._model.close()
        self._model, self._first = None, []
        self._case = Case.read(Path(folder))
        self._feeds, self._data = self._case.fed(), self._case.graph_bytes
        return {}

    def load(self) -> dict[str, Any]:
        """Seconds from the GraphDef's bytes to the first result, in a fresh session."""
        if self._model is not None:
            self._model.close()
        start = time.perf_counter()
        self._model = self._make(self._case, self._data, self._feeds)
        self._first = self._model.run()
        return {"seconds": time.perf_counter() - start}

    def steps(self, budget: float) -> dict[str, Any]:
        """The median step of about ``budget`` seconds of them, and the memory it took."""
        assert self._model is not None
        run, clock = self._model.run, time.perf_counter
        end = clock() + min(budget, WARM_SECONDS)
        for _ in range(WARM_STEPS):
            run()
            if clock() > end:
                break
        times: list[float] = []
        end = clock() + budget
        while len(times) < LEAST_STEPS or clock() < end:
            start = clock()
            run()
            times.append(clock() - start)
        peak = memory("VmHWM") - self._at_rest
        return {"seconds": statistics.median(times), "count": len(times), "bytes": peak}

    def threads(self, count: int, budget: float) -> dict[str, Any]:
        """Seconds per step, with so many threads that make steps of one session side by side."""
        assert self._model is not None
        run, first, start = self._model.run, self._first, time.perf_counter()

        def work(_: int) -> int:
            done, results = 0, first
            while time.perf_counter() < start + budget or not done:
                results = run()
                done += 1
            if not agree(results, first):
                raise ValueError("another result beside other threads")
            return done

        with ThreadPoolExecutor(count) as pool:
            done = sum(pool.map(work, range(count)))
        seconds = (time.perf_counter() - start) / done
        return {"seconds": seconds, "count": done, "bytes": memory("VmHWM") - self._at_rest}

    def follow(self, path: str, count: int) -> dict[str, Any]:
        """Store what each of the first steps of a fresh session gave, one after the other."""
        self.load()
        assert self._model is not None
        found = list(self._first)
        for _ in range(count - 1):
            found += self._model.run()
        write_arrays(Path(path), found)
        return {}

    def results(self, path: str) -> dict[str, Any]:
        """Store what the first step after the last ``load`` gave."""
        write_arrays(Path(path), self._first)
        return {}


def memory(field: str) -> int:
    """``VmRSS`` (resident bytes now) or ``VmHWM`` (at most, so far); 0 where unknown."""
    status = Path("/proc/self/status")
    lines = status.read_text("ascii").splitlines() if status.is_file() else []
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith(field)), 0)


def main() -> None:
    """Obey until there are no more commands."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    engine, folder = sys.argv[1:]
    # Engines may write to the standard output themselves.
    replies = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    start = time.perf_counter()
    worker = Worker(engine, Case.read(Path(folder)))
    print(json.dumps({"seconds": time.perf_counter() - start}), file=replies, flush=True)
    for line in sys.stdin:
        command, *values = json.loads(line)
        try:
            reply = getattr(worker, command)(*values)
        except Exception as error:  # noqa: BLE001  (that an engine cannot is an answer)
            reply = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(reply), file=replies, flush=True)


if __name__ == "__main__":
    main()
