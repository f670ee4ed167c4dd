"""Which nodes must lie on one device, and what such a group demands.

In:   a graph and the constraints of its nodes, each on its own.
Out:  ``Colocation``: the group of any node, with the constraints of the whole group.
Not:  chooses no device, and looks into no function: a call that returns a resource is
      bound to the consumers of that resource, whatever its body does.  (TensorFlow traces
      such resources through the body; it matters only on several devices.)

Three things join nodes:

- An edge that carries a reference or a resource.  No setting helps if that cannot be; but
  the destination's own request gives way to its source's.
- The same ``loc:@GROUP`` in the attribute ``_class``.  Under soft placement a join that
  cannot be is left out.
- A group of the node's own name, which others may join.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Final

from penstock.core import dtypes
from penstock.core.device_names import DeviceName, MergeMode
from penstock.dataclass import dataclass
from penstock.errors import InvalidArgumentError, OpError, Where
from penstock.graph.graph import Edge, Graph, Node
from penstock.passes.constraints import Constraints, NodeConstraints, describe
from penstock.state.devices import Device

#: What stands in ``_class`` before the name of a node to lie with.
LOCATION: Final = b"loc:@"
_DATASET: Final = re.compile(r".*Dataset(V\d+)?")


@dataclass(frozen=False, slots=True, eq=False)
class ColocationGroup:
    """Nodes that lie on one device."""

    #: In the order in which they joined.
    nodes: list[Node]
    constraints: Constraints
    #: The device of all its nodes, once the first of them has it.
    device: Device | None = None


class Colocation:
    """The groups of a graph's nodes.  A node that nothing joins has no group of its own."""

    def __init__(
        self,
        graph: Graph,
        constraints: NodeConstraints,
        mode: MergeMode,
        log: Callable[[str], None],
    ) -> None:
        self._mode: Final = mode
        self._log: Final = log
        #: Of each node by id, as if it were alone.
        self._own: Final[dict[int, Constraints]] = {}
        #: By node id, of nodes that are joined to others; shared by all nodes of a group.
        self._groups: Final[dict[int, ColocationGroup]] = {}
        for node in graph:
            try:
                self._own[node.id] = constraints.of(node)
            except OpError as error:
                raise error.at(_where(node)) from None
        self._join_by_edges(graph)
        self._join_by_names(graph)

    def group_of(self, node: Node) -> ColocationGroup | None:
        """The group of a node; None for a node that is joined to no other."""
        return self._groups.get(node.id)

    def constraints_of(self, node: Node) -> Constraints:
        """What the node, or its whole group, demands."""
        group = self._groups.get(node.id)
        return self._own[node.id] if group is None else group.constraints

    def debug_info(self, node: Node) -> list[str]:
        """The members of a node's group and their demands, as lines for an error."""
        group = self._groups.get(node.id)
        nodes = [node] if group is None else group.nodes
        types = {n.op.name: self._own[n.id].supported for n in nodes}
        return [
            "Colocation Debug Info:",
            "Colocation group had the following types and supported devices:",
            f"  {describe(self.constraints_of(node))}",
            *(
                f"  {op}: {' '.join(t.device_type for t in supported)}"
                for op, supported in sorted(types.items())
            ),
            "Colocation members and user-requested devices:",
            *(f"  {n.name} ({n.op.name}) {n.requested_device}" for n in nodes),
        ]

    # -- by edges ------------------------------------------------------------------

    def _join_by_edges(self, graph: Graph) -> None:
        for node in graph:
            for edge in node.inputs:
                if edge is not None and _binds(edge):
                    self._join_edge(edge)

    def _join_edge(self, edge: Edge) -> None:
        """Join the ends of a reference or resource edge; the source's request wins."""
        source, destination = self.constraints_of(edge.src), self.constraints_of(edge.dst)
        self._check_fixed(edge, "assigned", source.assigned, destination.assigned)
        self._check_fixed(edge, "resource", source.resource, destination.resource)
        if not source.requested.is_compatible_with(destination.requested):
            self._log(
                f"Ignoring device specification '{destination.requested}' for node "
                f"'{edge.dst.name}' because its input from '{edge.src.name}' is a reference or "
                f"resource that has the device '{source.requested}' already"
            )
            destination = destination.following(source)
        try:
            self._join(edge.src, source, edge.dst, destination)
        except InvalidArgumentError as error:
            raise InvalidArgumentError(
                "Nodes were connected by a reference or resource connection (requiring them to "
                "be on the same device), but the two nodes were assigned two different devices: "
                f"{error.reason}",
                details=error.details,
                where=_where(edge.dst),
            ) from None

    def _check_fixed(self, edge: Edge, what: str, src: DeviceName, dst: DeviceName) -> None:
        if not src.is_compatible_with(dst):
            raise InvalidArgumentError(
                "Cannot place the graph because a reference or resource edge connects "
                f"colocation groups with incompatible {what} devices: {src} vs {dst}. The edge "
                f"src node is {edge.src.name}, and the dst node is {edge.dst.name}",
                where=_where(edge.dst),
            )

    # -- by names ------------------------------------------------------------------

    def _join_by_names(self, graph: Graph) -> None:
        """Join nodes that name the same group, or the node that the group is named after."""
        #: The first node of each group that any node names.
        first_of: dict[bytes, Node] = {}
        named = {name for node in graph for name in _location_names(node)}
        if not named:
            return
        for node in graph:
            for name in _location_names(node):
                self._join_group(first_of, name, node)
            own_name = node.name.encode()
            if own_name in named:
                self._join_group(first_of, own_name, node)

    def _join_group(self, first_of: dict[bytes, Node], name: bytes, node: Node) -> None:
        first = first_of.setdefault(name, node)
        if first is node:
            return
        try:
            self._join(node, self.constraints_of(node), first, self.constraints_of(first))
        except InvalidArgumentError as error:
            if self._mode is MergeMode.STRICT:
                raise error.at(_where(node)) from None
            self._log(
                f"Ignoring request to colocate node '{node.name}' with nodes in colocation group "
                f"'{name.decode('utf-8', 'replace')}': {error.reason}"
            )

    # -- joining -------------------------------------------------------------------

    def _join(self, one: Node, its: Constraints, other: Node, others: Constraints) -> None:
        """Make one group of two nodes' groups; leaves both as they were if it raises."""
        group, second = self._groups.get(one.id), self._groups.get(other.id)
        if one is other or (group is not None and group is second):
            return
        try:
            merged = its.merge(others, self._mode)
        except InvalidArgumentError as error:
            raise InvalidArgumentError(
                f"{_both(one, other)}: {error.reason}", details=error.details
            ) from None
        if not merged.supported:
            raise InvalidArgumentError(
                f"{_both(one, other)} because no device type supports both of those nodes and "
                "the other nodes colocated with them.",
                details=[*self.debug_info(one), *self.debug_info(other)],
            )
        group = group or ColocationGroup([one], its)
        second = second or ColocationGroup([other], others)
        if len(group.nodes) < len(second.nodes):
            group, second = second, group
        # The smaller group moves, so a node moves at most once per doubling.
        for node in (*second.nodes, group.nodes[0]):
            self._groups[node.id] = group
        group.nodes += second.nodes
        group.constraints = merged


def _binds(edge: Edge) -> bool:
    """Whether the ends of a data edge must share a device."""
    wanted = edge.dst.input_types[edge.dst_slot]
    if wanted.is_ref or wanted is dtypes.resource:
        return not edge.dst.op.traits.exempt_from_colocation
    return wanted is dtypes.variant and _is_dataset(edge.src) and _is_dataset(edge.dst)


def _is_dataset(node: Node) -> bool:
    return node.output_types == (dtypes.variant,) and _DATASET.fullmatch(node.op.name) is not None


def _location_names(node: Node) -> Iterator[bytes]:
    """The groups that a node's ``_class`` names."""
    for entry in node.attrs.get("_class", ()):
        if isinstance(entry, bytes) and entry.startswith(LOCATION):
            yield entry.removeprefix(LOCATION)


def _both(one: Node, other: Node) -> str:
    return (
        f"Cannot colocate nodes {{{{colocation_node {one.name}}}}} and "
        f"{{{{colocation_node {other.name}}}}}"
    )


def _where(node: Node) -> Where:
    return Where(node.name, node.op.name, node.requested_device)
