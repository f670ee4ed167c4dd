"""Datasets made of tensors, ranges and random numbers.

In:   tensors, or the ends of a range.
Out:  datasets.
Not:  reads no files.
"""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Iterator as PlainIterator
from typing import Final

import numpy as np

from penstock.core.values import Value, as_value, keep, shape_of
from penstock.errors import InvalidArgumentError
from penstock.kernels.api.attrs import Attrs
from penstock.kernels.api.registry import Kernel, kernel
from penstock.kernels.datasets.dataset import Dataset, declared
from penstock.kernels.datasets.iterator_state import LEAST, Restoring, Tree, number, parts
from penstock.kernels.datasets.pulling import Element, Pull
from penstock.kernels.datasets.seeds import words
from penstock.kernels.values.arrays import shape_text


class FromPython:
    """An iterator over what Python's iterators give."""

    __slots__ = ("_elements", "_from", "_given")

    def __init__(self, elements_from: Callable[[int], PlainIterator[Element]]) -> None:
        """``elements_from`` gives all elements but so many of the first."""
        self._from: Final = elements_from
        self._elements = elements_from(0)
        #: How many elements were given.
        self._given = 0

    def next(self) -> Pull:
        """The next element."""
        yield from ()
        element = next(self._elements, None)
        self._given += element is not None
        return element

    def state(self) -> Tree:
        """How many elements were given."""
        return self._given

    def restore(self, state: Tree) -> Restoring:
        """Go on after so many."""
        yield from ()
        self._given = number(state)
        self._elements = self._from(self._given)


@kernel("TensorDataset")
def make_tensor_dataset(attrs: Attrs) -> Kernel:
    """One element: the components."""
    make = declared(attrs)

    def tensor_dataset(*components: Value) -> Dataset:
        element = tuple(map(keep, components))
        return make(lambda: FromPython(lambda at: iter((element,)[at:])))

    return tensor_dataset


@kernel("TensorSliceDataset")
def make_tensor_slice_dataset(attrs: Attrs) -> Kernel:
    """As many elements as the components are long: their rows."""
    make = declared(attrs)

    def tensor_slice_dataset(*components: Value) -> Dataset:
        sizes = {shape_of(component)[:1] for component in components}
        if () in sizes:
            raise InvalidArgumentError("All components must be at least 1-dimensional")
        if len(sizes) > 1:
            shapes = [shape_text(shape_of(component)) for component in components]
            raise InvalidArgumentError(
                f"All components must have the same size in the 0th dimension, got {shapes}"
            )
        rows = tuple(map(keep, components))

        def rows_from(at: int) -> PlainIterator[Element]:
            return zip(*(map(as_value, component[at:]) for component in rows), strict=True)

        return make(lambda: FromPython(rows_from))

    return tensor_slice_dataset


@kernel("RangeDataset")
def make_range_dataset(attrs: Attrs) -> Kernel:
    """The numbers from start to stop."""
    make, kind = declared(attrs), attrs.list("output_types")[0].numpy.type

    def range_dataset(start: Value, stop: Value, step: Value) -> Dataset:
        if step == 0:
            raise InvalidArgumentError("step must be a non-zero integer.")
        numbers = range(int(start), int(stop), int(step))
        return make(lambda: FromPython(lambda at: ((kind(n),) for n in numbers[at:])))

    return range_dataset


@kernel("RandomDataset")
def make_random_dataset(attrs: Attrs) -> Kernel:
    """Whole numbers of 32 bits without end, the same ones for the same seed."""
    make, chance = declared(attrs), attrs.chance()

    def random_dataset(seed: Value, seed2: Value) -> Dataset:
        first, second = int(seed), int(seed2)
        if first == 0 and second == 0:
            first, second = chance.seed(), chance.seed()
        return make(lambda: _RandomNumbers(first, second))

    return random_dataset


class _RandomNumbers:
    """The words that follow from two seeds."""

    def __init__(self, seed: int, seed2: int) -> None:
        self._seeds = (seed, seed2)
        #: How many words were given.
        self._given = 0
        self._words = words(seed, seed2)

    def next(self) -> Pull:
        """The next element."""
        yield from ()
        self._given += 1
        return (np.int64(next(self._words)),)

    def state(self) -> Tree:
        """The seeds, which may have been drawn themselves, and how many words were given."""
        return (*self._seeds, self._given)

    def restore(self, state: Tree) -> Restoring:
        """Go on after so many words of other seeds."""
        yield from ()
        seed, seed2, given = parts(state, 3)
        self._seeds = number(seed, LEAST), number(seed2, LEAST)
        self._given = number(given)
        self._words = words(*self._seeds, self._given)
