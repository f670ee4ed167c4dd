"""Datasets made of tensors, ranges and random numbers.

In:   tensors, or the ends of a range.
Out:  datasets.
Not:  reads no files.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator as PlainIterator

import numpy as np

from penstock.core.values import Value, as_value, keep, shape_of
from penstock.errors import InvalidArgumentError
from penstock.kernels.arrays import shape_text
from penstock.kernels.attrs import Attrs
from penstock.kernels.datasets.dataset import Dataset, declared
from penstock.kernels.datasets.pulling import Element, Pull
from penstock.kernels.datasets.seeds import words
from penstock.kernels.registry import Kernel, kernel


class FromPython:
    """An iterator over what a Python iterator gives."""

    __slots__ = ("_elements",)

    def __init__(self, elements: PlainIterator[Element]) -> None:
        self._elements = elements

    def next(self) -> Pull:
        """The next element."""
        yield from ()
        return next(self._elements, None)


@kernel("TensorDataset")
def make_tensor_dataset(attrs: Attrs) -> Kernel:
    """One element: the components."""
    make = declared(attrs)

    def tensor_dataset(*components: Value) -> Dataset:
        element = tuple(map(keep, components))
        return make(lambda: FromPython(iter((element,))))

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
        return make(lambda: FromPython(zip(*map(_rows, rows), strict=True)))

    return tensor_slice_dataset


def _rows(array: Value) -> PlainIterator[Value]:
    return map(as_value, array)


@kernel("RangeDataset")
def make_range_dataset(attrs: Attrs) -> Kernel:
    """The numbers from start to stop."""
    make, number = declared(attrs), attrs.list("output_types")[0].numpy.type

    def range_dataset(start: Value, stop: Value, step: Value) -> Dataset:
        if step == 0:
            raise InvalidArgumentError("step must be a non-zero integer.")
        numbers = range(int(start), int(stop), int(step))
        return make(lambda: FromPython((number(n),) for n in numbers))

    return range_dataset


@kernel("RandomDataset")
def make_random_dataset(attrs: Attrs) -> Kernel:
    """Whole numbers of 32 bits without end, the same ones for the same seed."""
    make = declared(attrs)

    def random_dataset(seed: Value, seed2: Value) -> Dataset:
        first, second = int(seed), int(seed2)
        if first == 0 and second == 0:
            first, second = secrets.randbits(64), secrets.randbits(64)
        return make(lambda: FromPython((np.int64(w),) for w in words(first, second)))

    return random_dataset
