"""Stacks: what a loop pushes, the loop of its gradient pops.

In:   a handle, and values.
Out:  values, last in first out.
Not:  keeps nothing itself; the stacks live in the step's container.
"""

from __future__ import annotations

from threading import Lock
from typing import Final

from penstock.core import dtypes
from penstock.core.dtypes import DType
from penstock.core.values import Ref, ResourceHandle, Value, shape_of
from penstock.errors import InternalError, InvalidArgumentError
from penstock.kernels.arrays import shape_text
from penstock.kernels.attrs import Attrs
from penstock.kernels.context import OpKernelContext
from penstock.kernels.registry import Cost, Kernel, context_kernel
from penstock.kernels.signatures import type_text
from penstock.kernels.strings import string_array

_KIND: Final = "Stack"
_CONTAINER: Final = "_stacks"


class Stack:
    """Values of one type, at most so many; safe to use from several threads."""

    def __init__(self, name: str, dtype: DType, max_size: int) -> None:
        self.name: Final = name
        self.dtype: Final = dtype
        #: Negative for a stack without bounds.
        self._max_size: Final = max_size
        #: Guards all that follows.  Nothing is called under it.
        self._lock = Lock()
        #: The last one is the next to be popped.
        self._values: list[Value] = []
        #: True for good once the graph closed the stack.
        self._is_closed = False

    def push(self, value: Value) -> None:
        """Put a value on top."""
        with self._lock:
            self._check_open()
            if 0 <= self._max_size <= len(self._values):
                raise InvalidArgumentError(
                    f"Stack[{self.name}] overflowed its max_size ({self._max_size})"
                )
            self._values.append(value)

    def pop(self) -> Value:
        """Take the value on top."""
        with self._lock:
            self._check_open()
            if not self._values:
                raise InvalidArgumentError(f"Stack[{self.name}] is empty when calling Pop().")
            return self._values.pop()

    def close(self) -> None:
        """Drop all values; nothing can be pushed or popped any more."""
        with self._lock:
            self._is_closed = True
            self._values = []

    def _check_open(self) -> None:
        if self._is_closed:
            raise InvalidArgumentError(f"Stack[{self.name}] has already been closed.")


def _stack(context: OpKernelContext, handle: Value) -> Stack:
    """The stack that a handle means: a resource, or a reference to two strings."""
    if isinstance(handle, ResourceHandle):
        name = handle.name
    else:
        text = handle.value if isinstance(handle, Ref) else handle
        if shape_of(text) != (2,):
            raise InvalidArgumentError(
                f"Stack handle must have two elements, but had shape: {shape_text(shape_of(text))}"
            )
        name = text[1].decode()
    found: Stack = context.step_container.lookup(name, _KIND)
    return found


@context_kernel("Stack", "StackV2", cost=Cost.CHEAP)
def make_stack(attrs: Attrs) -> Kernel:
    """A new, empty stack."""
    name, dtype = attrs.str("stack_name") or attrs.node_name, attrs.dtype("elem_type")
    has_resource = attrs.output_types[0] is dtypes.resource

    def stack(context: OpKernelContext, max_size: Value = -1) -> Value:
        if shape_of(max_size) != ():
            raise InvalidArgumentError(
                f"Stack size must be a scalar, but had shape: {shape_text(shape_of(max_size))}"
            )
        unique = f"{name}_{context.step_container.unique_id()}"
        context.step_container.create(unique, _KIND, Stack(unique, dtype, int(max_size)))
        if has_resource:
            return ResourceHandle(context.step.device, _CONTAINER, unique, _KIND, dtype=dtype)
        return Ref(
            unique, dtypes.string, string_array((_CONTAINER.encode(), unique.encode()), (2,))
        )

    return stack


@context_kernel("StackPush", "StackPushV2", cost=Cost.CHEAP)
def make_stack_push(attrs: Attrs) -> Kernel:
    """The value, which is on the stack now as well."""
    dtype = attrs.dtype("T")

    def push(context: OpKernelContext, handle: Value, value: Value) -> Value:
        stack = _stack(context, handle)
        if dtype is not stack.dtype:
            raise InvalidArgumentError(
                f"Must have type {stack.dtype.number} but got {dtype.number}"
            )
        stack.push(value)
        return value

    return push


@context_kernel("StackPop", "StackPopV2", cost=Cost.CHEAP)
def make_stack_pop(attrs: Attrs) -> Kernel:
    """The value that was pushed last."""
    dtype = attrs.dtype("elem_type")

    def pop(context: OpKernelContext, handle: Value) -> Value:
        stack = _stack(context, handle)
        if dtype is not stack.dtype:
            raise InternalError(
                f"Output 0 of type {type_text(stack.dtype)} does not match declared output "
                f"type {type_text(dtype)} for node {{{{node {context.node_name}}}}}"
            )
        return stack.pop()

    return pop


@context_kernel("StackClose", "StackCloseV2", cost=Cost.CHEAP)
def make_stack_close(_attrs: Attrs) -> Kernel:
    """Nothing; the stack's values are dropped."""
    return lambda context, handle: _stack(context, handle).close()
