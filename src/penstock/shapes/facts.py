"""What is known of the shapes of a node's outputs, and of whom that can be asked.

In:   shapes, and what lies behind handles and lists.
Out:  ``Facts`` of a node, ``Known`` of one tensor; ``KnownShapes``, who has them for a graph.
Not:  infers nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol, TypeAlias

from penstock.core.shapes import TensorShape
from penstock.dataclass import dataclass
from penstock.graph.graph import Node
from penstock.kernels.api.shape_context import Held

#: What is known of one tensor: its shape, and what lies behind it.
Known: TypeAlias = tuple[TensorShape, Held | None]


@dataclass(frozen=True, slots=True)
class Facts:
    """What is known of the outputs of one node."""

    shapes: tuple[TensorShape, ...]
    #: What lies behind those that are handles, or lists.
    holds: Mapping[int, Held]


class KnownShapes(Protocol):
    """What is known of one graph, for those who help to infer it and are asked by it."""

    def facts(self, node: Node) -> Facts:
        """All that is known of a node's outputs, found out if need be."""

    def known(self, node: Node) -> Facts | None:
        """What is known by now, without a look at anything else."""
