"""The nodes of a request as a step runs them: functions are where they are called.

In:   a session, what is fetched and fed.
Out:  nodes by name, those of functions included, with what they read and who reads them.
Not:  runs nothing; is made when somebody first asks.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property, partial
from typing import Any, Final

from penstock.core.names import parse_endpoint
from penstock.errors import OpError
from penstock.graph.graph import Edge, Graph, Node
from penstock.graph.roles import Role
from penstock.passes.prune import Request, fed_by
from penstock.runtime.environment import Environment
from penstock.runtime.optimize_request import lower_request
from penstock.runtime.prepare import place_and_prune
from penstock.session.fetches import plan_fetches
from penstock.session.graphs import graph_of
from penstock.session.session import Session
from penstock.state.devices import DeviceSet

#: What is said in the place of an op of what is fed.
FED: Final = "fed"


class AsRun:
    """The nodes of one request."""

    def __init__(self, session: Session, fetches: Any, feeds: Mapping[Any, Any]) -> None:
        self._session = session
        self._fetches = fetches
        #: What is fed, by tensors' names.
        self.feeds: Final = {slotted(name_of(key)): value for key, value in feeds.items()}
        #: As it was written.
        self.graph: Final[Graph] = graph_of(session.graph)

    @cached_property
    def _lowered(self) -> Graph:
        """What is run; as it was written if there is no such thing."""
        session, config = self._session, self._session.config
        devices = DeviceSet(session.list_devices())
        try:
            plan = plan_fetches(self._fetches, self.graph)
            wanted = tuple(name for name in plan.endpoints if name not in self.feeds)
            request = Request(tuple(sorted(self.feeds)), wanted, tuple(plan.targets))
            environment = Environment(self.graph, config, devices)
            with self.graph.lock:
                prune = partial(place_and_prune, request, environment)
                return lower_request(prune, config, devices).graph
        except OpError:
            return self.graph

    @property
    def wanted(self) -> list[str]:
        """The names of the tensors to fetch, then of the nodes to run.

        Raises:
            OpError: what is fetched means nothing.

        """
        plan = plan_fetches(self._fetches, self.graph)
        return [*plan.endpoints, *plan.targets]

    def find(self, name: str) -> Node | None:
        """A node that is run, or else one that is only written; None if there is neither."""
        return self._lowered.find(name) or self.graph.find(name)

    def names(self) -> list[str]:
        """The names of all nodes, but for those that only bring feeds in and fetches out."""
        lowered = (node.name for node in self._lowered if not _is_border(node))
        return sorted({*self.graph.names(), *lowered})


def inputs_of(node: Node) -> Iterator[tuple[str, Edge]]:
    """What a node reads: the tensors, and the edges."""
    for edge in node.inputs:
        if edge is not None:
            fed = fed_by(edge.src.name, edge.src.op.name)
            yield (f"{fed.node}:{fed.slot}" if fed else f"{edge.src.name}:{edge.src_slot}"), edge


def readers_of(node: Node) -> Iterator[Edge]:
    """Who reads a node, or waits for it; not who only hands it to the caller."""
    return (edge for edge in node.out_edges if not _is_border(edge.dst))


def _is_border(node: Node) -> bool:
    return node.role in (Role.ARG, Role.RETVAL) and node.name.startswith("_")


def name_of(given: Any) -> str:
    """The name of what is fetched or fed, by whatever names it."""
    return given if isinstance(given, str) else str(getattr(given, "name", given))


def slotted(name: str) -> str:
    """A tensor's name, with its slot."""
    endpoint = parse_endpoint(name)
    return f"{endpoint.node}:{endpoint.slot}"
