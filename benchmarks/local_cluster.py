"""What calls and transfers cost among tasks of this machine, for predictions of steps.

In:   how many tasks.
Out:  a ``Machine`` of the simulator, measured with graphs that compute nothing.
Not:  measures no node: ``penstock.simulator.measure`` does.
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

import numpy as np

import penstock as ps
from penstock.cluster import LaunchedCluster, TaskSettings
from penstock.simulator import Costs, Machine, measure
from penstock.simulator.machine import Job

#: One thread for each task, so that tasks and cores are the same thing.
SETTINGS: Final = TaskSettings(threads=1, grace_seconds=0)
#: The same of sessions here.
_ONE_THREAD: Final = ps.Config(inter_op_parallelism_threads=1, intra_op_parallelism_threads=1)
#: What is sent to learn how fast that is, in floats.
_LARGE: Final = 4 << 20


def median_ms(run: Callable[[], object], rounds: int) -> float:
    """Milliseconds, after one that does not count."""
    run()
    seconds = []
    for _ in range(rounds):
        begin = time.perf_counter()
        run()
        seconds.append(time.perf_counter() - begin)
    return statistics.median(seconds) * 1000


def on_worker(task: int) -> Any:
    """The device of a worker."""
    return ps.device(f"/job:worker/task:{task}")


def held(value: np.ndarray[Any, Any], name: str) -> Any:
    """A variable's value, and a little noise, so that no step can use what another one computed."""
    noise = ps.ops.random_uniform(np.int32([]), dtype=ps.dtypes.float32, seed=1, seed2=len(name))
    return ps.Variable(value, name=name).value() + noise * np.float32(1e-9)


def calibrated(cluster: LaunchedCluster, jobs: tuple[Job, ...], rounds: int) -> Machine:
    """The cluster as the simulator knows it: calls, latency and bandwidth measured."""
    tasks = sum(job.tasks for job in jobs)
    calls = (_calls_ms(cluster, jobs, rounds) + _cold_ms(cluster, jobs, rounds)) / 1000
    latency, bandwidth = 0.0, 1e12
    if tasks > 1:
        two = _calls_ms(cluster, _first_two(jobs), rounds) / 1000
        small = _sent_ms(cluster, _first_two(jobs), 256, rounds) / 1000
        large = _sent_ms(cluster, _first_two(jobs), _LARGE, rounds) / 1000
        latency = max(0.0, small - two)
        bandwidth = 4 * _LARGE / max(large - small, 1e-6)
    return Machine(jobs, bandwidth, latency, os.cpu_count() or 1, calls)


def _names(jobs: tuple[Job, ...]) -> list[str]:
    return [f"/job:{job.name}/task:{task}" for job in jobs for task in range(job.tasks)]


def _first_two(jobs: tuple[Job, ...]) -> tuple[Job, ...]:
    """The master's task and one more."""
    if jobs[-1].tasks > 1:
        return (Job(jobs[-1].name, 2, 1),)
    return tuple(Job(job.name, 1, 1) for job in jobs)


def _calls_ms(cluster: LaunchedCluster, jobs: tuple[Job, ...], rounds: int) -> float:
    """A step that does nothing, on some tasks."""
    graph = ps.Graph()
    with graph.as_default():
        nothing = []
        for name in _names(jobs):
            with ps.device(name):
                nothing.append(ps.ops.no_op())
    with cluster.session(graph) as session:
        return median_ms(lambda: session.run(nothing), rounds)


def _cold_ms(cluster: LaunchedCluster, jobs: tuple[Job, ...], rounds: int) -> float:
    """By how much a call takes longer after a step whose arrays have driven all else out of caches.

    A step that goes through one large array, at the first task and here, less a call of nothing.
    """
    first = (Job(jobs[0].name, 1, 1),)
    graph = ps.Graph()
    with graph.as_default():
        with ps.device(_names(first)[0]):
            value = held(np.ones(_LARGE, np.float32), "large")
            total = ps.ops.mean(value, np.int32([0]))
        init = ps.global_variables_initializer()
    with cluster.session(graph) as session:
        session.run(init)
        there = median_ms(lambda: session.run(total), rounds)
    with ps.Session(_without_devices(graph), config=_ONE_THREAD) as session:
        session.run(init.name)
        here = median_ms(lambda: session.run(total.name), rounds)
    return max(0.0, there - here - _calls_ms(cluster, first, rounds))


def _sent_ms(cluster: LaunchedCluster, jobs: tuple[Job, ...], size: int, rounds: int) -> float:
    """A step that sends one array from one task to the master's."""
    sender = next(name for name in reversed(_names(jobs)) if name != "/job:worker/task:0")
    graph = ps.Graph()
    with graph.as_default():
        with ps.device(sender):
            value = held(np.ones(size, np.float32), f"sent_{size}")
        with on_worker(0):
            last = ps.ops.slice(value, [size - 1], [1])
        init = ps.global_variables_initializer()
    with cluster.session(graph) as session:
        session.run(init)
        return median_ms(lambda: session.run(last.op), rounds)


def costs_of(graph: ps.Graph, init: Any, target: Any) -> Costs:
    """What nodes cost here, on one thread, wherever the graph wants them."""
    definition = _without_devices(graph)
    with (
        ps.Session(definition, config=replace(_ONE_THREAD, tier=ps.Tier.DATAFLOW)) as session,
        ps.Session(definition, config=_ONE_THREAD) as compiled,
    ):
        session.run(init.name)
        compiled.run(init.name)
        return measure(
            lambda options, metadata: session.run(target.name, None, options, metadata),
            lambda: compiled.run(target.name),
        )


def _without_devices(graph: ps.Graph) -> Any:
    """The graph for a session here, wherever it wants to be."""
    definition = ps.graph_to_def(graph)
    for node in definition.node:
        node.ClearField("device")
    return definition
