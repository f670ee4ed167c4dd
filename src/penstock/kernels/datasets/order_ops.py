"""Datasets that choose among elements, repeat, join or shuffle them.

In:   datasets, and numbers that say how many.
Out:  datasets with the same elements in another choice or order.
Not:  changes no element; calls no functions.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Sequence
from collections.abc import Iterator as PlainIterator
from typing import Any, Final

from penstock.core.values import ResourceHandle, Value, as_value
from penstock.errors import InvalidArgumentError, UnimplementedError
from penstock.kernels.attrs import Attrs
from penstock.kernels.context import OpKernelContext
from penstock.kernels.datasets.dataset import (
    Dataset,
    Iterator,
    MakeIterator,
    dataset_in,
    declared,
)
from penstock.kernels.datasets.pulling import WORKING, Element, Pull
from penstock.kernels.datasets.seeds import SeedGenerator, words
from penstock.kernels.registry import Cost, Kernel, context_kernel, kernel
from penstock.kernels.variants import EMPTY

#: The kind of resource that gives seeds.
SEED_GENERATOR: Final = "SeedGenerator"


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


class _Take:
    """The first elements."""

    def __init__(self, upstream: Dataset, count: int) -> None:
        self._upstream = upstream.make_iterator()
        self._left = count

    def next(self) -> Pull:
        if self._left == 0:
            return None
        self._left -= 1
        return (yield from self._upstream.next())


class _Skip:
    """All but the first elements; none if the count is negative."""

    def __init__(self, upstream: Dataset, count: int) -> None:
        self._upstream = upstream.make_iterator()
        self._left = count

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
        self._upstream: Iterator | None = None

    def next(self) -> Pull:
        while self._left:
            is_first = self._upstream is None
            if self._upstream is None:
                self._upstream = self._dataset.make_iterator()
            element = yield from self._upstream.next()
            if element is not None:
                return element
            self._upstream = None
            # What is empty would be repeated for ever.
            self._left = 0 if is_first and self._left < 0 else self._left - 1
            yield WORKING
        return None


class _Shard:
    """Every so-manieth element."""

    def __init__(self, upstream: Dataset, count: int, index: int) -> None:
        self._upstream = upstream.make_iterator()
        self._count: Final = count
        self._skip = index

    def next(self) -> Pull:
        for _ in range(self._skip):
            yield WORKING
            if (yield from self._upstream.next()) is None:
                return None
        self._skip = self._count - 1
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
        self._rest = iter(datasets)
        self._upstream: Iterator | None = next(self._rest).make_iterator()

    def next(self) -> Pull:
        while self._upstream is not None:
            element = yield from self._upstream.next()
            if element is not None:
                return element
            following = next(self._rest, None)
            self._upstream = None if following is None else following.make_iterator()
        return None


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
        parts: list[Value] = []
        for iterator in self._upstream:
            element = yield from iterator.next()
            if element is None:
                return None
            parts += element
        return tuple(parts)


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
        self._seen: list[Element] = []
        full = kept[0]
        self._full: PlainIterator[Element] | None = None if full is None else iter(full)
        self._upstream: Final = upstream.make_iterator()

    def next(self) -> Pull:
        if self._full is not None:
            return next(self._full, None)
        element = yield from self._upstream.next()
        if element is None:
            self._kept[0] = self._kept[0] or self._seen
            return None
        self._seen.append(element)
        return element


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
        while (element := (yield from self._upstream.next())) is not None:
            yield WORKING
            key = tuple(v.tobytes() if hasattr(v, "tobytes") else v for v in element)
            if key not in self._seen:
                self._seen.add(key)
                return element
        return None


@kernel("ShuffleDataset", "ShuffleAndRepeatDataset")
def make_shuffle_dataset(attrs: Attrs) -> Kernel:
    """The elements in random order, taken from a buffer that is filled up again and again."""
    make, is_fixed = declared(attrs), not attrs.bool("reshuffle_each_iteration")

    def shuffle_dataset(
        dataset: Value, size: Value, seed: Value, seed2: Value, *count: Value
    ) -> Dataset:
        generator = SeedGenerator(int(seed), int(seed2), is_fixed=is_fixed)
        upstream, buffer = dataset_in(dataset), _buffer_size(size)
        times = int(count[0]) if count else 1
        return make(lambda: _Shuffle(upstream, buffer, generator, times))

    return shuffle_dataset


@context_kernel("ShuffleDatasetV2", "ShuffleDatasetV3")
def make_shuffle_dataset_with_generator(attrs: Attrs) -> Kernel:
    """The form whose seeds come from a resource, if there is one."""
    make = declared(attrs)
    is_fixed = "reshuffle_each_iteration" in attrs.values and not attrs.bool(
        "reshuffle_each_iteration"
    )

    def shuffle_dataset(
        context: OpKernelContext, dataset: Value, size: Value, *rest: Value
    ) -> Dataset:
        generator = _found_generator(context, rest[-1])
        if generator is None:
            seeds = [int(seed) for seed in rest[:-1]] or [0, 0]
            generator = SeedGenerator(*seeds, is_fixed=is_fixed)
        upstream, buffer, seeds_of = dataset_in(dataset), _buffer_size(size), generator
        return make(lambda: _Shuffle(upstream, buffer, seeds_of))

    return shuffle_dataset


def _found_generator(context: OpKernelContext, handle: Value) -> SeedGenerator | None:
    handle = as_value(handle)
    if not isinstance(handle, ResourceHandle):
        return None
    found = context.resources.find(handle.container, handle.name, SEED_GENERATOR)
    return found if isinstance(found, SeedGenerator) else None


@context_kernel("AnonymousSeedGenerator", "AnonymousRandomSeedGenerator")
def make_anonymous_seed_generator(attrs: Attrs) -> Kernel:
    """A resource that gives seeds, and what would delete it."""

    def anonymous_seed_generator(
        context: OpKernelContext, seed: Value, seed2: Value, *reshuffle: Value
    ) -> tuple[Value, Value]:
        is_fixed = bool(reshuffle) and not reshuffle[0]
        name = f"{attrs.node_name}/{context.step_container.unique_id()}/{context.step.step_id}"
        made = SeedGenerator(int(seed), int(seed2), is_fixed=is_fixed)
        context.resources.create("", name, SEED_GENERATOR, made)
        handle = ResourceHandle(context.step.device, "", name, SEED_GENERATOR)
        return handle, EMPTY

    return anonymous_seed_generator


@kernel("DummySeedGenerator", cost=Cost.CHEAP)
def make_dummy_seed_generator(attrs: Attrs) -> Kernel:
    """A handle of no generator: the dataset's own seeds count."""
    return lambda: ResourceHandle("", "", attrs.node_name, SEED_GENERATOR)


