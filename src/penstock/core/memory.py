"""How much memory there is, how much is left, and how it is handed out.

In:   what the system tells.
Out:  the bound on what a graph may ask for; and an allocator that keeps what was freed, until that
      is asked for.
Not:  allocates nothing.

Systems hand out more memory than they have, and kill whoever uses it.  So absurd sizes are
refused before anything is allocated.
"""

from __future__ import annotations

import ctypes
import functools
import importlib
import os
import re
from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple


def _physical_memory() -> int:
    """Bytes of memory of this machine; very many if it does not tell."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return 2**63 - 1


def _unix_module(name: str) -> Any:
    """A module of Python that only Unix has; None elsewhere."""
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


PHYSICAL_MEMORY: Final = _physical_memory()
#: Imported at once: a child of a fork would wait for ever if another thread was importing it.
_resource: Final = _unix_module("resource")

#: Parameters of glibc's ``mallopt``, and their values in bytes: the largest that it takes, and
#: what a step may well free at once; and how many heaps there are, of which threads have one each.
_TRIM_THRESHOLD: Final = (-1, 512 << 20)
_MMAP_THRESHOLD: Final = (-3, 32 << 20)
_HEAPS: Final = (-8, 1)
#: What gives memory back that is kept for later.  Only grows; each access is one operation.
_givers: Final[list[Callable[[], object]]] = []
#: So many bytes are never too many; to ask the system takes up to a millisecond, less than to
#: fill them.
_SMALL: Final = 64 << 20


@functools.cache
def keep_freed_memory() -> bool:
    """Have the C library keep freed memory for the next array; whether it could be told.

    By default glibc gives large blocks back to the system at once.  The next step gets them
    again page by page, each of which the system has to clear first: that took half of the time
    of training steps and a tenth of that of networks.  TensorFlow's allocator keeps memory,
    too.  Heaps of other threads than the first are small, and go back to the system whole whatever
    the thresholds say, so threads that are new to the library share the first one's.  The setting
    holds for the whole process; elsewhere than with glibc nothing happens.
    """
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):
        return False
    done = [mallopt(*option) for option in (_TRIM_THRESHOLD, _MMAP_THRESHOLD, _HEAPS)]
    if all(done):
        gives_back(_trim)
    return all(done)


def _trim() -> None:
    """Have the C library give the system what is free in its heaps."""
    ctypes.CDLL(None).malloc_trim(0)


# -- what is left ----------------------------------------------------------------------


def fits_memory(size: int) -> bool:
    """Whether so many bytes, for one array or one file, may be asked for.

    The bound is half of what is left: making an array often takes another one of its size, and
    what comes next needs some as well.  Before something is refused, what is kept for later goes
    back to the system.
    """
    if size <= _SMALL or size <= available_memory() // 2:
        return True
    for give_back in _givers:
        give_back()
    return size <= available_memory() // 2


def gives_back(giver: Callable[[], object]) -> None:
    """Note what gives memory back to the system that is kept for later; it may be called twice."""
    if giver not in _givers:
        _givers.append(giver)


def available_memory() -> int:
    """Bytes that this process could still use.

    On Linux, the least of what the system calls available, of what the process's control groups
    leave, and of what its own limit of address space leaves; elsewhere, the machine's memory.
    """
    return max(0, min([PHYSICAL_MEMORY, *_system(), *_control_groups(), *_own_limit()]))


def _system() -> Iterator[int]:
    """What new programs could use without swapping."""
    found = re.search(r"^MemAvailable:\s*(\d+) kB", text_of("/proc/meminfo"), re.MULTILINE)
    if found is not None:
        yield int(found[1]) << 10


def _own_limit() -> Iterator[int]:
    """What RLIMIT_AS leaves."""
    if _resource is None:
        return
    limit = _resource.getrlimit(_resource.RLIMIT_AS)[0]
    if limit != _resource.RLIM_INFINITY:
        pages = text_of("/proc/self/statm").split()
        yield limit - (int(pages[0]) * os.sysconf("SC_PAGE_SIZE") if pages else 0)


class _ControlGroup(NamedTuple):
    """The files in which a control group of Linux says what it may use, and what it does."""

    limit: str
    usage: str
    statistics: str
    #: A pattern for the line of the group's statistics about what would be given back at once.
    cache: str

    def left(self) -> Iterator[int]:
        """Bytes that the group's processes could still use; nothing if there is no limit."""
        limit, usage = text_of(self.limit).strip(), text_of(self.usage).strip()
        if limit.isdecimal() and usage.isdecimal() and int(limit) < PHYSICAL_MEMORY:
            found = re.search(self.cache, text_of(self.statistics), re.MULTILINE)
            yield int(limit) - int(usage) + (int(found[1]) if found else 0)


def _control_groups() -> Iterator[int]:
    for group in _groups():
        yield from group.left()


@functools.cache
def _groups() -> tuple[_ControlGroup, ...]:
    """The control groups that this process is in, of both of Linux's kinds."""
    kinds = (
        ("memory.limit_in_bytes", "memory.usage_in_bytes", r"^total_inactive_file (\d+)"),
        ("memory.max", "memory.current", r"^inactive_file (\d+)"),
    )
    return tuple(
        _ControlGroup(f"{folder}/{limit}", f"{folder}/{usage}", f"{folder}/memory.stat", cache)
        for folder in control_group_folders("memory")
        for limit, usage, cache in kinds
        if text_of(f"{folder}/{limit}")
    )


def control_group_folders(controller: str) -> Iterator[str]:
    """Where the control groups that this process is in, and those around them, say what they bound.

    Groups of both of Linux's kinds: those of one controller, and those of all.
    """
    for line in text_of("/proc/self/cgroup").splitlines():
        _number, controllers, path = line.split(":", 2)
        if controller in controllers.split(","):
            root = f"/sys/fs/cgroup/{controller}"
        elif not controllers:
            root = "/sys/fs/cgroup"
        else:
            continue
        names = [name for name in path.split("/") if name]
        yield from ("/".join([root, *names[:depth]]) for depth in range(len(names), -1, -1))


def text_of(path: str) -> str:
    """The text of one of the system's own files; empty if it cannot be read."""
    try:
        with open(path, encoding="ascii", errors="replace") as file:
            return file.read()
    except OSError:
        return ""
