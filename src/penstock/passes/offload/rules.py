"""Rules: how an op of TensorFlow is written with operators of ONNX.

In:   a node, its inputs as tensors of the model, its constants as values.
Out:  tensors for its outputs; UnsupportedError where ONNX would compute something else.
Not:  writes no model's ends, and knows no region.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeAlias

from penstock.core.dtypes import DType
from penstock.core.shapes import TensorShape
from penstock.core.values import Value
from penstock.dataclass import dataclass
from penstock.passes.offload.model_writer import ModelWriter, Tensor, UnsupportedError


@dataclass(frozen=True, slots=True)
class Written:
    """A node that is being written."""

    writer: ModelWriter
    op: str
    attrs: Mapping[str, Any]
    inputs: Sequence[Tensor]
    #: Values of inputs that are constants; None for others.
    values: Sequence[Value | None]
    #: Whether inputs stay the same from step to step: constants, and variables that nobody changes.
    fixed: Sequence[bool]
    #: What is known of the shapes of outputs, and their types.
    shapes: Sequence[TensorShape]
    types: Sequence[DType]
    #: Whether an absolute error of its output, a last bit of 1, is all that anybody notices.
    is_gate: Callable[[], bool]

    def value(self, slot: int) -> Any:
        """The value of an input; raises UnsupportedError if it is no constant."""
        found = self.values[slot]
        if found is None:
            raise UnsupportedError
        return found

    def need(self, condition: object) -> None:
        """Raise UnsupportedError unless something is as the rule wants it."""
        if not condition:
            raise UnsupportedError

    def plain(self, slot: int) -> Tensor:
        """An input in TensorFlow's layout."""
        return self.writer.plain(self.inputs[slot])

    def make(self, op_type: str, inputs: Sequence[Tensor], **attributes: Any) -> Tensor:
        """The first output, in TensorFlow's layout."""
        return self.writer.op(op_type, inputs, self.shapes[0], self.types[0], **attributes)

    def make_turned(self, op_type: str, inputs: Sequence[Tensor], **attributes: Any) -> Tensor:
        """The first output, with its channels first."""
        return self.writer.op(
            op_type, inputs, self.shapes[0], self.types[0], is_turned=True, **attributes
        )


#: Writes a node; returns the first output, or all.
Rule: TypeAlias = Callable[[Written], "Tensor | Sequence[Tensor]"]

#: Rules by the names of ops.
RULES: Final[dict[str, Rule]] = {}


def rule(*ops: str) -> Callable[[Rule], Rule]:
    """Register how some ops are written."""

    def register(write: Rule) -> Rule:
        for op in ops:
            RULES[op] = write
        return write

    return register
