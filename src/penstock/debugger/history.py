"""What nodes gave, as long as there is memory for it.

In:   outputs of activations, in the order in which they came up.
Out:  the same, by name, place and time.
Not:  knows no step that goes on.

Values are kept as copies.  When they take more than the bound, the oldest are forgotten, whoever
might yet ask for them; each record counts for its value and a little more.
"""

from __future__ import annotations

import itertools
import re
from collections import deque
from collections.abc import Iterator
from threading import Lock
from typing import Any, Final

import numpy as np

from penstock.core.dtypes import DType
from penstock.core.names import parse_endpoint
from penstock.core.values import Ref, size_in_bytes
from penstock.dataclass import dataclass
from penstock.errors import InvalidArgumentError

#: The bytes of values that are kept unless somebody says otherwise.
DEFAULT_BYTES: Final = 1 << 30
#: What a record takes beside its value.
_OVERHEAD: Final = 1000
#: ``node:slot@loop[iteration]``, as records are called.
_KEY: Final = re.compile(r"([^@]*)@(.+)\[(\d+)\]")


@dataclass(frozen=True, slots=True)
class Recorded:
    """One output of one activation."""

    #: Which activation of the step it was, from 1.
    number: int
    node: str
    slot: int
    dtype: DType
    op: str
    #: The loops around the node, for people; empty outside of all.
    frame: str
    #: The iteration of each of these loops, the outermost first.
    iterations: tuple[int, ...]
    #: Seconds since the step began.
    seconds: float
    #: None if it is dead, or no array: a resource, a variant.
    value: Any
    is_dead: bool
    #: The class of what is no array; empty otherwise.
    kind: str = ""

    @property
    def name(self) -> str:
        """``node:slot``."""
        return f"{self.node}:{self.slot}"

    @property
    def key(self) -> str:
        """The same with loop and iteration, as ``ps.dump_all`` has it."""
        where = f"@{self.frame}[{self.iterations[-1]}]" if self.iterations else ""
        return self.name + where

    @property
    def nbytes(self) -> int:
        """Bytes of the value."""
        return size_in_bytes(self.value) if self.value is not None else 0


class History:
    """The records of one step."""

    def __init__(self, max_bytes: int = DEFAULT_BYTES) -> None:
        """With so many bytes, at most.

        Raises:
            InvalidArgumentError: there is no room for anything.

        """
        if max_bytes <= _OVERHEAD:
            raise InvalidArgumentError(f"{max_bytes} bytes are too few to keep any value")
        self.max_bytes: Final = max_bytes
        #: Guards what follows.  Innermost.
        self._lock = Lock()
        #: All records, oldest first; the same are in ``_by_name``.
        self._records: deque[Recorded] = deque()
        self._by_name: dict[str, deque[Recorded]] = {}
        #: What the records count for together; never more than the bound.
        self._bytes = 0
        self._forgotten = 0

    @property
    def nbytes(self) -> int:
        """What the records count for."""
        return self._bytes

    @property
    def forgotten(self) -> int:
        """How many records had to go."""
        return self._forgotten

    def add(self, record: Recorded) -> None:
        """Keep a record, and forget the oldest ones if need be: even this one, if it is too big."""
        with self._lock:
            self._records.append(record)
            self._by_name.setdefault(record.name, deque()).append(record)
            self._bytes += record.nbytes + _OVERHEAD
            while self._bytes > self.max_bytes:
                self._forget()

    def _forget(self) -> None:
        oldest = self._records.popleft()
        same = self._by_name[oldest.name]
        same.popleft()
        if not same:
            del self._by_name[oldest.name]
        self._bytes -= oldest.nbytes + _OVERHEAD
        self._forgotten += 1

    def all(self, until: int | None = None) -> list[Recorded]:
        """All records up to an activation, oldest first."""
        with self._lock:
            return list(_up_to(until, self._records))

    def at(self, number: int) -> list[Recorded]:
        """Those of one activation."""
        with self._lock:
            late = itertools.takewhile(lambda one: one.number >= number, reversed(self._records))
            return [one for one in late if one.number == number][::-1]

    def of(self, name: str, until: int | None = None) -> list[Recorded]:
        """Those of one tensor (``node:slot``)."""
        with self._lock:
            return list(_up_to(until, self._by_name.get(name, ())))

    def find(
        self,
        key: str,
        until: int | None = None,
        near: tuple[str, tuple[int, ...]] = ("", ()),
        index: int | None = None,
    ) -> Recorded | None:
        """One record of a tensor; None if there is none, or it is forgotten.

        Args:
            key: ``node:slot``, or ``node``; with ``@loop[iteration]`` behind it, that one.
            until: the activation up to which records count.
            near: a loop and its iterations: their record comes before any later one.
            index: which of all records, from 0, rather than the latest.

        """
        name, frame, iteration = split_key(key)
        found = self.of(name, until)
        if frame:
            found = [one for one in found if (one.frame, one.iterations[-1]) == (frame, iteration)]
        elif index is None:
            found = [one for one in found if (one.frame, one.iterations) == near] or found
        index = -1 if index is None else index
        return found[index] if -len(found) <= index < len(found) else None


def split_key(key: str) -> tuple[str, str, int]:
    """``node:slot``, the loop, and its iteration; no loop if none is said."""
    found = _KEY.fullmatch(key)
    name = found[1] if found else key
    named = parse_endpoint(name)
    return f"{named.node}:{named.slot}", found[2] if found else "", int(found[3]) if found else 0


def _up_to(until: int | None, records: Any) -> Iterator[Recorded]:
    return (one for one in records if until is None or one.number <= until)


def kept_copy(value: Any) -> Any:
    """A copy of what is an array, or stands for one; None for what is none."""
    if isinstance(value, Ref):
        value = value.value
    if isinstance(value, np.ndarray):
        return value.copy()
    if isinstance(value, (np.generic, bytes, bool, int, float, complex)):
        return value
    return None
