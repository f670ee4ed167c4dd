"""Rules: how an op of TensorFlow is written as operations of a program.

In:   a node, and its inputs: arrays whose types and sizes are known, lists, arrays of tensors.
Out:  its outputs; UnsupportedError where the program would give something else.
Not:  writes no program's ends.

Rules are asked when shapes are known; what a node says itself (types, attributes) decides before
whether it may go into a region at all.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeAlias

import numpy as np

from penstock.core import dtypes
from penstock.core.dtypes import DType
from penstock.core.values import Array
from penstock.dataclass import dataclass
from penstock.kernels.native.emitter import Emitter
from penstock.kernels.native.parts import Known, Operand, UnsupportedError

#: The types that arrays in programs have.
TYPES: Final = frozenset({dtypes.bool_, dtypes.int32, dtypes.int64, dtypes.float32, dtypes.float64})
FLOATS: Final = frozenset({dtypes.float32, dtypes.float64})
INTEGERS: Final = frozenset({dtypes.int32, dtypes.int64})


@dataclass(frozen=True, slots=True)
class Written:
    """A node that is being written."""

    emitter: Emitter
    op: str
    attrs: Mapping[str, Any]
    #: Arrays; and what stands for lists and arrays of tensors, which only their rules look at.
    inputs: Sequence[Any]
    types: Sequence[DType]
    #: The node's own; what goes on from step to step is known by it.
    name: str = ""

    def known(self, slot: int) -> Array:
        """The value of an input; raises UnsupportedError if only a step knows it."""
        found = self.inputs[slot]
        if not isinstance(found, Known):
            raise UnsupportedError
        return found.value

    def array(self, slot: int) -> Operand:
        """An input that is an array."""
        found: Operand = self.inputs[slot]
        return found

    def need(self, condition: object) -> None:
        """Raise UnsupportedError unless something is as the rule wants it."""
        if not condition:
            raise UnsupportedError


#: Writes a node; returns its outputs.
Rule: TypeAlias = Callable[[Written], Any]
#: Tells from a node's attributes, and the types of its inputs and outputs, whether it may go.
Admits: TypeAlias = Callable[[Mapping[str, Any], Sequence[DType], Sequence[DType]], bool]

#: Rules by the names of ops; each returns one output, or a list of all.
RULES: Final[dict[str, Rule]] = {}
_ADMITS: Final[dict[str, Admits]] = {}


def rule(*ops: str, admits: Admits | None = None) -> Callable[[Rule], Rule]:
    """Register how some ops are written, and which of their nodes; without saying so, all."""

    def register(write: Rule) -> Rule:
        for op in ops:
            RULES[op] = write
            if admits is not None:
                _ADMITS[op] = admits
        return write

    return register


def of_types(types: frozenset[DType]) -> Admits:
    """Nodes whose first input is of some types."""
    return lambda _attrs, inputs, _outputs: inputs[0] in types


def may_be_written(
    op: str, attrs: Mapping[str, Any], inputs: Sequence[DType], outputs: Sequence[DType]
) -> bool:
    """Whether there is a rule for a node, as far as can be told before shapes are known."""
    if op not in RULES:
        return False
    admits = _ADMITS.get(op)
    return admits is None or admits(attrs, inputs, outputs)


def broadcast_shape(*shapes: Sequence[int]) -> tuple[int, ...]:
    """The shape that some shapes are broadcast to."""
    try:
        return np.broadcast_shapes(*map(tuple, shapes))
    except ValueError:
        raise UnsupportedError from None
