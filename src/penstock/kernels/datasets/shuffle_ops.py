"""Datasets in random order, and what gives them their seeds.

In:   datasets, sizes of buffers, seeds.
Out:  datasets with the same elements in another order; handles of generators of seeds.
Not:  changes no element; calls no functions.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Generator, Sequence
from typing import Any, Final

from penstock.core.dtypes import DType
from penstock.core.values import ResourceHandle, Value, as_value
from penstock.errors import InvalidArgumentError
from penstock.kernels.api.attrs import Attrs
from penstock.kernels.api.context import OpKernelContext
from penstock.kernels.api.registry import Cost, Kernel, context_kernel, kernel
from penstock.kernels.datasets.dataset import Dataset, Iterator, dataset_in, declared
from penstock.kernels.datasets.iterator_state import (
    LEAST,
    Restoring,
    Tree,
    element,
    listed,
    number,
    parts,
    refuse,
    restored,
    state_of,
)
from penstock.kernels.datasets.pulling import Element, Pull
from penstock.kernels.datasets.seeds import SeedGenerator, words
from penstock.kernels.values.variants import EMPTY

#: The kind of resource that gives seeds.
SEED_GENERATOR: Final = "SeedGenerator"


@kernel("ShuffleDataset", "ShuffleAndRepeatDataset")
def make_shuffle_dataset(attrs: Attrs) -> Kernel:
    """The elements in random order, taken from a buffer that is filled up again and again."""
    make, is_fixed = declared(attrs), not attrs.bool("reshuffle_each_iteration")
    chance = attrs.chance()

    def shuffle_dataset(
        dataset: Value, size: Value, seed: Value, seed2: Value, *count: Value
    ) -> Dataset:
        generator = SeedGenerator(int(seed), int(seed2), is_fixed=is_fixed, chance=chance)
        upstream, buffer = dataset_in(dataset), _buffer_size(size)
        times = int(count[0]) if count else 1
        return make(lambda: _Shuffle(upstream, buffer, generator, times))

    return shuffle_dataset


@context_kernel("ShuffleDatasetV2", "ShuffleDatasetV3")
def make_shuffle_dataset_with_generator(attrs: Attrs) -> Kernel:
    """The form whose seeds come from a resource, if there is one."""
    make, chance = declared(attrs), attrs.chance()
    is_fixed = "reshuffle_each_iteration" in attrs.values and not attrs.bool(
        "reshuffle_each_iteration"
    )

    def shuffle_dataset(
        context: OpKernelContext, dataset: Value, size: Value, *rest: Value
    ) -> Dataset:
        generator = _found_generator(context, rest[-1])
        if generator is None:
            seeds = [int(seed) for seed in rest[:-1]] or [0, 0]
            generator = SeedGenerator(*seeds, is_fixed=is_fixed, chance=chance)
        upstream, buffer, seeds_of = dataset_in(dataset), _buffer_size(size), generator
        return make(lambda: _Shuffle(upstream, buffer, seeds_of))

    return shuffle_dataset


def _found_generator(context: OpKernelContext, handle: Value) -> SeedGenerator | None:
    handle = as_value(handle)
    if not isinstance(handle, ResourceHandle):
        return None
    resources = context.resources.at(handle.device)
    found = resources.find(handle.container, handle.name, SEED_GENERATOR)
    return found if isinstance(found, SeedGenerator) else None


@context_kernel("AnonymousSeedGenerator", "AnonymousRandomSeedGenerator")
def make_anonymous_seed_generator(attrs: Attrs) -> Kernel:
    """A resource that gives seeds, and what would delete it."""
    chance = attrs.chance()

    def anonymous_seed_generator(
        context: OpKernelContext, seed: Value, seed2: Value, *reshuffle: Value
    ) -> tuple[Value, Value]:
        is_fixed = bool(reshuffle) and not reshuffle[0]
        name = f"{attrs.node_name}/{context.step_container.unique_id()}/{context.step.step_id}"
        made = SeedGenerator(int(seed), int(seed2), is_fixed=is_fixed, chance=chance)
        context.resources.create("", name, SEED_GENERATOR, made)
        handle = ResourceHandle(attrs.device, "", name, SEED_GENERATOR)
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
        resources = context.resources.at(found.device)
        resources.delete(found.container, found.name, SEED_GENERATOR)

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
            item = yield from self._upstream.next()
            if item is not None:
                self._epochs[-1].items.append(item)
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
        self._epochs.append(_Epoch(self._generator.next_seeds()))
        return True

    def state(self) -> Tree:
        epochs = tuple(epoch.state() for epoch in self._epochs)
        return self._left, state_of(self._upstream), self._generator.taken, epochs

    def restore(self, state: Tree) -> Restoring:
        left, upstream, taken, epochs = parts(state, 4)
        self._left = number(left, LEAST)
        self._upstream = yield from restored(self._dataset.make_iterator(), upstream)
        self._epochs.extend(_Epoch.of(epoch, self._dataset.types) for epoch in listed(epochs))
        self._count = sum(epoch.waiting for epoch in self._epochs)
        if self._upstream is not None and not self._epochs:
            refuse()
        self._generator.go_on_after(number(taken))


class _Epoch:
    """What waits of one time through a dataset, and the random words for it."""

    __slots__ = ("_seeds", "_taken", "_words", "first", "items")

    def __init__(self, seeds: tuple[int, int], taken: int = 0) -> None:
        self._seeds: Final = seeds
        #: The words that follow from the seeds, and how many of them were taken.
        self._words: Final = words(*seeds, taken)
        self._taken = taken
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
        self._taken += 1
        chosen = first + next(self._words) % self.waiting
        result, items[chosen] = items[chosen], items[first]
        self.first += 1
        if self.first > self.waiting:
            del items[: self.first]
            self.first = 0
        return result

    def state(self) -> Tree:
        """What waits, the seeds, and how many words were taken."""
        return tuple(self.items[self.first :]), *self._seeds, self._taken

    @classmethod
    def of(cls, state: Tree, types: Sequence[DType]) -> _Epoch:
        """The epoch that had a state."""
        items, seed, seed2, taken = parts(state, 4)
        made = cls((number(seed, LEAST), number(seed2, LEAST)), number(taken))
        made.items = [element(item, types) for item in listed(items)]
        return made
