"""Datasets that join elements into larger ones, or cut them up.

In:   datasets, and sizes.
Out:  datasets of batches, of rows, or of windows.
Not:  calls no functions.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Final

import numpy as np

from penstock.core.dtypes import DType
from penstock.core.shapes import TensorShape
from penstock.core.values import Array, EncodedVariant, Value, as_value, keep, shape_of
from penstock.errors import InvalidArgumentError
from penstock.kernels.api.attrs import Attrs
from penstock.kernels.api.registry import Kernel, kernel
from penstock.kernels.datasets.dataset import Dataset, Iterator, dataset_in, declared
from penstock.kernels.datasets.iterator_state import (
    Restoring,
    Tree,
    element,
    listed,
    number,
    parts,
    restore,
    restored,
    state_of,
)
from penstock.kernels.datasets.pulling import Element, Pull
from penstock.kernels.datasets.source_ops import FromPython
from penstock.kernels.values.arrays import as_array, full, shape_text
from penstock.kernels.values.variants import Variant

Join = Callable[[Sequence[Element]], Element]


@kernel("BatchDataset", "BatchDatasetV2", "ParallelBatchDataset")
def make_batch_dataset(attrs: Attrs) -> Kernel:
    """So many elements as one, along a new first axis."""
    make = declared(attrs)

    def batch_dataset(dataset: Value, size: Value, *rest: Value) -> Dataset:
        count, upstream = checked_size(size), dataset_in(dataset)
        drops = bool(rest and rest[-1])
        return make(lambda: Batches(upstream.make_iterator(), count, stacked, drops=drops))

    return batch_dataset


@kernel("PaddedBatchDataset", "PaddedBatchDatasetV2")
def make_padded_batch_dataset(attrs: Attrs) -> Kernel:
    """Batches of elements of several sizes, filled up to a common one."""
    make, parts = declared(attrs), attrs.int("N")

    def padded_batch_dataset(dataset: Value, size: Value, *rest: Value) -> Dataset:
        count, upstream = checked_size(size), dataset_in(dataset)
        shapes = [as_array(shape).tolist() for shape in rest[:parts]]
        fill = rest[parts : 2 * parts]
        drops = bool(rest[2 * parts :] and rest[-1])

        def join(elements: Sequence[Element]) -> Element:
            columns = zip(*elements, strict=True)
            return tuple(map(_padded, columns, shapes, fill))

        return make(lambda: Batches(upstream.make_iterator(), count, join, drops=drops))

    return padded_batch_dataset


def checked_size(size: Value) -> int:
    """A batch's size, which must be positive."""
    if size <= 0:
        raise InvalidArgumentError("Batch size must be greater than zero.")
    return int(size)


class Batches:
    """So many elements at a time."""

    def __init__(self, upstream: Iterator, size: int, join: Join, *, drops: bool) -> None:
        self._upstream: Final = upstream
        self._size: Final = size
        self._join: Final = join
        #: Whether a last batch that is too small is dropped.
        self._drops: Final = drops

    def next(self) -> Pull:
        """The next batch."""
        elements: list[Element] = []
        while len(elements) < self._size:
            item = yield from self._upstream.next()
            if item is None:
                break
            elements.append(item)
        if not elements or (self._drops and len(elements) < self._size):
            return None
        return self._join(elements)

    def state(self) -> Tree:
        """That of the single elements."""
        return state_of(self._upstream)

    def restore(self, state: Tree) -> Restoring:
        """Put the single elements there."""
        yield from restore(self._upstream, state)


def stacked(elements: Sequence[Element]) -> Element:
    """The components of several elements, each along a new first axis."""
    return tuple(map(_stacked, zip(*elements, strict=True), range(len(elements[0]))))


def _stacked(values: Sequence[Value], component: int) -> Value:
    first = shape_of(values[0])
    for value in values:
        if shape_of(value) != first:
            raise InvalidArgumentError(
                "Cannot add tensor to the batch: number of elements does not match. Shapes are: "
                f"[tensor]: {shape_text(shape_of(value))}, [batch]: {shape_text(first)} "
                f"(component {component})"
            )
    if isinstance(values[0], (bytes, Variant)):
        return _objects(values)
    return keep(np.stack([as_array(value) for value in values]))


def _objects(values: Sequence[Value]) -> Array:
    array = np.empty(len(values), object)
    array[:] = values
    return array


def _padded(values: Sequence[Value], shape: Sequence[int], fill: Value) -> Value:
    arrays = [as_array(value) for value in values]
    sizes = list(shape)
    for array in arrays:
        if array.ndim != len(sizes):
            raise InvalidArgumentError(
                f"All elements in a batch must have the same rank as the padded shape: expected "
                f"rank {len(sizes)} but got element with rank {array.ndim}"
            )
    for axis, size in enumerate(shape):
        largest = max(array.shape[axis] for array in arrays)
        if 0 <= size < largest:
            raise InvalidArgumentError(
                "Attempted to pad to a smaller size than the input element. "
                f"Got {largest} in dimension {axis}, and {size} is asked for"
            )
        sizes[axis] = largest if size < 0 else size
    result = full((len(arrays), *sizes), as_array(fill)[()], arrays[0].dtype)
    for place, array in enumerate(arrays):
        result[place][tuple(map(slice, array.shape))] = array
    return result


