"""Staging areas and maps: tuples of values that one step puts down and another takes up.

In:   tuples of values; for maps a key and the numbers of the components.
Out:  the tuples, in order, or by key; ``NOT_YET`` for those that have to wait.
Not:  registers no kernel; blocks nobody.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Final, TypeAlias

import numpy as np

from penstock.core import trees
from penstock.core.trees import Tree
from penstock.core.values import Value, size_in_bytes
from penstock.errors import InvalidArgumentError, ResourceExhaustedError
from penstock.kernels.api.attrs import Attrs
from penstock.kernels.api.wait_queue import NOT_YET, Awaited, WaitQueue

_Tuple: TypeAlias = tuple[Value, ...]


class StagingLimits:
    """How much an area may hold; zero means no limit."""

    def __init__(self, capacity: int, memory: int) -> None:
        self.capacity: Final = capacity
        self.memory: Final = memory

    @classmethod
    def of(cls, attrs: Attrs) -> StagingLimits:
        """What a node asks for."""
        return cls(attrs.int("capacity"), attrs.int("memory_limit"))

    def state(self) -> Tree:
        """Both numbers."""
        return self.capacity, self.memory

    @classmethod
    def of_state(cls, state: Tree) -> StagingLimits:
        """The limits that had a state."""
        return cls(*map(trees.number, trees.parts(state, 2)))

    def filled(self, count: int, size: int) -> str:
        """How full an area of so many tuples and bytes is, for people."""
        tuples = f"{count} of {self.capacity} tuples" if self.capacity else f"{count} tuples"
        return tuples + (f" and {size} of {self.memory} bytes" if self.memory else "")

    def check(self, size: int) -> None:
        """Raise if so many bytes can never be put in."""
        if self.memory and size > self.memory:
            raise ResourceExhaustedError(
                f"Attempted to insert tensors with combined size of '{size}' bytes into "
                f"Staging Area with a memory limit of '{self.memory}'."
            )

    def has_room(self, count: int, size: int) -> bool:
        """Whether an area may hold so many tuples and bytes."""
        return not (self.capacity and count > self.capacity) and not (
            self.memory and size > self.memory
        )


def _size(values: Sequence[Value]) -> int:
    return sum(map(size_in_bytes, values))


def _result(values: Sequence[Value]) -> object:
    """A list output: a tuple of all values."""
    return tuple(values)


class StagingArea(Awaited):
    """Tuples, first in, first out; methods that change it run under the lock of ``waits``."""

    def __init__(self, name: str, limits: StagingLimits) -> None:
        self.name: Final = name
        self.waits = WaitQueue("Staging area operation was cancelled")
        self.limits: Final = limits
        self.tuples: deque[_Tuple] = deque()
        self.bytes = 0

    def state(self) -> Tree:
        """How much it may hold, and the tuples."""
        return self.limits.state(), tuple(self.tuples)

    @classmethod
    def of_state(cls, name: str, state: Tree, there: object) -> StagingArea:  # noqa: ARG003
        """The area that had a state."""
        limits, tuples = trees.parts(state, 2)
        made = cls(name, StagingLimits.of_state(limits))
        for one in trees.listed(tuples):
            made.tuples.append(tuple(map(trees.any_value, trees.listed(one))))
        made.bytes = sum(map(_size, made.tuples))
        return made

    def describe(self) -> str:
        """How full it is, for people."""
        filled = self.limits.filled(len(self.tuples), self.bytes)
        return f"Staging area '{self.name}', which has {filled}"

    def put(self, values: _Tuple) -> object:
        """Put a tuple behind the others, if there is room."""
        size = _size(values)
        self.limits.check(size)
        if not self.limits.has_room(len(self.tuples) + 1, self.bytes + size):
            return NOT_YET
        self.tuples.append(values)
        self.bytes += size
        return None

    def take(self) -> object:
        """The oldest tuple, which leaves the area."""
        if not self.tuples:
            return NOT_YET
        values = self.tuples.popleft()
        self.bytes -= _size(values)
        return _result(values)

    def peek(self, at: int) -> object:
        """The tuple at a place, which stays."""
        if at < 0:
            raise InvalidArgumentError(f"index {at} of a staging area must not be negative")
        return _result(self.tuples[at]) if at < len(self.tuples) else NOT_YET

    def clear(self) -> None:
        """Drop all."""
        self.tuples.clear()
        self.bytes = 0


class StagingMap(Awaited):
    """Tuples by key; those of which components are missing wait apart.

    Methods that change it run under the lock of ``waits``.
    """

    def __init__(self, name: str, limits: StagingLimits, width: int, *, is_ordered: bool) -> None:
        self.name: Final = name
        self.waits = WaitQueue("Staging map operation was cancelled")
        self.limits: Final = limits
        self.width: Final = width
        self.is_ordered: Final = is_ordered
        self.complete: dict[int, list[Value]] = {}
        self.incomplete: dict[int, list[Value]] = {}
        self.bytes = 0

    def state(self) -> Tree:
        """How much it may hold, and the tuples by key."""
        return (
            *(self.limits.state(), self.width, self.is_ordered),
            *(_rows_of(self.complete), _rows_of(self.incomplete)),
        )

    @classmethod
    def of_state(cls, name: str, state: Tree, there: object) -> StagingMap:  # noqa: ARG003
        """The map that had a state."""
        limits, width, is_ordered, complete, incomplete = trees.parts(state, 5)
        limited, count = StagingLimits.of_state(limits), trees.number(width)
        made = cls(name, limited, count, is_ordered=trees.flag(is_ordered))
        made.complete, made.incomplete = _rows_in(complete, count), _rows_in(incomplete, count)
        for row in (*made.complete.values(), *made.incomplete.values()):
            made.bytes += _size([value for value in row if value is not None])
        return made

    def describe(self) -> str:
        """How full it is, for people."""
        filled = self.limits.filled(len(self.complete), self.bytes)
        return f"Staging map '{self.name}', which has {filled}, {len(self.incomplete)} incomplete"

    def put(self, key: int, indices: list[int], values: _Tuple) -> object:
        """Put components down under a key, if there is room."""
        size = _size(values)
        self.limits.check(size)
        if not self.limits.has_room(len(self.complete) + 1, self.bytes + size):
            return NOT_YET
        row = self.incomplete.get(key, [None] * self.width)
        for index in indices:
            if row[index] is not None:
                raise InvalidArgumentError(
                    f"The tensor for index '{index}' for key '{key}' was already initialized "
                    f"'{self.width}'."
                )
        for index, value in zip(indices, values, strict=True):
            row[index] = value
        self.bytes += size
        if any(value is None for value in row):
            self.incomplete[key] = row
            return None
        self.incomplete.pop(key, None)
        self.complete[key] = row
        return None

    def peek(self, key: int, indices: list[int]) -> object:
        """Components under a key, which stay."""
        row = self.complete.get(key)
        return NOT_YET if row is None else _result(self._parts(row, key, indices))

    def take(self, key: int, indices: list[int]) -> object:
        """Components under a key, which leave the map."""
        row = self.complete.get(key)
        return NOT_YET if row is None else _result(self._remove(row, key, indices))

    def take_any(self, indices: list[int]) -> object:
        """A key and its components, which leave the map."""
        if not self.complete:
            return NOT_YET
        key = min(self.complete) if self.is_ordered else next(reversed(self.complete))
        parts = self._remove(self.complete[key], key, indices)
        return (np.int64(key), *parts)

    def _remove(self, row: list[Value], key: int, indices: list[int]) -> list[Value]:
        parts = self._parts(row, key, indices)
        for index in indices:
            row[index] = None
        self.bytes -= _size(parts)
        if all(value is None for value in row):
            del self.complete[key]
        return parts

    @staticmethod
    def _parts(row: list[Value], key: int, indices: list[int]) -> list[Value]:
        parts = [row[index] for index in indices]
        for index, part in zip(indices, parts, strict=True):
            if part is None:
                raise InvalidArgumentError(
                    f"Tensor at index '{index}' for key '{key}' has already been removed."
                )
        return parts

    def clear(self) -> None:
        """Drop all."""
        self.complete.clear()
        self.incomplete.clear()
        self.bytes = 0


def _rows_of(tuples: dict[int, list[Value]]) -> Tree:
    return tuple((key, tuple(row)) for key, row in tuples.items())


def _rows_in(state: Tree, width: int) -> dict[int, list[Value]]:
    rows = {}
    for one in trees.listed(state):
        key, row = trees.parts(one, 2)
        values = [trees.optional(trees.any_value, part) for part in trees.parts(row, width)]
        rows[trees.number(key, trees.LEAST)] = values
    return rows
