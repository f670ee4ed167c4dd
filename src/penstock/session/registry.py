"""The sessions of this process that are open, for those who reset them all.

In:   sessions, as they open.
Out:  all of them closed; who waits in a container that is reset hears of that first.  And in
      the child of a fork, those that cannot be used there refuse to be.
Not:  keeps no session alive.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable
from typing import Final, Protocol
from weakref import WeakSet

from penstock.core.forks import in_children, process_lock
from penstock.state.callbacks import call_all
from penstock.state.device_resources import DeviceResources


class Resettable(Protocol):
    """What can be closed and has containers."""

    @property
    def target(self) -> str:
        """Where it runs; empty for this process."""

    @property
    def resources(self) -> DeviceResources:
        """What is in its containers."""

    def close(self) -> None:
        """Give everything up."""

    def forget_threads(self) -> bool:
        """Start anew in the child of a fork; whether the session can be used there."""


#: Held while ``_open`` changes or is read.  Innermost.
_lock: Final = process_lock()
#: Sessions that somebody still refers to; closed ones may be among them.
_open: Final[WeakSet[Resettable]] = WeakSet()


def remember(session: Resettable) -> None:
    """Note a session that opens."""
    with _lock:
        _open.add(session)


def _forget_threads() -> None:
    """Give up, in the child of a fork, the sessions that other threads were at work in."""
    for session in list(_open):
        if not session.forget_threads():
            _open.discard(session)


in_children(_forget_threads)


def reset(containers: Iterable[str] | None) -> None:
    """Close all sessions.

    Whoever waits for something in the containers is told so by that; for everybody else the
    reason is that the session was closed, so nothing is dropped before it is.
    """
    names = list(containers or ())
    with _lock:
        sessions = [session for session in _open if not session.target]
        _open.difference_update(sessions)
    call_all(functools.partial(session.resources.end_waits, names) for session in sessions)
    call_all(session.close for session in sessions)
