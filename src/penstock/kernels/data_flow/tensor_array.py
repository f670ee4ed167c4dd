"""An array of tensors that is written and read element by element, within one step.

In:   elements, each for one index and, unless gradients add up, only once.
Out:  elements; zeros for those that nobody wrote, if their shape is known.
Not:  knows no handles and no graph; copies no element that it is given.
"""

from __future__ import annotations

from collections.abc import Sequence
from threading import Lock
from typing import Final

import numpy as np

from penstock.core.dtypes import DType
from penstock.core.shapes import TensorShape
from penstock.core.values import Array, Value, as_value, shape_of
from penstock.dataclass import dataclass
from penstock.errors import InvalidArgumentError
from penstock.kernels.api.signatures import type_text
from penstock.kernels.api.types import NUMBERS
from penstock.kernels.values.arrays import check_room, shape_text, zeros


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


#: Bytes that a place takes at most, without its element.
_PLACE: Final = 64
#: What may have happened to a place of the array.
_WRITTEN: Final = 1
_READ: Final = 2
_CLEARED: Final = 4


class TensorArray:
    """Elements by index; safe to use from several threads.

    Loops read and write in every iteration, so what is usual is settled first and in place;
    whatever is not goes the long way, which knows all rules and all errors.
    """

    __slots__ = (
        "_accepted",
        "_element_shape",
        "_is_closed",
        "_lock",
        "_may_grow",
        "_shapes",
        "_states",
        "_values",
        "dtype",
        "name",
        "options",
    )

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
        check_room(size, _PLACE, "places of a TensorArray")
        self.name: Final = name
        self.dtype: Final = dtype
        self.options: Final = options
        #: Guards all that follows.  Nothing is called under it but numpy.
        self._lock = Lock()
        #: Elements; None before one is written, after it was cleared, and while it stands
        #: for zeros.  The next two lists are as long as this one.
        self._values: list[Value] = [None] * size
        #: Sizes of each value, kept when it is cleared; None as long as nobody knows them.
        self._shapes: list[tuple[int, ...] | None] = [None] * size
        #: Sums of what happened to each element.
        self._states = [0] * size
        #: What each element must look like; becomes more definite, never less.
        self._element_shape = element_shape
        #: Sizes that were found to fit it, and from which there is nothing more to learn.
        self._accepted: tuple[int, ...] | None = None
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
            return len(self._values)

    def merge_element_shape(self, shape: TensorShape) -> None:
        """Learn more about the shape of all elements."""
        with self._lock:
            if shape.dims is not None:
                self._element_shape = self._element_shape.merge_with(shape)
                self._accepted = None

    def close(self) -> None:
        """Drop all elements; whatever is asked of the array from now on is an error."""
        with self._lock:
            self._is_closed = True
            self._values, self._shapes, self._states = [], [], []

    # -- writing -----------------------------------------------------------------------

    def write(self, index: int, value: Value) -> None:
        """Put one element in its place."""
        with self._lock:
            states = self._states
            if 0 <= index < len(states):
                state = states[index]
                shape = value.shape if type(value) is np.ndarray else ()
                # Nothing is there; or, in an array of gradients, a zero of this shape.
                if shape == self._accepted and (
                    not state
                    or (
                        state == _WRITTEN
                        and self._values[index] is None
                        and self._shapes[index] == shape
                    )
                ):
                    self._values[index] = value
                    self._shapes[index] = shape
                    states[index] = _WRITTEN
                    return
            self._check_open()
            self._write(index, value)

    def write_many(self, indices: Sequence[int], values: Sequence[Value] | Array) -> None:
        """Put several elements in their places."""
        with self._lock:
            self._check_open()
            if self._is_all(indices) and not any(self._states) and isinstance(values, np.ndarray):
                shape = values.shape[1:]
                self._check_shape(shape, 0)
                self._learn_from(shape)
                self._values = list(values)
                self._shapes = [shape] * len(values)
                self._states = [_WRITTEN] * len(values)
                return
            for index, value in zip(indices, values, strict=True):
                self._write(index, value)

    def _is_all(self, indices: Sequence[int] | None) -> bool:
        """Whether these are all indices of the array, of which it has some, in order."""
        size = len(self._values)
        return size > 0 and (indices is None or list(indices) == list(range(size)))

    def _check_shape(self, shape: tuple[int, ...], index: int) -> None:
        """Raise unless an element may have this shape."""
        if shape != self._accepted and not self._element_shape.accepts(shape):
            raise self._error(
                f"Could not write to TensorArray index {index} because the value shape is "
                f"{shape_text(shape)} which is incompatible with the TensorArray's inferred "
                f"element shape: {self._element_shape} (consider setting infer_shape=False)."
            )

    def _learn_from(self, shape: tuple[int, ...]) -> None:
        """Remember the shape of an element; the first one's may be that of all others."""
        if self.options.identical_element_shapes and not self._element_shape.is_fully_defined:
            self._element_shape = TensorShape(shape)
        self._accepted = shape

    def _write(self, index: int, value: Value) -> None:
        self._grow_to(index)
        shape, state = shape_of(value), self._states[index]
        self._check_shape(shape, index)
        if state & _READ:
            raise self._error(
                f"Could not write to TensorArray index {index} because it has already been read."
            )
        if state & _WRITTEN:
            value = self._aggregate(index, value, shape)
        self._learn_from(shape)
        self._values[index], self._shapes[index] = value, shape
        self._states[index] = state | _WRITTEN

    def _grow_to(self, index: int) -> None:
        """Have the array reach to this index, if it may."""
        missing = index + 1 - len(self._values)
        if index >= 0 >= missing:
            return
        if index < 0 or not self._may_grow:
            raise self._error(
                f"Tried to write to index {index} but array is not resizeable "
                f"and size is: {len(self._values)}"
            )
        check_room(index + 1, _PLACE, "places of a TensorArray")
        self._values += [None] * missing
        self._shapes += [None] * missing
        self._states += [0] * missing

    def _aggregate(self, index: int, value: Value, shape: tuple[int, ...]) -> Value:
        """The sum of what is there and of what is written."""
        if not self.options.aggregates:
            raise self._error(
                f"Could not write to TensorArray index {index} "
                "because it has already been written to."
            )
        present, expected = self._values[index], self._shapes[index]
        if expected != shape:
            raise self._error(
                f"Could not aggregate to TensorArray index {index} because the existing shape is "
                f"{shape_text(expected or ())} but the new input shape is {shape_text(shape)}."
            )
        if present is None:
            return value
        if self.dtype not in NUMBERS:
            raise InvalidArgumentError(
                f"tensor_array::AddToTensor type not supported: {type_text(self.dtype)}"
            )
        return present + value

    # -- reading -----------------------------------------------------------------------

    def read(self, index: int) -> Value:
        """Take one element; it is gone afterwards, if the options say so."""
        with self._lock:
            values = self._values
            if 0 <= index < len(values):
                value = values[index]
                if value is not None:
                    if self.options.clear_after_read:
                        values[index] = None
                        self._states[index] |= _READ | _CLEARED
                    else:
                        self._states[index] |= _READ
                    return value
            self._check_open()
            return self._read(index)

    def read_many(self, indices: Sequence[int] | None = None) -> list[Value]:
        """Take several elements, or all of them."""
        with self._lock:
            self._check_open()
            values, size = self._values, len(self._values)
            if not self._is_all(indices) or type(None) in set(map(type, values)):
                return [self._read(i) for i in (range(size) if indices is None else indices)]
            if not self.options.clear_after_read:
                self._states = [state | _READ for state in self._states]
                return list(values)
            self._values = [None] * size
            self._states = [state | _READ | _CLEARED for state in self._states]
            return values

    def _read(self, index: int) -> Value:
        values = self._values
        if not 0 <= index < len(values):
            raise InvalidArgumentError(
                f"Tried to read from index {index} but array size is: {len(values)}"
            )
        if self._states[index] & _CLEARED:
            raise self._error(
                f"Could not read index {index} twice because it was cleared after a previous "
                "read (perhaps try setting clear_after_read = false?)."
            )
        value = values[index]
        if value is None:
            value = self._unwritten(index)
        if self.options.clear_after_read:
            values[index] = None
            self._states[index] |= _READ | _CLEARED
        else:
            values[index] = value
            self._states[index] |= _READ
        return value

    def _unwritten(self, index: int) -> Value:
        """Zeros in place of an element that nobody wrote."""
        shape = self._shapes[index]
        if shape is None:
            if not self._element_shape.is_fully_defined:
                raise self._error(
                    f"Could not read from TensorArray index {index}.  Furthermore, the element "
                    f"shape is not fully defined: {self._element_shape}.  It is possible you are "
                    "working with a resizeable TensorArray and stop_gradients is not allowing "
                    "the gradients to be written.  If you set the full element_shape property "
                    "on the forward TensorArray, the proper all-zeros tensor will be returned "
                    "instead of incurring this error."
                )
            shape = self._shapes[index] = self._element_shape.as_tuple()
        if self.dtype.is_object:
            raise InvalidArgumentError(
                f"tensor_array::TensorSetZero type not supported: {type_text(self.dtype)}"
            )
        return as_value(zeros(shape, self.dtype))

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
            made = TensorArray(name, self.dtype, len(self._values), shape, options)
            made._shapes = list(self._shapes)
            if prepended:
                made._shapes = [None if own is None else (*prepended, *own) for own in self._shapes]
            # An element whose shape nobody knows was never written.
            made._states = [state & _WRITTEN for state in self._states]
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
