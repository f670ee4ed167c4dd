"""Why nodes of a partition are left to the executor.

In:   a graph, what was compiled of it, and what was found on the way.
Out:  reasons, by node.
Not:  decides nothing, and is not asked by anything that runs.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from penstock.dataclass import dataclass
from penstock.graph.graph import Graph, Node
from penstock.graph.roles import Role
from penstock.kernels.api.bound_kernel import BoundKernel
from penstock.kernels.api.registry import Calling
from penstock.runtime.compiler.loops import LoopTree
from penstock.runtime.compiler.region import Region

#: Nodes that are nobody's work: what comes in and goes out, and constants.
_NO_WORK: Final = frozenset({Role.ARG, Role.RETVAL, Role.CONSTANT})
#: Of a Switch that can be an "if".
_BRANCHES: Final = 2


@dataclass(frozen=True, slots=True)
class Explained:
    """What became of a partition, and why."""

    regions: tuple[Region, ...]
    #: Why nodes are left to the executor.
    reasons: Mapping[Node, str]


def reasons_for(
    graph: Graph, rest: Graph, kernels: Mapping[Node, BoundKernel], levels: LoopTree
) -> dict[Node, str]:
    """Why the nodes of ``graph`` that are still in ``rest`` are there."""
    return {
        node: _reason(node, kernels.get(node), levels)
        for node in graph
        if node.name in rest and node.role not in _NO_WORK
    }


def _reason(node: Node, kernel: BoundKernel | None, levels: LoopTree) -> str:
    if levels.refusal:
        return levels.refusal
    if kernel is None:
        return "it cannot be reached, and never runs"
    if kernel.calling is Calling.ASYNC:
        return "it may wait for something else"
    if node.role in {Role.SEND, Role.RECV}:
        return "it hands values to another device"
    if node.role is Role.SWITCH and len(node.output_types) != _BRANCHES:
        return "it is a Switch of many branches"
    frame = levels.frame_of(node)
    if frame in levels.reasons:
        return f"the loop '{frame.name}' is irregular: {levels.reasons[frame]}"
    if levels.is_odd(frame):
        return "a loop around it is irregular"
    if node.role is Role.MERGE:
        return "several of its inputs may be live, or they do not come together"
    return "alone between others, it is not worth a function"
