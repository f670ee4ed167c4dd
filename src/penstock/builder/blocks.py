"""The ``with`` blocks that say where and after what new nodes run.

In:   a name, a device, tensors and operations.
Out:  blocks, in which new nodes take them over; of the graph that is the default here.
Not:  makes no nodes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from penstock.builder.contexts import resolve_control
from penstock.builder.graph import Graph, default_graph
from penstock.builder.nodes import COLOCATION
from penstock.builder.operators import Operators
from penstock.builder.scope import Dependencies, Scope, change_scope, scope_in
from penstock.builder.tensor import Operation
from penstock.core.device_names import DeviceName
from penstock.core.names import is_legal_name
from penstock.errors import InvalidArgumentError
from penstock.graph.graph import Node


@contextmanager
def name_scope(name: str | None) -> Iterator[str]:
    """Put a new, unique ``name/`` in front of names; yields it.

    A name that ends in a slash is taken as it is, so that a scope can be entered again;
    None or "" leads back to the outermost scope.

    Raises:
        InvalidArgumentError: names cannot begin so.

    """
    scope = scope_in(default_graph())
    with change_scope(scope, name=_prefix(scope, name)) as changed:
        yield changed.name


def _prefix(scope: Scope, name: str | None) -> str:
    if not name:
        return ""
    if not is_legal_name((scope.name + name).rstrip("/")):
        raise InvalidArgumentError(f"'{name}' is not a legal name for a scope")
    return name if name.endswith("/") else scope.graph.name_pool.unique(scope.name + name) + "/"


@contextmanager
def device(name: str | None) -> Iterator[None]:
    """Ask for a device; what ``name`` leaves open is taken from the block around.

    None takes back what the blocks around asked for.

    Raises:
        InvalidArgumentError: ``name`` is not the name of a device.

    """
    scope = scope_in(default_graph())
    wanted = ""
    if name is not None:
        inner = DeviceName.parse(name if name[:1] in ("", "/") else f"/device:{name}")
        wanted = str(DeviceName.parse(scope.device).narrowed_to(inner))
    with change_scope(scope, device=wanted):
        yield


@contextmanager
def control_dependencies(sources: Iterable[Any] | None) -> Iterator[None]:
    """Make every new node wait for ``sources``: tensors, operations, variables.

    Inside a loop, a source outside of it makes the whole loop wait.  None takes everything
    back: new nodes wait for nothing and stand outside of every branch and loop.

    Raises:
        TypeError: something cannot be waited for.
        InvalidArgumentError: a source is of another graph, or of a branch or loop that does
            not enclose this place.

    """
    scope = scope_in(default_graph())
    if sources is None:
        with change_scope(scope, dependencies=(), context=None):
            yield
        return
    nodes = [node_of(scope.graph, source) for source in sources]
    direct = [resolve_control(scope.graph, node, scope.context) for node in nodes]
    block = Dependencies(tuple(node for node in direct if node is not None))
    added = (block,) if block.sources else ()
    with change_scope(scope, dependencies=scope.dependencies + added):
        yield


@contextmanager
def colocate_with(op: Any) -> Iterator[None]:
    """Put every new node on the device of ``op``, an operation or a tensor."""
    scope = scope_in(default_graph())
    node = node_of(scope.graph, op)
    groups = node.attrs.get(COLOCATION) or (b"loc:@" + node.name.encode(),)
    both = tuple(sorted({*scope.colocation, *groups}))
    with change_scope(scope, device=node.requested_device, colocation=both):
        yield


def node_of(graph: Graph, source: Any) -> Node:
    """The node behind a tensor, an operation, a variable or a name.

    Raises:
        TypeError: there is none behind ``source``.
        InvalidArgumentError: it is of another graph.

    """
    if isinstance(source, str):
        return graph.tensor(source).node if ":" in source else graph.node(source)
    if isinstance(source, Node):
        place = Operation(graph, source)
    elif isinstance(source, Operation):
        place = source
    elif isinstance(source, Operators):
        place = source.as_tensor().op
    elif isinstance(getattr(source, "flow", None), Operators):
        place = source.flow.as_tensor().op  # a TensorArray, as far as it is written
    else:
        raise TypeError(f"{source!r:.80} is neither a tensor nor an operation")
    if place.graph is not graph or graph.find(place.name) is not place.node:
        raise InvalidArgumentError(
            f"{place.name} belongs to another graph than the nodes that are to wait for it"
        )
    return place.node
