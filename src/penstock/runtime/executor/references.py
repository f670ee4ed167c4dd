"""References on their way into a kernel: read, or handed on if there is something behind.

In:   a node and its inputs.
Out:  the inputs with values where values are wanted.
Not:  takes no lock: the value behind a reference is replaced, never written into.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from penstock.core.values import Ref
from penstock.errors import FailedPreconditionError, InvalidArgumentError
from penstock.runtime.executor.graph_view import NodeItem


def prepare_refs(item: NodeItem, inputs: Sequence[Any]) -> list[Any]:
    """Read references where values are wanted; refuse uninitialised ones."""
    prepared = list(inputs)
    for slot, source in item.initialized_refs:
        ref = prepared[slot]
        if not isinstance(ref, Ref):
            raise InvalidArgumentError(f"{slot}-th input expects a ref type")
        if ref.value is None:
            raise _uninitialized(source)
    for slot, source in item.derefs:
        ref = prepared[slot]
        if isinstance(ref, Ref):
            if ref.value is None:
                raise _uninitialized(source)
            prepared[slot] = ref.value
    return prepared


def _uninitialized(source: str) -> FailedPreconditionError:
    return FailedPreconditionError(
        f"Attempting to use uninitialized value {source}",
        next_step="run the variable's initializer, or restore it, first",
    )
