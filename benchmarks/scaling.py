"""Training steps in a second with more and more workers on this machine, and as predicted.

    python -m benchmarks.scaling [--workers 1 2 4 8] [--seconds 4] [--json FILE]

Each worker has its own client and graph, computes gradients of a network of three layers for its
own batch, and adds them to variables on a parameter task, without waiting for others.  All are
processes of this machine: ideal is as many times the steps of one as there are workers, but no more
than the cores allow.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

import penstock as ps
from benchmarks.local_cluster import SETTINGS, calibrated, costs_of, held, on_worker
from penstock.cluster import LaunchedCluster, launch
from penstock.session.graphs import graph_of
from penstock.simulator import Costs, Forecast
from penstock.simulator.machine import Job

BATCH, WIDTH = 256, 768
LAYERS = 3


def training(worker: int) -> tuple[ps.Graph, Any, Any]:
    """One worker's graph, what initializes it, and its step."""
    graph = ps.Graph()
    draw = np.random.default_rng(1)
    with graph.as_default():
        weights = []
        with ps.device("/job:ps/task:0"):
            for layer in range(LAYERS):
                value = draw.standard_normal((WIDTH, WIDTH), np.float32) / WIDTH**0.5
                weights.append(ps.Variable(value, name=f"w{layer}"))
        with on_worker(worker):
            values = [held(draw.standard_normal((BATCH, WIDTH), np.float32), f"batch_{worker}")]
            for weight in weights:
                values.append(ps.ops.tanh(ps.ops.mat_mul(values[-1], weight.value())))
            slope = values[-1] * np.float32(1 / BATCH)
            moved = []
            for weight, before, after in zip(
                reversed(weights), reversed(values[:-1]), reversed(values[1:]), strict=True
            ):
                inner = ps.ops.tanh_grad(after, slope)
                moved.append((weight, ps.ops.mat_mul(before, inner, transpose_a=True)))
                slope = ps.ops.mat_mul(inner, weight.value(), transpose_b=True)
        train = ps.group(*[weight.assign_sub(change * 1e-3) for weight, change in moved])
        init = ps.global_variables_initializer()
    return graph, init, train


def steps_per_second(cluster: LaunchedCluster, workers: int, seconds: float) -> float:
    """All workers at once, for so long."""

    def work(worker: int) -> int:
        graph, init, train = training(worker)
        with cluster.session(graph, task=worker) as session:
            session.run(init)
            session.run(train)
            ready.append(worker)
            while len(ready) < workers:
                time.sleep(0.01)
            count, end = 0, time.perf_counter() + seconds
            while time.perf_counter() < end:
                session.run(train)
                count += 1
            return count

    ready: list[int] = []
    with ThreadPoolExecutor(workers) as pool:
        return sum(pool.map(work, range(workers))) / seconds


def predicted(cluster: LaunchedCluster, workers: int, costs: Costs, rounds: int) -> float:
    """Steps in a second, if all workers begin at once."""
    jobs = (Job("ps", 1, 1), Job("worker", workers, 1))
    machine = calibrated(cluster, (Job("ps", 1, 1), Job("worker", 1, 1)), rounds)
    graph, _, train = training(0)
    machine = type(machine)(
        jobs, machine.bandwidth, machine.latency, machine.shared_cores, machine.step_seconds
    )
    forecast = Forecast(graph_of(graph), machine, costs, targets=[train.name], replicated="worker")
    return workers / forecast.predict().seconds


def main() -> None:
    """Print a line for each number of workers."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--workers", type=int, nargs="*", default=[1, 2, 4, 8])
    parser.add_argument("--seconds", type=float, default=4)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    graph, init, train = training(0)
    costs = costs_of(graph, init, train)
    cores = os.cpu_count() or 1
    rows: list[dict[str, float]] = []
    print(f"{cores} cores")
    print(f"{'workers':>7}{'steps/s':>10}{'simulated':>11}{'ideal':>8}{'of it':>7}")
    for workers in args.workers:
        with launch({"ps": 1, "worker": workers}, settings=SETTINGS) as cluster:
            cluster.wait_until_ready()
            simulated = predicted(cluster, workers, costs, args.rounds)
            real = steps_per_second(cluster, workers, args.seconds)
        if not rows:
            one = real / workers
        ideal = one * min(workers, cores)
        rows.append({"workers": workers, "real": real, "simulated": simulated, "ideal": ideal})
        print(
            f"{workers:7}{real:10.1f}{simulated:11.1f}{ideal:8.1f}{real / ideal:7.0%}", flush=True
        )
    if args.json:
        args.json.write_text(json.dumps(rows, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()
