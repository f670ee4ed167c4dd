"""What a kernel returned, as the outputs of its node.

In:   what a node declares, and the result of its kernel.
Out:  a sequence with one output per slot; an error if that is not what the op declares.
Not:  delivers nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from penstock.core.dtypes import DType
from penstock.core.values import DEAD, Value, describe, has_dtype
from penstock.errors import InternalError
from penstock.graph.graph import Node


class Declares(Protocol):
    """What is asked of a node, whichever tier it is seen from."""

    @property
    def name(self) -> str:
        """The node's name."""

    @property
    def output_types(self) -> tuple[DType, ...]:
        """The declared type of each output."""


class HasForm(Protocol):
    """How a kernel's result is to be taken."""

    @property
    def has_bare_output(self) -> bool:
        """Whether the result is the single output itself."""


def as_outputs(item: HasForm, result: Any) -> Sequence[Value]:
    """What a kernel returned, as a sequence of outputs."""
    if item.has_bare_output:
        return (result,)
    return () if result is None else result


def check_outputs(node: Declares, outputs: Sequence[Value], *, may_omit: bool = False) -> None:
    """Compare outputs with what the node declares; Switch and Recv may omit some."""
    declared = node.output_types
    if not isinstance(outputs, (tuple, list)):
        raise InternalError(
            f"The kernel of {{{{node {node.name}}}}} returned {type(outputs).__name__}, "
            f"not a tuple of {len(declared)} outputs"
        )
    if len(outputs) != len(declared):
        missing = f"Missing {len(outputs)}-th" if len(outputs) < len(declared) else "Superfluous"
        raise InternalError(
            f"{missing} output from {{{{node {node.name}}}}}: the kernel returned "
            f"{len(outputs)} outputs, the op has {len(declared)}"
        )
    for slot, (value, dtype) in enumerate(zip(outputs, declared, strict=True)):
        if value is DEAD and may_omit:
            continue
        if value is None or value is DEAD:
            raise InternalError(f"Missing {slot}-th output from {{{{node {node.name}}}}}")
        if not has_dtype(value, dtype):
            raise InternalError(
                f"Output {slot} of type {describe(value)} does not match declared output "
                f"type {dtype} for node {{{{node {node.name}}}}}"
            )


def checked_kernel(node: Node, compute: Callable[..., Any]) -> Callable[..., Any]:
    """The kernel of a node, with its outputs compared with what the node declares."""
    op = node.op

    def checked(*args: Any) -> Any:
        result = compute(*args)
        check_outputs(node, as_outputs(op, result))
        return result

    return checked
