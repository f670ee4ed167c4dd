"""Tasks that something else has started: SLURM, Kubernetes, or whoever sets ``TF_CONFIG``.

In:   the environment of this process, which is one of the tasks.
Out:  this process' own task, in this process.
Not:  starts nothing elsewhere, and does not know how the others do: who started them does.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from penstock.cluster.carriers.carrier import TaskOrder, TaskSettings
from penstock.cluster.cluster_spec import ClusterSpec, task_name
from penstock.cluster.environment import Place, place_of
from penstock.errors import InvalidArgumentError

if TYPE_CHECKING:
    from penstock.cluster.server import Server

_LOOPBACK: Final = "127.0.0.1"


class EnvironmentTasks:
    """One program for all tasks, started by somebody else, each of which runs its own."""

    def __init__(self, environ: Mapping[str, str] | None = None, *, bind: str = _LOOPBACK) -> None:
        """Read the environment.

        Args:
            environ: variables; None for this process'.
            bind: the address that the own task listens at; the default lets no other machine in.

        Raises:
            FailedPreconditionError: the environment describes no cluster.
            InvalidArgumentError: it describes one wrongly.

        """
        #: The cluster, and which of its tasks this process is.
        self.own: Final[Place] = place_of(os.environ if environ is None else environ)
        self._bind: Final = bind
        self._server: Server | None = None

    def place(self, jobs: Mapping[str, int], settings: TaskSettings) -> ClusterSpec:  # noqa: ARG002
        """The cluster that is there; raises InvalidArgumentError if another one is wanted."""
        cluster = self.own.cluster
        there = {job: cluster.num_tasks(job) for job in cluster.jobs}
        if jobs and dict(jobs) != there:
            raise InvalidArgumentError(
                f"The environment has tasks {there}, not {dict(jobs)}",
                next_step="ask whoever starts the processes for others, or take those",
            )
        return cluster

    def secured(self, settings: TaskSettings) -> TaskSettings:
        """As they are: all processes must be told the same."""
        return settings

    def start(self, order: TaskOrder) -> None:
        """Start the own task; the others' processes do that themselves."""
        if order.task == task_name(self.own.job, self.own.task):
            self._server = order.make_server(bind=self._bind)

    def ended(self, task: str) -> str | None:  # noqa: ARG002
        """Nobody here knows: steps find out."""
        return None

    def log(self, task: str) -> str:  # noqa: ARG002
        """Whoever started the processes has it."""
        return ""

    def join(self) -> None:
        """Serve until the process is ended."""
        if self._server is not None:
            self._server.join()

    def close(self) -> None:
        """End the own task."""
        if self._server is not None:
            self._server.stop()
