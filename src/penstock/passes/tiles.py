"""Which convolutions the kernels in C compute four by four results at once.

In:   a node, its filter's sizes, and those of its results.
Out:  whether there are fewer products that way, and other roundings.
Not:  asks nobody whether there are kernels in C.
"""

from __future__ import annotations

from collections.abc import Sequence

from penstock.graph.graph import Node
from penstock.graph.roles import Role
from penstock.kernels.c.sliding import is_tiled
from penstock.kernels.values.windows import Window


def is_in_tiles(node: Node, filters: Sequence[int], places: Sequence[int]) -> bool:
    """Whether a convolution is computed so.

    Args:
        node: a convolution.
        filters: [rows, columns, depth, count].
        places: its results, [batch, rows, columns, count].

    """
    steps = [step for name in ("strides", "dilations") for step in node.attrs.get(name, ())]
    if len(filters) != 4 or len(places) != 4 or any(step != 1 for step in steps):
        return False
    *window, depth, _ = filters
    changes = node.input(1).src.role is not Role.CONSTANT
    return is_tiled(places, depth, [Window(size) for size in window], changes=changes)
