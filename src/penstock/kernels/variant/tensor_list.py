"""Lists of tensors, as variants.

In:   elements of one type, whose shapes fit the list's element shape.
Out:  new lists that share the elements; an element that nobody set reads as zeros.
Not:  changes no list; knows no ops.
"""

from __future__ import annotations

import enum
import functools
from collections.abc import Iterable, Sequence
from typing import ClassVar, Final

import numpy as np
from google.protobuf.message import DecodeError

from penstock.core import dtypes
from penstock.core.dtypes import DType
from penstock.core.shapes import UNKNOWN, TensorShape
from penstock.core.values import Array, EncodedVariant, Value, shape_of
from penstock.defs.schema import TensorShapeProto
from penstock.defs.tensors import shape_from_proto, shape_to_proto
from penstock.defs.varint import read_varint, write_varint
from penstock.errors import DataLossError, InvalidArgumentError
from penstock.kernels.api.signatures import type_text
from penstock.kernels.values.arrays import check_new, shape_text
from penstock.kernels.values.batches import stack
from penstock.kernels.values.variant_elements import plus, zero, zeros_like
from penstock.kernels.values.variants import Variant, variant_in
from penstock.kernels.variant.persistent_vector import PersistentVector

#: Negative numbers are written as their complement in so many.
_WORD: Final = 1 << 64


class Unset(enum.Enum):
    """The type of ``UNSET``."""

    UNSET = "unset"


#: Stands in a list where no element was set.
UNSET: Final = Unset.UNSET


class TensorList(Variant):
    """Elements by index, and what is known of all of them."""

    __slots__ = ("ahead", "dtype", "element_shape", "items", "max_size")
    #: What kernels made of elements, each its own, which it replaces as a whole; not there before.
    ahead: dict[object, object]
    type_name: ClassVar[str] = "tensorflow::TensorList"

    def __init__(
        self,
        dtype: DType,
        element_shape: TensorShape,
        items: PersistentVector[Value],
        max_size: int = -1,
    ) -> None:
        self.dtype: Final = dtype
        self.element_shape: Final = element_shape
        #: The elements; ``UNSET`` where there is none.
        self.items: Final = items
        #: How many elements may be pushed; negative if there is no limit.
        self.max_size: Final = max_size

    def with_items(self, items: PersistentVector[Value]) -> TensorList:
        """A list of other elements, and equal in all else."""
        return TensorList(self.dtype, self.element_shape, items, self.max_size)

    def listed(self) -> list[Value]:
        """All elements, if that many fit into memory."""
        check_new((self.items.size,), np.dtype(object))
        return list(self.items)

    def pushed(self, item: Value, where: str = "") -> TensorList:
        """A list with one more element; ``where`` says in errors which list it is."""
        shape, size = shape_of(item), self.items.size
        if shape != self.element_shape.dims and not self.element_shape.accepts(shape):
            raise InvalidArgumentError(
                f"Tried to append a tensor with incompatible shape to a list{where}. "
                f"Op element shape: {shape_text(shape)} list shape: {self.element_shape}"
            )
        if -1 < self.max_size <= size:
            raise InvalidArgumentError(
                f"Tried to push item into a full list{where} list size: {size} "
                f"max_num_elements: {self.max_size}"
            )
        return self.with_items(self.items.pushed(item))

    def check_type(self, dtype: DType, what: str = "types; op elements") -> None:
        """Raise InvalidArgumentError unless elements are of this type."""
        if dtype is not self.dtype:
            raise InvalidArgumentError(
                f"Invalid data {what} {type_text(dtype)} but list elements {type_text(self.dtype)}"
            )

    def zeros_like(self) -> Variant:
        """Zeros like each element; those that nobody set stay so."""
        zeros = (x if x is UNSET else zeros_like(x, self.dtype) for x in self.listed())
        return TensorList(self.dtype, self.element_shape, PersistentVector.of(zeros))

    def plus(self, other: Variant) -> Variant:
        """The sums, element by element; one that nobody set counts as zero."""
        assert isinstance(other, TensorList)
        dtype, sizes = self.dtype, (self.items.size, other.items.size)
        if dtype is not other.dtype:
            raise InvalidArgumentError(
                "Trying to add two lists of tensors of different dtypes. One is "
                f"{type_text(dtype)} and the other is {type_text(other.dtype)}"
            )
        if not self.element_shape.is_compatible_with(other.element_shape):
            raise InvalidArgumentError(
                "Trying to add two lists of tensors with incompatible element shapes. One is "
                f"{self.element_shape} and the other is {other.element_shape}"
            )
        if sizes[0] != sizes[1]:
            raise InvalidArgumentError(
                "Trying to add two lists of tensors with different lengths. One is "
                f"{sizes[0]} and the other is {sizes[1]}"
            )
        sums = (
            b if a is UNSET else a if b is UNSET else plus(a, b, dtype)
            for a, b in zip(self.listed(), other.items, strict=True)
        )
        shape = self.element_shape.merge_with(other.element_shape)
        return TensorList(dtype, shape, PersistentVector.of(sums))

    def encoded(self) -> EncodedVariant:
        """The elements that are set, and in the metadata all that they do not tell.

        As varints: how many elements are not set, their indices, the element type, and how many
        elements may be pushed; then the element shape as a message.
        """
        items = self.listed()
        unset = [at for at, item in enumerate(items) if item is UNSET]
        shape = TensorShapeProto()
        shape_to_proto(self.element_shape, shape)
        numbers = (len(unset), *unset, self.dtype.number, self.max_size % _WORD)
        return EncodedVariant(
            self.type_name,
            b"".join([*map(write_varint, numbers), shape.SerializeToString()]),
            tuple((self.dtype, item) for item in items if item is not UNSET),
        )

    @classmethod
    def decoded(cls, encoded: EncodedVariant) -> Variant:
        """The list that such metadata and elements describe."""
        unset, dtype, max_size, shape = _read_metadata(encoded.metadata)
        if any(found is not dtype for found, _ in encoded.tensors):
            raise ValueError(f"not all elements are of type {type_text(dtype)}")
        size = len(encoded.tensors) + len(unset)
        if len(set(unset)) < len(unset) or not set(unset) <= set(range(size)):
            raise ValueError(f"a list of {size} elements cannot lack those at {unset}")
        values, lacks = iter(encoded.tensors), set(unset)
        items = [UNSET if at in lacks else next(values)[1] for at in range(size)]
        return cls(dtype, shape, PersistentVector.of(items), max_size)


