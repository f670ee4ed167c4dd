"""Datasets that call functions of the graph's library.

In:   datasets, functions in the attributes, what the functions captured.
Out:  datasets of results.
Not:  runs no function itself: it yields a ``Call`` (see ``pulling``).

Functions run one after the other, also where the op would let them run in parallel: then the
order of the elements is what it would be without.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from typing import Any, Final

import numpy as np

from penstock.core.values import Value, dtype_of, keep
from penstock.defs.attrs import FuncAttr
from penstock.errors import InvalidArgumentError
from penstock.kernels.api.attrs import Attrs
from penstock.kernels.api.context import Done, OpKernelContext
from penstock.kernels.api.registry import Kernel, async_kernel, kernel
from penstock.kernels.control_flow.functional_ops import as_bool
from penstock.kernels.datasets.batch_ops import Batches, checked_size, stacked
from penstock.kernels.datasets.dataset import Dataset, Iterator, applied, dataset_in, declared
from penstock.kernels.datasets.iterator_state import (
    Restoring,
    Tree,
    element,
    number,
    parts,
    restore,
    restored,
    state_of,
)
from penstock.kernels.datasets.pulling import Element, Pull, drive, run_function


def _captured(attrs: Attrs, inputs: Sequence[Value]) -> tuple[Element, Sequence[Value]]:
    """What a function captured, and the inputs after that."""
    count = len(attrs.list("Targuments"))
    return tuple(map(keep, inputs[:count])), inputs[count:]


@kernel("MapDataset", "ParallelMapDataset", "ParallelMapDatasetV2", "ExperimentalMapDataset")
def make_map_dataset(attrs: Attrs) -> Kernel:
    """The function of each element."""
    make, func = declared(attrs), attrs.func("f")

    def map_dataset(dataset: Value, *inputs: Value) -> Dataset:
        captured, _ = _captured(attrs, inputs)
        return make(applied(dataset_in(dataset), _mapping(func, captured)))

    return map_dataset


def _mapping(func: FuncAttr, captured: Element) -> Callable[[Iterator], Pull]:
    def step(upstream: Iterator) -> Pull:
        item = yield from upstream.next()
        if item is None:
            return None
        return (yield from run_function(func, (*item, *captured)))

    return step


@kernel("MapAndBatchDataset", "ExperimentalMapAndBatchDataset")
def make_map_and_batch_dataset(attrs: Attrs) -> Kernel:
    """The function of each element, in batches."""
    make, func = declared(attrs), attrs.func("f")

    def map_and_batch_dataset(dataset: Value, *inputs: Value) -> Dataset:
        captured, rest = _captured(attrs, inputs)
        size, drops = checked_size(rest[0]), bool(rest[-1])
        mapped = applied(dataset_in(dataset), _mapping(func, captured))
        return make(lambda: Batches(mapped(), size, stacked, drops=drops))

    return map_and_batch_dataset


@kernel("FilterDataset", "ParallelFilterDataset")
def make_filter_dataset(attrs: Attrs) -> Kernel:
    """The elements for which the function says yes."""
    make, func = declared(attrs), attrs.func("predicate")

    def filter_dataset(dataset: Value, *inputs: Value) -> Dataset:
        captured, _ = _captured(attrs, inputs)

        def step(upstream: Iterator) -> Pull:
            while (item := (yield from upstream.next())) is not None:
                if (yield from _says_yes(func, (*item, *captured))):
                    return item
            return None

        return make(applied(dataset_in(dataset), step))

    return filter_dataset


def _says_yes(func: FuncAttr, args: Element) -> Generator[Any, Any, bool]:
    results = yield from run_function(func, args)
    if len(results) != 1 or not isinstance(results[0], (np.bool_, np.ndarray)):
        raise InvalidArgumentError("Filter predicate `predicate` must return a scalar bool.")
    return as_bool(results[0])


@kernel("TakeWhileDataset", "ExperimentalTakeWhileDataset")
def make_take_while_dataset(attrs: Attrs) -> Kernel:
    """The elements before the first for which the function says no."""
    make, func = declared(attrs), attrs.func("predicate")

    def take_while_dataset(dataset: Value, *inputs: Value) -> Dataset:
        captured, _ = _captured(attrs, inputs)
        upstream = dataset_in(dataset)
        return make(lambda: _TakeWhile(upstream.make_iterator(), func, captured))

    return take_while_dataset


class _TakeWhile:
    """Ends for good when the function first says no."""

    def __init__(self, upstream: Iterator, func: FuncAttr, captured: Element) -> None:
        self._upstream: Iterator | None = upstream
        self._func: Final = func
        self._captured: Final = captured

    def next(self) -> Pull:
        if self._upstream is None:
            return None
        item = yield from self._upstream.next()
        if item is None or not (yield from _says_yes(self._func, (*item, *self._captured))):
            self._upstream = None
            return None
        return item

    def state(self) -> Tree:
        return state_of(self._upstream)

    def restore(self, state: Tree) -> Restoring:
        self._upstream = yield from restored(self._upstream, state)


@kernel("ScanDataset", "ExperimentalScanDataset")
def make_scan_dataset(attrs: Attrs) -> Kernel:
    """The function of a state and each element gives the next state and the result."""
    make, func, states = declared(attrs), attrs.func("f"), len(attrs.list("Tstate"))

    def scan_dataset(dataset: Value, *inputs: Value) -> Dataset:
        start, upstream = tuple(map(keep, inputs[:states])), dataset_in(dataset)
        captured, _ = _captured(attrs, inputs[states:])
        return make(lambda: _Scan(upstream.make_iterator(), func, start, captured))

    return scan_dataset


class _Scan:
    """Keeps the state from element to element."""

    def __init__(
        self, upstream: Iterator, func: FuncAttr, state: Element, captured: Element
    ) -> None:
        self._upstream: Final = upstream
        self._func: Final = func
        self._captured: Final = captured
        #: What the function made of the elements so far.
        self._state = state

    def next(self) -> Pull:
        item = yield from self._upstream.next()
        if item is None:
            return None
        args = (*self._state, *item, *self._captured)
        results = yield from run_function(self._func, args)
        count = len(self._state)
        self._state = results[:count]
        return results[count:]

    def state(self) -> Tree:
        return state_of(self._upstream), self._state

    def restore(self, state: Tree) -> Restoring:
        upstream, results = parts(state, 2)
        yield from restore(self._upstream, upstream)
        self._state = element(results, tuple(map(dtype_of, self._state)))


@kernel(
    "FlatMapDataset",
    "InterleaveDataset",
    "ParallelInterleaveDatasetV2",
    "ParallelInterleaveDatasetV3",
    "ParallelInterleaveDatasetV4",
)
def make_interleave_dataset(attrs: Attrs) -> Kernel:
    """The elements of the datasets that the function makes, of several of them in turn."""
    make, func = declared(attrs), attrs.func("f")

    def interleave_dataset(dataset: Value, *inputs: Value) -> Dataset:
        captured, rest = _captured(attrs, inputs)
        cycle, block = (int(n) for n in rest[:2]) if rest else (1, 1)
        if cycle == 0 or cycle < -1 or block <= 0:
            raise InvalidArgumentError("cycle_length and block_length must be greater than zero.")
        upstream = dataset_in(dataset)
        # -1 leaves the choice to the op; the order of the elements depends on it.
        width = cycle if cycle > 0 else 1
        return make(lambda: _Interleave(upstream, func, captured, (width, block)))

    return interleave_dataset


class _Interleave:
    """A cycle of open iterators; each gives a block, then it is the next one's turn."""

    def __init__(
        self, upstream: Dataset, func: FuncAttr, captured: Element, sizes: tuple[int, int]
    ) -> None:
        self._types: Final = upstream.types
        self._upstream: Iterator | None = upstream.make_iterator()
        self._func: Final = func
        self._captured: Final = captured
        cycle, self._block = sizes
        #: What is open: of which element it was made, and the iterator.
        self._open: Final[list[tuple[Element, Iterator] | None]] = [None] * cycle
        self._at = 0
        #: How many elements the current one has given of its block.
        self._given = 0

    def next(self) -> Pull:
        while self._upstream is not None or any(self._open):
            current = self._open[self._at]
            if current is None:
                if not (yield from self._fill()):
                    self._turn()
                continue
            item = yield from current[1].next()
            if item is None:
                self._open[self._at] = None
                self._turn()
                continue
            self._given += 1
            if self._given == self._block:
                self._turn()
            return item
        return None

    def state(self) -> Tree:
        opened = tuple(one and (one[0], state_of(one[1])) for one in self._open)
        return state_of(self._upstream), self._at, self._given, opened

    def restore(self, state: Tree) -> Restoring:
        upstream, at, given, opened = parts(state, 4)
        self._upstream = yield from restored(self._upstream, upstream)
        self._at, self._given = number(at) % len(self._open), number(given)
        for place, one in enumerate(parts(opened, len(self._open))):
            if one is not None:
                made_of, inner = parts(one, 2)
                iterator = yield from self._made_of(element(made_of, self._types))
                yield from restore(iterator, inner)
                self._open[place] = element(made_of, self._types), iterator

    def _turn(self) -> None:
        self._at = (self._at + 1) % len(self._open)
        self._given = 0

    def _fill(self) -> Generator[Any, Any, bool]:
        """Open one more dataset in the current place, if there is one."""
        if self._upstream is None:
            return False
        item = yield from self._upstream.next()
        if item is None:
            self._upstream = None
            return False
        self._open[self._at] = item, (yield from self._made_of(item))
        return True

    def _made_of(self, item: Element) -> Generator[Any, Any, Iterator]:
        """An iterator over the dataset that the function makes of an element."""
        results = yield from run_function(self._func, (*item, *self._captured))
        return dataset_in(results[0]).make_iterator()


@async_kernel("ReduceDataset")
def make_reduce_dataset(attrs: Attrs) -> Kernel:
    """The state after the function has seen all elements."""
    func, states = attrs.func("f"), len(attrs.list("Tstate"))

    def reduce_dataset(
        context: OpKernelContext, done: Done, dataset: Value, *inputs: Value
    ) -> None:
        state, upstream = inputs[:states], dataset_in(dataset).make_iterator()
        captured = inputs[states:]

        def reduce() -> Pull:
            now: Element = tuple(state)
            while (item := (yield from upstream.next())) is not None:
                now = yield from run_function(func, (*now, *item, *captured))
            return now

        drive(reduce(), context, done)

    return reduce_dataset
