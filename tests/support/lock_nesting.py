"""Which locks are taken under which others, as it really happens.

Import this before Penstock, in a process of its own: from then on every lock that Penstock makes
notes, when it is taken, which others its thread holds.  As a plugin of pytest it does so for the
tests of a run, and prints what it has seen:

    PYTHONPATH=tests pytest -n 0 -s -p support.lock_nesting tests/session
"""

from __future__ import annotations

import linecache
import re
import sys
import threading
from types import FrameType
from typing import Any

_HOME = "penstock"
_real = {"Lock": threading.Lock, "RLock": threading.RLock}
#: The locks that a thread holds, innermost last.
_held = threading.local()
#: (outer, inner) for every pair that was met.  Only grows.
nestings: set[tuple[str, str]] = set()


class _NotingLock:
    """A lock that notes under which others it is taken."""

    def __init__(self, lock: Any, name: str) -> None:
        self._lock = lock
        self.name = name

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        taken: bool = self._lock.acquire(blocking, timeout)
        if taken:
            mine = _mine()
            if self not in mine:  # taking one again that one holds cannot wait
                nestings.update((outer.name, self.name) for outer in mine)
            mine.append(self)
        return taken

    def release(self) -> None:
        mine = _mine()
        if self in mine:
            del mine[len(mine) - 1 - mine[::-1].index(self)]
        self._lock.release()

    def locked(self) -> bool:
        return bool(self._lock.locked())

    def _at_fork_reinit(self) -> None:
        self._lock._at_fork_reinit()

    def __enter__(self) -> bool:
        return self.acquire()

    def __exit__(self, *_raised: object) -> None:
        self.release()


class _NotingRLock(_NotingLock):
    """One on which a condition may wait: it lets go of all of it, and takes it back."""

    def _release_save(self) -> Any:
        mine = _mine()
        held = mine.count(self)
        mine[:] = [lock for lock in mine if lock is not self]
        return held, self._lock._release_save()

    def _acquire_restore(self, saved: Any) -> None:
        held, state = saved
        self._lock._acquire_restore(state)
        _mine().extend([self] * held)

    def _is_owned(self) -> bool:
        return bool(self._lock._is_owned())


def _mine() -> list[_NotingLock]:
    if not hasattr(_held, "locks"):
        _held.locks = []
    locks: list[_NotingLock] = _held.locks
    return locks


def _maker(kind: str) -> Any:
    def make() -> Any:
        lock, name = _real[kind](), _name(sys._getframe(1))
        noting = _NotingRLock if kind == "RLock" else _NotingLock
        return noting(lock, name) if name else lock

    return make


def _name(frame: FrameType | None) -> str:
    """``folder/module.py Class.attribute``; empty for what is not Penstock's, or no lock."""
    is_made_by = ""
    while frame is not None and frame.f_globals.get("__name__") in (
        "penstock.core.forks",
        "threading",
    ):
        is_made_by = frame.f_globals["__name__"]
        frame = frame.f_back
    if frame is None or not str(frame.f_globals.get("__name__")).startswith(_HOME):
        return ""
    line = linecache.getline(frame.f_code.co_filename, frame.f_lineno)
    if is_made_by == "threading" and "Condition(" not in line:  # an event's, or a timer's
        return ""
    found = re.search(r"(\w+)(?:: [^=]+)? = ", line)
    attribute = found[1] if found else "?"
    if attribute == "_is_done":  # taken by one thread and released by another: an event
        return ""
    module = frame.f_code.co_filename.rpartition(f"{_HOME}/")[2]
    owner = frame.f_code.co_qualname.rpartition(".")[0]
    return f"{module} {owner}.{attribute}" if owner else f"{module} {attribute}"


def note_from_now_on() -> None:
    """Have locks note how they are taken."""
    if _HOME in sys.modules:
        raise RuntimeError("Penstock has made its locks already")
    threading.Lock = _maker("Lock")  # type: ignore[assignment, misc]
    threading.RLock = _maker("RLock")  # type: ignore[assignment, misc]


def pytest_sessionfinish() -> None:
    print("\n" + "\n".join(f"{outer}  >  {inner}" for outer, inner in sorted(nestings)))


note_from_now_on()
