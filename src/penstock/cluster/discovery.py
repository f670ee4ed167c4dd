"""Which devices the tasks of a cluster have.

In:   a cluster, and filters of devices.
Out:  the devices of all other tasks, by task, when all of them have answered.
Not:  gives up on nobody: a task may start late.  Who asked may.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from threading import Event
from time import monotonic
from typing import Any, Final

from penstock.cluster.services import request_class
from penstock.cluster.task import Task, device_from_proto
from penstock.core.device_names import DeviceName
from penstock.errors import Code, OpError
from penstock.session.run import Call
from penstock.state.devices import Device

_log: Final = logging.getLogger("penstock.cluster")
_GetStatusRequest: Final = request_class("GetStatus")
#: Seconds between two tries, and between two complaints.
_RETRY_SECONDS: Final = 0.2
_COMPLAIN_SECONDS: Final = 10.0


def find_devices(task: Task, filters: Sequence[str], call: Call) -> dict[str, list[Device]]:
    """The devices of all other tasks of the cluster, as far as filters let them through.

    Args:
        task: the one that asks.
        filters: names of devices, whole or in part; none lets all through.
        call: ends the waiting.

    Raises:
        OpError: a filter is no device's name, or ``call`` was ended.

    """
    wanted = [DeviceName.parse(text) for text in filters]
    others = [
        other
        for other in task.peers.cluster
        if other != task.name and (not wanted or any(_meets(other, one) for one in wanted))
    ]
    waiting = _Waiting()
    call.turn_to(waiting)
    return {other: waiting.devices_of(task, other) for other in others}


def _meets(task: str, wanted: DeviceName) -> bool:
    """Whether some device of a task may be meant."""
    name = DeviceName.parse(task)
    return all(
        want is None or have == want
        for have, want in (
            (name.job, wanted.job), (name.replica, wanted.replica), (name.task, wanted.task),
        )
    )  # fmt: skip


class _Waiting:
    """Somebody who waits for workers; can be ended."""

    def __init__(self) -> None:
        self._ended = Event()
        #: Why.  Set before ``_ended``.
        self._reason: OpError | None = None
        self._for = ""

    def cancel(self, reason: OpError | None = None) -> None:
        """Wait no longer."""
        self._reason = reason
        self._ended.set()

    def dump_state(self) -> str:
        """For whom."""
        return f"  waiting  for {self._for}"

    def devices_of(self, task: Task, other: str) -> list[Device]:
        """The devices of a task, as soon as it answers."""
        worker = task.peers.worker(other)
        self._for = worker.peer
        complained = monotonic()
        while True:
            if self._ended.is_set() and self._reason is not None:
                raise self._reason
            try:
                answer: Any = worker.call("GetStatus", _GetStatusRequest(), timeout=5.0)
            except OpError as error:
                if error.code not in (Code.UNAVAILABLE, Code.DEADLINE_EXCEEDED):
                    raise
            else:
                return [device_from_proto(proto) for proto in answer.device_attributes]
            if monotonic() - complained > _COMPLAIN_SECONDS:
                complained = monotonic()
                _log.warning("CreateSession still waiting for response from worker: %s", other)
            self._ended.wait(_RETRY_SECONDS)
