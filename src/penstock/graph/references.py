"""Where references (variables of the TF1 years) are read, node by node.

In:   the nodes of a graph, sources first.
Out:  ``References``: the inputs at which a node reads a reference, or must find something
      behind it.
Not:  reads nothing.

In TensorFlow what an Identity of a variable gives is the variable's own memory: its consumers
see what the variable holds when they run, even if that is long after the Identity ran.  Here
such an Identity, a *read*, hands on the reference itself, and its consumers do the reading.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

from penstock.graph.graph import Node
from penstock.graph.roles import HANDS_REFERENCES_ON

#: Input slots, each with the name of the node that the input comes from.
Slots: TypeAlias = "tuple[tuple[int, str], ...]"


class References:
    """What nodes do with the references that they get."""

    __slots__ = ("_has_any", "_reads")

    def __init__(self, nodes: Iterable[Node]) -> None:
        reads: set[Node] = set()
        #: Most graphs have no reference at all.
        self._has_any = False
        for node in nodes:  # sources first: only a Merge may have a later one
            if any(dtype.is_ref for dtype in node.output_types):
                self._has_any = True
            if node.op.name == "Identity" and node.inputs[0] is not None:
                edge = node.inputs[0]
                if edge.src.output_types[edge.src_slot].is_ref or edge.src in reads:
                    reads.add(node)
        self._reads = reads

    def is_read(self, node: Node) -> bool:
        """Whether the node is an Identity that hands on a reference."""
        return node in self._reads

    def derefs(self, node: Node) -> Slots:
        """Inputs at which a reference arrives and a value is wanted."""
        if not self._has_any or node in self._reads:
            return ()
        return tuple(
            (slot, edge.src.name)
            for slot, edge in enumerate(node.inputs)
            if edge is not None
            and (edge.src.output_types[edge.src_slot].is_ref or edge.src in self._reads)
            and not node.input_types[slot].is_ref
        )

    def initialized(self, node: Node) -> Slots:
        """Inputs at which there must be something behind the reference."""
        if not self._has_any:
            return ()
        if node in self._reads:
            return ((0, node.input(0).src.name),)
        if node.op.allows_uninitialized_input or node.role in HANDS_REFERENCES_ON:
            return ()
        return tuple(
            (slot, node.input(slot).src.name)
            for slot, dtype in enumerate(node.input_types)
            if dtype.is_ref
        )
