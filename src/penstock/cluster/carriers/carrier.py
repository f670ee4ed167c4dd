"""The protocol between a cluster and whatever runs its tasks.

In:   how many tasks of which jobs; then each task with the whole cluster.
Out:  addresses, running tasks, the news that one has ended.
Not:  carries no values, and decides nothing: whether a task is started anew is its owner's affair.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import TYPE_CHECKING, Protocol

from penstock.cluster.cluster_spec import ClusterSpec, task_name
from penstock.config import Config
from penstock.core.forks import importing
from penstock.dataclass import dataclass
from penstock.errors import InvalidArgumentError

if TYPE_CHECKING:
    from penstock.cluster.security import Security
    from penstock.cluster.server import Server


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskSettings:
    """What all tasks of a cluster have in common."""

    #: CPU devices of each task.
    devices: int = 1
    #: Threads for single heavy ops of each task; 0 for one for each core of its machine.
    threads: int = 0
    #: Whether graphs may touch files.
    allow_files: bool = True
    #: TLS and a token; None for what the carrier thinks right.
    security: Security | None = None
    #: As ``Server`` has them.
    heartbeat_seconds: float = 10
    session_gc_seconds: float = 0
    grace_seconds: float = 5

    def __post_init__(self) -> None:
        if self.devices < 1:
            raise InvalidArgumentError(f"A task has {self.devices} devices; it needs one")
        if self.threads < 0:
            raise InvalidArgumentError(f"A task has {self.threads} threads; 0 is one for each core")


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskOrder:
    """One task, as a carrier is to start it."""

    cluster: ClusterSpec
    job: str
    index: int
    settings: TaskSettings = field(default_factory=TaskSettings)

    @property
    def task(self) -> str:
        """Its full name."""
        return task_name(self.job, self.index)

    def make_server(self, *, bind: str) -> Server:
        """The task in this process, listening at an address of this machine.

        Raises:
            UnavailableError: the port cannot be had.

        """
        # gRPC is there where tasks run, and need not be where orders are written.
        with importing:
            from penstock.cluster.server import Server  # noqa: PLC0415

        settings = self.settings
        return Server(
            self.cluster,
            self.job,
            self.index,
            config=Config(
                device_count={"CPU": settings.devices},
                intra_op_parallelism_threads=settings.threads,
                allow_files=settings.allow_files,
            ),
            bind=bind,
            security=settings.security,
            session_gc_seconds=settings.session_gc_seconds,
            heartbeat_seconds=settings.heartbeat_seconds,
            grace_seconds=settings.grace_seconds,
        )


class Carrier(Protocol):
    """Runs tasks.  Used by one thread at a time, but for ``log``."""

    def place(self, jobs: Mapping[str, int], settings: TaskSettings) -> ClusterSpec:
        """Find a place for each task, whose address stays its own until ``close``.

        Raises:
            InvalidArgumentError: there cannot be such tasks here.
            ResourceExhaustedError: there is no place for so many.

        """

    def secured(self, settings: TaskSettings) -> TaskSettings:
        """The settings with the security that tasks need where they will run."""

    def start(self, order: TaskOrder) -> None:
        """Start a task, also anew after it has ended; does not wait until it listens."""

    def ended(self, task: str) -> str | None:
        """Why a task has ended; None as long as it runs, or if others start it anew."""

    def log(self, task: str) -> str:
        """The last lines that a task wrote, as far as they are here."""

    def close(self) -> None:
        """End all tasks, and give their places back."""
