"""References on their way into a kernel: read, or handed on if there is something behind.

In:   a node and its inputs.
Out:  the inputs with values where values are wanted.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from penstock.runtime.executor.graph_view import NodeItem
from penstock.runtime.references import initialized, read


def prepare_refs(item: NodeItem, inputs: Sequence[Any]) -> list[Any]:
    """Read references where values are wanted; refuse uninitialised ones."""
    prepared = list(inputs)
    for slot, source in item.initialized_refs:
        initialized(prepared[slot], source, slot)
    for slot, source in item.derefs:
        prepared[slot] = read(prepared[slot], source)
    return prepared
