"""Staging areas: values that one step puts down and another takes up.

In:   tuples of values; for maps a key and the numbers of the components.
Out:  the tuples, in order, or by key.
Not:  survives no session.

An area is known by its name alone: all ops that name it share it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from penstock.core.values import Value, keep
from penstock.errors import InvalidArgumentError
from penstock.kernels.api.attrs import Attrs
from penstock.kernels.api.context import Done, OpKernelContext, Waiting
from penstock.kernels.api.registry import Cost, Kernel, async_kernel, context_kernel
from penstock.kernels.data_flow.staging import StagingArea, StagingLimits, StagingMap
from penstock.kernels.state.variables import resource_name
from penstock.kernels.values.arrays import as_array, number_in

#: What ends the wait for a tuple, or for room.
_PUTTING: Final = frozenset({"Stage"})
_TAKING: Final = frozenset({"Unstage", "StageClear"})
_ADDING: Final = ("MapStage",)
_REMOVING: Final = ("MapUnstage", "MapUnstageNoKey", "MapClear")


# -- in order --------------------------------------------------------------------------


def _area(attrs: Attrs) -> Callable[[OpKernelContext], StagingArea]:
    """How a node finds its area."""
    container, name = resource_name(attrs)
    limits = StagingLimits.of(attrs)

    def find(context: OpKernelContext) -> StagingArea:
        found: StagingArea = context.resources.lookup_or_create(
            container, name, "StagingArea", lambda: StagingArea(name, limits)
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


def _ending_in(attrs: Attrs, ops: Sequence[str]) -> frozenset[str]:
    """The ops of these names that share a map with a node: ordered ones, or the others."""
    prefix = "Ordered" if attrs.op.name.startswith("Ordered") else ""
    return frozenset(prefix + op for op in ops)


def _map(attrs: Attrs) -> Callable[[OpKernelContext], StagingMap]:
    container, name = resource_name(attrs)
    limits, width = StagingLimits.of(attrs), len(attrs.list("dtypes"))
    is_ordered = attrs.op.name.startswith("Ordered")
    kind = "OrderedStagingMap" if is_ordered else "StagingMap"

    def find(context: OpKernelContext) -> StagingMap:
        found: StagingMap = context.resources.lookup_or_create(
            container, name, kind, lambda: StagingMap(name, limits, width, is_ordered=is_ordered)
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


def _by_key(attrs: Attrs, act: Callable[[StagingMap, int, list[int]], object]) -> Kernel:
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
    return _by_key(attrs, StagingMap.peek)


@async_kernel("MapUnstage", "OrderedMapUnstage")
def make_map_unstage(attrs: Attrs) -> Kernel:
    """Values under a key, which leave the map."""
    return _by_key(attrs, StagingMap.take)


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
