"""Variables as resources: handles, reads and assignments.

In:   handles, and values.
Out:  handles, the values that variables have now, shapes.
Not:  keeps nothing itself; the values live in the session's resources.

A value is replaced and never written into, so whoever has read it keeps what it has read.
"""

from __future__ import annotations

import dataclasses
import itertools
import operator
from collections.abc import Callable
from typing import Final

import numpy as np

from penstock.advice import InitializeIt
from penstock.core.dtypes import DType
from penstock.core.values import Array, Ref, ResourceHandle, Value, freeze, shape_of
from penstock.errors import FailedPreconditionError, InvalidArgumentError, NotFoundError
from penstock.kernels.api.attrs import Attrs
from penstock.kernels.api.context import OpKernelContext
from penstock.kernels.api.registry import Cost, Kernel, context_kernel, kernel
from penstock.kernels.api.signatures import type_text
from penstock.kernels.api.types import NUMBERS
from penstock.kernels.state.state_ops import counting_to
from penstock.kernels.state.variables import (
    RESOURCE_VARIABLE,
    find_variable,
    lookup_typed,
    lookup_variable,
    single_handle,
)
from penstock.kernels.values.arrays import shape_text
from penstock.state.resources import DEFAULT_CONTAINER

#: The ``shared_name`` by which TensorFlow asks for a variable that nobody else can name.
_ANONYMOUS: Final = "cd2c89b7-88b7-44c8-ad83-06c2a9158347"


@kernel("VarHandleOp", cost=Cost.CHEAP)
def make_var_handle(attrs: Attrs) -> Kernel:
    """The handle of a variable, which comes to be by its first assignment."""
    handle = _handle(attrs, attrs.str("container"), attrs.str("shared_name"), attrs.dtype("dtype"))
    if handle.name != _ANONYMOUS:
        return lambda: handle
    ids = itertools.count(1)

    def anonymous() -> ResourceHandle:
        unique = next(ids)
        name = f"{_ANONYMOUS}/{attrs.node_name}/{unique}"
        return dataclasses.replace(handle, name=name, unique=unique)

    return anonymous


@kernel("_VarHandlesOp", cost=Cost.CHEAP)
def make_var_handles(attrs: Attrs) -> Kernel:
    """The handles of several variables."""
    facts = zip(
        attrs.list("containers"), attrs.list("shared_names"), attrs.list("dtypes"), strict=True
    )
    handles = tuple(
        _handle(attrs, container.decode(), name.decode(), dtype) for container, name, dtype in facts
    )
    return lambda: handles


def _handle(attrs: Attrs, container: str, shared_name: str, dtype: DType) -> ResourceHandle:
    return ResourceHandle(
        attrs.device,
        container or DEFAULT_CONTAINER,
        shared_name or attrs.node_name,
        RESOURCE_VARIABLE,
        dtype=dtype,
    )


@context_kernel("VarIsInitializedOp", cost=Cost.CHEAP)
def make_var_is_initialized(_attrs: Attrs) -> Kernel:
    """Whether the variable has a value."""

    def var_is_initialized(context: OpKernelContext, handle: Value) -> Value:
        return np.bool_(find_variable(context, handle) is not None)

    return var_is_initialized


@context_kernel("ReadVariableOp", cost=Cost.CHEAP)
def make_read_variable(attrs: Attrs) -> Kernel:
    """The variable's value."""
    dtype = attrs.dtype("dtype")
    return lambda context, handle: _read(context, handle, dtype)


@context_kernel("_ReadVariablesOp", cost=Cost.CHEAP)
def make_read_variables(attrs: Attrs) -> Kernel:
    """The values of several variables."""
    types = attrs.list("dtypes")

    def read_variables(context: OpKernelContext, *handles: Value) -> tuple[Value, ...]:
        return tuple(
            _read(context, handle, dtype) for handle, dtype in zip(handles, types, strict=True)
        )

    return read_variables


