"""Optionals: several tensors as one variant, or none at all.

In:   tensors, or a variant.
Out:  a variant; the tensors in it; whether there are any.
Not:  iterates over nothing.
"""

from __future__ import annotations

from typing import ClassVar, Final

import numpy as np

from penstock.core.dtypes import DType
from penstock.core.shapes import TensorShape
from penstock.core.values import EncodedVariant, Value, shape_of
from penstock.errors import InvalidArgumentError
from penstock.kernels.api.attrs import Attrs
from penstock.kernels.api.registry import Cost, Kernel, kernel
from penstock.kernels.api.signatures import type_text
from penstock.kernels.values.arrays import shape_text
from penstock.kernels.values.variant_elements import plus, tensor_text, zeros_like
from penstock.kernels.values.variants import Variant


class Optional(Variant):
    """Some tensors and their types, or nothing."""

    __slots__ = ("types", "values")
    type_name: ClassVar[str] = "tensorflow::data::Optional"

    def __init__(self, values: tuple[Value, ...] | None, types: tuple[DType, ...] = ()) -> None:
        #: The tensors; None if there are none.
        self.values: Final = values
        self.types: Final = types

    def zeros_like(self) -> Variant:
        """Zeros like each tensor."""
        if self.values is None:
            return self
        pairs = zip(self.values, self.types, strict=True)
        return Optional(tuple(zeros_like(value, dtype) for value, dtype in pairs), self.types)

    def plus(self, other: Variant) -> Variant:
        """The sums, tensor by tensor."""
        assert isinstance(other, Optional)
        if self.values is None or other.values is None:
            if self.values is other.values:
                return self
            raise InvalidArgumentError(
                "Cannot add optionals because one has a value and the other doesn't."
            )
        if len(self.values) != len(other.values):
            raise InvalidArgumentError(
                "Cannot add optionals because they have different numbers of components "
                f"({len(self.values)} vs. {len(other.values)})."
            )
        if self.types != other.types:
            raise InvalidArgumentError(
                "Cannot add optionals because the types of their components differ "
                f"({self.types} vs. {other.types})."
            )
        return Optional(tuple(map(plus, self.values, other.values, self.types)), self.types)

    def encoded(self) -> EncodedVariant:
        """Whether there are any tensors, and the tensors."""
        if self.values is None:
            return EncodedVariant(self.type_name, b"\0")
        tensors = tuple(zip(self.types, self.values, strict=True))
        return EncodedVariant(self.type_name, b"\1", tensors)

    @classmethod
    def decoded(cls, encoded: EncodedVariant) -> Variant:
        """An optional of these tensors."""
        if not encoded.metadata:
            raise ValueError("nothing says whether it has values")
        if not encoded.metadata[0]:
            return cls(None)
        values = tuple(value for _, value in encoded.tensors)
        return cls(values, tuple(dtype for dtype, _ in encoded.tensors))

    def __str__(self) -> str:
        if self.values is None:
            return "OptionalVariant<None>"
        # Only the last tensor is shown, as TensorFlow does.
        shown = [tensor_text(*pair) for pair in zip(self.values, self.types, strict=True)][-1:]
        return f"OptionalVariant<values: ({''.join(shown)})>"


@kernel("OptionalFromValue", cost=Cost.CHEAP)
def make_optional_from_value(attrs: Attrs) -> Kernel:
    """An optional that holds the inputs."""
    types: tuple[DType, ...] = attrs.list("Toutput_types")
    return lambda *components: Optional(components, types)


@kernel("OptionalNone", cost=Cost.CHEAP)
def make_optional_none(_: Attrs) -> Kernel:
    """An optional that holds nothing."""
    none = Optional(None)
    return lambda: none


@kernel("OptionalHasValue", cost=Cost.CHEAP)
def make_optional_has_value(_: Attrs) -> Kernel:
    """Whether an optional holds anything."""
    return lambda optional: np.bool_(_optional_in(optional, "OptionalHasValue").values is not None)


@kernel("OptionalGetValue", cost=Cost.CHEAP)
def make_optional_get_value(attrs: Attrs) -> Kernel:
    """What an optional holds, which must be of the declared types and shapes."""
    types: tuple[DType, ...] = attrs.list("output_types")
    shapes: tuple[TensorShape, ...] = attrs.list("output_shapes")

    def get_value(optional: Value) -> tuple[Value, ...]:
        found = _optional_in(optional, "OptionalGetValue")
        if found.values is None:
            raise InvalidArgumentError("The given optional does not have a value.")
        if len(found.types) != len(types):
            raise InvalidArgumentError(
                f"The given optional has {len(found.types)} components, expected {len(types)}"
            )
        for at, (value, mine, dtype, shape) in enumerate(
            zip(found.values, found.types, types, shapes, strict=True)
        ):
            if mine is not dtype:
                raise _mismatch("type", at, type_text(dtype), type_text(mine))
            if not shape.accepts(shape_of(value)):
                raise _mismatch("shape", at, str(shape), shape_text(shape_of(value)))
        return found.values

    return get_value


def _optional_in(value: Value, op: str) -> Optional:
    if isinstance(value, np.ndarray):
        if value.ndim:
            raise InvalidArgumentError(
                f"Input to {op} must be a scalar tensor containing an OptionalVariant object."
            )
        value = value[()]
    if not isinstance(value, Optional):
        raise InvalidArgumentError(f"Input to {op} must be an OptionalVariant object.")
    return value


def _mismatch(what: str, at: int, expected: str, actual: str) -> InvalidArgumentError:
    return InvalidArgumentError(
        f"The given optional does not match the expected {what} for component {at}. "
        f"Expected: {expected}. Actual: {actual}."
    )
