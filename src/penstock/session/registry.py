"""The sessions of this process that are open, for those who reset them all.

In:   sessions, as they open, with what goes on in them.
Out:  what goes on in all of them; all of them closed; who waits in a container that is reset hears
      of that first.  And in the child of a fork, those that cannot be used there refuse to be.
Not:  keeps no session alive.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable
from typing import Final, Protocol
from weakref import WeakKeyDictionary

from penstock.core.forks import in_children, process_lock
from penstock.session.run import Endable
from penstock.session.under_way import UnderWay
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
_open: Final[WeakKeyDictionary[Resettable, UnderWay]] = WeakKeyDictionary()


def remember(session: Resettable, under_way: UnderWay) -> None:
    """Note a session that opens, and where it keeps what goes on in it."""
    with _lock:
        _open[session] = under_way


def all_under_way() -> list[Endable]:
    """Steps and preparations of all sessions of this process."""
    with _lock:
        found = list(_open.values())
    return [step for under_way in found for step in under_way.running()]


def _forget_threads() -> None:
    """Give up, in the child of a fork, the sessions that other threads were at work in."""
    for session in list(_open):
        if not session.forget_threads():
            _open.pop(session, None)


in_children(_forget_threads)


def reset(containers: Iterable[str] | None) -> None:
    """Close all sessions.

    Whoever waits for something in the containers is told so by that; for everybody else the
    reason is that the session was closed, so nothing is dropped before it is.
    """
    names = list(containers or ())
    with _lock:
        sessions = [session for session in _open if not session.target]
        for session in sessions:
            _open.pop(session, None)
    call_all(functools.partial(session.resources.end_waits, names) for session in sessions)
    call_all(session.close for session in sessions)
