"""What a graph has that cannot run here.

In:   a GraphDef.
Out:  ops, how many nodes have them, and why they cannot run.
Not:  prints nothing; makes no kernel.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from penstock.catalogue.registry import find_op
from penstock.core.dtypes import DType
from penstock.defs.schema import Message
from penstock.errors import OpError
from penstock.graph.import_graph_def import graph_from_def
from penstock.kernels.registry import find_kernel, kernels_of

_UNKNOWN = "not an op that is known here"
_NO_KERNEL = "no kernel"


def missing_in(graph_def: Message) -> Counter[tuple[str, str]]:
    """Nodes that cannot run, function bodies included, by op and reason."""
    functions = {function.signature.name for function in graph_def.library.function}
    ops = [node.op for node in _nodes(graph_def) if node.op not in functions]
    found = Counter({(op, why): n for op, n in Counter(ops).items() if (why := _reason(op))})
    if not any(why == _UNKNOWN for _, why in found):
        found.update(_wrong_types(graph_def))
    return found


def _nodes(graph_def: Message) -> Iterator[Any]:
    yield from graph_def.node
    for function in graph_def.library.function:
        yield from function.node_def


def _reason(op: str) -> str:
    if find_op(op) is None:
        return _UNKNOWN
    return "" if kernels_of(op) else _NO_KERNEL


def _wrong_types(graph_def: Message) -> Iterator[tuple[str, str]]:
    """Nodes outside functions whose op has kernels, but none for their types."""
    try:
        graph = graph_from_def(graph_def)
    except OpError:  # `penstock show` says what is wrong with it
        return
    for node in graph:
        if kernels_of(node.op.name) and find_kernel(node.op.name, "CPU", node.attrs) is None:
            types = [f"{k}={v}" for k, v in sorted(node.attrs.items()) if isinstance(v, DType)]
            yield node.op.name, f"no kernel for {', '.join(types)}"
