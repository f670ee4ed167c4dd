"""What programs are made of.

In:   nothing.
Out:  values, known or not; operations on them, in blocks; loops.
Not:  knows no op of TensorFlow, and no registers.
"""

from __future__ import annotations

from dataclasses import field
from math import prod
from typing import Any, Final, TypeAlias

import numpy as np

from penstock.core.values import Array
from penstock.dataclass import dataclass

#: The types that programs compute with.
NUMBERS: Final = frozenset(map(np.dtype, (np.bool_, np.int32, np.int64, np.float32, np.float64)))


class UnsupportedError(Exception):
    """A program would compute something else than the nodes do, or nobody knows how to write it."""


@dataclass(frozen=True, slots=True, eq=False)
class Known:
    """A value that is known while the program is written."""

    value: Array

    @property
    def dtype(self) -> np.dtype[Any]:
        """Its element type."""
        return self.value.dtype

    @property
    def shape(self) -> tuple[int, ...]:
        """Its sizes."""
        shape: tuple[int, ...] = self.value.shape
        return shape


@dataclass(frozen=True, slots=True, eq=False)
class Traced:
    """A value that the program computes."""

    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    #: In how many loops it is computed.
    level: int = 0

    @property
    def size(self) -> int:
        """How many elements it has."""
        return prod(self.shape)

    @property
    def nbytes(self) -> int:
        """How many bytes these take."""
        return self.size * self.dtype.itemsize


#: An array, in some way.
Operand: TypeAlias = Known | Traced


@dataclass(frozen=True, slots=True)
class Operation:
    """What is done with some values."""

    what: str
    #: None for what is only needed to hold.
    result: Traced | None
    operands: tuple[Traced, ...]
    numbers: tuple[int, ...] = ()


@dataclass(slots=True)
class Block:
    """Operations one after the other."""

    parts: list[Operation | Loop] = field(default_factory=list)
    #: About so many nanoseconds.
    cost: int = 0


@dataclass(frozen=True, slots=True)
class Loop:
    """What is repeated as long as a test holds; the variables are its results, too."""

    variables: list[Traced]
    starts: list[Traced]
    cond: Block
    test: Traced
    body: Block
    ends: list[Traced]
    #: What the variables are afterwards, for those who are outside.
    results: list[Traced]
    #: What people know it by.
    frame: str
