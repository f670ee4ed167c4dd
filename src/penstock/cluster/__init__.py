"""More than one machine: servers, their clients, and models over data.

| what | where |
| --- | --- |
| which tasks there are, and where | ``cluster_spec`` |
| TensorFlow's protocol: methods, tensors, errors, options | ``services``, ``*wire*`` |
| one process of a cluster: its devices, and what lives in them | ``task`` |
| where the parts of a step meet | ``rendezvous``, ``peers`` |
| a worker runs parts of graphs | ``worker`` |
| a master runs steps of whole graphs | ``master``, ``master_session``, ``session_workers`` |
| … whose parts others run | ``registered_part``, ``exchanged_step`` |
| both, listening | ``server`` |
| a session somewhere else | ``grpc_session`` |
| what starts all tasks of a cluster, and keeps them running | ``carriers`` |
| a model over data of Ray or Dask | ``batches``, ``prediction``, ``shared_model``, ``*_data`` |

Whoever imports this package loads nothing: its names come from their modules when they are first
used, and gRPC (the extra ``cluster``) when a server or a channel is.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from penstock.core.forks import importing

if TYPE_CHECKING:
    from penstock.cluster.batches import map_batches
    from penstock.cluster.carriers.carrier import Carrier, TaskOrder, TaskSettings
    from penstock.cluster.carriers.environment_tasks import EnvironmentTasks
    from penstock.cluster.carriers.launched import LaunchedCluster, launch
    from penstock.cluster.carriers.local_processes import LocalProcesses
    from penstock.cluster.carriers.ray_actors import RayActors
    from penstock.cluster.cluster_spec import ClusterSpec
    from penstock.cluster.grpc_session import GrpcSession
    from penstock.cluster.security import Security
    from penstock.cluster.server import Server

__all__ = [
    "Carrier",
    "ClusterSpec",
    "EnvironmentTasks",
    "GrpcSession",
    "LaunchedCluster",
    "LocalProcesses",
    "RayActors",
    "Security",
    "Server",
    "TaskOrder",
    "TaskSettings",
    "launch",
    "map_batches",
]

#: Names and the modules that they come from.
_MODULES = {
    "Carrier": "penstock.cluster.carriers.carrier",
    "ClusterSpec": "penstock.cluster.cluster_spec",
    "EnvironmentTasks": "penstock.cluster.carriers.environment_tasks",
    "GrpcSession": "penstock.cluster.grpc_session",
    "LaunchedCluster": "penstock.cluster.carriers.launched",
    "LocalProcesses": "penstock.cluster.carriers.local_processes",
    "RayActors": "penstock.cluster.carriers.ray_actors",
    "Security": "penstock.cluster.security",
    "Server": "penstock.cluster.server",
    "TaskOrder": "penstock.cluster.carriers.carrier",
    "TaskSettings": "penstock.cluster.carriers.carrier",
    "launch": "penstock.cluster.carriers.launched",
    "map_batches": "penstock.cluster.batches",
}


if not TYPE_CHECKING:  # for mypy, what is not there is not there

    def __getattr__(name: str) -> object:
        if name not in _MODULES:
            raise AttributeError(f"module 'penstock.cluster' has no attribute '{name}'")
        with importing:
            globals()[name] = value = getattr(importlib.import_module(_MODULES[name]), name)
        return value


def __dir__() -> list[str]:
    return sorted(__all__)
