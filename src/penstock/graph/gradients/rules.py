"""What the gradient of each op is.

In:   a node's inputs, outputs, and the gradients of its outputs.
Out:  the gradients of its inputs; None for an input that has none.
Not:  goes through no graph.

The ops are those whose gradients TensorFlow's own SymbolicGradient knows.  Like there, only
the gradient of Mul conjugates complex numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeAlias

from penstock.dataclass import dataclass
from penstock.defs.attrs import Attr
from penstock.graph.gradients.values import NodeOutput

#: Gradients of all inputs.
Gradients: TypeAlias = "Sequence[NodeOutput | None]"


@dataclass(frozen=True, slots=True)
class At:
    """A node, as its rule sees it."""

    op: str
    x: list[NodeOutput]
    y: list[NodeOutput]
    #: Gradients of the outputs; zeros where nothing comes back.
    dy: list[NodeOutput]
    attrs: Mapping[str, Attr]

    def kept(self, *names: str) -> dict[str, Attr]:
        """Some of the node's attributes, for a node that goes backwards."""
        return {name: self.attrs[name] for name in names if name in self.attrs}


Rule: TypeAlias = Callable[[At], Gradients]

#: Rules by op; filled where they are defined, and never later.
RULES: Final[dict[str, Rule]] = {}


def rule(*ops: str) -> Callable[[Rule], Rule]:
    """Note a function as the rule of some ops."""

    def note(function: Rule) -> Rule:
        RULES.update(dict.fromkeys(ops, function))
        return function

    return note


def table(entries: dict[str, Any], made: Callable[[Any], Rule]) -> None:
    """Note the rules of alike ops, each made from a formula."""
    RULES.update({op: made(formula) for op, formula in entries.items()})


def shaped_back(at: At) -> Gradients:
    """The gradient in the shape of the first input; no other input has one."""
    return [at.dy[0].shaped(at.x[0].shape), *[None] * (len(at.x) - 1)]


def no_gradient(at: At) -> Gradients:
    """No input changes the output, or none can change smoothly."""
    return [None] * len(at.x)
