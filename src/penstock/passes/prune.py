"""Keep only what one request needs; wire its feeds and fetches in as nodes.

In:   a Placed graph and a ``Request``: endpoints to feed, endpoints to fetch, nodes to run.
Out:  Pruned: a new graph of the nodes that some fetch or target depends on.
Not:  does not care whether a node has side effects: what nobody needs does not run.

Runs after placement, so that a node has the same device whatever is asked for.  Two media:
through a call frame, feeds become ``_Arg`` nodes and fetches ``_Retval`` nodes; through the
rendezvous, they become ``_Recv`` and ``_Send``, as partial and distributed runs need them.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Container, Iterable, Sequence
from typing import Final

from penstock.advice import RunIt
from penstock.catalogue.registry import get_op
from penstock.core.names import Endpoint, parse_endpoint
from penstock.dataclass import dataclass
from penstock.errors import InvalidArgumentError, NotFoundError, Where
from penstock.graph.graph import Edge, Graph, Node
from penstock.graph.roles import Role
from penstock.graph.stages import Placed, Pruned
from penstock.graph.static_shapes import noted_shape
from penstock.kernels.api.registry import no_kernel_error

#: What the node of a fed endpoint is called: the node that it stands for, its slot, a number.
_ARG_NAME: Final = re.compile(r"_arg_(.+)_(\d+)_\d+")


class Medium(enum.Enum):
    """How the client hands over feeds and takes fetches."""

    CALL_FRAME = enum.auto()
    RENDEZVOUS = enum.auto()


def fed_by(node: str, op: str) -> Endpoint | None:
    """The endpoint that a node of a request brings in; None if it brings none."""
    found = _ARG_NAME.fullmatch(node) if op == "_Arg" else None
    return Endpoint(found[1], int(found[2])) if found else None


@dataclass(frozen=True, slots=True)
class Request:
    """What is fed, fetched and run; the key of everything prepared for it."""

    feeds: tuple[str, ...] = ()
    fetches: tuple[str, ...] = ()
    targets: tuple[str, ...] = ()
    medium: Medium = Medium.CALL_FRAME


@dataclass(frozen=True, slots=True)
class ClientDevice:
    """Where feeds arrive and fetches leave."""

    name: str
    incarnation: int = 1


def prune(placed: Placed, request: Request, client: ClientDevice) -> Pruned:
    """The part of a graph that ``request`` needs, with its feeds and fetches as nodes.

    Raises:
        InvalidArgumentError: nothing is asked for, something is fed twice, or fed and
            fetched, or a slot is out of range.
        NotFoundError: a fed, fetched or target node is not there.

    """
    fed, fetches, targets = _find_ends(placed.graph, request)
    feeds = [_behind_stand_in(placed, one) for one in fed] if placed.stand_ins else fed
    needed = needed_nodes([*(node for node, _ in fetches), *targets], set(feeds))
    return _Pruner(placed, request, client, feeds, fetches).run(needed)


def find_wanted(graph: Graph, request: Request) -> tuple[list[Node], set[tuple[Node, int]]]:
    """The nodes that a request names, and the endpoints that it feeds; checked."""
    feeds, fetches, targets = _find_ends(graph, request)
    return [node for node, _ in fetches] + targets, set(feeds)


def _find_ends(
    graph: Graph, request: Request
) -> tuple[list[tuple[Node, int]], list[tuple[Node, int]], list[Node]]:
    """What a request feeds and fetches, and its targets, in its order; checked."""
    check_request(request)
    return (
        [_find_fed(graph, text) for text in request.feeds],
        [_find_fetched(graph, text) for text in request.fetches],
        _find_targets(graph, request.targets) if request.targets else [],
    )


def check_request(request: Request) -> None:
    """Checks that need no graph.  Endpoints are compared as text."""
    if not request.fetches and not request.targets:
        raise InvalidArgumentError("Must specify at least one target to fetch or execute.")
    seen: set[str] = set()
    for text in request.feeds:
        if text in seen:
            raise InvalidArgumentError(f'Endpoint "{text}" fed more than once.')
        seen.add(text)
    for text in request.fetches:
        if text in seen:
            raise InvalidArgumentError(f"{text} is both fed and fetched.")


def needed_nodes(wanted: Iterable[Node], fed: set[tuple[Node, int]]) -> set[Node]:
    """Everything that ``wanted`` depends on; what lies only behind fed endpoints does not."""
    needed = set(wanted)
    waiting = list(needed)
    while waiting:
        node = waiting.pop()
        for edge in (*node.inputs, *node.control_inputs):
            if edge is None:
                continue
            src = edge.src
            if src not in needed and not (fed and _is_fed(edge, fed)):
                needed.add(src)
                waiting.append(src)
    return needed


def _is_fed(edge: Edge, fed: Container[tuple[Node, int]]) -> bool:
    """Whether the edge comes from a feed instead of its source.

    A control edge does so only if the fed node is a placeholder: any other fed node still
    runs when something must wait for it.
    """
    if edge.is_control:
        return edge.src.role is Role.PLACEHOLDER and (edge.src, 0) in fed
    return (edge.src, edge.src_slot) in fed


def _find_fed(graph: Graph, text: str) -> tuple[Node, int]:
    name, slot = parse_endpoint(text)
    node = graph.find(name)
    if node is None:
        raise NotFoundError(f"FeedInputs: unable to find feed output {text}")
    if not 0 <= slot < len(node.output_types):
        raise InvalidArgumentError(
            f"FeedInputs: {text} should have output index < {len(node.output_types)}"
        )
    return node, slot


def _behind_stand_in(placed: Placed, fed: tuple[Node, int]) -> tuple[Node, int]:
    """What is fed in truth: where a node only stands for another, what its readers read."""
    node, slot = fed
    if node.name not in placed.stand_ins:
        return fed
    edge = node.input(slot)
    return edge.src, edge.src_slot


def _find_fetched(graph: Graph, text: str) -> tuple[Node, int]:
    name, slot = parse_endpoint(text)
    node = graph.find(name)
    if node is None:
        raise NotFoundError(f"FetchOutputs node {text}: not found", next_step=graph.hint(name))
    if not node.output_types:
        raise InvalidArgumentError(
            f"Tried to fetch data for '{text}', which produces no output.",
            next_step=RunIt(name),
        )
    if not 0 <= slot < len(node.output_types):
        raise InvalidArgumentError(
            f"FetchOutputs {text}: output index too large, must be < {len(node.output_types)}"
        )
    return node, slot


def _find_targets(graph: Graph, targets: Sequence[str]) -> list[Node]:
    missing = [name for name in targets if name not in graph]
    if missing:
        raise NotFoundError(
            f"PruneForTargets: Some target nodes not found: {' '.join(missing)}",
            next_step=graph.hint(missing[0]),
        )
    return [graph.node(name) for name in targets]


class _Pruner:
    """The new graph under construction."""

    def __init__(
        self,
        placed: Placed,
        request: Request,
        client: ClientDevice,
        feeds: list[tuple[Node, int]],
        fetches: list[tuple[Node, int]],
    ) -> None:
        self.placed = placed
        self.request = request
        self.client = client
        self.feeds = feeds
        self.fetches = fetches
        #: Where each feed stands among them.
        self.fed = {feed: place for place, feed in enumerate(feeds)}
        self.graph = Graph(placed.graph.library)
        self.graph.versions = placed.graph.versions
        self.device_of: dict[int, str] = {}
        #: New nodes by their originals.
        self.copies: dict[Node, Node] = {}
        #: The node that brings each fed endpoint in, made when the first consumer asks.
        self.feed_nodes: dict[tuple[Node, int], Node] = {}

    def run(self, needed: set[Node]) -> Pruned:
        """Copy the needed nodes in order of their ids, then their edges, then the fetches."""
        in_order = sorted(needed, key=lambda node: node.id)
        for node in in_order:
            device = self.placed.device_of.get(node.id)
            if device is None:
                error = no_kernel_error(node.op.name, node.attrs)
                raise error.at(Where(node.name, node.op.name, node.requested_device))
            copy = self.copies[node] = self.graph.add_copy(node)
            self.device_of[copy.id] = device
        for node in in_order:
            self.copy_edges(node)
        for index, (node, slot) in enumerate(self.fetches):
            self.add_fetch(index, node, slot)
        return Pruned(
            self.graph,
            self.device_of,
            tuple(node.output_types[slot].base for node, slot in self.feeds),
            tuple(node.output_types[slot].base for node, slot in self.fetches),
            frozenset(self.request.targets),
            frozenset(node.name for node, _ in self.fetches),
        )

    def copy_edges(self, node: Node) -> None:
        """Join the copy of ``node`` to the copies of its inputs, or to their feeds."""
        copy = self.copies[node]
        for edge in node.inputs:
            if edge is None:
                continue
            if self.fed and _is_fed(edge, self.fed):
                feed = self.feed_node(edge.src, edge.src_slot)
                self.graph.add_edge(feed, 0, copy, edge.dst_slot)
            else:
                self.graph.add_like(edge, self.copies[edge.src], copy)
        if not node.control_inputs:
            return
        sources = [
            self.feed_node(edge.src, 0) if _is_fed(edge, self.fed) else self.copies[edge.src]
            for edge in node.control_inputs
        ]
        self.graph.add_control_edges(sources, copy)

    def feed_node(self, node: Node, slot: int) -> Node:
        """The node that brings a fed endpoint in."""
        key = (node, slot)
        if key not in self.feed_nodes:
            self.feed_nodes[key] = self.add_feed(self.fed[key], node, slot)
        return self.feed_nodes[key]

    def add_feed(self, index: int, node: Node, slot: int) -> Node:
        """Make the ``_Arg`` or ``_Recv`` of one fed endpoint."""
        dtype = node.output_types[slot].base
        if self.request.medium is Medium.CALL_FRAME:
            name, op = f"_arg_{node.name}_{slot}_{index}", "_Arg"
            attrs = {"T": dtype, "index": index, **noted_shape(self.graph, node)}
        else:
            name, op = f"_recv_{node.name}_{slot}", "_Recv"
            attrs = {"tensor_type": dtype, **self.transfer_attrs(self.request.feeds[index])}
        return self.add_client_node(name, op, attrs)

    def add_fetch(self, index: int, node: Node, slot: int) -> None:
        """Make the ``_Retval`` or ``_Send`` of one fetched endpoint."""
        dtype = node.output_types[slot].base
        if self.request.medium is Medium.CALL_FRAME:
            name, op = f"_retval_{node.name}_{slot}_{index}", "_Retval"
            attrs: dict[str, object] = {"T": dtype, "index": index}
        else:
            name, op = f"_send_{node.name}_{slot}", "_Send"
            attrs = {"T": dtype, **self.transfer_attrs(self.request.fetches[index])}
        sink = self.add_client_node(name, op, attrs)
        self.graph.add_edge(self.copies[node], slot, sink, 0)

    def transfer_attrs(self, text: str) -> dict[str, object]:
        """The attributes that a client's transfer node and the client agree on."""
        device = self.client.name.encode()
        return {
            "tensor_name": text.encode(),
            "send_device": device,
            "send_device_incarnation": self.client.incarnation,
            "recv_device": device,
            "client_terminated": True,
        }

    def add_client_node(self, name: str, op: str, attrs: dict[str, object]) -> Node:
        """Add a node on the client's device."""
        node = self.graph.add_node(name, get_op(op), attrs, assigned_device=self.client.name)
        self.device_of[node.id] = self.client.name
        return node
