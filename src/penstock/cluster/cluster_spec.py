"""Which tasks a cluster has, and where each listens.

In:   jobs with the addresses of their tasks, from a program, a message or the command line.
Out:  ``ClusterSpec``: tasks by name, addresses by task.
Not:  connects to nobody, and does not look whether anybody is there.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, TypeAlias

from penstock.core.device_names import DeviceName
from penstock.defs.schema import Message, message_class
from penstock.errors import InvalidArgumentError, NotFoundError

#: Addresses of a job's tasks: by number, or from number 0 on.
Tasks: TypeAlias = Sequence[str] | Mapping[int, str]

_JOB: Final = re.compile(r"[A-Za-z][A-Za-z0-9_]*", re.ASCII)
_ADDRESS: Final = re.compile(r"(?:\[[0-9A-Fa-f:.%\w]+\]|[^\s:/\[\]]+):(\d{1,5})", re.ASCII)
_MAX_PORT: Final = 65535


def task_name(job: str, index: int) -> str:
    """The name of a task, as device names begin with it."""
    return f"/job:{job}/replica:0/task:{index}"


def task_of(device: str) -> str:
    """The task that a device belongs to; raises InvalidArgumentError if the name is not full."""
    name = DeviceName.parse(device)
    if name.job is None or name.task is None:
        raise InvalidArgumentError(f"Device '{device}' is not named in full: it has no task")
    return f"/job:{name.job}/replica:{name.replica or 0}/task:{name.task}"


def check_jobs(jobs: Mapping[str, int]) -> None:
    """Raise InvalidArgumentError unless these are jobs with numbers of tasks."""
    for job, count in jobs.items():
        if not _JOB.fullmatch(job) or count < 0:
            raise InvalidArgumentError(
                f"There is no job '{job}' of {count} tasks",
                next_step="give how many tasks each job has: {'ps': 1, 'worker': 4}",
            )


class ClusterSpec:
    """The tasks of a cluster, and their addresses; does not change."""

    def __init__(self, jobs: Mapping[str, Tasks]) -> None:
        """Name the tasks.

        Args:
            jobs: by name, the addresses (``host:port``) of each job's tasks, as a list or by
                their numbers.

        Raises:
            InvalidArgumentError: a job, a number or an address is none, or an address comes
                twice.

        """
        if not isinstance(jobs, Mapping):
            raise InvalidArgumentError(
                f"A cluster is a dictionary of jobs, not a {type(jobs).__name__}",
                next_step="write {'worker': ['host:2222', 'host:2223']}",
            )
        self._jobs: Final = {job: _tasks(job, tasks) for job, tasks in jobs.items()}
        self._check_addresses()

    @classmethod
    def of(cls, given: Any) -> ClusterSpec:
        """One of a ClusterSpec, a dictionary, a ClusterDef, or a ServerDef's."""
        if isinstance(given, cls):
            return given
        if hasattr(given, "job"):
            return cls({job.name: dict(job.tasks) for job in given.job})
        return cls(given)

    @classmethod
    def parse(cls, text: str) -> ClusterSpec:
        """Read ``worker=host:1,host:2;ps=host:3``, as command lines have it."""
        jobs: dict[str, list[str]] = {}
        for part in filter(None, map(str.strip, text.replace("|", ",").split(";"))):
            job, equals, addresses = part.partition("=")
            if not equals or job in jobs:
                raise InvalidArgumentError(
                    f"'{part}' is no job of a cluster, or comes twice",
                    next_step="write worker=host:2222,host:2223;ps=host:2224",
                )
            jobs[job.strip()] = [address.strip() for address in addresses.split(",")]
        return cls(jobs)

    @property
    def jobs(self) -> tuple[str, ...]:
        """The names of all jobs."""
        return tuple(self._jobs)

    def task_indices(self, job: str) -> tuple[int, ...]:
        """The numbers of a job's tasks; none if there is no such job."""
        return tuple(self._jobs.get(job, {}))

    def num_tasks(self, job: str) -> int:
        """How many tasks a job has; 0 if there is no such job."""
        return len(self._jobs.get(job, {}))

    def __iter__(self) -> Iterator[str]:
        """The names of all tasks."""
        for job, tasks in self._jobs.items():
            for index in tasks:
                yield task_name(job, index)

    def __len__(self) -> int:
        return sum(map(len, self._jobs.values()))

    def address(self, task: str) -> str:
        """Where a task listens; raises NotFoundError if there is no such task."""
        name = DeviceName.parse(task)
        found = self._jobs.get(name.job or "", {}).get(-1 if name.task is None else name.task)
        if found is None or name.replica:
            raise NotFoundError(
                f"The cluster has no task {task}", next_step=f"its tasks: {', '.join(self)}"
            )
        return found

    def task_address(self, job: str, index: int) -> str:
        """Where a task listens; raises NotFoundError if there is no such task."""
        return self.address(task_name(job, index))

    def as_dict(self) -> dict[str, dict[int, str]]:
        """Addresses by job and number."""
        return {job: dict(tasks) for job, tasks in self._jobs.items()}

    def to_proto(self) -> Message:
        """The same as a ClusterDef."""
        proto = message_class("ClusterDef")()
        for job, tasks in self._jobs.items():
            proto.job.add(name=job, tasks=tasks)
        return proto

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ClusterSpec) and self.as_dict() == other.as_dict()

    def __hash__(self) -> int:
        return hash(tuple(self))

    def __repr__(self) -> str:
        return f"ClusterSpec({self.as_dict()!r})"

    def _check_addresses(self) -> None:
        seen: set[str] = set()
        for task in self:
            address = self.address(task)
            if address in seen:
                raise InvalidArgumentError(f"Two tasks of the cluster listen at {address}")
            seen.add(address)


def _tasks(job: Any, tasks: Any) -> dict[int, str]:
    if not isinstance(job, str) or _JOB.fullmatch(job) is None:
        raise InvalidArgumentError(
            f"{job!r} is no name of a job: a letter, then letters, digits and _"
        )
    if isinstance(tasks, (str, bytes)) or not isinstance(tasks, (Mapping, Sequence)):
        raise InvalidArgumentError(
            f"The tasks of job '{job}' are a {type(tasks).__name__}",
            next_step="give their addresses as a list, or by their numbers as a dictionary",
        )
    numbered = tasks if isinstance(tasks, Mapping) else dict(enumerate(tasks))
    for index, address in numbered.items():
        if not isinstance(index, int) or index < 0:
            raise InvalidArgumentError(f"{index!r} is no number of a task of job '{job}'")
        check_address(address)
    return dict(sorted(numbered.items()))


def check_address(address: Any) -> str:
    """The same; raises InvalidArgumentError unless it is ``host:port``."""
    found = _ADDRESS.fullmatch(address) if isinstance(address, str) else None
    if found is None or int(found[1]) > _MAX_PORT:
        raise InvalidArgumentError(
            f"{address!r} is no address", next_step="write host:port, with a port up to 65535"
        )
    return str(address)
