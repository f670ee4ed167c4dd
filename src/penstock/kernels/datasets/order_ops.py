"""Datasets that choose among elements, repeat, join or keep them.

In:   datasets, and numbers that say how many.
Out:  datasets with the same elements in another choice or order.
Not:  changes no element; calls no functions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from penstock.core.values import Value, as_value
from penstock.errors import InvalidArgumentError, UnimplementedError
from penstock.kernels.api.attrs import Attrs
from penstock.kernels.api.registry import Cost, Kernel, kernel
from penstock.kernels.datasets.dataset import (
    Dataset,
    Iterator,
    MakeIterator,
    dataset_in,
    declared,
)
from penstock.kernels.datasets.iterator_state import (
    LEAST,
    Restoring,
    Tree,
    element,
    listed,
    number,
    parts,
    refuse,
    restore,
    restored,
    state_of,
)
from penstock.kernels.datasets.pulling import WORKING, Element, Pull


@kernel(
    "AssertCardinalityDataset",
    "FinalizeDataset",
    "ModelDataset",
    "OptimizeDataset",
    "OptimizeDatasetV2",
    "OptionsDataset",
    "PrefetchDataset",
    "RewriteDataset",
    cost=Cost.CHEAP,
)
def make_same_dataset(_: Attrs) -> Kernel:
    """The dataset itself: what only makes it faster elsewhere, and promises about it."""
    return lambda dataset, *_: dataset


@kernel("TakeDataset", "SkipDataset", "RepeatDataset", "ShardDataset")
def make_counting_dataset(attrs: Attrs) -> Kernel:
    """Some of the elements, or all of them several times."""
    make, iterator = declared(attrs), _COUNTING[attrs.op.name]

    def counting_dataset(dataset: Value, *counts: Value) -> Dataset:
        upstream, numbers = dataset_in(dataset), [int(count) for count in counts]
        if attrs.op.name == "ShardDataset":
            _check_shard(*numbers)
        return make(lambda: iterator(upstream, *numbers))

    return counting_dataset


def _check_shard(count: int, index: int) -> None:
    if count <= 0:
        raise InvalidArgumentError(
            f"Number of shards must be greater than zero (currently num_shards = {count})."
        )
    if not 0 <= index < count:
        raise InvalidArgumentError(
            f"Index must be between 0 and {count - 1} (currently index = {index})."
        )


class _Counted:
    """Goes through another dataset, and counts something down."""

    def __init__(self, upstream: Dataset, count: int) -> None:
        self._upstream: Final = upstream.make_iterator()
        self._left = count

    def state(self) -> Tree:
        return self._left, state_of(self._upstream)

    def restore(self, state: Tree) -> Restoring:
        left, upstream = parts(state, 2)
        self._left = number(left, LEAST)
        yield from restore(self._upstream, upstream)


class _Take(_Counted):
    """The first elements."""

    def next(self) -> Pull:
        if self._left == 0:
            return None
        self._left -= 1
        return (yield from self._upstream.next())


class _Skip(_Counted):
    """All but the first elements; none if the count is negative."""

    def next(self) -> Pull:
        if self._left < 0:
            return None
        while self._left:
            self._left -= 1
            yield WORKING
            if (yield from self._upstream.next()) is None:
                self._left = 0
        return (yield from self._upstream.next())


class _Repeat:
    """All elements so many times; without end if the count is negative."""

    def __init__(self, upstream: Dataset, count: int) -> None:
        self._dataset: Final = upstream
        self._left = count
        #: None between two times.
        self._upstream: Iterator | None = upstream.make_iterator()
        #: Whether it has given nothing yet.
        self._is_fresh = True

    def next(self) -> Pull:
        while self._left:
            if self._upstream is None:
                self._upstream, self._is_fresh = self._dataset.make_iterator(), True
            item = yield from self._upstream.next()
            if item is not None:
                self._is_fresh = False
                return item
            self._upstream = None
            # What is empty would be repeated for ever.
            self._left = 0 if self._is_fresh and self._left < 0 else self._left - 1
            yield WORKING
        return None

    def state(self) -> Tree:
        return self._left, int(self._is_fresh), state_of(self._upstream)

    def restore(self, state: Tree) -> Restoring:
        left, is_fresh, upstream = parts(state, 3)
        self._left, self._is_fresh = number(left, LEAST), bool(number(is_fresh))
        self._upstream = yield from restored(self._upstream, upstream)


class _Shard(_Counted):
    """Every so-manieth element; what is counted down is how many are skipped before the next."""

    def __init__(self, upstream: Dataset, count: int, index: int) -> None:
        super().__init__(upstream, index)
        self._count: Final = count

    def next(self) -> Pull:
        for _ in range(self._left):
            yield WORKING
            if (yield from self._upstream.next()) is None:
                return None
        self._left = self._count - 1
        return (yield from self._upstream.next())


_COUNTING: Final[dict[str, Callable[..., Iterator]]] = {
    "TakeDataset": _Take,
    "SkipDataset": _Skip,
    "RepeatDataset": _Repeat,
    "ShardDataset": _Shard,
}


@kernel("ConcatenateDataset")
def make_concatenate_dataset(attrs: Attrs) -> Kernel:
    """The elements of one dataset, then those of another."""
    make = declared(attrs)

    def concatenate_dataset(*datasets: Value) -> Dataset:
        return make(_in_turn(tuple(map(dataset_in, datasets))))

    return concatenate_dataset


def _in_turn(datasets: Sequence[Dataset]) -> MakeIterator:
    return lambda: _InTurn(datasets)


class _InTurn:
    """One dataset after the other."""

    def __init__(self, datasets: Sequence[Dataset]) -> None:
        self._datasets: Final = datasets
        self._at = 0
        self._upstream = self._current()

    def _current(self) -> Iterator | None:
        """A new iterator over the dataset whose turn it is; None after the last one."""
        is_there = self._at < len(self._datasets)
        return self._datasets[self._at].make_iterator() if is_there else None

    def next(self) -> Pull:
        while self._upstream is not None:
            item = yield from self._upstream.next()
            if item is not None:
                return item
            self._at += 1
            self._upstream = self._current()
        return None

    def state(self) -> Tree:
        return self._at, state_of(self._upstream)

    def restore(self, state: Tree) -> Restoring:
        at, upstream = parts(state, 2)
        self._at = number(at)
        self._upstream = yield from restored(self._current(), upstream)


@kernel("ZipDataset")
def make_zip_dataset(attrs: Attrs) -> Kernel:
    """The components of one element of each dataset; ends with the shortest."""
    make = declared(attrs)

    def zip_dataset(*datasets: Value) -> Dataset:
        found = tuple(map(dataset_in, datasets))
        return make(lambda: _Zip([dataset.make_iterator() for dataset in found]))

    return zip_dataset


class _Zip:
    """Several iterators side by side."""

    def __init__(self, upstream: Sequence[Iterator]) -> None:
        self._upstream: Final = upstream

    def next(self) -> Pull:
        components: list[Value] = []
        for iterator in self._upstream:
            item = yield from iterator.next()
            if item is None:
                return None
            components += item
        return tuple(components)

    def state(self) -> Tree:
        return tuple(map(state_of, self._upstream))

    def restore(self, state: Tree) -> Restoring:
        for iterator, inner in zip(self._upstream, parts(state, len(self._upstream)), strict=True):
            yield from restore(iterator, inner)


@kernel("CacheDataset", "CacheDatasetV2")
def make_cache_dataset(attrs: Attrs) -> Kernel:
    """The elements, kept in memory once they have all been seen."""
    make = declared(attrs)

    def cache_dataset(dataset: Value, filename: Value, *_cache: Value) -> Dataset:
        if as_value(filename) != b"":
            raise UnimplementedError("CacheDataset keeps elements in memory only, not in files")
        upstream = dataset_in(dataset)
        kept: list[list[Element] | None] = [None]
        return make(lambda: _Cache(upstream, kept))

    return cache_dataset


class _Cache:
    """An iterator that fills the cache, or reads it if it is full."""

    def __init__(self, upstream: Dataset, kept: list[list[Element] | None]) -> None:
        #: The one item is the list of all elements, as soon as one iterator has seen them all.
        self._kept: Final = kept
        #: What this iterator has seen; all, if the cache was full.
        self._seen = kept[0] or []
        self._dataset: Final = upstream
        #: None if the cache was full.
        self._upstream = None if kept[0] is not None else upstream.make_iterator()
        #: How many of what was seen were given.
        self._given = 0

    def next(self) -> Pull:
        if self._upstream is not None:
            item = yield from self._upstream.next()
            if item is None:
                self._kept[0] = self._kept[0] or self._seen
                return None
            self._seen.append(item)
        elif self._given == len(self._seen):
            return None
        self._given += 1
        return self._seen[self._given - 1]

    def state(self) -> Tree:
        return tuple(self._seen), self._given, state_of(self._upstream)

    def restore(self, state: Tree) -> Restoring:
        seen, given, upstream = parts(state, 3)
        self._seen = [element(item, self._dataset.types) for item in listed(seen)]
        self._given = number(given)
        if self._given > len(self._seen):
            refuse()
        self._upstream = yield from restored(self._dataset.make_iterator(), upstream)
        if self._upstream is None:
            self._kept[0] = self._kept[0] or self._seen


@kernel("UniqueDataset")
def make_unique_dataset(attrs: Attrs) -> Kernel:
    """Each element once, where it is first seen."""
    make = declared(attrs)

    def unique_dataset(dataset: Value) -> Dataset:
        upstream = dataset_in(dataset)
        return make(lambda: _Unique(upstream.make_iterator()))

    return unique_dataset


class _Unique:
    """Remembers what it has given."""

    def __init__(self, upstream: Iterator) -> None:
        self._upstream: Final = upstream
        self._seen: Final[set[object]] = set()

    def next(self) -> Pull:
        while (item := (yield from self._upstream.next())) is not None:
            yield WORKING
            key = tuple(v.tobytes() if hasattr(v, "tobytes") else v for v in item)
            if key not in self._seen:
                self._seen.add(key)
                return item
        return None

    def state(self) -> Tree:
        return tuple(self._seen), state_of(self._upstream)

    def restore(self, state: Tree) -> Restoring:
        seen, upstream = parts(state, 2)
        self._seen.update(map(_as_key, listed(seen)))
        yield from restore(self._upstream, upstream)


def _as_key(state: Tree) -> tuple[bytes, ...]:
    key = listed(state)
    if not all(type(part) is bytes for part in key):
        refuse()
    return key
