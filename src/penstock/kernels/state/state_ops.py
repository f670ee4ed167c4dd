"""Variables of the TF1 years: references to a place, and ops that change what is there.

In:   references (``Ref`` objects), and values.
Out:  the same references; all who hold one see the new value when they next look.
Not:  keeps nothing itself: variables live in the session's resources, temporary ones in the
      step's container.

A value is replaced and never written into, so whoever has read it keeps what it has read.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Final

import numpy as np

from penstock.core.shapes import TensorShape
from penstock.core.values import Ref, Value, as_value, freeze, shape_of
from penstock.errors import InternalError, InvalidArgumentError, OutOfRangeError
from penstock.kernels.api.attrs import Attrs
from penstock.kernels.api.context import OpKernelContext
from penstock.kernels.api.registry import Cost, Kernel, context_kernel, kernel
from penstock.kernels.api.signatures import type_text
from penstock.kernels.api.traits import READS_FRAME
from penstock.kernels.api.types import NUMBERS
from penstock.kernels.state.variables import (
    REFERENCE_VARIABLE,
    ReferenceVariable,
    resource_name,
)
from penstock.kernels.values.arrays import shape_text, zeros

_TEMPORARY: Final = "TmpVar"


@context_kernel("Variable", "VariableV2", cost=Cost.CHEAP)
def make_variable(attrs: Attrs) -> Kernel:
    """A reference to the variable of the node's name, or of its ``shared_name``."""
    container, name = resource_name(attrs)
    dtype, shape = attrs.dtype("dtype"), _static_shape(attrs.shape("shape"))

    def new() -> ReferenceVariable:
        return ReferenceVariable(name, dtype, shape)

    def variable(context: OpKernelContext) -> Ref:
        found: Ref = context.resources.lookup_or_create(container, name, REFERENCE_VARIABLE, new)
        if found.dtype is not dtype:
            raise InternalError(
                f"Output 0 of type {type_text(found.dtype.ref)} does not match declared output "
                f"type {type_text(dtype.ref)}: another node shares the variable {name}"
            )
        return found

    return variable


def _static_shape(shape: TensorShape) -> tuple[int, ...]:
    """The sizes; an unknown rank counts as rank 0, as in TensorFlow."""
    if shape.dims is None:
        return ()
    if not shape.is_fully_defined:
        raise InvalidArgumentError(f"Shape {shape} is not fully defined")
    return shape.as_tuple()


@kernel("IsVariableInitialized", cost=Cost.CHEAP)
def make_is_variable_initialized(_attrs: Attrs) -> Kernel:
    """Whether the variable has a value."""
    return lambda ref: np.bool_(ref.value is not None)


@kernel("Assign", cost=Cost.CHEAP)
def make_assign(attrs: Attrs) -> Kernel:
    """Give the variable a value, by default only one of the shape that it has."""

    def assign(ref: Ref, value: Value) -> Ref:
        with ref.lock:
            ref.assign(value)
        return ref

    def assign_same_shape(ref: Ref, value: Value) -> Ref:
        with ref.lock:
            expected, given = _shape_in(ref), shape_of(value)
            if expected is not None and expected != given:
                raise InvalidArgumentError(
                    "Assign requires shapes of both tensors to match. lhs shape= "
                    f"{shape_text(expected)} rhs shape= {shape_text(given)}"
                )
            ref.assign(value)
        return ref

    return assign_same_shape if attrs.bool("validate_shape") else assign


def _shape_in(ref: Ref) -> tuple[int, ...] | None:
    """The shape that a variable has, or is to have; None if it may have any."""
    if ref.value is not None:
        return shape_of(ref.value)
    return ref.shape if isinstance(ref, ReferenceVariable) else None


_UPDATES: Final[dict[str, Callable[[Value, Value], Value]]] = {
    "AssignAdd": operator.add,
    "AssignSub": operator.sub,
}


@kernel(*_UPDATES, types={"T": NUMBERS})
def make_update(attrs: Attrs) -> Kernel:
    """Add a value of the same shape to the variable's, or subtract it."""
    combine = _UPDATES[attrs.op.name]

    def update(ref: Ref, value: Value) -> Ref:
        with ref.lock:
            old = ref.value
            if shape_of(old) != shape_of(value):
                raise InvalidArgumentError(
                    "Parameters and update must be the same size, got shapes "
                    f"{shape_text(shape_of(old))} and {shape_text(shape_of(value))}"
                )
            ref.value = freeze(combine(old, value))
        return ref

    return update


@kernel("CountUpTo")
def make_count_up_to(attrs: Attrs) -> Kernel:
    """The variable's value, which then is one more; an error at the limit."""
    return counting_to(attrs.int("limit"))


def counting_to(limit: int) -> Callable[[Ref], Value]:
    """A function that counts a variable up, and returns what it was before."""

    def count(variable: Ref) -> Value:
        with variable.lock:
            number = variable.value
            if shape_of(number) != ():
                raise InvalidArgumentError(f"input is not a scalar: {shape_text(shape_of(number))}")
            if number >= limit:
                raise OutOfRangeError(f"Reached limit of {limit}")
            variable.value = as_value(number + number.dtype.type(1))
        return number

    return count


@context_kernel("TemporaryVariable", traits=READS_FRAME)
def make_temporary_variable(attrs: Attrs) -> Kernel:
    """A reference to a new variable that lives in this step; it starts with zeros."""
    name = attrs.str("var_name") or attrs.node_name
    dtype, shape = attrs.dtype("dtype"), _static_shape(attrs.shape("shape"))

    def temporary_variable(context: OpKernelContext) -> Ref:
        made = Ref(name, dtype, freeze(zeros(shape, dtype)))
        context.step_container.create(_unique_name(context, name), _TEMPORARY, made)
        return made

    return temporary_variable


@context_kernel("DestroyTemporaryVariable", cost=Cost.CHEAP, traits=READS_FRAME)
def make_destroy_temporary_variable(attrs: Attrs) -> Kernel:
    """The temporary variable's last value."""
    name = attrs.str("var_name")

    def destroy(context: OpKernelContext, ref: Ref) -> Value:
        context.step_container.delete(_unique_name(context, name), _TEMPORARY)
        return ref.value

    return destroy


def _unique_name(context: OpKernelContext, name: str) -> str:
    """Each device, and each iteration of a loop, has temporary variables of its own."""
    return f"{context.step.device}/{name}/frame:{context.frame.id}/iter:{context.iteration}"
