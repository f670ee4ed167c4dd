"""What is explained: one node of a graph, in one request.

In:   a graph in any form, the node's name, what is fetched and fed.
Out:  ``Question``, which finds out once what several answers need.
Not:  answers nothing.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from functools import cached_property, partial
from typing import Any, Final

from penstock.checks.check_graph import request_of
from penstock.checks.subject import Subject
from penstock.config import Config, Tier
from penstock.core.names import Endpoint, parse_endpoint
from penstock.errors import OpError
from penstock.graph.graph import Graph, Node
from penstock.graph.roles import Role
from penstock.passes.prune import Request, find_wanted
from penstock.runtime.environment import Environment
from penstock.runtime.optimize_request import lower_request
from penstock.runtime.prepare import place_and_prune
from penstock.session.session import Session
from penstock.state.devices import DeviceSet, local_devices


class Question:
    """One node, and the request in which it is looked at."""

    def __init__(
        self,
        graph: Graph,
        name: str,
        fetches: Sequence[str],
        feeds: Mapping[str, Any] | Sequence[str],
        config: Config,
        session: Session | None = None,
    ) -> None:
        """Find the node.

        Raises:
            NotFoundError: there is no such node.
            InvalidArgumentError: a fetch or a feed is not in the graph.

        """
        self.graph: Final = graph
        #: The node as the graph has it.
        self.node: Final[Node] = graph.node(parse_endpoint(name).node)
        #: What is fed, as far as it is known.
        self.values: Final[Mapping[Endpoint, Any]] = (
            {_endpoint(name): value for name, value in feeds.items()}
            if isinstance(feeds, Mapping)
            else {}
        )
        self.is_request: Final = bool(fetches)
        fed = list(feeds) or [node.name for node in graph if node.role is Role.PLACEHOLDER]
        #: What is fetched and fed; what nobody reads, and all placeholders, if nobody said.
        self.request: Final[Request] = request_of(graph, fetches, fed)
        self.config: Final = config
        #: One in which predicates may be run; None for one of their own.
        self.session: Final = session
        self.devices: Final[DeviceSet] = (
            local_devices(config.device_count)
            if session is None
            else DeviceSet(session.list_devices())
        )

    @cached_property
    def environment(self) -> Environment:
        """A session's, in which nothing is run."""
        return Environment(self.graph, self.config, self.devices)

    @cached_property
    def ends(self) -> tuple[list[Node], set[tuple[Node, int]]]:
        """The nodes that are asked for, and the outputs that are fed."""
        with self.graph.lock:
            return find_wanted(self.graph, self.request)

    @cached_property
    def lowered(self) -> Graph:
        """The same with functions where they are called; as it was written if that fails."""
        try:
            with self.graph.lock:
                prune = partial(place_and_prune, self.request, self.environment)
                return lower_request(prune, self.config, self.devices).graph
        except OpError:
            return self.graph

    @cached_property
    def subject(self) -> Subject:
        """Who comes before whom in it, and what runs only in one branch."""
        return Subject(self.lowered)

    def endpoint(self, node: Node, slot: int) -> Endpoint:
        """An output of a node as it is run, as the graph names it: what is fed has another node."""
        if node.role is Role.ARG:
            return _endpoint(self.request.feeds[node.attrs["index"]])
        return Endpoint(node.name, slot)

    def value(self, endpoint: Endpoint) -> Any:
        """What a tensor is for the values that are fed; raises OpError if it cannot be run."""
        if endpoint in self.values:
            return self.values[endpoint]
        feeds = {_with_slot(fed): value for fed, value in self.values.items()}
        if self.session is not None:
            return self.session.run(_with_slot(endpoint), feeds)
        config = dataclasses.replace(self.config, tier=Tier.DATAFLOW)
        with Session(self.graph, config=config) as session:
            return session.run(_with_slot(endpoint), feeds)

    @property
    def node_as_run(self) -> Node | None:
        """The node in the graph with functions where they are called, if it is there."""
        return self.lowered.find(self.node.name)


def _endpoint(name: Any) -> Endpoint:
    """What is fed, by whatever names it: ``x``, ``x:0``, or a tensor."""
    return parse_endpoint(name if isinstance(name, str) else name.name)


def _with_slot(endpoint: Endpoint) -> str:
    """A tensor's name, which cannot be taken for an operation's."""
    return f"{endpoint.node}:{endpoint.slot}"
