"""The session that ``tensor.eval()`` uses: that of the innermost ``with`` around it.

In:   sessions, as their blocks begin and end.
Out:  the one whose block is innermost.
Not:  knows nothing about sessions but that they run something.

Like the scope of a graph, it is a context variable: every thread and every asyncio task has
its own, and a new thread starts without one.
"""

from __future__ import annotations

from contextvars import ContextVar
from typing import Any, Final, Protocol


class Runs(Protocol):
    """What runs tensors and operations."""

    def run(self, fetches: Any, feed_dict: Any = None) -> Any:
        """Run what ``fetches`` need, and return their values."""


#: The sessions whose blocks are open here, the innermost last.
_open: Final[ContextVar[tuple[Runs, ...]]] = ContextVar("penstock_sessions", default=())


def enter(session: Runs) -> None:
    """Begin a block of ``session``."""
    _open.set((*_open.get(), session))


def leave(session: Runs) -> None:
    """End its innermost block here; one that was begun elsewhere is no matter."""
    sessions = list(_open.get())
    for index in reversed(range(len(sessions))):
        if sessions[index] is session:
            del sessions[index]
            break
    _open.set(tuple(sessions))


def innermost() -> Runs | None:
    """The session of the innermost block, or None outside of all."""
    sessions = _open.get()
    return sessions[-1] if sessions else None
