"""What a variant edge carries: objects that know their own zeros and sums.

In:   objects of one's own making, or what arrives in their place: other ones, or messages.
Out:  the object, or an error that names what arrived instead.
Not:  registers no kernel; objects are never changed once they are on an edge.

An object that can be written into a message says so in ``encoded``, and its class reads it
back in ``decoded``.  A class is known by its name once its module is imported; what stands in
a constant may be the first that anybody hears of it, and so ``_HOMES`` says where to look.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from dataclasses import replace
from typing import ClassVar, Final, TypeVar

import numpy as np

from penstock.core import dtypes
from penstock.core.forks import importing
from penstock.core.values import EncodedVariant, Value, as_value
from penstock.errors import InternalError, InvalidArgumentError


class Variant:
    """Base of all objects that kernels put on variant edges."""

    __slots__ = ()
    #: What messages call the class.
    type_name: ClassVar[str] = ""

    def __init_subclass__(cls) -> None:
        if "type_name" in vars(cls):
            _CLASSES[cls.type_name] = cls

    def zeros_like(self) -> Variant:
        """Zeros of the same structure."""
        raise InternalError(
            "No unary variant unary_op function found for op ZEROS_LIKE "
            f"Variant type_name: {self.type_name} for device type: CPU"
        )

    def plus(self, other: Variant) -> Variant:  # noqa: ARG002
        """The sum of this and another object of the same class."""
        raise InternalError(
            "No unary variant binary_op function found for op ADD "
            f"Variant type_name: '{self.type_name}' for device type: CPU"
        )

    def encoded(self) -> EncodedVariant:
        """What a message holds of it; no more than its name if the object cannot travel."""
        return EncodedVariant(self.type_name)

    @classmethod
    def decoded(cls, encoded: EncodedVariant) -> Variant:  # noqa: ARG003
        """The object that was encoded, with all objects in its tensors decoded already.

        Raises:
            ValueError: there cannot be such an object.

        """
        raise ValueError("such objects cannot be read from messages")

    @property
    def described(self) -> str:
        """The object with its class, for people."""
        return f"Variant<type: {self.type_name} value: {self}>"

    def __str__(self) -> str:
        return self.type_name.rpartition("::")[2]

    def __repr__(self) -> str:
        return f"<{self}>"


#: Classes by name.
_CLASSES: Final[dict[str, type[Variant]]] = {}
#: The modules of classes that may stand in messages.
_HOMES: Final[Mapping[str, str]] = {
    **dict.fromkeys(
        ("bool", "double", "float", "int", "tensorflow::Tensor"),
        "penstock.kernels.values.variant_elements",
    ),
    "RaggedTensorVariant": "penstock.kernels.ragged.ragged_variant_ops",
    "penstock::IteratorState": "penstock.kernels.datasets.iterator_state",
    "penstock::LostDataset": "penstock.kernels.datasets.dataset",
    "penstock::Window": "penstock.kernels.datasets.batch_ops",
    "tensorflow::CSRSparseMatrix": "penstock.kernels.sparse.sparse_rows",
    "tensorflow::TensorList": "penstock.kernels.variant.tensor_list",
    "tensorflow::TensorMap": "penstock.kernels.variant.map_ops",
    "tensorflow::data::Optional": "penstock.kernels.variant.optional_ops",
}


class _Empty(Variant):
    """No object at all."""

    __slots__ = ()
    type_name: ClassVar[str] = ""

    @classmethod
    def decoded(cls, encoded: EncodedVariant) -> Variant:
        """The only one."""
        if encoded != EncodedVariant():
            raise ValueError("nothing is known of an object without a type")
        return EMPTY

    def __str__(self) -> str:
        return "[empty]"


EMPTY: Final = _Empty()
_V = TypeVar("_V", bound=Variant)


def variant_in(value: Value, kind: type[_V], what: str) -> _V:
    """The object that ``value`` is; ``what`` says in errors where and what it should be."""
    if isinstance(value, np.ndarray):
        value = as_value(value)
    if isinstance(value, kind):
        return value
    if isinstance(value, Variant):
        value = value.described
    raise InvalidArgumentError(f"{what}. Saw: '{value}'")


def add_variants(a: Variant, b: Variant) -> Variant:
    """The sum of two objects of one class."""
    if type(a) is not type(b):
        raise InternalError(
            "BinaryOpVariants: Variants a and b have different type ids.  Type names: "
            f"'{a.type_name}' vs. '{b.type_name}'"
        )
    return a.plus(b)


# -- from messages -----------------------------------------------------------------------


def decoded(value: Value) -> Value:
    """The objects of a variant tensor that was read from a message.

    Raises:
        InvalidArgumentError: nobody knows the type of an object, or it cannot be such an object.

    """
    if isinstance(value, EncodedVariant):
        return _object_of(value)
    if not isinstance(value, np.ndarray):
        return value
    objects = np.empty(value.shape, object)
    objects.reshape(-1)[:] = [decoded(item) for item in value.flat]
    return objects


def _object_of(encoded: EncodedVariant) -> Variant:
    tensors = ((d, decoded(v) if d is dtypes.variant else v) for d, v in encoded.tensors)
    try:
        return _class_of(encoded.type_name).decoded(replace(encoded, tensors=tuple(tensors)))
    except ValueError as cause:
        raise InvalidArgumentError(
            "Cannot parse tensor from proto: Could not decode variant with type_name: "
            f'"{encoded.type_name}": {cause}'
        ) from None


def _class_of(type_name: str) -> type[Variant]:
    if type_name not in _CLASSES and type_name in _HOMES:
        with importing:
            importlib.import_module(_HOMES[type_name])
    if type_name not in _CLASSES:
        raise ValueError("no objects of this type can be read")
    return _CLASSES[type_name]
