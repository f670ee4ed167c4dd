"""The tensors that are alive, by who made them.

In:   values as they come up, each with its owner; from any thread.
Out:  the bytes that are alive now; all that was alive when they were most.
Not:  keeps nothing alive, and does not know why others do.

One piece of memory counts once, and belongs to who was first seen to have it: what reshapes or
hands on a value makes no new one.  It counts until Python frees it, which may be a little later
than the last node that reads it is done.  Scalars and single strings are too small to be counted.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from functools import partial
from threading import Lock
from typing import Any, Final, NamedTuple
from weakref import ref

import numpy as np

from penstock.core.values import Ref, Value, dtype_of, size_in_bytes

#: When so many changes are noted, they are summed up.
_MAX_CHANGES: Final = 100_000


class Owner(NamedTuple):
    """Whose a tensor is: the node that made it; or a resource, or a feed."""

    name: str
    #: The node's op, the resource's kind; ``feed``.
    op: str
    slot: int = 0
    device: str = ""
    #: The loop, as errors show it; empty outside of all.
    frame: str = ""
    iteration: int = 0

    @property
    def place(self) -> str:
        """The loop and its iteration, to stand behind a name; empty outside of all."""
        return f" in {self.frame}, iteration {self.iteration}" if self.frame else ""


class Live(NamedTuple):
    """One piece of memory."""

    owner: Owner
    dtype: str
    shape: tuple[int, ...]
    #: Bytes.
    size: int


class LiveTensors:
    """Counts the memory of tensors from when it is seen to when it is freed."""

    def __init__(self) -> None:
        #: Guards what is noted below; the next two also change without it, as tensors die, whoever
        #: holds it.  Innermost.
        self._lock: Final = Lock()
        #: By the identity of the array that has the memory.  Entries leave when that dies, on
        #: whichever thread; each change is one operation of a dictionary.
        self._refs: Final[dict[int, ref[Any]]] = {}
        #: What came (with its facts) and went (None), in this order, and is not counted yet.
        self._news: Final = deque[tuple[int, Live | None]]()
        self._live: dict[int, Live] = {}
        self._total = 0
        self._peak = 0
        #: What was alive before ``_changes``; those; and how many of them led to the peak, if that
        #: came since then; else what was alive at it.
        self._before: dict[int, Live] = {}
        self._changes: list[tuple[int, Live | None]] = []
        self._changes_to_peak: int | None = None
        self._at_peak: dict[int, Live] = {}

    def add(self, owner: Owner, value: Value) -> None:
        """Count a value from now on, unless its memory is counted already."""
        if isinstance(value, Ref):
            value = value.value
        if not isinstance(value, np.ndarray):
            return
        root = value
        while isinstance(root.base, np.ndarray):
            root = root.base
        key = id(root)
        with self._lock:
            if key in self._refs:
                return
            facts = Live(owner, dtype_of(value).name, value.shape, _size(root))
            self._refs[key] = ref(root, partial(self._freed, key))
            self._news.append((key, facts))

    def _freed(self, key: int, _dead: object) -> None:
        # May interrupt any code of this class, on any thread: no lock, only single operations.
        self._refs.pop(key, None)
        self._news.append((key, None))

    def total(self) -> int:
        """The bytes that are alive."""
        with self._lock:
            self._count()
            return self._total

    def peak(self) -> tuple[int, list[Live]]:
        """The most bytes that were alive at once, and what had them, the largest first."""
        with self._lock:
            self._count()
            self._sum_up()
            return self._peak, _largest_first(self._at_peak.values())

    def alive(self) -> list[Live]:
        """What is alive, the largest first."""
        with self._lock:
            self._count()
            return _largest_first(self._live.values())

    # -- with the lock ---------------------------------------------------------------------

    def _count(self) -> None:
        """Take in what is new."""
        news = self._news
        while news:
            change = key, facts = news.popleft()
            if facts is not None:
                self._live[key] = facts
                self._total += facts.size
            else:
                self._total -= self._live.pop(key).size
            self._changes.append(change)
            if self._total > self._peak:
                self._peak, self._changes_to_peak = self._total, len(self._changes)
            if len(self._changes) >= _MAX_CHANGES:
                self._sum_up()

    def _sum_up(self) -> None:
        """Find out what was alive at the peak, and forget how it came to that."""
        if self._changes_to_peak is not None:
            self._at_peak = dict(self._before)
            for key, facts in self._changes[: self._changes_to_peak]:
                if facts is not None:
                    self._at_peak[key] = facts
                else:
                    del self._at_peak[key]
        self._before, self._changes, self._changes_to_peak = dict(self._live), [], None


def _largest_first(found: Iterable[Live]) -> list[Live]:
    return sorted(found, key=lambda one: one.size, reverse=True)


def _size(root: Any) -> int:
    """The bytes of memory behind an array; of strings, what these take as well."""
    return size_in_bytes(root) if root.dtype.hasobject else int(root.nbytes)
