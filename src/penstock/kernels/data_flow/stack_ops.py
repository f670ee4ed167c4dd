"""Stacks: what a loop pushes, the loop of its gradient pops.

In:   a handle, and values.
Out:  values, last in first out.
Not:  keeps nothing itself; the stacks live in the step's container.
"""

from __future__ import annotations

from dataclasses import field
from threading import Lock
from typing import Final

from penstock.core import dtypes
from penstock.core.dtypes import DType
from penstock.core.values import Ref, ResourceHandle, Value, shape_of
from penstock.dataclass import dataclass
from penstock.errors import InternalError, InvalidArgumentError
from penstock.kernels.api.attrs import Attrs
from penstock.kernels.api.context import OpKernelContext
from penstock.kernels.api.registry import Cost, Kernel, context_kernel
from penstock.kernels.api.signatures import type_text
from penstock.kernels.values.arrays import shape_text
from penstock.kernels.values.strings import string_array
from penstock.state.resources import StepContainer

_KIND: Final = "Stack"
_CONTAINER: Final = "_stacks"


class Stack:
    """Values of one type, at most so many; safe to use from several threads.

    A list's own operations are atomic, so only a stack with bounds needs its lock.
    """

    __slots__ = ("_lock", "_max_size", "_values", "dtype", "name")

    def __init__(self, name: str, dtype: DType, max_size: int) -> None:
        self.name: Final = name
        self.dtype: Final = dtype
        #: Negative for a stack without bounds.
        self._max_size: Final = max_size
        #: Held while the size is compared with the bounds.  Nothing is called under it.
        self._lock = Lock()
        #: The last one is the next to be popped; None for good once the graph closed the stack.
        self._values: list[Value] | None = []

    def push(self, value: Value) -> None:
        """Put a value on top."""
        values = self._values
        if values is None:
            raise self._is_closed()
        if self._max_size < 0:
            values.append(value)
            return
        with self._lock:
            if len(values) >= self._max_size:
                raise InvalidArgumentError(
                    f"Stack[{self.name}] overflowed its max_size ({self._max_size})"
                )
            values.append(value)

    def pop(self) -> Value:
        """Take the value on top."""
        values = self._values
        if values is None:
            raise self._is_closed()
        try:
            return values.pop()
        except IndexError:
            raise InvalidArgumentError(f"Stack[{self.name}] is empty when calling Pop().") from None

    def close(self) -> None:
        """Drop all values; nothing can be pushed or popped any more."""
        self._values = None

    def _is_closed(self) -> InvalidArgumentError:
        return InvalidArgumentError(f"Stack[{self.name}] has already been closed.")


@dataclass(frozen=True, slots=True, eq=False)
class StackHandle(ResourceHandle):
    """A handle that knows its stack; only in the step that made it, like all that is there."""

    home: StepContainer | None = field(default=None, repr=False)
    stack: Stack | None = field(default=None, repr=False)


def _stack(context: OpKernelContext, handle: Value) -> Stack:
    """The stack that a handle means: a resource, or a reference to two strings."""
    if type(handle) is StackHandle and handle.home is context.step.state.container:
        return handle.stack  # type: ignore[return-value]  # it came with the home
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
        home = context.step_container
        unique = f"{name}_{home.unique_id()}"
        made = Stack(unique, dtype, int(max_size))
        home.create(unique, _KIND, made)
        if has_resource:
            return StackHandle(
                attrs.device, _CONTAINER, unique, _KIND, dtype=dtype, home=home, stack=made
            )
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
