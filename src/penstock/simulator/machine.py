"""The cluster that a step is imagined on: tasks with cores, joined by links.

In:   ``1000x8`` or ``ps=2x8,worker=1000x16``; ``10Gbit``; ``50us``.
Out:  ``Machine``: jobs, each with so many tasks of so many cores; bandwidth and latency.
Not:  simulates nothing.

Every task has one device, CPU:0, whose cores its ready nodes share, and one link in each
direction to a network that is never the bottleneck itself.  Or all tasks are processes of one
machine: then they share its cores, also for what they send each other.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from penstock.errors import InvalidArgumentError
from penstock.state.devices import Device

#: The job of tasks that nobody names.
DEFAULT_JOB: Final = "worker"
_JOB: Final = re.compile(r"(?:([A-Za-z][A-Za-z0-9_]*)=)?([0-9]{1,7})x([0-9]{1,5})", re.ASCII)
_NUMBER: Final = re.compile(r"([0-9]+(?:\.[0-9]+)?(?:e[+-]?[0-9]{1,2})?)\s*([A-Za-z/]*)", re.ASCII)
#: Bytes in a second.
_RATES: Final[Mapping[str, float]] = {
    **{f"{prefix}bit": 10.0**power / 8 for prefix, power in (("M", 6), ("G", 9), ("T", 12))},
    **{f"{prefix}B": 10.0**power for prefix, power in (("", 0), ("M", 6), ("G", 9), ("T", 12))},
}
_TIMES: Final[Mapping[str, float]] = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0}


@dataclass(frozen=True, slots=True)
class Job:
    """Equal tasks."""

    name: str
    tasks: int
    cores: int


@dataclass(frozen=True, slots=True)
class Hosts:
    """Where tasks run: those of one host share its cores and its link."""

    #: For each task, the number of its host.
    host_of: Sequence[int]
    #: For each host, its cores.
    cores: Sequence[int]


@dataclass(frozen=True, slots=True)
class Machine:
    """A cluster."""

    jobs: tuple[Job, ...]
    #: Bytes in a second, of each task's link, in each direction.
    bandwidth: float = 1.25e9
    #: Seconds from the first byte's leaving to its arrival.
    latency: float = 50e-6
    #: The cores of the one machine that all tasks are on; 0 if each has its own.
    shared_cores: int = 0
    #: Seconds of a step that computes nothing: for calls of tasks, and their answers.
    step_seconds: float = 0.0

    def __post_init__(self) -> None:
        """Refuse what is no cluster: InvalidArgumentError."""
        if not self.jobs or any(job.tasks < 1 or job.cores < 1 for job in self.jobs):
            raise InvalidArgumentError("A cluster has at least one task, and a task one core")
        if len({job.name for job in self.jobs}) < len(self.jobs):
            raise InvalidArgumentError("A cluster has each job once")
        if not self.bandwidth > 0 or not 0 <= self.latency < float("inf"):
            raise InvalidArgumentError("Bandwidth is above zero, and latency not below it")
        if self.shared_cores < 0 or not 0 <= self.step_seconds < float("inf"):
            raise InvalidArgumentError("Neither cores nor the seconds of a step are below zero")

    @classmethod
    def parse(
        cls,
        cluster: str,
        bandwidth: str = "10Gbit",
        latency: str = "50us",
        *,
        shared_cores: int = 0,
        step: str = "0s",
    ) -> Machine:
        """A cluster out of texts; raises InvalidArgumentError if one makes no sense."""
        jobs = tuple(_job(text.strip()) for text in cluster.split(","))
        rate, times = _measured(bandwidth, _RATES), [_measured(t, _TIMES) for t in (latency, step)]
        return cls(jobs, rate, times[0], shared_cores, times[1])

    @property
    def cores(self) -> list[int]:
        """Of each task: those that it may use."""
        return [self.shared_cores or job.cores for job in self.jobs for _ in range(job.tasks)]

    @property
    def hosts(self) -> Hosts:
        """Where the tasks run."""
        cores = self.cores
        if self.shared_cores:
            return Hosts([0] * len(cores), [self.shared_cores])
        return Hosts(range(len(cores)), cores)

    def job(self, name: str) -> Job:
        """The job of a name; raises InvalidArgumentError if there is none."""
        for job in self.jobs:
            if job.name == name:
                return job
        known = ", ".join(job.name for job in self.jobs)
        raise InvalidArgumentError(f"The cluster has no job '{name}'", next_step=f"it has {known}")

    def devices(self, replicated: str = "") -> list[Device]:
        """One device for each task; of a job that is replicated, that of the first task only."""
        return [
            Device(f"/job:{job.name}/replica:0/task:{index}/device:CPU:0", "CPU")
            for job in sorted(self.jobs, key=lambda job: job.name != (replicated or DEFAULT_JOB))
            for index in range(1 if job.name == replicated else job.tasks)
        ]


def _job(text: str) -> Job:
    found = _JOB.fullmatch(text)
    if found is None:
        raise InvalidArgumentError(
            f"'{text}' is no number of tasks and cores",
            next_step="write 1000x8, or ps=2x8,worker=1000x8: tasks x cores of each",
        )
    name, tasks, cores = found.groups()
    return Job(name or DEFAULT_JOB, int(tasks), int(cores))


def _measured(text: str, units: Mapping[str, float]) -> float:
    found = _NUMBER.fullmatch(text.strip())
    unit = found[2].removesuffix("/s") if found else ""
    if found is None or unit not in units:
        raise InvalidArgumentError(
            f"'{text}' has no unit that is known here",
            next_step=f"write a number and one of {', '.join(filter(None, units))}",
        )
    return float(found[1]) * units[unit]
