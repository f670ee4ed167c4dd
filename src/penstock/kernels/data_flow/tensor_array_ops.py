"""Arrays of tensors that loops write and read.

In:   a handle, indices, elements, and a flow: a number that only orders the accesses.
Out:  elements, and the flow for whoever comes next.
Not:  keeps nothing itself; the arrays live in the step's container.  What is done with many
      elements at a time stands in ``tensor_array_batch_ops``.

A handle is a resource (V3), a vector of two strings (V2), or a reference to one (V1); the
three generations differ in nothing else.
"""

from __future__ import annotations

from dataclasses import field
from operator import index
from typing import Any, Final

import numpy as np

from penstock.core import dtypes
from penstock.core.dtypes import DType
from penstock.core.values import Ref, ResourceHandle, Value, shape_of
from penstock.dataclass import dataclass
from penstock.errors import InvalidArgumentError
from penstock.kernels.api.attrs import Attrs
from penstock.kernels.api.context import OpKernelContext
from penstock.kernels.api.registry import Cost, Kernel, context_kernel
from penstock.kernels.api.types import OBJECTS, PLAIN
from penstock.kernels.data_flow.tensor_array import TensorArray, TensorArrayOptions
from penstock.kernels.values.arrays import shape_text
from penstock.kernels.values.strings import string_array
from penstock.state.resources import StepContainer

_KIND: Final = "TensorArray"
_CONTAINER: Final = "_tensor_arrays"
_GRADIENTS: Final = "_tensor_array_grads"
_FLOW: Final = np.float32(0)
#: Types of elements, as TensorFlow's kernels have them.
ELEMENTS: Final = PLAIN | OBJECTS


@dataclass(frozen=True, slots=True, eq=False)
class ArrayHandle(ResourceHandle):
    """A handle that knows its array; only in the step that made it, like all that is there."""

    home: StepContainer | None = field(default=None, repr=False)
    array: TensorArray | None = field(default=None, repr=False)


def array_of(context: OpKernelContext, handle: Value) -> TensorArray:
    """The array that a handle of any generation means."""
    if type(handle) is ArrayHandle and handle.home is context.step.state.container:
        return handle.array  # type: ignore[return-value]  # it came with the home
    found: TensorArray = context.step_container.lookup(_name_in(handle)[1], _KIND)
    return found


def _name_in(handle: Value) -> tuple[str, str]:
    """Container and name that a handle of any generation holds."""
    if isinstance(handle, ResourceHandle):
        return handle.container, handle.name
    if isinstance(handle, Ref):
        handle = handle.value
    if shape_of(handle) != (2,):
        raise InvalidArgumentError(
            f"Tensor array handle must be 2-element vector, but had shape: "
            f"{shape_text(shape_of(handle))}"
        )
    container, name = handle.tolist()
    return container.decode(), name.decode()


def _handle(
    context: OpKernelContext, output_type: DType, container: str, array: TensorArray
) -> Value:
    """A handle of the generation that the op's output type tells."""
    if output_type is dtypes.resource:
        return ArrayHandle(
            context.step.device,
            container,
            array.name,
            _KIND,
            dtype=array.dtype,
            home=context.step_container,
            array=array,
        )
    text = string_array((container.encode(), array.name.encode()), (2,))
    return Ref(array.name, dtypes.string, text) if output_type.is_ref else text


def _scalar(value: Value, what: str) -> int:
    if shape_of(value) != ():
        raise InvalidArgumentError(
            f"{what} must be scalar, but had shape: {shape_text(shape_of(value))}"
        )
    return int(value)


# -- making and closing ----------------------------------------------------------------


@context_kernel("TensorArray", "TensorArrayV2", "TensorArrayV3", cost=Cost.CHEAP)
def make_tensor_array(attrs: Attrs) -> Kernel:
    """A new array of unwritten elements; a run of the node in a loop makes one each time."""
    name = attrs.str("tensor_array_name") or attrs.node_name
    dtype, element_shape = attrs.dtype("dtype"), attrs.shape("element_shape")
    has_flow, output_type = len(attrs.output_types) == 2, attrs.output_types[0]
    options = TensorArrayOptions(
        dynamic_size=attrs.bool("dynamic_size"),
        clear_after_read=attrs.bool("clear_after_read"),
        identical_element_shapes=has_flow and attrs.bool("identical_element_shapes"),
    )

    def tensor_array(context: OpKernelContext, size: Value) -> Any:
        container = context.step_container
        unique = f"{name}_{container.unique_id()}"
        count = _scalar(size, "TensorArray size")
        array = TensorArray(unique, dtype, count, element_shape, options)
        container.create(unique, _KIND, array)
        handle = _handle(context, output_type, _CONTAINER, array)
        return (handle, _FLOW) if has_flow else handle

    return tensor_array


