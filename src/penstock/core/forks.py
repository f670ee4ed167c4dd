"""What the threads of this process share, when it forks.

In:   locks of the whole process, and functions that put things right in the child.
Out:  in the child nobody waits for a thread that only its parent has.
Not:  knows no session; those that were busy are given up by ``session/registry.py``.

The child of a fork has all of its parent's memory, and of its threads only the one that forked.
A lock that another one held would stay locked for ever, and what it guards might be half done.
So whoever forks takes all locks of the process first.  Locks that belong to a session, or to a
step, are not among them.
"""

from __future__ import annotations

import contextlib
import os
from bisect import insort
from collections.abc import Callable
from operator import itemgetter
from threading import Lock, RLock
from typing import Any, Final, TypeVar

_AnyLock = TypeVar("_AnyLock", bound=Any)  # Python has no public type for both kinds

#: Seconds that a fork waits for a lock.  Whoever holds one longer may wait for the fork itself.
_PATIENCE: Final = 5.0
_STDERR: Final = 2
_STRAY: Final = (
    b"penstock: a kernel in a thread of a pool has forked, and came back in the child, where "
    b"nobody waits for it; the child ends. Use os._exit there, or fork elsewhere.\n"
)
#: Locks under which other ones of the process are taken, by their order: 1 for packages of ops,
#: 2 for families of kernels, 3 for libraries that kernels need, 4 for single modules.  Like the
#: two that follow it grows while modules are imported.
_outer: Final[list[Any]] = []
#: Locks under which none is taken.
_innermost: Final[list[Any]] = []
#: What is done in the child.
_renewals: Final[list[Callable[[], None]]] = []
#: How many forks lie between this process and the one that imported this, in its one element.
_generation: Final = [0]
#: Held by a thread that forks; guards the next.
_forking: Final = RLock()
#: What that thread has taken.
_taken: Final[list[Any]] = []


def process_lock() -> Any:
    """A lock of the whole process, under which no other lock of the process is taken."""
    return held_at_forks(Lock())


def held_at_forks(lock: _AnyLock, *, order: int | None = None) -> _AnyLock:
    """The same lock, which is free in the child of every fork.

    Args:
        lock: one that lives as long as the process.
        order: where it stands among those under which others are taken, outermost first; None
            if it is not one of them.

    """
    if order is None:
        _innermost.append(lock)
    else:
        # In one operation: another thread may be forking, and looks at all of them.
        insort(_outer, (order, lock), key=itemgetter(0))
    return lock


#: Held while a module is imported that not everybody needs: Python's own lock of a module that a
#: thread is importing stays locked in the child of a fork.  Taken before these locks.
importing: Final = held_at_forks(RLock(), order=4)


def in_children(renew: Callable[[], None]) -> None:
    """Have ``renew`` called in the child of every fork, when no lock of the process is held."""
    _renewals.append(renew)


def generation() -> int:
    """A number that is another one in the child of a fork."""
    return _generation[0]


def end_stray(before: int) -> None:
    """End this process if its ``generation`` was another one before.

    For threads that take one piece of work after the other.  If such a piece forked and came
    back, the child has this thread alone, and nobody waits there for what it does.
    """
    if generation() != before:
        with contextlib.suppress(OSError):
            os.write(_STDERR, _STRAY)
        os._exit(1)


def is_free(lock: Any) -> bool:
    """Whether no other thread holds a lock."""
    if not lock.acquire(blocking=False):
        return False
    lock.release()
    return True


def _locks() -> list[Any]:
    """All locks of the process, in the order in which they are taken."""
    return [*(lock for _, lock in _outer), *_innermost]


def _before() -> None:
    _forking.acquire()
    tried: set[int] = set()
    # Another thread may be importing modules that have locks.
    while more := [lock for lock in _locks() if id(lock) not in tried]:
        for lock in more:
            tried.add(id(lock))
            if lock.acquire(timeout=_PATIENCE):
                _taken.append(lock)


def _after_in_parent() -> None:
    while _taken:
        _taken.pop().release()
    _forking.release()


def _after_in_child() -> None:
    taken = set(map(id, _taken))
    _after_in_parent()
    _generation[0] += 1
    for lock in _locks():
        if id(lock) not in taken:
            lock._at_fork_reinit()  # noqa: SLF001  (what threading itself calls in a child)
    for renew in _renewals:
        renew()


if hasattr(os, "register_at_fork"):  # not on Windows, which does not fork
    os.register_at_fork(
        before=_before, after_in_parent=_after_in_parent, after_in_child=_after_in_child
    )
