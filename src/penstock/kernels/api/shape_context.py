"""What a shape rule may know of its node: attributes, and what is known of the inputs.

In:   the attributes of a node, the shapes of its inputs, and somebody to ask for more.
Out:  typed access for rules.
Not:  registers no rule; knows no graph.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from typing import Final, NamedTuple, Protocol

import numpy as np

from penstock.core.dtypes import DType
from penstock.core.shapes import UNKNOWN, TensorShape
from penstock.core.values import Value
from penstock.dataclass import dataclass
from penstock.errors import InvalidArgumentError
from penstock.kernels.api.attrs import Attrs
from penstock.kernels.api.partial_shapes import MAX_RANK, Dim, with_rank
from penstock.kernels.api.partial_values import PartialValue

#: Lists of more numbers are not made before they are there.
_MAX_NUMBERS: Final = 1 << 20


class Held(NamedTuple):
    """What lies behind a handle: a variable's value, or one of a list's elements."""

    shape: TensorShape
    dtype: DType | None = None


class InputFacts(Protocol):
    """What is known of a node's inputs besides their shapes; asked only by rules that need it."""

    def value(self, slot: int) -> PartialValue | None:
        """What is known of an input's value."""

    def held(self, slot: int) -> Held | None:
        """What lies behind an input that is a handle or a list."""


@dataclass(frozen=True, slots=True)
class ShapeContext:
    """The facts about one node from which its outputs' shapes follow."""

    attrs: Attrs
    inputs: Sequence[TensorShape]
    facts: InputFacts
    #: What lies behind the outputs that are handles, by slot; rules put it here.
    holds: dict[int, Held] = field(default_factory=dict)

    def input(self, slot: int) -> TensorShape:
        """The shape of an input; counted from the end if negative."""
        return self.inputs[slot]

    def value(self, slot: int) -> Value | None:
        """The value of an input; None unless all of it is known."""
        known = self.facts.value(slot % len(self.inputs))
        return known.value if known is not None and known.known is None else None

    def number(self, slot: int) -> Dim:
        """The value of a scalar input, if it is known."""
        known = self.facts.value(slot % len(self.inputs))
        return None if known is None else known.number()

    def count(self, slot: int) -> Dim:
        """The value of a scalar input that is a size; None also if it is no size."""
        number = self.number(slot)
        return None if number is None or number < 0 else number

    def numbers(self, slot: int) -> list[int] | None:
        """The value of an input of whole numbers as a list; None unless all are known."""
        value = self.value(slot)
        return None if value is None else [int(item) for item in np.ravel(value)]

    def sizes(self, slot: int) -> TensorShape:
        """The shape that a vector of sizes stands for; of its rank, if that alone is known.

        A single -1 stands for an unknown rank.
        """
        slot %= len(self.inputs)
        known = self.facts.value(slot)
        if self.inputs[slot].rank != 0 or known is None or known.number() != -1:
            with_rank(self.inputs[slot], 1)
        if known is not None:
            return known.sizes()
        dims = self.inputs[slot].dims
        if dims is None or len(dims) != 1 or dims[0] is None:
            return UNKNOWN
        return TensorShape((None,) * dims[0]) if dims[0] <= MAX_RANK else UNKNOWN

    def some_numbers(self, slot: int, count: int) -> list[Dim]:
        """``count`` whole numbers, which an input's value is, each None if it is unknown.

        Raises:
            InvalidArgumentError: there are so many that they are no list of sizes.

        """
        if count > _MAX_NUMBERS:
            raise InvalidArgumentError(f"Input {slot} cannot have {count} elements")
        known = self.facts.value(slot % len(self.inputs))
        return known.numbers() if known is not None and known.size == count else [None] * count

    def held(self, slot: int) -> Held | None:
        """What lies behind an input that is a handle or a list."""
        return self.facts.held(slot)
