"""Carriers: tasks that are started, watched, started anew and ended."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import pytest

pytest.importorskip("grpc")

import penstock as ps
from penstock.cluster import (
    ClusterSpec,
    EnvironmentTasks,
    LocalProcesses,
    Security,
    TaskOrder,
    TaskSettings,
    launch,
)
from penstock.cluster.cluster_spec import task_name
from support.clusters import new_cluster


def until(true: Callable[[], Any], seconds: float = 30) -> Any:
    """Wait for something, and return it."""
    deadline = time.monotonic() + seconds
    while not (found := true()):
        assert time.monotonic() < deadline, "it never came true"
        time.sleep(0.02)
    return found


def product_of_tasks(count: int) -> tuple[ps.Graph, ps.Tensor]:
    """A graph with a node on each worker."""
    graph = ps.Graph()
    with graph.as_default():
        value = ps.constant(np.float32(1))
        for task in range(count):
            with ps.device(f"/job:worker/task:{task}"):
                value = value * ps.constant(np.float32(task + 2))
    return graph, value


class InThisProcess:
    """The simplest carrier: tasks are servers of this process, and die when they are told to."""

    def __init__(self) -> None:
        self.servers: dict[str, Any] = {}
        self.started: list[str] = []
        self.dead: dict[str, str] = {}
        self.refuses: set[str] = set()

    def place(self, jobs: Mapping[str, int], settings: TaskSettings) -> ClusterSpec:
        assert settings.devices == 1
        return ClusterSpec(new_cluster(**jobs))

    def secured(self, settings: TaskSettings) -> TaskSettings:
        return settings

    def start(self, order: TaskOrder) -> None:
        self.started.append(order.task)
        self.dead.pop(order.task, None)
        if order.task in self.refuses:
            self.dead[order.task] = "it does not want to"
        else:
            self.servers[order.task] = order.make_server(bind="127.0.0.1")

    def die(self, task: str) -> None:
        self.servers.pop(task).stop()
        self.dead[task] = "it was told to"

    def ended(self, task: str) -> str | None:
        return self.dead.get(task)

    def log(self, task: str) -> str:
        return f"the log of {task}"

    def close(self) -> None:
        while self.servers:
            self.servers.popitem()[1].stop()


SETTINGS = TaskSettings(grace_seconds=0, heartbeat_seconds=0.3)


def test_a_task_that_died_is_started_anew_at_its_address() -> None:
    """Whoever opens a session afterwards gets answers of all tasks."""
    carrier = InThisProcess()
    graph, product = product_of_tasks(2)
    with launch({"worker": 2}, carrier, settings=SETTINGS) as cluster:
        cluster.wait_until_ready()
        with cluster.session(graph) as session:
            assert session.run(product) == 6
        carrier.die(task_name("worker", 1))
        until(lambda: carrier.started.count(task_name("worker", 1)) == 2)
        cluster.wait_until_ready()
        with cluster.session(graph, task=1) as session:
            assert session.run(product) == 6
        assert cluster.restarts == {task_name("worker", 1): 1}
    assert not carrier.servers


def test_a_task_that_dies_too_often_is_given_up() -> None:
    """Whoever waits is told which, why, and what it wrote; the others go on."""
    carrier = InThisProcess()
    carrier.refuses.add(task_name("worker", 1))
    with launch({"worker": 2}, carrier, max_restarts=2, settings=SETTINGS) as cluster:
        with pytest.raises(ps.errors.UnavailableError, match="does not want") as caught:
            cluster.wait_until_ready()
        assert "task:1 was given up" in str(caught.value)
        assert f"the log of {task_name('worker', 1)}" in str(caught.value)
        assert carrier.started.count(task_name("worker", 1)) == 3
        assert carrier.started.count(task_name("worker", 0)) == 1


def test_nobody_waits_longer_than_was_said() -> None:
    """A task that never listens."""
    carrier = InThisProcess()
    carrier.refuses.add(task_name("worker", 0))
    carrier.ended = lambda _task: None  # type: ignore[method-assign]  # so it says
    with (
        launch({"worker": 1}, carrier, settings=SETTINGS) as cluster,
        pytest.raises(ps.errors.DeadlineExceededError, match="Not all tasks answer after"),
    ):
        cluster.wait_until_ready(0.5)
    with pytest.raises(ps.errors.FailedPreconditionError, match="closed"):
        cluster.wait_until_ready()


@pytest.mark.parametrize("jobs", [{}, {"worker": 0}, {"no job": 1}, {"worker": -1}])
def test_jobs_that_are_none(jobs: dict[str, int]) -> None:
    """Are refused before anything is started."""
    carrier = LocalProcesses()
    with pytest.raises(ps.errors.InvalidArgumentError):
        launch(jobs, carrier)
    assert not carrier._folder.exists()


@pytest.fixture(scope="module")
def processes() -> Iterator[tuple[Any, LocalProcesses]]:
    """Two workers in processes of their own, which want a token."""
    carrier = LocalProcesses()
    settings = TaskSettings(grace_seconds=0, security=Security(token="only for us"), devices=2)
    with launch({"worker": 2}, carrier, settings=settings) as cluster:
        cluster.wait_until_ready()
        yield cluster, carrier


def test_processes_compute(processes: tuple[Any, LocalProcesses]) -> None:
    """With the settings that they were given; and only for who brings the token."""
    cluster, carrier = processes
    graph, product = product_of_tasks(2)
    with cluster.session(graph) as session:
        assert session.run(product) == 6
        assert len([d for d in session.list_devices() if "CPU" in d.name]) == 4
    with (
        ps.Session(graph, target=cluster.target()) as stranger,
        pytest.raises(ps.errors.UnauthenticatedError),
    ):
        stranger.run(product)
    assert "is ready at" in cluster.log(task=1)
    for task in cluster.cluster:
        command = subprocess.run(
            ["ps", "-o", "args=", str(carrier.process_id(task))],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert "only for us" not in command.stdout


def test_a_process_that_is_killed_comes_back(processes: tuple[Any, LocalProcesses]) -> None:
    """At the same address."""
    cluster, carrier = processes
    task = task_name("worker", 1)
    before = carrier.process_id(task)
    os.kill(before, signal.SIGKILL)
    until(lambda: cluster.restarts.get(task))
    until(lambda: carrier.process_id(task) != before)
    cluster.wait_until_ready()
    graph, product = product_of_tasks(2)
    with cluster.session(graph) as session:
        assert session.run(product) == 6


def test_processes_end_with_who_started_them() -> None:
    """Even if that one is killed."""
    program = (
        "import time; from penstock.cluster import LocalProcesses, launch\n"
        "carrier = LocalProcesses(); cluster = launch({'worker': 1}, carrier)\n"
        "cluster.wait_until_ready()\n"
        "print(carrier.process_id('/job:worker/replica:0/task:0'), flush=True)\n"
        "time.sleep(60)\n"
    )
    starter = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE)
    assert starter.stdout is not None
    number = int(starter.stdout.readline())
    starter.kill()
    starter.wait()
    starter.stdout.close()
    until(lambda: not is_running(number))


def is_running(process_id: int) -> bool:
    """Whether there is such a process, and it is no corpse."""
    try:
        with open(f"/proc/{process_id}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_the_environment_has_its_own_task() -> None:
    """The process is the first worker; the second one is another's affair."""
    cluster = new_cluster(worker=2)
    config = {"cluster": cluster, "task": {"type": "worker", "index": 0}}
    first, second = (
        EnvironmentTasks({"TF_CONFIG": str(config | {"task": task}).replace("'", '"')})
        for task in ({"type": "worker", "index": 0}, {"type": "worker", "index": 1})
    )
    graph, product = product_of_tasks(2)
    with launch(carrier=first, settings=SETTINGS) as one:
        with pytest.raises(ps.errors.DeadlineExceededError, match="task"):
            one.wait_until_ready(0.3)
        with launch({"worker": 2}, second, settings=SETTINGS) as two:
            one.wait_until_ready()
            with two.session(graph, task=second.own.task) as session:
                assert session.run(product) == 6


def test_the_environment_has_other_tasks() -> None:
    """Whoever wants others is told which there are."""
    config = '{"cluster": {"worker": ["127.0.0.1:1"]}, "task": {"type": "worker", "index": 0}}'
    carrier = EnvironmentTasks({"TF_CONFIG": config})
    with pytest.raises(ps.errors.InvalidArgumentError, match="'worker': 1"):
        launch({"worker": 2}, carrier)
