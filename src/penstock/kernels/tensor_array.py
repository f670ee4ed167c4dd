"""An array of tensors that is written and read element by element, within one step.

In:   elements, each for one index and, unless gradients add up, only once.
Out:  elements; zeros for those that nobody wrote, if their shape is known.
Not:  knows no handles and no graph; copies no element that it is given.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from threading import Lock
from typing import Final

from penstock.core.dtypes import DType
from penstock.core.shapes import TensorShape
from penstock.core.values import Value, as_value, shape_of
from penstock.errors import InvalidArgumentError
from penstock.kernels.arrays import shape_text, zeros
from penstock.kernels.signatures import type_text
from penstock.kernels.types import NUMBERS


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorArrayOptions:
    """What an array allows, settled when it is made."""

    #: Grow when something is written behind the end.
    dynamic_size: bool = False
    #: Let go of an element once it was read, so that it cannot be read again.
    clear_after_read: bool = True
    #: Hold all elements to the shape of the first one.
    identical_element_shapes: bool = False
    #: Add what is written to what is there, as gradients need it.
    aggregates: bool = False


@dataclass(frozen=False, slots=True)
class _Element:
    """One place of the array."""

    #: None before it is written, after it was cleared, and while it stands for zeros.
    value: Value = None
    #: Sizes of the value, kept when it is cleared; None as long as nobody knows them.
    shape: tuple[int, ...] | None = None
    is_written: bool = False
    is_read: bool = False
    is_cleared: bool = False


class TensorArray:
    """Elements by index; safe to use from several threads."""

    def __init__(
        self,
        name: str,
        dtype: DType,
        size: int,
        element_shape: TensorShape,
        options: TensorArrayOptions,
    ) -> None:
        if size < 0:
            raise InvalidArgumentError("Size should be >= 0.")
        self.name: Final = name
        self.dtype: Final = dtype
        self.options: Final = options
        #: Guards all that follows.  Nothing is called under it but numpy.
        self._lock = Lock()
        self._elements = [_Element() for _ in range(size)]
        #: What each element must look like; becomes more definite, never less.
        self._element_shape = element_shape
        #: False for good once there is an array of gradients, which has this one's size.
        self._may_grow = options.dynamic_size
        #: True for good once the graph closed the array.
        self._is_closed = False

    @property
    def may_grow(self) -> bool:
        """Whether writing behind the end makes the array longer."""
        return self._may_grow

    @property
    def size(self) -> int:
        """Number of elements, written or not."""
        with self._lock:
            self._check_open()
            return len(self._elements)

    def merge_element_shape(self, shape: TensorShape) -> None:
        """Learn more about the shape of all elements."""
        with self._lock:
            self._element_shape = self._element_shape.merge_with(shape)

    def close(self) -> None:
        """Drop all elements; whatever is asked of the array from now on is an error."""
        with self._lock:
            self._is_closed = True
            self._elements = []

    # -- writing -----------------------------------------------------------------------

    def write(self, index: int, value: Value) -> None:
        """Put one element in its place."""
        with self._lock:
            self._check_open()
            self._write(index, value)

    def write_many(self, indices: Iterable[int], values: Iterable[Value]) -> None:
        """Put several elements in their places."""
        with self._lock:
            self._check_open()
            for index, value in zip(indices, values, strict=True):
                self._write(index, value)

    def _write(self, index: int, value: Value) -> None:
        element = self._element_to_write(index)
        shape = shape_of(value)
        if not self._element_shape.accepts(shape):
            raise self._error(
                f"Could not write to TensorArray index {index} because the value shape is "
                f"{shape_text(shape)} which is incompatible with the TensorArray's inferred "
                f"element shape: {self._element_shape} (consider setting infer_shape=False)."
            )
        if element.is_read:
            raise self._error(
                f"Could not write to TensorArray index {index} because it has already been read."
            )
        if element.is_written:
            value = self._aggregate(index, element, value, shape)
        if self.options.identical_element_shapes and not self._element_shape.is_fully_defined:
            self._element_shape = TensorShape(shape)
        element.value, element.shape, element.is_written = value, shape, True

    def _element_to_write(self, index: int) -> _Element:
        elements = self._elements
        if not 0 <= index < len(elements):
            if index < 0 or not self._may_grow:
                raise self._error(
                    f"Tried to write to index {index} but array is not resizeable "
                    f"and size is: {len(elements)}"
                )
            elements += [_Element() for _ in range(index + 1 - len(elements))]
        return elements[index]

    def _aggregate(
        self, index: int, element: _Element, value: Value, shape: tuple[int, ...]
    ) -> Value:
        """The sum of what is there and of what is written."""
        if not self.options.aggregates:
            raise self._error(
                f"Could not write to TensorArray index {index} "
                "because it has already been written to."
            )
        if element.shape != shape:
            raise self._error(
                f"Could not aggregate to TensorArray index {index} because the existing shape is "
                f"{shape_text(element.shape or ())} but the new input shape is {shape_text(shape)}."
            )
        if element.value is None:
            return value
        if self.dtype not in NUMBERS:
            raise InvalidArgumentError(
                f"tensor_array::AddToTensor type not supported: {type_text(self.dtype)}"
            )
        return element.value + value

    # -- reading -----------------------------------------------------------------------

    def read(self, index: int) -> Value:
        """Take one element; it is gone afterwards, if the options say so."""
        with self._lock:
            self._check_open()
            return self._read(index)

    def read_many(self, indices: Iterable[int] | None = None) -> list[Value]:
        """Take several elements, or all of them."""
        with self._lock:
            self._check_open()
            wanted: Iterable[int] = range(len(self._elements)) if indices is None else indices
            return [self._read(index) for index in wanted]

    def _read(self, index: int) -> Value:
        elements = self._elements
        if not 0 <= index < len(elements):
            raise InvalidArgumentError(
                f"Tried to read from index {index} but array size is: {len(elements)}"
            )
        element = elements[index]
        if element.is_cleared:
            raise self._error(
                f"Could not read index {index} twice because it was cleared after a previous "
                "read (perhaps try setting clear_after_read = false?)."
            )
        value = element.value
        if value is None:
            value = element.value = self._unwritten(index, element)
        element.is_read = True
        if self.options.clear_after_read:
            element.value, element.is_cleared = None, True
        return value

    def _unwritten(self, index: int, element: _Element) -> Value:
        """Zeros in place of an element that nobody wrote."""
        if element.shape is None:
            if not self._element_shape.is_fully_defined:
                raise self._error(
                    f"Could not read from TensorArray index {index}.  Furthermore, the element "
                    f"shape is not fully defined: {self._element_shape}.  It is possible you are "
                    "working with a resizeable TensorArray and stop_gradients is not allowing "
                    "the gradients to be written.  If you set the full element_shape property "
                    "on the forward TensorArray, the proper all-zeros tensor will be returned "
                    "instead of incurring this error."
                )
            element.shape = self._element_shape.as_tuple()
        if self.dtype.is_object:
            raise InvalidArgumentError(
                f"tensor_array::TensorSetZero type not supported: {type_text(self.dtype)}"
            )
        return as_value(zeros(element.shape, self.dtype))

    # -- gradients ---------------------------------------------------------------------

    def make_gradients(self, name: str, prepended: Sequence[int] = ()) -> TensorArray:
        """An array for the gradients of this one's elements, and of the same size.

        From now on this array keeps its size.

        Args:
            name: the name of the new array.
            prepended: sizes that the gradients have in front of those of the elements.

        """
        with self._lock:
            self._check_open()
            self._may_grow = False
            dims = self._element_shape.dims
            shape = TensorShape(None if dims is None else (*prepended, *dims))
            options = TensorArrayOptions(aggregates=True)
            made = TensorArray(name, self.dtype, len(self._elements), shape, options)
            for mine, its in zip(self._elements, made._elements, strict=True):
                if mine.shape is not None:
                    its.shape, its.is_written = (*prepended, *mine.shape), mine.is_written
            return made

    # -- errors ------------------------------------------------------------------------

    def check_open(self) -> None:
        """Raise InvalidArgumentError if the graph closed the array."""
        with self._lock:
            self._check_open()

    def check_type(self, dtype: DType, what: str) -> None:
        """Raise InvalidArgumentError unless elements are of this type."""
        if dtype is not self.dtype:
            raise InvalidArgumentError(
                f"TensorArray dtype is {type_text(self.dtype)} but Op {what} "
                f"dtype {type_text(dtype)}."
            )

    def _check_open(self) -> None:
        if self._is_closed:
            raise InvalidArgumentError(f"TensorArray {self.name} has already been closed.")

    def _error(self, text: str) -> InvalidArgumentError:
        return InvalidArgumentError(f"TensorArray {self.name}: {text}")