def _read(context: OpKernelContext, handle: Value, dtype: DType) -> Value:
    variable = find_variable(context, handle)
    if variable is None:
        name = single_handle(handle).name
        raise FailedPreconditionError(
            f"Could not find variable {name}: it is uninitialized, or was deleted",
            next_step=InitializeIt("variable", name),
        )
    if variable.dtype is not dtype:
        raise InvalidArgumentError(
            "Trying to read variable with wrong dtype. "
            f"Expected {type_text(dtype)} got {type_text(variable.dtype)}"
        )
    return variable.value


@context_kernel("VariableShape", cost=Cost.CHEAP)
def make_variable_shape(attrs: Attrs) -> Kernel:
    """The shape of the variable's value."""
    dtype = attrs.dtype("out_type").numpy

    def variable_shape(context: OpKernelContext, handle: Value) -> Array:
        return np.array(shape_of(lookup_variable(context, handle).value), dtype)

    return variable_shape


@context_kernel("AssignVariableOp", cost=Cost.CHEAP)
def make_assign_variable(attrs: Attrs) -> Kernel:
    """Give the variable a value, perhaps its first one."""
    dtype, is_strict = attrs.dtype("dtype"), attrs.bool("validate_shape")

    def assign_variable(context: OpKernelContext, handle: Value, value: Value) -> None:
        variable = find_variable(context, handle)
        if variable is None:
            variable = _make(context, single_handle(handle), dtype, value)
        if variable.dtype is not dtype:
            raise InvalidArgumentError(
                "Trying to assign variable with wrong dtype. "
                f"Expected {type_text(variable.dtype)} got {type_text(dtype)}"
            )
        with variable.lock:
            if is_strict and shape_of(variable.value) != shape_of(value):
                raise InvalidArgumentError(
                    "Trying to assign to variable with tensor with wrong shape. Expected "
                    f"{shape_text(shape_of(variable.value))} got {shape_text(shape_of(value))}"
                )
            variable.assign(value)

    return assign_variable


def _make(context: OpKernelContext, handle: ResourceHandle, dtype: DType, value: Value) -> Ref:
    """The variable, which has a value when others first see it."""

    def new() -> Ref:
        made = Ref(handle.name, dtype)
        made.assign(value)
        return made

    found: Ref = context.resources.at(handle.device).lookup_or_create(
        handle.container, handle.name, handle.type_name, new
    )
    return found


_UPDATES: Final[dict[str, Callable[[Value, Value], Value]]] = {
    "AssignAddVariableOp": operator.add,
    "AssignSubVariableOp": operator.sub,
}


@context_kernel(*_UPDATES, types={"dtype": NUMBERS})
def make_update_variable(attrs: Attrs) -> Kernel:
    """Add a value of the same shape to the variable's, or subtract it."""
    combine, dtype = _UPDATES[attrs.op.name], attrs.dtype("dtype")

    def update_variable(context: OpKernelContext, handle: Value, value: Value) -> None:
        variable = lookup_typed(context, handle, dtype)
        with variable.lock:
            old = variable.value
            if old.shape != value.shape:
                raise InvalidArgumentError(
                    f"Cannot update variable with shape {shape_text(shape_of(old))} using a "
                    f"Tensor with shape {shape_text(shape_of(value))}, shapes must be equal."
                )
            variable.value = freeze(combine(old, value))

    return update_variable


@context_kernel("ResourceCountUpTo")
def make_resource_count_up_to(attrs: Attrs) -> Kernel:
    """The variable's value, which then is one more; an error at the limit."""
    count, dtype = counting_to(attrs.int("limit")), attrs.dtype("T")
    return lambda context, handle: count(lookup_typed(context, handle, dtype))


@context_kernel("DestroyResourceOp", cost=Cost.CHEAP)
def make_destroy_resource(attrs: Attrs) -> Kernel:
    """Drop the resource, of whatever kind, that a handle means."""
    is_lenient = attrs.bool("ignore_lookup_error")

    def destroy_resource(context: OpKernelContext, handle: Value) -> None:
        handle = single_handle(handle)
        try:
            resources = context.resources.at(handle.device)
            resources.delete(handle.container, handle.name, handle.type_name)
        except NotFoundError:
            if not is_lenient:
                raise

    return destroy_resource