def _read_metadata(metadata: bytes) -> tuple[list[int], DType, int, TensorShape]:
    """Which elements are not set, the element type, the greatest size, and the element shape."""
    try:
        count, at = read_varint(metadata, 0)
        numbers: list[int] = []
        while len(numbers) < count + 2:
            number, at = read_varint(metadata, at)
            numbers.append(number)
        *unset, type_number, max_size = numbers
        shape = shape_from_proto(TensorShapeProto.FromString(metadata[at:]))
        dtype = dtypes.of_number(type_number)
    except (DataLossError, DecodeError, InvalidArgumentError) as cause:
        raise ValueError(f"the metadata is damaged: {cause}") from None
    return unset, dtype, max_size - _WORD if max_size >= _WORD // 2 else max_size, shape


def list_in(handle: Value, dtype: DType | None = None) -> TensorList:
    """The list behind a handle; raises unless its elements are of ``dtype``."""
    if type(handle) is TensorList and (dtype is None or dtype is handle.dtype):
        return handle
    if shape_of(handle):
        raise InvalidArgumentError(
            f"Input list must be a scalar saw: {shape_text(shape_of(handle))}"
        )
    found = variant_in(handle, TensorList, "Input handle is not a list")
    if dtype is not None:
        found.check_type(dtype)
    return found


# -- shapes of elements ----------------------------------------------------------------


def element_shape_in(dims: Value) -> TensorShape:
    """A shape as lists take it: a vector in which -1 is unknown, or the scalar -1."""
    if dims.ndim > 1:
        raise InvalidArgumentError(f"Shape must be at most rank 1 but is rank {dims.ndim}")
    listed = dims.tolist()
    return _shape_of_sizes(tuple(listed) if dims.ndim else listed)


@functools.lru_cache(maxsize=1024)
def _shape_of_sizes(sizes: tuple[int, ...] | int) -> TensorShape:
    if isinstance(sizes, int):
        if sizes != -1:
            raise InvalidArgumentError(
                "The only valid scalar shape tensor is the fully unknown shape specified as -1."
            )
        return UNKNOWN
    if sizes and min(sizes) < -1:
        raise InvalidArgumentError(f"Dimension {min(sizes)} must be >= -1")
    return TensorShape.of(sizes)


def merged(a: TensorShape, b: TensorShape) -> TensorShape:
    """What is known from both shapes."""
    if a == b:
        return a
    if a.is_compatible_with(b):
        return a.merge_with(b)
    if a.rank != b.rank:
        raise InvalidArgumentError(
            f"PartialTensorShape: Incompatible ranks during merge: {a.rank} vs. {b.rank}"
        )
    raise InvalidArgumentError(f"PartialTensorShape: Incompatible shapes during merge: {a} vs. {b}")


def merged_with_items(shape: TensorShape, items: Iterable[Value]) -> TensorShape:
    """What is known from a shape and from all elements that are set."""
    sizes = shape.dims
    for item in items:
        if item is not UNSET and (own := shape_of(item)) != sizes:
            shape = merged(shape, TensorShape(own))
            sizes = shape.dims
    return shape


def stacked(items: Sequence[Value], sizes: tuple[int, ...], dtype: DType) -> Array:
    """Elements of the same sizes along a new first axis; zeros where none was set."""
    check_new((len(items), *sizes), dtype.numpy)
    if not items:
        return np.asarray(zero((0, *sizes), dtype))
    if any(item is UNSET for item in items):
        zeros = zero(sizes, dtype)
        items = [zeros if item is UNSET else item for item in items]
    return stack(items, dtype)
