"""Ops that hand on a value: constants, identities, placeholders and shape assertions.

In:   nothing, or a value.
Out:  the value of an attribute, or the input as it is.
Not:  copies nothing, since no kernel ever writes into an input; feeds no placeholder.
"""

from __future__ import annotations

from typing import NoReturn

from penstock.advice import FeedIt
from penstock.core import dtypes
from penstock.core.dtypes import DType
from penstock.core.shapes import TensorShape
from penstock.core.values import Value, freeze, has_dtype, shape_of
from penstock.errors import InvalidArgumentError
from penstock.kernels.api.attrs import Attrs
from penstock.kernels.api.forwarding import forward
from penstock.kernels.api.registry import Cost, Kernel, kernel
from penstock.kernels.api.signatures import type_text
from penstock.kernels.api.traits import FORWARDS
from penstock.kernels.api.types import PLAIN
from penstock.kernels.values.arrays import shape_text
from penstock.kernels.values.variants import decoded


@kernel("Const", "HostConst", cost=Cost.CHEAP)
def make_const(attrs: Attrs) -> Kernel:
    """The tensor in the attribute ``value``, the same read-only one each time."""
    value, dtype = attrs.tensor("value"), attrs.dtype("dtype")
    value = freeze(decoded(value) if dtype is dtypes.variant else value)
    if not has_dtype(value, dtype):
        raise InvalidArgumentError(
            f"Type mismatch between value ({type_text(attrs.values['value'].dtype)}) "
            f"and dtype ({type_text(dtype)})"
        )
    return lambda: value


@kernel(
    "Copy",
    "CopyHost",
    "DeepCopy",
    "GuaranteeConst",
    "Identity",
    "PlaceholderWithDefault",
    "PreventGradient",
    "StopGradient",
    "_EagerConst",
    cost=Cost.CHEAP,
    traits=FORWARDS,
)
def make_identity(_attrs: Attrs) -> Kernel:
    """The input.  A PlaceholderWithDefault is one while it is not fed, whatever its shape."""
    return forward


@kernel("Snapshot", types={"T": PLAIN}, cost=Cost.CHEAP, traits=FORWARDS)
def make_snapshot(_attrs: Attrs) -> Kernel:
    """The input, which cannot change after it was handed on."""
    return forward


@kernel("IdentityN", cost=Cost.CHEAP)
def make_identity_n(_attrs: Attrs) -> Kernel:
    """All inputs."""
    return _identity_n


def _identity_n(*values: Value) -> tuple[Value, ...]:
    return values


@kernel("EnsureShape", cost=Cost.CHEAP)
def make_ensure_shape(attrs: Attrs) -> Kernel:
    """The input; an error if its shape is not what the attribute says."""
    expected = attrs.shape("shape")

    def ensure_shape(value: Value) -> Value:
        if not expected.accepts(shape_of(value)):
            raise InvalidArgumentError(
                f"Shape of tensor {attrs.node_name} {shape_text(shape_of(value))} "
                f"is not compatible with expected shape {expected}."
            )
        return value

    return ensure_shape


@kernel("Placeholder", "PlaceholderV2", cost=Cost.CHEAP)
def make_placeholder(attrs: Attrs) -> Kernel:
    """An error: whoever runs a placeholder forgot to feed it."""
    message = _unfed(attrs.node_name, attrs.dtype("dtype"), attrs.shape("shape"))
    advice = FeedIt(f"{attrs.node_name}:0")

    def placeholder() -> NoReturn:
        raise InvalidArgumentError(message, next_step=advice)

    return placeholder


def _unfed(name: str, dtype: DType, shape: TensorShape) -> str:
    spelling = type_text(dtype)
    text = f"You must feed a value for placeholder tensor '{name}' with dtype {spelling}"
    # Before version 24 of the graph format, rank 0 meant that the shape is not known.
    return f"{text} and shape {shape}" if shape.dims else text
