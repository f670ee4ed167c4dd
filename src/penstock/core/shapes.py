"""Shapes of which some sizes, or the rank, may be unknown.

In:   sizes, with None (or -1) for a size that is not known.
Out:  ``TensorShape``, frozen; printing and compatibility as TensorFlow has them.
Not:  infers nothing.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, repr=False)
class TensorShape:
    """Sizes of a tensor; ``dims`` is None if not even the rank is known."""

    dims: tuple[int | None, ...] | None = None

    @classmethod
    def of(cls, sizes: Iterable[int | None] | None) -> TensorShape:
        """A shape of ``sizes``, in which None and negative numbers mean unknown."""
        if sizes is None:
            return UNKNOWN
        return cls(tuple(None if s is None or s < 0 else int(s) for s in sizes))

    @property
    def rank(self) -> int | None:
        """Number of dimensions, if known."""
        return None if self.dims is None else len(self.dims)

    @property
    def is_fully_defined(self) -> bool:
        """Whether every size is known."""
        return self.dims is not None and None not in self.dims

    def as_tuple(self) -> tuple[int, ...]:
        """The sizes; raises ValueError unless all are known."""
        if self.dims is None or None in self.dims:
            raise ValueError(f"shape {self} is not fully defined")
        return tuple(d for d in self.dims if d is not None)

    def num_elements(self) -> int:
        """Product of the sizes; raises ValueError unless all are known."""
        return math.prod(self.as_tuple())

    def accepts(self, shape: tuple[int, ...]) -> bool:
        """Whether a tensor of ``shape`` fits."""
        if self.dims is None or self.dims == shape:
            return True
        return len(self.dims) == len(shape) and all(
            mine is None or mine == size for mine, size in zip(self.dims, shape, strict=True)
        )

    def is_compatible_with(self, other: TensorShape) -> bool:
        """Whether some tensor could have both shapes."""
        if self.dims is None or other.dims is None:
            return True
        return len(self.dims) == len(other.dims) and all(
            a is None or b is None or a == b for a, b in zip(self.dims, other.dims, strict=True)
        )

    def merge_with(self, other: TensorShape) -> TensorShape:
        """What is known from both; raises ValueError if they contradict each other."""
        if not self.is_compatible_with(other):
            raise ValueError(f"shapes {self} and {other} are not compatible")
        if self.dims is None or other.dims is None:
            return other if self.dims is None else self
        return TensorShape(
            tuple(b if a is None else a for a, b in zip(self.dims, other.dims, strict=True))
        )

    def __str__(self) -> str:
        if self.dims is None:
            return "<unknown>"
        return "[" + ",".join("?" if d is None else str(d) for d in self.dims) + "]"

    def __repr__(self) -> str:
        return f"TensorShape({self})"


def type_text(dtype: object, shape: TensorShape) -> str:
    """``float32[?,8,8]``; without sizes if not even the rank is known."""
    return f"{dtype}{'' if shape.dims is None else shape}"


UNKNOWN = TensorShape(None)
SCALAR = TensorShape(())
