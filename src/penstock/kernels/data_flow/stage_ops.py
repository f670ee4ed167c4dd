"""Staging areas: values that one step puts down and another takes up.

In:   tuples of values; for maps a key and the numbers of the components.
Out:  the tuples, in order, or by key.
Not:  survives no session.

An area is known by its name alone: all ops that name it share it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from penstock.core.values import Value, keep, size_in_bytes
from penstock.errors import InvalidArgumentError, ResourceExhaustedError
from penstock.kernels.api.attrs import Attrs
from penstock.kernels.api.context import Done, OpKernelContext, Waiting
from penstock.kernels.api.registry import Cost, Kernel, async_kernel, context_kernel
from penstock.kernels.api.wait_queue import NOT_YET, Awaited, WaitQueue
from penstock.kernels.state.variables import resource_name
from penstock.kernels.values.arrays import as_array, number_in

_Tuple = tuple[Value, ...]
#: What ends the wait for a tuple, or for room.
_PUTTING: Final = frozenset({"Stage"})
_TAKING: Final = frozenset({"Unstage", "StageClear"})
_ADDING: Final = ("MapStage",)
_REMOVING: Final = ("MapUnstage", "MapUnstageNoKey", "MapClear")


class _Limits:
    """How much an area may hold; zero means no limit."""

    def __init__(self, attrs: Attrs) -> None:
        self.capacity: Final = attrs.int("capacity")
        self.memory: Final = attrs.int("memory_limit")

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


# -- in order --------------------------------------------------------------------------


class _Area(Awaited):
    """Tuples, first in, first out."""

    def __init__(self, name: str, limits: _Limits) -> None:
        self.name: Final = name
        self.waits = WaitQueue("Staging area operation was cancelled")
        self.limits: Final = limits
        self.tuples: deque[_Tuple] = deque()
        self.bytes = 0

    def describe(self) -> str:
        filled = self.limits.filled(len(self.tuples), self.bytes)
        return f"Staging area '{self.name}', which has {filled}"

    def put(self, values: _Tuple) -> object:
        size = _size(values)
        self.limits.check(size)
        if not self.limits.has_room(len(self.tuples) + 1, self.bytes + size):
            return NOT_YET
        self.tuples.append(values)
        self.bytes += size
        return None

    def take(self) -> object:
        if not self.tuples:
            return NOT_YET
        values = self.tuples.popleft()
        self.bytes -= _size(values)
        return _result(values)

    def peek(self, at: int) -> object:
        if at < 0:
            raise InvalidArgumentError(f"index {at} of a staging area must not be negative")
        return _result(self.tuples[at]) if at < len(self.tuples) else NOT_YET

    def clear(self) -> None:
        self.tuples.clear()
        self.bytes = 0


def _area(attrs: Attrs) -> Callable[[OpKernelContext], _Area]:
    """How a node finds its area."""
    container, name = resource_name(attrs)
    limits = _Limits(attrs)

    def find(context: OpKernelContext) -> _Area:
        found: _Area = context.resources.lookup_or_create(
            container, name, "StagingArea", lambda: _Area(name, limits)
        )
        return found

    return find


@async_kernel("Stage")
def make_stage(attrs: Attrs) -> Kernel:
    """Nothing, once the values are in the area."""
    find, place = _area(attrs), resource_name(attrs)

    def stage(context: OpKernelContext, done: Done, *values: Value) -> None:
        area, kept = find(context), tuple(map(keep, values))
        context.waits_for = Waiting(area.describe, _TAKING, place)
        area.waits.submit(lambda: area.put(kept), context.cancellation_manager, done)

    return stage


@async_kernel("Unstage")
def make_unstage(attrs: Attrs) -> Kernel:
    """The oldest values, which leave the area."""
    find, place = _area(attrs), resource_name(attrs)

    def unstage(context: OpKernelContext, done: Done) -> None:
        area = find(context)
        context.waits_for = Waiting(area.describe, _PUTTING, place)
        area.waits.submit(area.take, context.cancellation_manager, done)

    return unstage


@async_kernel("StagePeek")
def make_stage_peek(attrs: Attrs) -> Kernel:
    """The values at a place, which stay."""
    find, place = _area(attrs), resource_name(attrs)

    def peek(context: OpKernelContext, done: Done, index: Value) -> None:
        area, at = find(context), number_in(index)
        context.waits_for = Waiting(area.describe, _PUTTING, place)
        area.waits.submit(lambda: area.peek(at), context.cancellation_manager, done)

    return peek


@context_kernel("StageSize", cost=Cost.CHEAP)
def make_stage_size(attrs: Attrs) -> Kernel:
    """Number of tuples in the area."""
    find = _area(attrs)
    return lambda context: np.int32(len(find(context).tuples))


@context_kernel("StageClear", cost=Cost.CHEAP)
def make_stage_clear(attrs: Attrs) -> Kernel:
    """Nothing; the area is empty."""
    find = _area(attrs)

    def clear(context: OpKernelContext) -> None:
        area = find(context)
        area.waits.run(area.clear)

    return clear


# -- by key ----------------------------------------------------------------------------


class _Map(Awaited):
    """Tuples by key; those of which components are missing wait apart."""

    def __init__(self, name: str, limits: _Limits, width: int, *, is_ordered: bool) -> None:
        self.name: Final = name
        self.waits = WaitQueue("Staging map operation was cancelled")
        self.limits: Final = limits
        self.width: Final = width
        self.is_ordered: Final = is_ordered
        self.complete: dict[int, list[Value]] = {}
        self.incomplete: dict[int, list[Value]] = {}
        self.bytes = 0

    def describe(self) -> str:
        filled = self.limits.filled(len(self.complete), self.bytes)
        return f"Staging map '{self.name}', which has {filled}, {len(self.incomplete)} incomplete"

    def put(self, key: int, indices: list[int], values: _Tuple) -> object:
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
        row = self.complete.get(key)
        return NOT_YET if row is None else _result(self._parts(row, key, indices))

    def take(self, key: int, indices: list[int]) -> object:
        row = self.complete.get(key)
        return NOT_YET if row is None else _result(self._remove(row, key, indices))

    def take_any(self, indices: list[int]) -> object:
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
        self.complete.clear()
        self.incomplete.clear()
        self.bytes = 0


def _ending_in(attrs: Attrs, ops: Sequence[str]) -> frozenset[str]:
    """The ops of these names that share a map with a node: ordered ones, or the others."""
    prefix = "Ordered" if attrs.op.name.startswith("Ordered") else ""
    return frozenset(prefix + op for op in ops)


def _map(attrs: Attrs) -> Callable[[OpKernelContext], _Map]:
    container, name = resource_name(attrs)
    limits, width = _Limits(attrs), len(attrs.list("dtypes"))
    is_ordered = attrs.op.name.startswith("Ordered")
    kind = "OrderedStagingMap" if is_ordered else "StagingMap"

    def find(context: OpKernelContext) -> _Map:
        found: _Map = context.resources.lookup_or_create(
            container, name, kind, lambda: _Map(name, limits, width, is_ordered=is_ordered)
        )
        return found

    return find


def _indices(value: Value, count: int, width: int) -> list[int]:
    """The numbers of components; there must be one for each value."""
    indices: list[int] = as_array(value).ravel().tolist()
    if len(indices) != count:
        raise InvalidArgumentError(
            f"indices and values must have the same length, got {len(indices)} and {count}"
        )
    for index in indices:
        if not 0 <= index < width:
            raise InvalidArgumentError(f"Index '{index}' for key is out of bounds '{width}'.")
    return indices


@async_kernel("MapStage", "OrderedMapStage")
def make_map_stage(attrs: Attrs) -> Kernel:
    """Nothing, once the values are there under the key."""
    find, place, ending = _map(attrs), resource_name(attrs), _ending_in(attrs, _REMOVING)

    def stage(
        context: OpKernelContext, done: Done, key: Value, indices: Value, *values: Value
    ) -> None:
        found, kept, name = find(context), tuple(map(keep, values)), number_in(key)
        places = _indices(indices, len(values), found.width)
        cancellation = context.cancellation_manager
        context.waits_for = Waiting(found.describe, ending, place)
        found.waits.submit(lambda: found.put(name, places, kept), cancellation, done)

    return stage


def _by_key(attrs: Attrs, act: Callable[[_Map, int, list[int]], object]) -> Kernel:
    find, count = _map(attrs), len(attrs.output_types)
    place, ending = resource_name(attrs), _ending_in(attrs, _ADDING)

    def compute(context: OpKernelContext, done: Done, key: Value, indices: Value) -> None:
        found, name = find(context), number_in(key)
        places = _indices(indices, count, max(found.width, count))
        cancellation = context.cancellation_manager
        context.waits_for = Waiting(found.describe, ending, place)
        found.waits.submit(lambda: act(found, name, places), cancellation, done)

    return compute


@async_kernel("MapPeek", "OrderedMapPeek")
def make_map_peek(attrs: Attrs) -> Kernel:
    """Values under a key, which stay."""
    return _by_key(attrs, _Map.peek)


@async_kernel("MapUnstage", "OrderedMapUnstage")
def make_map_unstage(attrs: Attrs) -> Kernel:
    """Values under a key, which leave the map."""
    return _by_key(attrs, _Map.take)


@async_kernel("MapUnstageNoKey", "OrderedMapUnstageNoKey")
def make_map_unstage_no_key(attrs: Attrs) -> Kernel:
    """A key and its values, which leave the map; of an ordered map, the smallest key."""
    find, count = _map(attrs), len(attrs.output_types) - 1
    place, ending = resource_name(attrs), _ending_in(attrs, _ADDING)

    def unstage(context: OpKernelContext, done: Done, indices: Value) -> None:
        found = find(context)
        places = _indices(indices, count, max(found.width, count))
        context.waits_for = Waiting(found.describe, ending, place)
        found.waits.submit(lambda: found.take_any(places), context.cancellation_manager, done)

    return unstage


@context_kernel(
    "MapSize", "OrderedMapSize", "MapIncompleteSize", "OrderedMapIncompleteSize", cost=Cost.CHEAP
)
def make_map_size(attrs: Attrs) -> Kernel:
    """Number of keys whose values are all there, or not."""
    find, is_incomplete = _map(attrs), "Incomplete" in attrs.op.name

    def size(context: OpKernelContext) -> Any:
        found = find(context)
        return np.int32(len(found.incomplete if is_incomplete else found.complete))

    return size


@context_kernel("MapClear", "OrderedMapClear", cost=Cost.CHEAP)
def make_map_clear(attrs: Attrs) -> Kernel:
    """Nothing; the map is empty."""
    find = _map(attrs)

    def clear(context: OpKernelContext) -> None:
        found = find(context)
        found.waits.run(found.clear)

    return clear
