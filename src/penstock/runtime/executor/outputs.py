"""What a kernel returned, as the outputs of its node.

In:   a node and the result of its kernel.
Out:  a sequence with one output per slot; an error if that is not what the op declares.
Not:  delivers nothing; that is the propagator's.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from penstock.core.values import DEAD, Value, describe, has_dtype
from penstock.errors import InternalError
from penstock.runtime.executor.graph_view import NodeItem


def as_outputs(item: NodeItem, result: Any) -> Sequence[Value]:
    """What a kernel returned, as a sequence of outputs."""
    if item.has_bare_output:
        return (result,)
    return () if result is None else result


def check_outputs(item: NodeItem, outputs: Sequence[Value]) -> None:
    """Compare outputs with what the node declares."""
    declared = item.output_types
    if not isinstance(outputs, (tuple, list)):
        raise InternalError(
            f"The kernel of {{{{node {item.name}}}}} returned {type(outputs).__name__}, "
            f"not a tuple of {len(declared)} outputs"
        )
    if len(outputs) != len(declared):
        missing = f"Missing {len(outputs)}-th" if len(outputs) < len(declared) else "Superfluous"
        raise InternalError(
            f"{missing} output from {{{{node {item.name}}}}}: the kernel returned "
            f"{len(outputs)} outputs, the op has {len(declared)}"
        )
    for slot, (value, dtype) in enumerate(zip(outputs, declared, strict=True)):
        if value is DEAD and item.may_omit_outputs:
            continue
        if value is None or value is DEAD:
            raise InternalError(f"Missing {slot}-th output from {{{{node {item.name}}}}}")
        if not has_dtype(value, dtype):
            raise InternalError(
                f"Output {slot} of type {describe(value)} does not match declared output "
                f"type {dtype} for node {{{{node {item.name}}}}}"
            )