@context_kernel(
    "TensorArrayGrad",
    "TensorArrayGradV2",
    "TensorArrayGradV3",
    "TensorArrayGradWithShape",
    cost=Cost.CHEAP,
)
def make_tensor_array_grad(attrs: Attrs) -> Kernel:
    """The array of gradients of an array; one for each source, however often it is asked for."""
    source = attrs.str("source")
    has_flow, output_type = len(attrs.output_types) == 2, attrs.output_types[0]

    def tensor_array_grad(
        context: OpKernelContext, handle: Value, _flow: Value, *prepended: Value
    ) -> Any:
        container, name = _name_in(handle)
        if container != _CONTAINER:
            raise InvalidArgumentError(f"Wrong input container. {container}{name}")
        array = array_of(context, handle)
        array.check_open()
        sizes = prepended[0].ravel().tolist() if prepended else ()
        unique = f"{name}@{source}"
        gradients = context.step_container.lookup_or_create(
            unique, _KIND, lambda: array.make_gradients(unique, sizes)
        )
        made = _handle(context, output_type, _GRADIENTS, gradients)
        return (made, _FLOW) if has_flow else made

    return tensor_array_grad


@context_kernel("TensorArrayClose", "TensorArrayCloseV2", "TensorArrayCloseV3", cost=Cost.CHEAP)
def make_tensor_array_close(_attrs: Attrs) -> Kernel:
    """Nothing; the array's elements are dropped."""
    return lambda context, handle: array_of(context, handle).close()


@context_kernel("TensorArraySize", "TensorArraySizeV2", "TensorArraySizeV3", cost=Cost.CHEAP)
def make_tensor_array_size(_attrs: Attrs) -> Kernel:
    """Number of elements."""
    return lambda context, handle, _flow: np.int32(array_of(context, handle).size)


# -- single elements --------------------------------------------------------------------


@context_kernel(
    "TensorArrayWrite",
    "TensorArrayWriteV2",
    "TensorArrayWriteV3",
    cost=Cost.CHEAP,
    types={"T": ELEMENTS},
)
def make_tensor_array_write(attrs: Attrs) -> Kernel:
    """The flow; the array has one element more."""
    dtype = attrs.dtype("T")

    def write(
        context: OpKernelContext, handle: Value, at: Value, value: Value, flow: Value
    ) -> Value:
        # Spelled out, since a call of ``array_of`` is a sixth of the time.
        if type(handle) is ArrayHandle and handle.home is context.step.state.container:
            array: Any = handle.array
        else:
            array = array_of(context, handle)
        if array.dtype is not dtype:
            array.check_type(dtype, "is trying to write")
        try:
            number = index(at)
        except TypeError:
            number = _scalar(at, "TensorArray index")
        array.write(number, value)
        return flow

    return write


@context_kernel(
    "TensorArrayRead",
    "TensorArrayReadV2",
    "TensorArrayReadV3",
    cost=Cost.CHEAP,
    types={"dtype": ELEMENTS},
)
def make_tensor_array_read(attrs: Attrs) -> Kernel:
    """One element."""
    dtype = attrs.dtype("dtype")

    def read(context: OpKernelContext, handle: Value, at: Value, _flow: Value) -> Value:
        # Spelled out, since a call of ``array_of`` is a sixth of the time.
        if type(handle) is ArrayHandle and handle.home is context.step.state.container:
            array: Any = handle.array
        else:
            array = array_of(context, handle)
        if array.dtype is not dtype:
            array.check_type(dtype, "requested")
        try:
            number = index(at)
        except TypeError:
            number = _scalar(at, "TensorArray index")
        return array.read(number)

    return read
