"""Elements of the objects in variants: their zeros and sums; numbers and tensors as objects.

In:   elements of lists, maps and their like, of any type.
Out:  elements of the same type.
Not:  registers no kernel; knows no object that holds several elements.
"""

from __future__ import annotations

from typing import Any, ClassVar, Final

import numpy as np

from penstock.core import dtypes
from penstock.core.dtypes import DType
from penstock.core.values import EncodedVariant, Value, as_value, shape_of
from penstock.errors import InvalidArgumentError
from penstock.kernels.api.signatures import type_text
from penstock.kernels.api.types import NUMBERS, PLAIN
from penstock.kernels.values.arrays import full, shape_text, zeros
from penstock.kernels.values.printing import summarize
from penstock.kernels.values.variants import Variant, add_variants


def zero(shape: tuple[int, ...], dtype: DType) -> Value:
    """Zeros, empty strings, or variants that hold an integer zero."""
    if dtype is dtypes.variant:
        return as_value(full(shape, Int(np.int32(0)), dtype.numpy))
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


# -- objects of one element ----------------------------------------------------------------


class Number(Variant):
    """A single number, as one of C's types."""

    __slots__ = ("value",)
    #: The number's numpy type.
    kind: ClassVar[Any]

    def __init__(self, value: Any) -> None:
        self.value: Final = value

    def zeros_like(self) -> Variant:
        """Zero."""
        return type(self)(self.kind(0))

    def plus(self, other: Variant) -> Variant:
        """The sum; of two truths, whether either is."""
        assert isinstance(other, Number)
        return type(self)(self.value + other.value)

    def encoded(self) -> EncodedVariant:
        """The bytes of the number."""
        return EncodedVariant(self.type_name, np.array(self.value, self.kind).tobytes())

    @classmethod
    def decoded(cls, encoded: EncodedVariant) -> Variant:
        """The number of these bytes."""
        dtype = np.dtype(cls.kind)
        if len(encoded.metadata) != dtype.itemsize:
            raise ValueError(f"{len(encoded.metadata)} bytes are no {cls.type_name}")
        return cls(np.frombuffer(encoded.metadata, dtype)[0])

    def __str__(self) -> str:
        return f"{self.value:g}"


class Int(Number):
    """An integer of 32 bits."""

    __slots__ = ()
    type_name: ClassVar[str] = "int"
    kind: ClassVar[Any] = np.int32

    def __str__(self) -> str:
        return str(self.value)


class Float(Number):
    """A number of single precision."""

    __slots__ = ()
    type_name: ClassVar[str] = "float"
    kind: ClassVar[Any] = np.float32


class Double(Number):
    """A number of double precision."""

    __slots__ = ()
    type_name: ClassVar[str] = "double"
    kind: ClassVar[Any] = np.float64


class Bool(Number):
    """A truth."""

    __slots__ = ()
    type_name: ClassVar[str] = "bool"
    kind: ClassVar[Any] = np.bool_


class Tensor(Variant):
    """A tensor of any type."""

    __slots__ = ("dtype", "value")
    type_name: ClassVar[str] = "tensorflow::Tensor"

    def __init__(self, value: Value, dtype: DType) -> None:
        self.value: Final = value
        self.dtype: Final = dtype

    def encoded(self) -> EncodedVariant:
        """The tensor."""
        return EncodedVariant(self.type_name, tensors=((self.dtype, self.value),))

    @classmethod
    def decoded(cls, encoded: EncodedVariant) -> Variant:
        """The first tensor."""
        if not encoded.tensors:
            raise ValueError("there is no tensor")
        dtype, value = encoded.tensors[0]
        return cls(value, dtype)

    def __str__(self) -> str:
        return tensor_text(self.value, self.dtype)


def tensor_text(value: Value, dtype: DType) -> str:
    """A tensor as messages describe it: type, shape and the first elements."""
    return (
        f"Tensor<type: {type_text(dtype)} shape: {shape_text(shape_of(value))} "
        f"values: {summarize(value, 3)}>"
    )
