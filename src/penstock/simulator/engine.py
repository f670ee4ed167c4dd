"""A discrete-event simulation of one step.

In:   activations, the hosts of tasks, bandwidth and latency.
Out:  when each activation starts and ends, and each transfer; who was how busy.
Not:  knows no graph, and no clock.

Cores.  Whoever has waited for all that it waits for takes a free core of its task's host, in the
order in which activations became ready, as the executor has it.  What takes no time needs no core.

Links.  A transfer goes out by its sender's host's link and comes in by its receiver's; either link
serves one transfer after the other, in the order in which they come (FIFO); an uncontended one
takes latency + bytes / bandwidth.  A fair share of the link would end a batch of transfers at the
same time, and keep the link as busy; FIFO takes one event where fair shares take one for each
transfer under way, which is what lets ten thousand tasks meet at one link.

Between tasks of one host nothing goes over a link, but sending is work: a transfer takes a core for
latency + bytes / bandwidth.  What comes to one task comes one after the other (FIFO), since a task
reads all that it is sent on one event loop.

Replicas.  The same activations may happen many times, with the devices of one job being another
task's each time: what is static is shared, and a replica is only its counters and times.
"""

from __future__ import annotations

from array import array
from collections import deque
from collections.abc import Sequence
from dataclasses import field
from heapq import heappop, heappush
from typing import Final

from penstock.dataclass import dataclass
from penstock.simulator.activations import Activations
from penstock.simulator.machine import Hosts

#: What may happen to a transfer.
_FIRST_BYTE, _LAST_BYTE, _WITHIN_HOST = range(3)


@dataclass(slots=True)
class Transfer:
    """What went over a link."""

    sender: int
    receiver: int
    size: int
    #: When its first byte left, and its last byte came.
    start: float = 0.0
    end: float = 0.0


@dataclass(slots=True)
class Schedule:
    """When everything happened; activations are numbered replica by replica."""

    starts: array[float]
    ends: array[float]
    #: The seconds that cores of each task were busy.
    busy: list[float]
    transfers: list[Transfer] = field(default_factory=list)

    @property
    def seconds(self) -> float:
        """The end of the step."""
        return max(self.ends, default=0.0)


