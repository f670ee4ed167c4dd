"""Tasks as actors of Ray; without Ray these are skipped."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

# Ray's own modules warn, and its import must not fail by that.
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]
ray: Any = pytest.importorskip("ray")
pytest.importorskip("grpc")

import penstock as ps
from penstock.cluster import RayActors, launch
from penstock.cluster.cluster_spec import task_name

SOURCE = str(Path(__file__).parents[2] / "src")
WORKER_1 = task_name("worker", 1)


@pytest.fixture(scope="module", autouse=True)
def _ray() -> Iterator[None]:
    """Three cores, whatever this machine has."""
    paths = os.pathsep.join([SOURCE, os.environ.get("PYTHONPATH", "")])
    ray.init(
        num_cpus=3,
        include_dashboard=False,
        log_to_driver=False,
        runtime_env={"env_vars": {"PYTHONPATH": paths}},
    )
    yield
    ray.shutdown()


def sum_of_tasks() -> tuple[ps.Graph, Any]:
    """A graph with a node on each of two workers, and one on the parameter task."""
    graph = ps.Graph()
    with graph.as_default():
        x = ps.placeholder(ps.dtypes.float32, [], name="x")
        parts = []
        for task in range(2):
            with ps.device(f"/job:worker/task:{task}"):
                parts.append(x * float(task + 1))
        with ps.device("/job:ps/task:0"):
            total = parts[0] + parts[1]
    return graph, total


def test_actors_compute_and_come_back() -> None:
    """Ray starts an actor anew whose process was killed; it has its address again."""
    carrier = RayActors()
    graph, total = sum_of_tasks()
    with launch({"ps": 1, "worker": 2}, carrier) as cluster:
        cluster.wait_until_ready()
        feed = {"x:0": np.float32(2)}
        with cluster.session(graph) as session:
            assert session.run(total, feed) == 6
        # A client that has no token is none.
        with (
            ps.Session(graph, target=cluster.target()) as stranger,
            pytest.raises(ps.errors.UnauthenticatedError),
        ):
            stranger.run(total, feed)
        assert ray.get(carrier.actor(WORKER_1).counts.remote())["calls_under_way"] >= 0

        ray.kill(carrier.actor(WORKER_1), no_restart=False)
        deadline = time.monotonic() + 60
        while True:
            try:
                with cluster.session(graph) as session:
                    assert session.run(total, feed) == 6
                break
            except (ps.errors.UnavailableError, ps.errors.AbortedError):
                assert time.monotonic() < deadline
                time.sleep(0.1)
        assert not cluster.restarts
    assert ray.is_initialized()


def test_who_restarts_is_for_the_caller_to_say() -> None:
    """What Ray does not start anew, the cluster does, so often as it was told."""
    carrier = RayActors(max_restarts=0)
    graph, total = sum_of_tasks()
    with launch({"ps": 1, "worker": 2}, carrier, max_restarts=1) as cluster:
        cluster.wait_until_ready()
        ray.kill(carrier.actor(WORKER_1))
        deadline = time.monotonic() + 60
        while not cluster.restarts:
            assert time.monotonic() < deadline
            time.sleep(0.05)
        cluster.wait_until_ready()
        with cluster.session(graph) as session:
            assert session.run(total, {"x:0": np.float32(1)}) == 3
        assert cluster.restarts == {WORKER_1: 1}


def test_more_tasks_than_there_is_place_for() -> None:
    """The error says how many cores there are."""
    with pytest.raises(ps.errors.ResourceExhaustedError, match="of 3 CPUs in all"):
        launch({"worker": 4}, RayActors(timeout=2))
    # Nothing was kept.
    with launch({"worker": 3}, RayActors()) as cluster:
        cluster.wait_until_ready()