@kernel("UnbatchDataset")
def make_unbatch_dataset(attrs: Attrs) -> Kernel:
    """The rows of each element, one after the other."""
    make = declared(attrs)

    def unbatch_dataset(dataset: Value) -> Dataset:
        upstream = dataset_in(dataset)
        return make(lambda: _Rows(upstream))

    return unbatch_dataset


class _Rows:
    """Goes through an element's rows before it asks for the next element."""

    def __init__(self, upstream: Dataset) -> None:
        self._types: Final = upstream.types
        self._upstream: Final = upstream.make_iterator()
        #: The element whose rows are given, if there is one; how many were; and the others.
        self._element: Element | None = None
        self._given = 0
        self._rows: Any = iter(())

    def next(self) -> Pull:
        while (row := next(self._rows, None)) is None:
            item = yield from self._upstream.next()
            if item is None:
                self._element = None
                return None
            self._open(item, 0)
        self._given += 1
        return tuple(row)

    def _open(self, item: Element, given: int) -> None:
        sizes = {shape_of(component)[:1] for component in item}
        if len(sizes) != 1 or () in sizes:
            raise InvalidArgumentError(
                f"Input element must have the same batch size in each component, got {sizes}"
            )
        rows = (map(as_value, component[given:]) for component in item)
        self._element, self._given, self._rows = item, given, zip(*rows, strict=True)

    def state(self) -> Tree:
        return state_of(self._upstream), self._element, self._given

    def restore(self, state: Tree) -> Restoring:
        upstream, opened, given = parts(state, 3)
        yield from restore(self._upstream, upstream)
        if opened is not None:
            self._open(element(opened, self._types), number(given))


@kernel("WindowDataset")
def make_window_dataset(attrs: Attrs) -> Kernel:
    """Elements whose components are datasets of neighbouring elements."""
    make = declared(attrs)

    def window_dataset(dataset: Value, *numbers: Value) -> Dataset:
        upstream = dataset_in(dataset)
        names = ("Window size", "Window shift", "Window stride")
        for name, given in zip(names, numbers, strict=False):
            if given <= 0:
                raise InvalidArgumentError(f"{name} must be greater than zero.")
        size, shift, stride = map(int, numbers[:3])
        return make(lambda: _Windows(upstream, (size, shift, stride), drops=bool(numbers[3])))

    return window_dataset


class _Windows:
    """The elements from the window's first to where its last would be."""

    def __init__(self, upstream: Dataset, sizes: tuple[int, int, int], *, drops: bool) -> None:
        self._dataset: Final = upstream
        self._upstream: Iterator | None = upstream.make_iterator()
        self._size, self._shift, self._stride = sizes
        self._drops: Final = drops
        #: What was read and may be needed again; begins where the next window does.
        self._buffer: list[Element] = []
        #: Elements to skip before the next window, where windows leave gaps.
        self._gap = 0

    def next(self) -> Pull:
        reach = (self._size - 1) * self._stride + 1
        while self._upstream is not None and len(self._buffer) < self._gap + reach:
            item = yield from self._upstream.next()
            if item is None:
                self._upstream = None
            else:
                self._buffer.append(item)
        del self._buffer[: self._gap]
        window = self._buffer[: reach : self._stride]
        if not window or (self._drops and len(window) < self._size):
            return None
        self._gap = self._shift
        return tuple(map(self._component, range(len(window[0])), [window] * len(window[0])))

    def state(self) -> Tree:
        return state_of(self._upstream), tuple(self._buffer), self._gap

    def restore(self, state: Tree) -> Restoring:
        upstream, buffer, gap = parts(state, 3)
        self._upstream = yield from restored(self._upstream, upstream)
        self._buffer = [element(item, self._dataset.types) for item in listed(buffer)]
        self._gap = number(gap)

    def _component(self, at: int, window: Sequence[Element]) -> Dataset:
        types, shapes = self._dataset.types, self._dataset.shapes
        return Window(types[at], shapes[at], [item[at] for item in window])


class Window(Dataset):
    """One component of some elements; unlike other datasets, it can travel."""

    __slots__ = ("_column",)
    type_name: ClassVar[str] = "penstock::Window"

    def __init__(self, dtype: DType, shape: TensorShape, column: Sequence[Value]) -> None:
        elements = [(value,) for value in column]
        super().__init__((dtype,), (shape,), lambda: FromPython(lambda at: iter(elements[at:])))
        self._column: Final = column

    def encoded(self) -> EncodedVariant:
        """The values, and the shape that they are said to have, as JSON."""
        sizes = json.dumps(self.shapes[0].dims).encode()
        tensors = tuple((self.types[0], value) for value in self._column)
        return EncodedVariant(self.type_name, sizes, tensors)

    @classmethod
    def decoded(cls, encoded: EncodedVariant) -> Variant:
        """The dataset of these values."""
        types = {dtype for dtype, _ in encoded.tensors}
        if len(types) != 1:
            raise ValueError("a window has values of one type")
        values = [value for _, value in encoded.tensors]
        return cls(types.pop(), _shape_of(encoded.metadata), values)


def _shape_of(text: bytes) -> TensorShape:
    """A shape that was written as JSON; raises ValueError if it is none."""
    sizes = json.loads(text)
    is_list = isinstance(sizes, list) and all(size is None or type(size) is int for size in sizes)
    if sizes is not None and not is_list:
        raise ValueError("it is no shape")
    return TensorShape.of(sizes)