class _Simulation:
    """The state of a step that is simulated."""

    def __init__(
        self,
        work: Activations,
        tasks_of: Sequence[Sequence[int]],
        hosts: Hosts,
        bandwidth: float,
        latency: float,
    ) -> None:
        self._work: Final = work
        self._count: Final = len(work)
        self._tasks_of: Final = tasks_of
        self._host_of: Final = hosts.host_of
        self._bandwidth: Final = bandwidth
        self._latency: Final = latency
        replicas = len(tasks_of)
        #: What each activation still waits for.
        self._waits: Final = work.waits * replicas
        nothing = bytes(8 * self._count * replicas)
        self.schedule: Final = Schedule(
            array("d", nothing), array("d", nothing), [0.0] * len(hosts.host_of)
        )
        # What follows has one item for each host.
        self._free: Final = list(hosts.cores)
        self._ready: Final = [deque[int]() for _ in hosts.cores]
        #: When each link has served all that came to it, outwards and inwards.
        self._out: Final = [0.0] * len(hosts.cores)
        self._in: Final = [0.0] * len(hosts.cores)
        #: What comes to each task from its own host: the transfer under way, and those that wait.
        self._coming: Final = [deque[int]() for _ in hosts.host_of]
        #: What happens next: when, in which order among what happens then, and what: the end of
        #: an activation, or, below zero, the arrival of a transfer's first byte (-1 - 3t) or of
        #: its last one (-2 - 3t), or the end of one within a host (-3 - 3t).
        self._events: Final[list[tuple[float, int, int]]] = []
        self._number = 0

    def run(self) -> Schedule:
        for number, waits in enumerate(self._waits):
            if waits == 0:
                self._begin(number, 0.0)
        events = self._events
        while events:
            now, _, what = heappop(events)
            if what >= 0:
                self._end(what, now)
                continue
            transfer, kind = divmod(-1 - what, 3)
            if kind == _FIRST_BYTE:
                self._come_in(transfer, now)
            else:
                if kind == _WITHIN_HOST:
                    self._came_in(transfer, now)
                self._received(transfer, now)
        return self.schedule

    def _at(self, when: float, what: int) -> None:
        self._number += 1
        heappush(self._events, (when, self._number, what))

    def _task(self, number: int) -> int:
        replica, one = divmod(number, self._count)
        return self._tasks_of[replica][self._work.place[one]]

    def _begin(self, number: int, now: float) -> None:
        """All that an activation waits for is there."""
        if self._work.seconds[number % self._count] == 0.0:
            self.schedule.starts[number] = now
            self._at(now, number)
            return
        self._take_core(self._host_of[self._task(number)], number, now)

    def _take_core(self, host: int, what: int, now: float) -> None:
        """Start an activation, or a transfer within a host, now or when it is its turn."""
        if self._free[host]:
            self._free[host] -= 1
            self._start(what, now)
        else:
            self._ready[host].append(what)

    def _release(self, host: int, now: float) -> None:
        if self._ready[host]:
            self._start(self._ready[host].popleft(), now)
        else:
            self._free[host] += 1

    def _start(self, number: int, now: float) -> None:
        if number < 0:
            found = self.schedule.transfers[-1 - number]
            found.start = now
            self._at(now + self._latency + found.size / self._bandwidth, 3 * number)
            return
        seconds = self._work.seconds[number % self._count]
        self.schedule.starts[number] = now
        self.schedule.busy[self._task(number)] += seconds
        self._at(now + seconds, number)

    def _end(self, number: int, now: float) -> None:
        self.schedule.ends[number] = now
        replica, one = divmod(number, self._count)
        task = self._tasks_of[replica][self._work.place[one]]
        if self._work.seconds[one] != 0.0:
            self._release(self._host_of[task], now)
        first, waits = number - one, self._waits
        for after in self._work.successors[one]:
            waits[first + after] -= 1
            if waits[first + after] == 0:
                self._begin(first + after, now)
        if one in self._work.sends:
            self._send(number, task, now)

    def _send(self, number: int, task: int, now: float) -> None:
        """A Send is done: to another task what it sends takes a link."""
        replica, one = divmod(number, self._count)
        receiver, size = self._work.sends[one]
        receiver += replica * self._count
        if self._task(receiver) == task:
            self._arrived(receiver, now)
            return
        host = self._host_of[task]
        transfers = self.schedule.transfers
        if self._host_of[self._task(receiver)] == host:
            transfers.append(Transfer(number, receiver, size))
            coming = self._coming[self._task(receiver)]
            coming.append(-len(transfers))
            if len(coming) == 1:
                self._take_core(host, coming[0], now)
            return
        start = max(now, self._out[host])
        self._out[host] = start + size / self._bandwidth
        transfers.append(Transfer(number, receiver, size, start))
        self._at(start + self._latency, 2 - 3 * len(transfers))

    def _come_in(self, transfer: int, now: float) -> None:
        """The first byte of a transfer is there."""
        found = self.schedule.transfers[transfer]
        host = self._host_of[self._task(found.receiver)]
        found.end = self._in[host] = max(now, self._in[host]) + found.size / self._bandwidth
        self._at(found.end, -2 - 3 * transfer)

    def _came_in(self, transfer: int, now: float) -> None:
        """A transfer within a host is done: its core is free, and the next to its task begins."""
        task = self._task(self.schedule.transfers[transfer].receiver)
        self._release(self._host_of[task], now)
        coming = self._coming[task]
        coming.popleft()
        if coming:
            self._take_core(self._host_of[task], coming[0], now)

    def _received(self, transfer: int, now: float) -> None:
        found = self.schedule.transfers[transfer]
        found.end = now
        self._arrived(found.receiver, now)

    def _arrived(self, receiver: int, now: float) -> None:
        self._waits[receiver] -= 1
        if self._waits[receiver] == 0:
            self._begin(receiver, now)


def simulate(
    work: Activations,
    tasks_of: Sequence[Sequence[int]],
    hosts: Hosts,
    *,
    bandwidth: float,
    latency: float,
) -> Schedule:
    """When everything in a step happens.

    Args:
        work: the activations of one replica.
        tasks_of: for each replica, the number of the task that each device is.
        hosts: where tasks run.
        bandwidth: bytes in a second of each host's link, in each direction.
        latency: seconds.

    """
    return _Simulation(work, tasks_of, hosts, bandwidth, latency).run()
