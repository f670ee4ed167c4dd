"""Tasks as actors of a Ray cluster that others started, on two machines; skipped without Ray.

Each machine is a raylet with an address of its own; both are this machine.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

# Ray's own modules warn, and its import must not fail by that.
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]
ray: Any = pytest.importorskip("ray")
pytest.importorskip("grpc")

from ray.cluster_utils import Cluster

import penstock as ps
from penstock.cluster import RayActors, launch

SOURCE = str(Path(__file__).parents[2] / "src")
OTHER = "127.0.0.2"


@pytest.fixture
def machines() -> Iterator[tuple[Any, Any]]:
    """A Ray cluster, and the one of its two machines that may be lost."""
    cluster = Cluster(
        initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False}
    )
    try:
        yield cluster, cluster.add_node(num_cpus=1, node_ip_address=OTHER)
    finally:
        ray.shutdown()
        cluster.shutdown()


def product_on_both() -> tuple[ps.Graph, Any]:
    """A graph of two nodes, one on each of two workers."""
    graph = ps.Graph()
    with graph.as_default():
        x = ps.placeholder(ps.dtypes.float32, [], name="x")
        with ps.device("/job:worker/task:1"):
            double = x * 2.0
        with ps.device("/job:worker/task:0"):
            total = double + 1.0
    return graph, total


def test_an_existing_cluster_of_two_machines(machines: tuple[Any, Any]) -> None:
    """Each machine has a task; when one is lost, a step says which address."""
    cluster, other = machines
    paths = os.pathsep.join([SOURCE, os.environ.get("PYTHONPATH", "")])
    options = {"log_to_driver": False, "runtime_env": {"env_vars": {"PYTHONPATH": paths}}}
    carrier = RayActors(address=cluster.address, options=options)
    graph, total = product_on_both()
    feed = {"x:0": np.float32(2)}

    with launch({"worker": 2}, carrier) as launched:
        launched.wait_until_ready()
        hosts = [launched.cluster.task_address("worker", i).rpartition(":")[0] for i in range(2)]
        assert sum(host == OTHER for host in hosts) == 1
        master = hosts.index(next(host for host in hosts if host != OTHER))
        with launched.session(graph, task=master) as session:
            assert session.run(total, feed) == 5
            cluster.remove_node(other)
            with pytest.raises(
                (ps.errors.UnavailableError, ps.errors.AbortedError),
                match=rf"worker/.*task:{1 - master}|{OTHER}",
            ):
                session.run(total, feed)
