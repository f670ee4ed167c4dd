"""The kernel of a node, bound on behalf of either tier.

In:   what makes kernels, a node, and where it is.
Out:  a ``BoundKernel``; an error that names the node and its device.
"""

from __future__ import annotations

from collections.abc import Callable

from penstock.errors import OpError, Where
from penstock.graph.graph import Node
from penstock.kernels.api.bound import BoundKernel
from penstock.state.checkpoints import checkpoint


def bind_at(
    make_kernel: Callable[[Node], BoundKernel], node: Node, device: str, function: str
) -> BoundKernel:
    """The kernel of a node; raises OpError with the node's place if it cannot be made."""
    checkpoint()
    try:
        return make_kernel(node)
    except OpError as error:
        where = Where(node.name, node.op.name, device, function=node.function or function)
        raise error.at(where) from error.__cause__
