"""Tasks as processes of this machine.

In:   orders.
Out:  processes, each a ``penstock worker`` at the loopback interface.
Not:  reaches no other machine.

A process ends with the one that started it, however that ends: its standard input ends then.
"""

from __future__ import annotations

import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Final

from penstock.cluster.carriers.carrier import TaskOrder, TaskSettings
from penstock.cluster.cluster_spec import ClusterSpec, check_jobs

_LOOPBACK: Final = "127.0.0.1"
#: Of what a task wrote, so many bytes are shown.
_LOG_BYTES: Final = 4_000
#: Seconds in which a task that was told to end must have ended, beside its grace.
_END_SECONDS: Final = 5.0


class LocalProcesses:
    """Runs each task in a process of its own."""

    def __init__(self) -> None:
        #: Logs, and the token; nobody else can read it.
        self._folder: Final = Path(tempfile.mkdtemp(prefix="penstock-tasks-"))
        self._processes: Final[dict[str, subprocess.Popen[bytes]]] = {}
        self._patience = _END_SECONDS

    def place(self, jobs: Mapping[str, int], settings: TaskSettings) -> ClusterSpec:
        """Ports that nobody listens at; raises InvalidArgumentError if jobs make no sense."""
        check_jobs(jobs)
        self._patience = _END_SECONDS + settings.grace_seconds
        ports = iter(_free_ports(sum(jobs.values())))
        return ClusterSpec(
            {job: [f"{_LOOPBACK}:{next(ports)}" for _ in range(n)] for job, n in jobs.items()}
        )

    def secured(self, settings: TaskSettings) -> TaskSettings:
        """As they are: only this machine can reach the tasks."""
        return settings

    def start(self, order: TaskOrder) -> None:
        """Start the process of a task."""
        if order.task in self._processes:
            _forget(self._processes[order.task])
        with self._log_of(order.task).open("ab") as log:
            self._processes[order.task] = subprocess.Popen(
                [sys.executable, "-m", "penstock", "worker", *self._options(order)],
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=subprocess.STDOUT,
                # Ctrl-C is for who started it, who then ends it in order.
                start_new_session=True,
            )

    def _options(self, order: TaskOrder) -> list[str]:
        settings, security = order.settings, order.settings.security
        jobs = order.cluster.as_dict().items()
        options = {
            "cluster": ";".join(f"{job}={','.join(tasks.values())}" for job, tasks in jobs),
            "job": order.job,
            "task": order.index,
            "bind": _LOOPBACK,
            "devices": settings.devices,
            "threads": settings.threads,
            "heartbeat-seconds": settings.heartbeat_seconds,
            "session-gc-seconds": settings.session_gc_seconds,
            "grace-seconds": settings.grace_seconds,
        }
        if security is not None:
            options |= {
                "tls-ca": security.tls_ca,
                "tls-certificate": security.tls_certificate,
                "tls-key": security.tls_key,
            }
            if security.token:
                options["token-file"] = self._token_file(security.token)
        given = [text for name, value in options.items() for text in (f"--{name}", str(value))]
        return [*given, "--until-stdin-ends", *([] if settings.allow_files else ["--no-files"])]

    def _token_file(self, token: str) -> Path:
        path = self._folder / "token"
        path.touch(mode=0o600)
        path.write_text(token, "utf-8")
        return path

    def process_id(self, task: str) -> int:
        """The number of a task's process."""
        return self._processes[task].pid

    def ended(self, task: str) -> str | None:
        """By which status or signal it ended."""
        status = self._processes[task].poll()
        if status is None:
            return None
        if status >= 0:
            return f"its process exited with status {status}"
        return f"its process was ended by {signal.Signals(-status).name}"

    def log(self, task: str) -> str:
        """The last lines of its output, of all its lives."""
        path = self._log_of(task)
        if not path.exists():
            return ""
        with path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - _LOG_BYTES))
            return file.read().decode("utf-8", "replace")

    def close(self) -> None:
        """End all processes: in order, and those that do not listen by force."""
        for process in self._processes.values():
            process.terminate()
            _forget(process)
        for process in self._processes.values():
            try:
                process.wait(self._patience)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _log_of(self, task: str) -> Path:
        return self._folder / f"{task.strip('/').replace('/', '-').replace(':', '-')}.log"


def _forget(process: subprocess.Popen[bytes]) -> None:
    """Close the input of a process, by which it would learn of this one's end."""
    assert process.stdin is not None
    process.stdin.close()


def _free_ports(count: int) -> list[int]:
    """Ports that nothing listens at, all of them different."""
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind((_LOOPBACK, 0))
        return [one.getsockname()[1] for one in sockets]
