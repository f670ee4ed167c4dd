"""One engine on one graph in a process of its own, at the command of ``measure``.

    python -m benchmarks.worker ENGINE FOLDER

In:   commands, one JSON list per line: ``["load"]``, ``["steps", seconds]``,
      ``["threads", count, seconds]``, ``["results", path]``, ``["follow", path, steps]``,
      ``["turn_to", folder]``.
Out:  one JSON object per line; ``{"error": text}`` if the engine cannot do it.
Not:  compares nothing and takes no medians over rounds.

The first line it writes comes when the engine is imported and the feeds are read, or says why
they cannot be.
"""

from __future__ import annotations

import json
import os
import statistics
import sys
import time
from array import array
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from benchmarks.cases import Case, agree, write_arrays

#: Steps before the clock starts, unless they are long.
WARM_STEPS, WARM_SECONDS = 20, 0.2
LEAST_STEPS = 3
#: As many as are timed one by one: their numbers are in memory, which is measured, too.
MOST_STEPS = 10_000


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

        config = ps.Config(device_count={"CPU": case.devices}, graph_options=self._options(ps))
        self._session = ps.Session(data, config=config)
        if case.init_op:
            self._session.run(case.init_op)
        self._call = self._session.make_callable(case.fetches, list(case.feeds))
        self._feeds = feeds

    @staticmethod
    def _options(ps: Any) -> Any:
        return ps.GraphOptions()

    def run(self) -> list[Any]:
        """Make one step."""
        results: list[Any] = self._call(*self._feeds)
        return results

    def close(self) -> None:
        """Give up the session."""
        self._session.close()


class CompiledModel(PenstockModel):
    """The same, with regions that are programs besides loops."""

    @staticmethod
    def _options(ps: Any) -> Any:
        level = ps.OptimizerOptions.ON_1
        return ps.GraphOptions(optimizer_options=ps.OptimizerOptions(global_jit_level=level))


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


class OnnxRuntimeModel:
    """What tf2onnx made of a graph, in a session of ONNX Runtime with its defaults."""

    def __init__(self, case: Case, data: bytes, feeds: list[Any]) -> None:
        import onnxruntime  # noqa: PLC0415  (not every interpreter has it)

        self._session = onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"])
        self._fetches = case.fetches
        self._fed = dict(zip(case.feeds, feeds, strict=True))

    def run(self) -> list[Any]:
        """Make one step."""
        results: list[Any] = self._session.run(self._fetches, self._fed)
        return results

    def close(self) -> None:
        """Give up the session."""
        del self._session


class OpenVinoModel:
    """A graph as OpenVINO reads it, for shapes that it is told, and otherwise with its defaults.

    Only that it computes in float32 is asked for: by itself it takes less where the processor
    can, and answers agree no longer.
    """

    def __init__(self, case: Case, data: bytes, feeds: list[Any]) -> None:
        import openvino  # noqa: PLC0415  (not every interpreter has it)

        del data  # it reads files only
        core = openvino.Core()
        model = core.read_model(case.folder / "graph.pb")
        shapes = {name: value.shape for name, value in zip(case.feeds, feeds, strict=True)}
        model.reshape({port: shapes[_fed_name(port, shapes)] for port in model.inputs})
        compiled = core.compile_model(model, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
        values = dict(zip(case.feeds, feeds, strict=True))
        self._fed = [values[_fed_name(port, shapes)] for port in compiled.inputs]
        self._ports = [compiled.output(name) for name in case.fetches]
        self._request = compiled.create_infer_request()

    def run(self) -> list[Any]:
        """Make one step."""
        found = self._request.infer(dict(enumerate(self._fed)), share_inputs=True)
        return [found[port] for port in self._ports]

    def close(self) -> None:
        """Give up the request."""
        del self._request


def answers_of(model: Model, steps: int) -> list[Any]:
    """What some steps give, one after the other."""
    return [result for _ in range(steps) for result in model.run()]


def _fed_name(port: Any, names: Iterable[str]) -> str:
    """What is fed at an input, which OpenVINO knows by several names."""
    known = port.get_names()
    return next(name for name in names if name in known or name.partition(":")[0] in known)


def _graph_of(case: Case) -> bytes:
    return case.graph_bytes


def _onnx_of(case: Case) -> bytes:
    if not case.onnx_path.is_file():
        raise FileNotFoundError("no model of ONNX: see benchmarks.make_onnx")
    return case.onnx_path.read_bytes()


@dataclass(frozen=True, slots=True)
class Engine:
    """What runs graphs."""

    #: What is imported.
    module: str
    make: Callable[[Case, bytes, list[Any]], Model]
    #: The bytes that a model is made of, which are read before the clock starts.
    bytes_of: Callable[[Case], bytes] = _graph_of


ENGINES: dict[str, Engine] = {
    "penstock": Engine("penstock", PenstockModel),
    "penstock-jit": Engine("penstock", CompiledModel),
    "tensorflow": Engine("tensorflow", TensorFlowModel),
    "onnxruntime": Engine("onnxruntime", OnnxRuntimeModel, _onnx_of),
    "openvino": Engine("openvino", OpenVinoModel),
}


class Worker:
    """What the commands are about."""

    def __init__(self, engine: str, case: Case) -> None:
        self._engine = ENGINES[engine]
        __import__(self._engine.module)
        self._case, self._feeds = case, case.fed()
        self._data = self._engine.bytes_of(case)
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
        self._feeds, self._data = self._case.fed(), self._engine.bytes_of(self._case)
        return {}

    def load(self) -> dict[str, Any]:
        """Seconds from the GraphDef's bytes to the first result, in a fresh session."""
        if self._model is not None:
            self._model.close()
        start = time.perf_counter()
        self._model = self._engine.make(self._case, self._data, self._feeds)
        first = self._model.run()
        seconds = time.perf_counter() - start
        self._first = [*first, *answers_of(self._model, self._case.steps - 1)]
        return {"seconds": seconds}

    def steps(self, budget: float) -> dict[str, Any]:
        """The median step of about ``budget`` seconds of them, and the memory it took."""
        assert self._model is not None
        run, clock = self._model.run, time.perf_counter
        end = clock() + min(budget, WARM_SECONDS)
        for _ in range(WARM_STEPS):
            run()
            if clock() > end:
                break
        times = array("d")
        end = clock() + budget
        while len(times) < LEAST_STEPS or (clock() < end and len(times) < MOST_STEPS):
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
        found = [*self._first, *answers_of(self._model, count - self._case.steps)]
        write_arrays(Path(path), found[: count * len(self._case.fetches)])
        return {}

    def results(self, path: str) -> dict[str, Any]:
        """Store what the first steps after the last ``load`` gave."""
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
    try:
        worker = Worker(engine, Case.read(Path(folder)))
    except (ImportError, OSError) as error:
        print(json.dumps({"error": str(error)}), file=replies, flush=True)
        return
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
