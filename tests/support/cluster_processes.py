"""Clusters for tests of faults: one process for each task, which may be killed, stopped, cut."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from types import TracebackType

from support.clusters import free_ports
from support.relay import Relay


class Processes:
    """The tasks of a cluster, each in a process that is started anew when it has died."""

    def __init__(
        self, jobs: Mapping[str, int], *, heartbeat: float = 0.5, relayed: bool = False
    ) -> None:
        """Start all tasks; ``relayed`` puts a relay between each task and its wire."""
        self._heartbeat = heartbeat
        ports = iter(free_ports(3 * sum(jobs.values())))
        names = [f"{job}:{index}" for job, count in jobs.items() for index in range(count)]
        #: Where each task listens, and where others believe that it does: a wire in between.
        self.ports = {name: next(ports) for name in names}
        self.relays = {name: Relay(next(ports), self.ports[name]) for name in names if relayed}
        behind = {name: relay.port for name, relay in self.relays.items()}
        self.wires = {name: Wire(next(ports), behind.get(name, self.ports[name])) for name in names}
        self._jobs = jobs
        self._running: dict[str, subprocess.Popen[bytes]] = {}
        self._closed = threading.Event()
        for name in names:
            self._start(name)
        threading.Thread(target=self._supervise, daemon=True).start()

    def target(self, name: str) -> str:
        """What sessions give to reach a task."""
        return f"grpc://127.0.0.1:{self.wires[name].port}"

    def _spec(self, own: str) -> str:
        """The cluster as one task sees it: the others behind their wires."""
        parts = []
        for job, count in self._jobs.items():
            names = [f"{job}:{index}" for index in range(count)]
            ports = [self.ports[n] if n == own else self.wires[n].port for n in names]
            parts.append(f"{job}=" + ",".join(f"127.0.0.1:{port}" for port in ports))
        return ";".join(parts)

    def _start(self, name: str) -> None:
        job, _, index = name.partition(":")
        command = [sys.executable, "-m", "penstock", "worker", "--cluster", self._spec(name)]
        command += ["--job", job, "--task", index, "--grace-seconds", "0"]
        command += ["--heartbeat-seconds", str(self._heartbeat)]
        self._running[name] = subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )

    def _supervise(self) -> None:
        while not self._closed.wait(0.05):
            for name, process in list(self._running.items()):
                if process.poll() is not None and not self._closed.is_set():
                    self._start(name)

    def wait(self) -> None:
        """Until all tasks listen."""
        for port in self.ports.values():
            deadline = time.monotonic() + 30
            while True:
                try:
                    socket.create_connection(("127.0.0.1", port), timeout=1).close()
                    break
                except OSError:
                    assert time.monotonic() < deadline, "a task does not come up"
                    time.sleep(0.05)

    def signal(self, name: str, number: int) -> None:
        """Send a signal to a task's process."""
        os.kill(self._running[name].pid, number)

    def pid(self, name: str) -> int:
        """The number of a task's process."""
        return self._running[name].pid

    def __enter__(self) -> Processes:
        self.wait()
        return self

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        _raised: BaseException | None,
        _traceback: TracebackType | None,
    ) -> None:
        self._closed.set()
        for process in self._running.values():
            process.send_signal(signal.SIGCONT)
            process.kill()
            process.wait()
        for wire in self.wires.values():
            wire.close()
        for relay in self.relays.values():
            relay.close()


class Wire:
    """A port that leads to another one; what goes through can be cut, or slowed down."""

    def __init__(self, port: int, to: int) -> None:
        self.port = port
        #: Seconds that each piece takes; None lets nothing through.
        self.delay: float | None = 0.0
        self._to = to
        self._listening = socket.create_server(("127.0.0.1", port), backlog=64)
        self._sockets: set[socket.socket] = set()
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self) -> None:
        """Break all connections that there are."""
        for one in list(self._sockets):
            _close(one)

    def close(self) -> None:
        """Lead nowhere any more."""
        self._listening.close()
        self.cut()

    def _accept(self) -> None:
        while True:
            try:
                here, _ = self._listening.accept()
            except OSError:
                return
            try:
                there = socket.create_connection(("127.0.0.1", self._to), timeout=5)
            except OSError:
                _close(here)
                continue
            there.settimeout(None)
            self._sockets |= {here, there}
            for source, sink in ((here, there), (there, here)):
                threading.Thread(target=self._pump, args=(source, sink), daemon=True).start()

    def _pump(self, source: socket.socket, sink: socket.socket) -> None:
        try:
            while piece := source.recv(1 << 16):
                if self.delay:
                    time.sleep(self.delay)
                sink.sendall(piece)
        except OSError:
            pass
        for one in (source, sink):
            _close(one)
            self._sockets.discard(one)


def _close(one: socket.socket) -> None:
    with contextlib.suppress(OSError):
        one.shutdown(socket.SHUT_RDWR)
    one.close()