@context_kernel("DeleteSeedGenerator", "DeleteRandomSeedGenerator")
def make_delete_seed_generator(_: Attrs) -> Kernel:
    """Give a generator up."""

    def delete(context: OpKernelContext, handle: Value, _deleter: Value) -> None:
        found = as_value(handle)
        context.resources.delete(found.container, found.name, SEED_GENERATOR)

    return delete


def _buffer_size(size: Value) -> int:
    number = int(size)
    if number < 1 and number != -1:
        raise InvalidArgumentError(
            f"buffer_size must be greater than zero or UNKNOWN_CARDINALITY, got {number}"
        )
    return number


class _Shuffle:
    """A buffer of elements; one of its first epoch is given at random, until that is empty."""

    def __init__(
        self, upstream: Dataset, size: int, generator: SeedGenerator, epochs: int = 1
    ) -> None:
        self._dataset: Final = upstream
        self._size: Final = size
        self._generator: Final = generator
        #: Epochs that are not begun yet; negative if there is no end of them.
        self._left = epochs
        self._upstream: Iterator | None = None
        #: What waits to be given, by epoch; an empty epoch can only be the last.
        self._epochs: Final[deque[_Epoch]] = deque()
        self._count = 0

    def next(self) -> Pull:
        yield from self._fill()
        if not self._count:
            return None
        while not self._epochs[0].waiting:
            self._epochs.popleft()
        self._count -= 1
        return self._epochs[0].take()

    def _fill(self) -> Generator[Any, Any, None]:
        while self._size < 0 or self._count < self._size:
            if self._upstream is None and not self._begin():
                return
            assert self._upstream is not None
            element = yield from self._upstream.next()
            if element is not None:
                self._epochs[-1].items.append(element)
                self._count += 1
                continue
            self._upstream = None
            if self._left < 0 and not self._count:  # nothing, for ever
                self._left = 0

    def _begin(self) -> bool:
        """Begin the next epoch, if there is one."""
        if self._left == 0:
            return False
        self._left -= self._left > 0
        self._upstream = self._dataset.make_iterator()
        self._epochs.append(_Epoch(words(*self._generator.next_seeds())))
        return True


class _Epoch:
    """What waits of one time through a dataset, and the random words for it."""

    __slots__ = ("_words", "first", "items")

    def __init__(self, random_words: PlainIterator[int]) -> None:
        self._words: Final = random_words
        self.items: list[Element] = []
        #: What stands before it has been given.
        self.first = 0

    @property
    def waiting(self) -> int:
        """How many elements wait."""
        return len(self.items) - self.first

    def take(self) -> Element:
        """One element; the first moves to its place."""
        items, first = self.items, self.first
        chosen = first + next(self._words) % self.waiting
        result, items[chosen] = items[chosen], items[first]
        self.first += 1
        if self.first > self.waiting:
            del items[: self.first]
            self.first = 0
        return result
