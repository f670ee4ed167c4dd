"""Parts of tensors, as checkpoints name them.

In:   the text of a shape and a part (``4 10 0,2:-``), a TensorSliceProto, or its places.
Out:  ``TensorSlice``; the key under which a checkpoint keeps a part.
Not:  holds no elements.
"""

from __future__ import annotations

import operator
import re
from typing import Final

from penstock.dataclass import dataclass
from penstock.defs.schema import Message, TensorSliceProto
from penstock.errors import InternalError, InvalidArgumentError

#: Bytes that could be taken for the end of a text.
_ESCAPES: Final = {b"\0": b"\0\xff", b"\xff": b"\xff\0"}


@dataclass(frozen=True, slots=True)
class TensorSlice:
    """A box within a tensor: where it starts and how long it is, for each dimension."""

    starts: tuple[int, ...]
    lengths: tuple[int, ...]
    #: The dimensions that are meant as a whole, whatever their size.
    whole: frozenset[int] = frozenset()

    @property
    def places(self) -> tuple[slice, ...]:
        """The box as an index of numpy."""
        pairs = zip(self.starts, self.lengths, strict=True)
        return tuple(slice(start, start + length) for start, length in pairs)

    def __str__(self) -> str:
        pairs = enumerate(zip(self.starts, self.lengths, strict=True))
        return ":".join("-" if at in self.whole else f"{s},{n}" for at, (s, n) in pairs)

    def intersection(self, other: TensorSlice) -> TensorSlice:
        """What two boxes within one tensor have in common; it may be empty."""
        starts = tuple(map(max, self.starts, other.starts))
        ends = map(min, self._ends, other._ends)
        return TensorSlice(starts, tuple(max(0, e - s) for s, e in zip(starts, ends, strict=True)))

    def within(self, outer: TensorSlice) -> tuple[slice, ...]:
        """The box as an index of numpy into what stands in a box around it."""
        pairs = zip(self.starts, outer.starts, strict=True)
        starts = [own - around for own, around in pairs]
        return tuple(slice(s, s + n) for s, n in zip(starts, self.lengths, strict=True))

    @property
    def _ends(self) -> tuple[int, ...]:
        return tuple(map(operator.add, self.starts, self.lengths))

    def to_proto(self) -> Message:
        """The box as a message."""
        proto = TensorSliceProto()
        for at, (start, length) in enumerate(zip(self.starts, self.lengths, strict=True)):
            extent = proto.extent.add()
            if at not in self.whole:
                extent.start, extent.length = start, length
        return proto

    def key(self, name: bytes) -> bytes:
        """The key of this part of the tensor ``name``, in an encoding that sorts well."""
        parts = [_unsigned(0), _escaped(name), _unsigned(len(self.starts))]
        for at, (start, length) in enumerate(zip(self.starts, self.lengths, strict=True)):
            parts += _signed(start), _signed(-1 if at in self.whole else length)
        return b"".join(parts)


def from_proto(proto: Message, shape: tuple[int, ...]) -> TensorSlice:
    """The box that a message means; an extent without length is a whole dimension.

    Raises:
        InvalidArgumentError: the box is not within a tensor of this shape.

    """
    if len(proto.extent) != len(shape):
        raise InvalidArgumentError(f"A slice of {len(proto.extent)} extents does not fit {shape}")
    whole = frozenset(
        at for at, extent in enumerate(proto.extent) if not extent.WhichOneof("has_length_hack")
    )
    pairs = enumerate(zip(proto.extent, shape, strict=True))
    box = TensorSlice(
        tuple(extent.start for extent in proto.extent),
        tuple(size if at in whole else extent.length for at, (extent, size) in pairs),
        whole,
    )
    ends = map(operator.add, box.starts, box.lengths)
    if min((0, *box.starts, *box.lengths)) < 0 or any(map(operator.gt, ends, shape)):
        raise InvalidArgumentError(f"The slice {box} is not within {shape}")
    return box


def all_of(shape: tuple[int, ...]) -> TensorSlice:
    """The box that is a whole tensor."""
    return TensorSlice((0,) * len(shape), shape, frozenset(range(len(shape))))


def parse_shape_and_slice(text: str) -> tuple[tuple[int, ...], TensorSlice | None]:
    """Sizes of a whole tensor, and the part that is meant; None for all of it.

    Raises:
        InvalidArgumentError: the text does not say that.
        InternalError: the part is not within the tensor.

    """
    *sizes, part = text.split()
    if not sizes:
        raise InvalidArgumentError(
            f"Need least two elements in shape_and_slice specification: {text}"
        )
    if not all(map(_is_number, sizes)):
        raise InvalidArgumentError(f"Non numerical dimension in shape_and_slice: {text}")
    shape = tuple(map(int, sizes))
    extents = part.split(":")
    if len(extents) != len(shape):
        raise InvalidArgumentError(
            f"Mismatching ranks: the shape has {len(shape)} dimensions and the slice "
            f"{len(extents)}: {text}"
        )
    if all(extent == "-" for extent in extents):
        return shape, None
    pairs = [_extent(extent, size) for extent, size in zip(extents, shape, strict=True)]
    whole = frozenset(at for at, extent in enumerate(extents) if extent == "-")
    starts, lengths = zip(*pairs, strict=True)
    box = TensorSlice(starts, lengths, whole)
    for at, ((start, length), size) in enumerate(zip(pairs, shape, strict=True)):
        if start + length > size:
            shown = ",".join(map(str, shape))
            raise InternalError(
                f"Extent in dimension {at} out of bounds: shape = [{shown}], slice = {part}"
            )
    return shape, box


def _extent(text: str, size: int) -> tuple[int, int]:
    if text == "-":
        return 0, size
    start, _, length = text.partition(",")
    if not _is_number(start) or not _is_number(length) or int(length) == 0:
        raise InvalidArgumentError(
            f"Expected a pair of numbers or '-' but got '{text}': string = {text}"
        )
    return int(start), int(length)


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdecimal()


# -- an encoding of texts and numbers whose bytes sort as they do ------------------------


def _unsigned(number: int) -> bytes:
    """The number of bytes, and the bytes from the highest down."""
    size = (number.bit_length() + 7) // 8
    return bytes([size]) + number.to_bytes(size, "big")


def _escaped(text: bytes) -> bytes:
    """The text with an end that occurs in no text."""
    return re.sub(rb"[\0\xff]", lambda found: _ESCAPES[found[0]], text) + b"\0\1"


def _signed(number: int) -> bytes:
    """As many leading ones as there are bytes, a zero, and the number."""
    size = 1
    while not -(1 << (7 * size - 1)) <= number < 1 << (7 * size - 1):
        size += 1
    ones = ((1 << size) - 1) << (7 * size)
    plain = number & ((1 << (8 * size)) - 1)
    return (plain ^ ones).to_bytes(size, "big")
