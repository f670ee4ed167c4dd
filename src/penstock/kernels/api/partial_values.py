"""Values of which some elements are unknown.

In:   an array, and which of its elements are known.
Out:  ``PartialValue``: shapes, sizes and whole values that are read out of one.
Not:  computes nothing.

Graphs compute with shapes: ``Reshape(x, Pack([Shape(y)[0], 64]))``.  Such a vector is known in
parts as long as the shape of ``y`` is.
"""

from __future__ import annotations

import numpy as np

from penstock.core.shapes import UNKNOWN, TensorShape
from penstock.core.values import Array, Value
from penstock.dataclass import dataclass


@dataclass(frozen=True, slots=True, eq=False)
class PartialValue:
    """A value; where ``known`` is false, the element is anything.  None: all are known."""

    value: Value
    known: Array | None = None

    @classmethod
    def of(cls, value: Value, known: Array) -> PartialValue:
        """A value of which some elements may be unknown."""
        return cls(value, None if known.all() else known)

    @classmethod
    def of_shape(cls, shape: TensorShape, dtype: np.dtype[np.generic]) -> PartialValue | None:
        """The sizes of a shape as a vector; None if not even their number is known."""
        if shape.dims is None:
            return None
        known = np.array([size is not None for size in shape.dims], bool)
        sizes = np.array([size or 0 for size in shape.dims], dtype)
        return cls.of(sizes, known)

    @property
    def size(self) -> int:
        """How many elements there are."""
        return int(np.size(self.value))

    def numbers(self) -> list[int | None]:
        """All elements as whole numbers, each None if it is unknown."""
        numbers: list[int | None] = [int(item) for item in np.ravel(self.value)]
        if self.known is not None:
            for place in np.flatnonzero(~self.known):
                numbers[place] = None
        return numbers

    def sizes(self) -> TensorShape:
        """The vector as a shape, in which -1 and what is unknown are unknown sizes.

        A single number that is -1, or unknown, means a shape of unknown rank.
        """
        if np.ndim(self.value) == 0:
            number = self.number()
            return UNKNOWN if number is None or number < 0 else TensorShape((number,))
        return TensorShape.of(self.numbers())

    def number(self) -> int | None:
        """The only element as a whole number; None if it is unknown."""
        return self.numbers()[0] if self.size == 1 else None
