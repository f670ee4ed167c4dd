"""What may become of single nodes and loops, whatever stands beside them.

In:   a node or a loop, and its kernel.
Out:  whether it can be a line of a text, belongs to no region, or to all of them.
Not:  groups nothing.
"""

from __future__ import annotations

from typing import Final

from penstock.graph.graph import Node
from penstock.graph.roles import LOOPS, Role
from penstock.kernels.api.bound_kernel import BoundKernel
from penstock.kernels.api.registry import Calling
from penstock.runtime.compiler.loops import LoopOrNode, is_free

#: A node of more outputs is no line of a text.
_MOST_OUTPUTS: Final = 4096


def can_be_line(node: Node, kernel: BoundKernel) -> bool:
    """Whether a node can be a line of a text."""
    is_understood = not _is_special(node) and len(node.output_types) <= _MOST_OUTPUTS
    return is_understood and kernel.calling is not Calling.ASYNC


def _is_special(node: Node) -> bool:
    """Whether a node must not wait for the rest of a region, or predicates do not express it.

    The one hands values to other partitions; the other is a Switch with a list of sides.
    """
    is_choice = node.role is Role.SWITCH and node.op.outputs[0].is_list
    return is_choice or node.role is Role.SEND


def is_boundary(unit: LoopOrNode) -> bool:
    """Whether it is an argument or a result, which belong to no region."""
    return isinstance(unit, Node) and unit.role in {Role.ARG, Role.RETVAL}


def is_constant(unit: LoopOrNode) -> bool:
    """Constants belong to every region that uses them."""
    return isinstance(unit, Node) and is_free(unit)


def turns(node: Node) -> bool:
    """Whether a node in the frame of an irregular loop makes it iterate."""
    # In a frame whose loop is not compiled, what makes it go on is outside as well.
    if node.role is Role.MERGE:
        return any(e is not None and e.src.role in LOOPS for e in node.inputs)
    return node.role in LOOPS
