"""Work for a cluster of three tasks in this process, which takes the cluster's locks.

Run as a program, it prints which locks were taken under which, a line for each pair.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

from support import lock_nesting  # before Penstock, whose locks it is to see

import numpy as np  # isort: skip

import penstock as ps  # isort: skip
from support.clusters import new_cluster, serving  # isort: skip

_TASKS = 3


def run() -> None:
    """Sessions at all tasks, side by side."""
    options = {"heartbeat_seconds": 2, "session_gc_seconds": 5}
    with serving(new_cluster(worker=_TASKS), **options) as servers:
        with ThreadPoolExecutor(2 * _TASKS) as threads:
            for work in (_steps, _exchanges, _ends):
                for done in [threads.submit(work, n, s) for n, s in enumerate(servers)]:
                    done.result(60)
        for server in servers:
            server.metrics.text()
        ps.Session.reset(servers[0].target)


def _graph(task: int) -> ps.Graph:
    graph = ps.Graph()
    with graph.as_default():
        x = ps.placeholder(ps.dtypes.float32, None, name="x")
        with ps.device(f"/job:worker/task:{(task + 1) % _TASKS}"):
            ps.Variable(np.float32(0), name=f"v{task}")
            y = ps.identity(x * 2.0, name="y")
            queue = ps.ops.FIFOQueueV2(component_types=[ps.dtypes.float32], shapes=[[]], name="q")
            ps.ops.QueueDequeueV2(handle=queue, component_types=[ps.dtypes.float32], name="take")
        ps.identity(y + 1.0, name="z")
        with ps.device(f"/job:worker/task:{task}"):
            ps.ops.CollectiveReduce(
                input=ps.constant(np.ones(4, np.float32)), group_size=_TASKS, group_key=1,
                instance_key=1, merge_op="Add", final_op="Id", subdiv_offsets=[0], name="sum",
            )  # fmt: skip
        ps.group(ps.global_variables_initializer(), name="init")
    return graph


def _steps(task: int, server: Any) -> None:
    """Small and large values, extensions, callables, partial runs."""
    graph = _graph(task)
    with ps.Session(graph, target=server.target) as session:
        session.run("init")
        for size in (1, 1, 1, 1, 100_000, 3_000_000):
            session.run(["z:0"], {"x:0": np.ones(size, np.float32)})
        session.run("z:0", {"x:0": 1.0}, ps.RunOptions(trace_level=ps.TraceLevel.FULL_TRACE))
        with graph.as_default():
            more = ps.constant(1.0) + 1.0
        session.run(more)
        call = session.make_callable("z:0", ["x:0"])
        call(1.0)
        handle = session.partial_run_setup(["z:0"], ["x:0"])
        session.partial_run(handle, "z:0", {"x:0": 1.0})
        session.list_devices()


def _exchanges(task: int, server: Any) -> None:
    with ps.Session(_graph(task), target=server.target) as session:
        for _ in range(5):
            session.run("sum:0")


def _ends(task: int, server: Any) -> None:
    """Steps that are cancelled, late, or wrong."""
    with ps.Session(_graph(task), target=server.target) as session:
        for options in (ps.RunOptions(timeout_in_ms=200), ps.RunOptions()):
            run = session.run_async("take:0", options=options)
            if not options.timeout_in_ms:
                run.cancel()
            try:
                run.result(30)
            except ps.errors.OpError:
                continue
            raise AssertionError


if __name__ == "__main__":
    run()
    for outer, inner in sorted(lock_nesting.nestings):
        print(f"{outer}\t{inner}")
