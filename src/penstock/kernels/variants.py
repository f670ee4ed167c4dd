"""What a variant edge carries: objects that know their own zeros and sums.

In:   objects of one's own making, or what arrives in their place.
Out:  the object, or an error that names what arrived instead.
Not:  registers no kernel; objects are never changed once they are on an edge.
"""

from __future__ import annotations

from typing import ClassVar, Final, TypeVar

import numpy as np

from penstock.core import dtypes
from penstock.core.dtypes import DType
from penstock.core.values import Value, as_value, shape_of
from penstock.errors import InternalError, InvalidArgumentError
from penstock.kernels.arrays import full, shape_text, zeros
from penstock.kernels.signatures import type_text
from penstock.kernels.types import NUMBERS, PLAIN


class Variant:
    """Base of all objects that kernels put on variant edges."""

    __slots__ = ()
    #: What messages call the class.
    type_name: ClassVar[str] = ""

    def zeros_like(self) -> Variant:
        """Zeros of the same structure."""
        raise InternalError(
            "No unary variant unary_op function found for op ZEROS_LIKE "
            f"Variant type_name: {self.type_name} for device type: CPU"
        )

    def plus(self, other: Variant) -> Variant:
        """The sum of this and another object of the same class."""
        raise InternalError(
            f"No variant binary_op function found for op ADD Variant type_name: '{self.type_name}' "
            f"for device type: CPU, and {other} cannot be added"
        )

    def __str__(self) -> str:
        return self.type_name.rpartition("::")[2]

    def __repr__(self) -> str:
        return f"<{self}>"


class _Null(Variant):
    """Stands where a variant tensor has no object yet."""

    __slots__ = ()

    def zeros_like(self) -> Variant:
        return self


NULL: Final = _Null()
_V = TypeVar("_V", bound=Variant)


def variant_in(value: Value, kind: type[_V], what: str) -> _V:
    """The object that ``value`` is; ``what`` says in errors where and what it should be."""
    if isinstance(value, np.ndarray):
        value = as_value(value)
    if isinstance(value, kind):
        return value
    if isinstance(value, Variant):
        value = f"Variant<type: {value.type_name} value: {value}>"
    raise InvalidArgumentError(f"{what}. Saw: '{value}'")


def zero(shape: tuple[int, ...], dtype: DType) -> Value:
    """Zeros, empty strings, or variants without objects."""
    if dtype is dtypes.variant:
        return as_value(full(shape, NULL, dtype.numpy))
    return as_value(zeros(shape, dtype))


def zeros_like(value: Value, dtype: DType) -> Value:
    """Zeros like one element of a variant's object."""
    if isinstance(value, Variant):
        return value.zeros_like()
    if dtype not in PLAIN:
        raise InvalidArgumentError(
            f"Trying to compute zeros_like for unsupported dtype {type_text(dtype)}"
        )
    return zero(shape_of(value), dtype)


def plus(a: Value, b: Value, dtype: DType) -> Value:
    """The sum of two elements of variants' objects."""
    if shape_of(a) != shape_of(b):
        raise InvalidArgumentError(
            "Trying to add two tensors with incompatible element shapes. One is "
            f"{shape_text(shape_of(a))} and the other is {shape_text(shape_of(b))}"
        )
    if isinstance(a, Variant) and isinstance(b, Variant):
        return add_variants(a, b)
    if dtype not in NUMBERS:
        raise InvalidArgumentError(f"Trying to add unsupported dtype {dtype.number}")
    return a + b


def add_variants(a: Variant, b: Variant) -> Variant:
    """The sum of two objects of one class."""
    if type(a) is not type(b):
        raise InternalError(
            "BinaryOpVariants: Variants a and b have different type ids.  Type names: "
            f"'{a.type_name}' vs. '{b.type_name}'"
        )
    return a.plus(b)
