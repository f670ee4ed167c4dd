"""Clusters for tests: servers in this process, on ports that nobody else has."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Iterator
from typing import Any

from penstock.cluster import Server


def free_ports(count: int) -> list[int]:
    """Ports of the loopback interface that nothing listens at."""
    sockets = [socket.socket() for _ in range(count)]
    try:
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]
    finally:
        for one in sockets:
            one.close()


def new_cluster(**jobs: int) -> dict[str, list[str]]:
    """A cluster on free ports: how many tasks each job has."""
    ports = iter(free_ports(sum(jobs.values())))
    return {job: [f"127.0.0.1:{next(ports)}" for _ in range(count)] for job, count in jobs.items()}


@contextlib.contextmanager
def serving(cluster: dict[str, list[str]], **options: Any) -> Iterator[list[Server]]:
    """All tasks of a cluster, listening in this process."""
    with contextlib.ExitStack() as stack:
        yield [
            stack.enter_context(Server(cluster, job, index, grace_seconds=0, **options))
            for job, addresses in cluster.items()
            for index in range(len(addresses))
        ]
