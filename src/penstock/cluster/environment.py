"""The cluster that the environment of a process describes.

In:   variables of the environment, as TensorFlow, SLURM or Kubernetes set them.
Out:  the cluster, and which of its tasks this process is.
Not:  asks nobody: what a variable does not say is not known.

Three ways, in this order:

- ``TF_CONFIG``: TensorFlow's own, a JSON object with ``cluster`` and ``task``.
- ``SLURM_*``: one task of a job step for each task of the cluster, which is all one job,
  ``worker``; ports are counted from ``PENSTOCK_PORT`` (8470) on each host.
- ``PENSTOCK_WORKERS`` with ``PENSTOCK_SERVICE`` and the ordinal at the end of ``HOSTNAME``: a
  StatefulSet of Kubernetes, whose pods its headless service names.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from penstock.cluster.cluster_spec import ClusterSpec, Tasks
from penstock.errors import FailedPreconditionError, InvalidArgumentError

_PORT: Final = 8470
_WORKER: Final = "worker"
#: The most hosts that a list may stand for.
_MAX_HOSTS: Final = 100_000
_ORDINAL: Final = re.compile(r"(?P<set>.+)-(?P<ordinal>\d{1,6})")
#: A part of SLURM's list of hosts: a name, and then perhaps numbers in brackets.
_HOSTS: Final = re.compile(r"([^,\[\]]+)(?:\[([0-9,\-]+)\])?([^,\[\]]*)(?:,|$)")


class Place(NamedTuple):
    """A cluster, and one of its tasks."""

    cluster: ClusterSpec
    job: str
    task: int


def place_of(environ: Mapping[str, str]) -> Place:
    """The cluster that an environment describes, and the task that it is of.

    Raises:
        FailedPreconditionError: it describes none.
        InvalidArgumentError: it describes one wrongly.

    """
    if environ.get("TF_CONFIG"):
        return _from_tf_config(environ["TF_CONFIG"])
    if environ.get("PENSTOCK_WORKERS"):
        return _from_stateful_set(environ)
    if environ.get("SLURM_STEP_NODELIST") or environ.get("SLURM_JOB_NODELIST"):
        return _from_slurm(environ)
    raise FailedPreconditionError(
        "The environment describes no cluster",
        next_step="set TF_CONFIG, start it by SLURM's srun, or set PENSTOCK_WORKERS and "
        "PENSTOCK_SERVICE in a StatefulSet",
    )


def _from_tf_config(text: str) -> Place:
    try:
        config: Any = json.loads(text)
        jobs: dict[str, Tasks] = {
            job: {int(i): a for i, a in tasks.items()} if isinstance(tasks, dict) else tasks
            for job, tasks in config["cluster"].items()
        }
        job, index = config["task"]["type"], int(config["task"]["index"])
    except (ValueError, KeyError, TypeError, AttributeError) as cause:
        raise InvalidArgumentError(
            f"TF_CONFIG cannot be read: {type(cause).__name__}: {cause}",
            next_step='write {"cluster": {"worker": ["host:port"]}, '
            '"task": {"type": "worker", "index": 0}}',
        ) from None
    return Place(ClusterSpec(jobs), job, index)


def _from_stateful_set(environ: Mapping[str, str]) -> Place:
    count = _number(environ, "PENSTOCK_WORKERS")
    found = _ORDINAL.fullmatch(environ.get("HOSTNAME", ""))
    service = environ.get("PENSTOCK_SERVICE", "")
    if found is None or not service:
        raise InvalidArgumentError(
            "PENSTOCK_WORKERS is set, but not PENSTOCK_SERVICE, or HOSTNAME has no ordinal",
            next_step="set PENSTOCK_SERVICE to the headless service of the StatefulSet",
        )
    port = _number(environ, "PENSTOCK_PORT", _PORT)
    hosts = [f"{found['set']}-{index}.{service}:{port}" for index in range(count)]
    return Place(ClusterSpec({_WORKER: hosts}), _WORKER, int(found["ordinal"]))


def _from_slurm(environ: Mapping[str, str]) -> Place:
    text = environ.get("SLURM_STEP_NODELIST") or environ["SLURM_JOB_NODELIST"]
    hosts = list(expanded_hosts(text))
    per_host = environ.get("SLURM_STEP_TASKS_PER_NODE") or environ.get(
        "SLURM_TASKS_PER_NODE", f"1(x{len(hosts)})"
    )
    first = _number(environ, "PENSTOCK_PORT", _PORT)
    addresses: list[str] = []
    used: Counter[str] = Counter()
    for host, count in zip(hosts, _counts(per_host), strict=False):
        for _ in range(count):
            addresses.append(f"{host}:{first + used[host]}")
            used[host] += 1
    return Place(ClusterSpec({_WORKER: addresses}), _WORKER, _number(environ, "SLURM_PROCID"))


def expanded_hosts(text: str) -> Iterator[str]:
    """The hosts of SLURM's short form, ``node[1-3,07],login``; raises InvalidArgumentError."""
    at = made = 0
    while at < len(text):
        found = _HOSTS.match(text, at)
        if found is None or found.end() == at:
            raise InvalidArgumentError(f"The list of hosts cannot be read: {text!r}")
        at = found.end()
        for number in _numbers(found[2]) if found[2] else [""]:
            made += 1
            if made > _MAX_HOSTS:
                raise InvalidArgumentError(f"The list of hosts is too long: {text!r}")
            yield f"{found[1]}{number}{found[3]}"


def _numbers(text: str) -> Iterator[str]:
    """``1-3,07`` one by one, as wide as they are written."""
    for part in text.split(","):
        first, dash, last = part.partition("-")
        if not first.isdecimal() or (dash and not last.isdecimal()):
            raise InvalidArgumentError(f"The list of hosts cannot be read: {text!r}")
        for number in range(int(first), int(last or first) + 1):
            yield f"{number:0{len(first)}d}"


def _counts(text: str) -> Iterator[int]:
    """``2(x3),1`` as 2, 2, 2, 1."""
    for part in text.split(","):
        found = re.fullmatch(r"(\d{1,6})(?:\(x(\d{1,6})\))?", part)
        if found is None:
            raise InvalidArgumentError(f"The numbers of tasks cannot be read: {text!r}")
        for _ in range(int(found[2] or 1)):
            yield int(found[1])


def _number(environ: Mapping[str, str], name: str, default: int | None = None) -> int:
    text = environ.get(name, "" if default is None else str(default))
    if not text.isdecimal() or len(text) > 9:
        raise InvalidArgumentError(f"{name} is {text!r}, which is no number")
    return int(text)
