"""Datasets and their iterators, as all ops on them see them.

In:   types and shapes of elements, and a way to make an iterator.
Out:  a variant for the edges of a graph.
Not:  registers no kernel; knows no kind of dataset.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar, Final, Protocol, TypeAlias

from penstock.core.dtypes import DType
from penstock.core.shapes import TensorShape
from penstock.core.values import EncodedVariant, Value
from penstock.kernels.api.attrs import Attrs
from penstock.kernels.datasets import iterator_state
from penstock.kernels.datasets.iterator_state import Restoring, Stateful, Tree, state_of
from penstock.kernels.datasets.pulling import Pull
from penstock.kernels.values.variants import Variant, variant_in


class Iterator(Stateful, Protocol):
    """Gives the elements of a dataset, one at a time."""

    def next(self) -> Pull:
        """The next element; None at the end, and ever after."""


MakeIterator: TypeAlias = Callable[[], Iterator]


class Dataset(Variant):
    """Elements that can be gone through any number of times."""

    __slots__ = ("make_iterator", "shapes", "types")
    type_name: ClassVar[str] = "tensorflow::DatasetVariantWrapper"

    def __init__(
        self,
        types: tuple[DType, ...],
        shapes: tuple[TensorShape, ...],
        make_iterator: MakeIterator,
    ) -> None:
        self.types: Final = types
        self.shapes: Final = shapes
        #: A fresh iterator, at the first element.
        self.make_iterator: Final = make_iterator

    def outside(self) -> Variant:
        """What stands for it outside of its process."""
        return LostDataset()


class LostDataset(Variant):
    """What stands in a file for a dataset, which no file can hold: the nodes of a graph make it."""

    __slots__ = ()
    type_name: ClassVar[str] = "penstock::LostDataset"

    def encoded(self) -> EncodedVariant:
        """Its name alone."""
        return EncodedVariant(self.type_name)

    @classmethod
    def decoded(cls, encoded: EncodedVariant) -> Variant:  # noqa: ARG003
        """One like any other."""
        return cls()


def dataset_in(value: Value) -> Dataset:
    """The dataset on an edge."""
    return variant_in(value, Dataset, "Tensor must be a Dataset object")


def declared(attrs: Attrs) -> Callable[[MakeIterator], Dataset]:
    """What makes datasets of the types and shapes that a node declares."""
    name = "output_types" if "output_types" in attrs.values else "Toutput_types"
    types: tuple[DType, ...] = attrs.list(name)
    shapes: tuple[TensorShape, ...] = attrs.list("output_shapes")
    return lambda make_iterator: Dataset(types, shapes, make_iterator)


class Applied:
    """An iterator whose every element is one turn of a generator function over another one."""

    __slots__ = ("_step", "_upstream")

    def __init__(self, upstream: Iterator, step: Callable[[Iterator], Pull]) -> None:
        self._upstream: Final = upstream
        self._step: Final = step

    def next(self) -> Pull:
        """The next element."""
        return self._step(self._upstream)

    def state(self) -> Tree:
        """That of the other one."""
        return state_of(self._upstream)

    def restore(self, state: Tree) -> Restoring:
        """Put the other one there."""
        yield from iterator_state.restore(self._upstream, state)


def applied(upstream: Dataset, step: Callable[[Iterator], Pull]) -> MakeIterator:
    """Iterators without a state of their own."""
    return lambda: Applied(upstream.make_iterator(), step)
