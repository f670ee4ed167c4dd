"""How near predictions come: steps on tasks of this machine, simulated and run, side by side.

    python -m benchmarks.simulation [--tasks 1 2 4] [--rounds 25] [--json FILE]

Nodes are measured in this process, on one thread; calls and transfers on the cluster itself, with
graphs that compute nothing.  Nothing of the graphs below is known to the simulator but that.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import penstock as ps
from benchmarks.local_cluster import SETTINGS, calibrated, costs_of, held, median_ms, on_worker
from penstock.cluster import launch
from penstock.session.graphs import graph_of
from penstock.simulator import Forecast
from penstock.simulator.machine import Job

#: Rows and columns of matrices.
SIZE = 640


def matrix(name: str) -> Any:
    """A variable's value, whose powers stay small."""
    draw = np.random.default_rng(len(name))
    return held((draw.standard_normal((SIZE, SIZE)) / SIZE).astype(np.float32), name)


def products(value: Any, count: int) -> Any:
    """One product after the other."""
    for _ in range(count):
        value = ps.ops.mat_mul(value, value)
    return value


def joined(parts: list[Any]) -> Any:
    """The mean of what all tasks have, on the first one."""
    with on_worker(0):
        total = ps.ops.add_n(parts) if len(parts) > 1 else parts[0]
        return ps.ops.mean(total, np.arange(total.shape.rank, dtype=np.int32))


def pipeline(tasks: int) -> Any:
    """Eight products in a row, each task some of them."""
    with on_worker(0):
        value = matrix("first")
    for number in range(8):
        with on_worker(number * tasks // 8):
            value = products(value, 1)
    return joined([value])


def branches(tasks: int) -> Any:
    """Six products on every task, side by side."""
    parts = []
    for task in range(tasks):
        with on_worker(task):
            parts.append(products(matrix(f"branch_{task}"), 6))
    return joined(parts)


def uneven(tasks: int) -> Any:
    """More products on each task than on the one before."""
    parts = []
    for task in range(tasks):
        with on_worker(task):
            parts.append(products(matrix(f"uneven_{task}"), 2 + 2 * task))
    return joined(parts)


def tensors(tasks: int) -> Any:
    """16 MB from every task to the first one."""
    parts = []
    for task in range(tasks):
        with on_worker(task):
            parts.append(held(np.ones(4 << 20, np.float32), f"tensor_{task}") * 2.0)
    return joined(parts)


def convolutions(tasks: int) -> Any:
    """Three convolutions on every task."""
    parts = []
    draw = np.random.default_rng(1)
    for task in range(tasks):
        with on_worker(task):
            value = held(draw.standard_normal((4, 56, 56, 64), np.float32), f"images_{task}")
            filters = held(draw.standard_normal((3, 3, 64, 64), np.float32) / 24, f"filter_{task}")
            for _ in range(3):
                value = ps.ops.relu(
                    ps.ops.conv_2d(value, filters, strides=[1, 1, 1, 1], padding="SAME")
                )
            parts.append(ps.ops.mean(value, [0, 1, 2]))
    return joined(parts)


def loops(tasks: int) -> Any:
    """A loop of forty products of smaller matrices on every task."""
    parts = []
    for task in range(tasks):
        with on_worker(task):
            value = held(np.float32(np.eye(320)), f"state_{task}")
            zero = ps.constant(np.int32(0))
            out = ps.while_loop(
                lambda i, _: i < 40, lambda i, v: (i + 1, ps.ops.mat_mul(v, v)), [zero, value]
            )
            parts.append(out[1])
    return joined(parts)


GRAPHS: dict[str, Callable[[int], Any]] = {
    made.__name__: made for made in (pipeline, branches, uneven, tensors, convolutions, loops)
}


def main() -> None:
    """Print a line for each graph and number of tasks."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--tasks", type=int, nargs="*", default=[1, 2, 4])
    parser.add_argument("--rounds", type=int, default=25)
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    rows = []
    print(f"{'graph':14}{'tasks':>6}{'run ms':>10}{'simulated':>11}{'ratio':>8}")
    for tasks in args.tasks:
        jobs = (Job("worker", tasks, 1),)
        with launch({"worker": tasks}, settings=SETTINGS) as cluster:
            cluster.wait_until_ready()
            machine = calibrated(cluster, jobs, args.rounds)
            for name, made in GRAPHS.items():
                graph = ps.Graph()
                with graph.as_default():
                    target = made(tasks)
                    init = ps.global_variables_initializer()
                costs = costs_of(graph, init, target)
                predicted = Forecast(graph_of(graph), machine, costs, fetches=[target.name])
                simulated = predicted.predict().seconds * 1000
                with cluster.session(graph) as session:
                    session.run(init)
                    real = median_ms(lambda s=session, t=target: s.run(t), args.rounds)
                rows.append({"graph": name, "tasks": tasks, "run": real, "simulated": simulated})
                ratio = simulated / real
                print(f"{name:14}{tasks:6}{real:10.1f}{simulated:11.1f}{ratio:8.2f}", flush=True)
    if args.json:
        args.json.write_text(json.dumps(rows, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()
