"""Work for several threads that takes every lock under which Penstock takes another one.

Run as a program, it prints which locks were taken under which, a line for each pair.
"""

from __future__ import annotations

import sys
import tempfile
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from support import lock_nesting  # before Penstock, whose locks it is to see

import numpy as np  # isort: skip

import penstock as ps  # isort: skip
from support.functions import graph_def_with  # isort: skip
from support.graphs import graph_def  # isort: skip

_THREADS = 4
_MODEL = Path(__file__).parents[1] / "saved_models" / "several_signatures" / "model"
_CALLS = """
    x = Placeholder[dtype=float32]
    y = PartitionedCall[Tin=float32; Tout=float32; f=Twice](x)
"""
_FUNCTIONS = """
    Twice(x: float32) -> (y: float32)
    sum = AddV2(x, x)
    return y = sum:z
"""
#: What a package with an op of its own does when it is imported.
_PACKAGE = """
import penstock as ps
ps.register_op("LockProbe(x: float32) -> (y: float32)")
ps.kernel("LockProbe")(lambda attrs: lambda x: x)
"""


def run() -> None:
    """All of the work, most of it by several threads at once."""
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(_THREADS) as threads:
        _install(Path(folder))
        for work in (_requests, _partial_runs, _executors, _strangers):
            graph = _graph(folder)
            config = ps.Config(device_count={"CPU": 2}, offload_seconds=0.0)
            with ps.Session(graph, config=config) as session:
                _together(threads, work, session)
                session.run("close")
                session.run("take:1")
        with ps.Session(graph_def_with(_CALLS, _FUNCTIONS)) as session:
            _together(threads, _calls, session)
            _together(threads, _replays, session)
        with ps.saved_model.load(_MODEL) as model:
            _together(threads, _signatures, model)


def _install(folder: Path) -> None:
    """Let there be a package with an op and its kernel."""
    (folder / "lock_probe.py").write_text(_PACKAGE, "utf-8")
    facts = folder / "lock_probe-1.0.dist-info"
    facts.mkdir()
    (facts / "METADATA").write_text("Name: lock_probe\nVersion: 1.0\n", "utf-8")
    (facts / "entry_points.txt").write_text("[penstock.ops]\nprobe = lock_probe\n", "utf-8")
    sys.path.insert(0, str(folder))


def _together(threads: ThreadPoolExecutor, work: Callable[..., None], session: Any) -> None:
    start = threading.Barrier(_THREADS)

    def begin(number: int) -> None:
        start.wait(30.0)
        work(session, number)

    for done in [threads.submit(begin, number) for number in range(_THREADS)]:
        done.result(60.0)


def _graph(folder: str) -> ps.Graph:
    graph, ops = ps.Graph(), ps.ops
    with graph.as_default():
        x = ps.placeholder("float32", [], name="x")
        with ps.device("/cpu:1"):
            far = ops.neg(x, name="far")
        ops.mul(far, x, name="near")
        ops.get_session_handle_v2(x, name="handle")
        ops.random_uniform([2], "float32", name="random")
        queue = ops.fifo_queue_v2(["float32"], name="queue")
        put = ops.queue_enqueue_v2(queue, [x], name="put")
        with ps.control_dependencies([put]):
            ops.queue_dequeue_v2(queue, ["float32"], name="get")
        array = ops.tensor_array_v3(1, dtype="float32", name="array")
        flow = ops.tensor_array_write_v3(array.handle, 0, x, array.flow)
        gradient = ops.tensor_array_grad_v3(array.handle, flow, source="g")
        ops.tensor_array_size_v3(gradient.grad_handle, gradient.flow_out, name="size")
        barrier = ops.barrier(["float32"], shapes=[[]], name="barrier")
        key = ops.as_string(ops.random_uniform([1], "float64"))
        insert = ops.barrier_insert_many(barrier, key, ops.reshape(x, [1]), component_index=0)
        with ps.control_dependencies([insert]):
            ops.barrier_ready_size(barrier, name="ready")
        with ps.control_dependencies([ops.barrier_insert_many(barrier, key, [1.0], 0)]):
            ops.barrier_close(barrier, name="close")
        ops.barrier_take_many(barrier, 1, ["float32"], name="take")
        writer = ops.summary_writer(shared_name="writer")
        ops.create_summary_file_writer(writer, folder, 1, 1, ".v2", name="events")
    return graph


def _requests(session: Any, number: int) -> None:
    value = np.float32(number + 1)
    for fetch in ("near:0", "handle:0", "random:0", "get:0", "size:0", "ready:0"):
        session.run(fetch, {"x:0": value})
        session.run([fetch, "far:0"], {"x:0": value})
    session.run("events")


def _partial_runs(session: Any, number: int) -> None:
    handle = session.partial_run_setup(["near:0", "get:0"], ["x:0"])
    session.partial_run(handle, ["near:0", "get:0"], {"x:0": np.float32(number)})


def _executors(_session: Any, number: int) -> None:
    graph = ps.Graph()
    with graph.as_default():
        ps.send(ps.receive("float32", "input") * 2.0, "output")
        ps.ops.mutex_v2()  # nothing has placed it, so its kernel's maker is looked for here
    rendezvous, manager = ps.Rendezvous(), ps.CancellationManager()
    rendezvous.recv_async("output", lambda *_: None, manager)
    rendezvous.send("input", np.float32(number))
    step = ps.StepState(rendezvous=rendezvous, cancellation_manager=manager)
    ps.new_local_executor(graph).run(ps.ExecutorArgs(step))


def _strangers(_session: Any, _number: int) -> None:
    """An op that nobody knows: the packages that may have it are imported."""
    proto = graph_def("x = Placeholder").SerializeToString()
    proto = proto.replace(b"Placeholder", b"UnheardOfOp")
    try:
        ps.Session(proto)
    except ps.errors.NotFoundError:
        return
    raise AssertionError("there is such an op")


def _replays(_session: Any, _number: int) -> None:
    graph = ps.Graph()
    with graph.as_default():
        ps.ops.random_uniform([2], "float32", name="random")
    ps.replay(ps.record(graph, "random:0", threads=_THREADS))


def _signatures(model: Any, number: int) -> None:
    for name in ("scale", "serving_default"):
        model.signatures[name](x=[float(number)])


def _calls(session: Any, number: int) -> None:
    assert session.run("y:0", {"x:0": np.float32(number)}) == 2 * number


if __name__ == "__main__":
    run()
    for outer, inner in sorted(lock_nesting.nestings):
        print(f"{outer}\t{inner}")
