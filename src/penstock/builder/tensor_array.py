"""An array of tensors, written and read element by element.

In:   a size and a type of elements.
Out:  ``TensorArray``: a handle to the array of the step, and a flow.
Not:  holds no values; every step begins with an empty array.

The flow is a tensor that says how far the array is written: whatever changes the array
takes the flow before and makes the flow after.  So each method that writes returns a new
object, and only what is read through that object is sure to be read after the write.  As a
loop variable the array is its flow; the handle is an invariant of the loop.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from penstock.builder.graph import apply
from penstock.builder.operators import Operators
from penstock.builder.scope import change_scope, scope_in
from penstock.builder.sources import as_tensor
from penstock.builder.tensor import Operation, Tensor
from penstock.core import dtypes
from penstock.core.dtypes import DType
from penstock.core.shapes import UNKNOWN, TensorShape
from penstock.dataclass import dataclass


@dataclass(frozen=True, slots=True, repr=False)
class _Place:
    """The array itself, and what its elements are."""

    handle: Tensor
    dtype: DType
    element_shape: TensorShape


class TensorArray:
    """An array of tensors of one type, as far as it is written.

    ``size`` is its first length; with ``dynamic_size`` it grows when written beyond.  With
    ``clear_after_read`` an element can be read once.  ``infer_shape`` demands that all
    elements have the same shape; ``element_shape`` says which, as far as it is known.
    """

    __slots__ = ("_place", "flow")

    def __init__(
        self,
        dtype: Any,
        size: Any = 0,
        *,
        dynamic_size: bool = False,
        clear_after_read: bool = True,
        infer_shape: bool = True,
        element_shape: Any = None,
        tensor_array_name: str = "",
        name: str = "TensorArray",
    ) -> None:
        known = dtypes.as_dtype(dtype)
        shape = UNKNOWN if element_shape is None else TensorShape.of(element_shape)
        handle, self.flow = apply(
            "TensorArrayV3",
            size,
            known,
            element_shape=shape,
            dynamic_size=dynamic_size,
            clear_after_read=clear_after_read,
            identical_element_shapes=infer_shape,
            tensor_array_name=tensor_array_name,
            name=name,
        )
        self._place = _Place(handle, known, shape)

    @property
    def handle(self) -> Tensor:
        """The array of the step, whatever is written to it."""
        return self._place.handle

    @property
    def dtype(self) -> DType:
        """The type of its elements."""
        return self._place.dtype

    @property
    def element_shape(self) -> TensorShape:
        """What was said of the shape of its elements."""
        return self._place.element_shape

    def moved_to(self, handle: Tensor, flow: Tensor) -> TensorArray:
        """The same kind of array with another handle or flow."""
        moved = object.__new__(TensorArray)
        moved._place = replace(self._place, handle=handle)
        moved.flow = flow
        return moved

    def read(self, index: Any, name: str = "TensorArrayReadV3") -> Tensor:
        """Element ``index``."""
        result: Tensor = self._call("TensorArrayReadV3", index=index, dtype=self.dtype, name=name)
        return result

    def write(self, index: Any, value: Any, name: str = "TensorArrayWriteV3") -> TensorArray:
        """The array with ``value`` as element ``index``."""
        return self._write("TensorArrayWriteV3", value, index=index, name=name)

    def stack(self, name: str = "TensorArrayStack") -> Tensor:
        """All elements as one tensor with a new first dimension."""
        size = self.size()
        with self._beside():
            indices = apply("Range", 0, size, 1)
        return self.gather(indices, name=name)

    def gather(self, indices: Any, name: str = "TensorArrayGatherV3") -> Tensor:
        """Some elements as one tensor with a new first dimension."""
        result: Tensor = self._call(
            "TensorArrayGatherV3",
            indices=indices,
            dtype=self.dtype,
            element_shape=self.element_shape,
            name=name,
        )
        return result

    def unstack(self, value: Any, name: str = "TensorArrayUnstack") -> TensorArray:
        """The array with the slices of ``value`` as its elements."""
        tensor = as_tensor(value, self.dtype)
        with self._beside():
            indices = apply("Range", 0, apply("Shape", tensor)[0], 1)
        return self.scatter(indices, tensor, name=name)

    def scatter(self, indices: Any, value: Any, name: str = "TensorArrayScatterV3") -> TensorArray:
        """The array with the slices of ``value`` as elements ``indices``."""
        return self._write("TensorArrayScatterV3", value, indices=indices, name=name)

    def concat(self, name: str = "TensorArrayConcatV3") -> Tensor:
        """All elements, one after the other along their first dimension."""
        shape = self.element_shape.dims
        except0 = UNKNOWN if shape is None else TensorShape(shape[1:])
        result = self._call(
            "TensorArrayConcatV3", dtype=self.dtype, element_shape_except0=except0, name=name
        )
        value: Tensor = result.value
        return value

    def split(self, value: Any, lengths: Any, name: str = "TensorArraySplitV3") -> TensorArray:
        """The array with pieces of ``value``, ``lengths`` of them, as its elements."""
        if isinstance(lengths, Operators) and lengths.dtype is not dtypes.int64:
            lengths = apply("Cast", lengths, dtypes.int64)
        return self._write("TensorArraySplitV3", value, lengths=lengths, name=name)

    def size(self, name: str = "TensorArraySizeV3") -> Tensor:
        """How many elements it has."""
        result: Tensor = self._call("TensorArraySizeV3", name=name)
        return result

    def close(self, name: str = "TensorArrayCloseV3") -> Operation:
        """An operation that forgets the elements before the step ends."""
        with self._beside():
            result: Operation = apply("TensorArrayCloseV3", self.handle, name=name)
        return result

    def identity(self) -> TensorArray:
        """The same array behind a new flow, which control dependencies can hold back."""
        return self.moved_to(self.handle, apply("Identity", self.flow))

    def _write(self, op: str, value: Any, **kwargs: Any) -> TensorArray:
        tensor = as_tensor(value, self.dtype)
        return self.moved_to(self.handle, self._call(op, value=tensor, **kwargs))

    def _call(self, op: str, **kwargs: Any) -> Any:
        with self._beside():
            return apply(op, handle=self.handle, flow_in=self.flow, **kwargs)

    def _beside(self) -> Any:
        """A block whose nodes ask for the device that the array is on."""
        scope = scope_in(self.handle.graph)
        return change_scope(scope, device=self.handle.device)

    def __repr__(self) -> str:
        return f"<TensorArray of {self.dtype}, written up to {self.flow.name}>"
