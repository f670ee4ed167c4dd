"""The graph as it is run: what a request needs, with functions where they are called.

In:   a graph, and what becomes of it while a request is prepared.
Out:  ``GraphFacts``, and how names of nodes are shown.
Not:  runs nothing.

If the request cannot be prepared, say since a kernel is missing, the graph is shown as it was
written.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from functools import partial
from typing import Any, Final

from penstock.config import Config
from penstock.core.collector import collector_paused
from penstock.core.dtypes import DType
from penstock.core.names import parse_endpoint
from penstock.core.shapes import TensorShape
from penstock.defs.attrs import FuncAttr, TensorAttr
from penstock.errors import OpError
from penstock.graph.frames import Frame, build_control_flow_info
from penstock.graph.graph import INLINED_FROM, Graph, Node
from penstock.graph.roles import Role
from penstock.graph.stages import Pruned
from penstock.passes.prune import Request
from penstock.reporting.facts import Fate, GraphFacts, LeftOut, NodeFact
from penstock.reporting.fates import FateFinder
from penstock.runtime.environment import Environment
from penstock.runtime.optimize_request import Watch, optimize_request
from penstock.runtime.prepare import place_and_prune
from penstock.state.devices import DeviceSet

#: What is longer, an attribute, is cut.
_MAX_CHARS: Final = 120
#: What is said of a node whose function was put in its place.
_CALLED: Final = "the nodes of what it calls stand in its place"
#: Between the names of a loop and of one inside of it: names have slashes of their own.
NESTED: Final = " › "
#: So many items of a list are shown.
_MAX_ITEMS: Final = 16


class GraphWatcher:
    """Looks on while a request's graph is prepared."""

    def __init__(self, graph: Graph) -> None:
        self._graph: Final = graph
        self._finder: Final = FateFinder()
        self._nodes: list[NodeFact] = []
        #: Which feed or fetch a node stands for, by its name.
        self._ends: Final[dict[str, tuple[Role, int]]] = {}
        #: What such nodes are called.
        self._shown: Final[dict[str, str]] = {}
        self._is_over = False

    @property
    def watch(self) -> Watch:
        """What a preparation has to tell."""
        return Watch(self._opened, self._finder.passed, self._made)

    def shown(self, name: str) -> str:
        """What a node of the step is called in the report."""
        return self._shown.get(name, name)

    def facts(self, request: Request, config: Config, devices: DeviceSet) -> GraphFacts:
        """What was seen; what was prepared before anybody looked on is prepared once more."""
        try:
            if not self._is_over:
                self._prepare(request, config, devices)
        except OpError as error:
            return GraphFacts(_facts(self._graph, {}), trouble=str(error))
        self._name_ends(request)
        nodes = [node._replace(name=self.shown(node.name)) for node in self._nodes]
        fed = {parse_endpoint(name).node for name in request.feeds}
        gone, called = self._not_there(fed)
        return GraphFacts(nodes, [*called, *self._finder.shown(self.shown)], gone)

    def _prepare(self, request: Request, config: Config, devices: DeviceSet) -> None:
        prune = partial(place_and_prune, request, Environment(self._graph, config, devices))
        with self._graph.lock:
            optimize_request(prune, config, devices, self.watch)

    def _opened(self, pruned: Pruned) -> None:
        """Note the graph before the first pass."""
        self._finder.begin(pruned.graph)
        self._nodes = _facts(pruned.graph, pruned.device_of)
        for node in pruned.graph:
            if node.role in (Role.ARG, Role.RETVAL) and "index" in node.attrs:
                self._ends[node.name] = node.role, node.attrs["index"]

    def _made(self, pruned: Pruned) -> None:
        self._finder.end(pruned.graph)
        self._is_over = True

    def _name_ends(self, request: Request) -> None:
        """What is fed and fetched is called as whoever asked for it calls it."""
        for name, (role, index) in self._ends.items():
            is_fed = role is Role.ARG
            names = request.feeds if is_fed else request.fetches
            own = (names[index] if index < len(names) else name).removesuffix(":0")
            self._shown[name] = own if is_fed else f"{own} (fetched)"

    def _not_there(self, fed: Set[str]) -> tuple[list[LeftOut], list[Fate]]:
        """Nodes that nobody needs, and those that called functions."""
        there = {node.name for node in self._nodes}
        missing = [one for one in self._graph if one.name not in there and one.name not in fed]
        calls = {node.name for node in missing if _calls(node)}
        called = calls & _scopes(there) if calls else calls
        gone = [LeftOut(one.name, one.op.name) for one in missing if one.name not in called]
        fates = [
            Fate(one.name, one.op.name, "lower", _CALLED, ())
            for one in missing
            if one.name in called
        ]
        return gone, fates


def _scopes(names: Set[str]) -> set[str]:
    """All scopes that some nodes are in."""
    return {name[:at] for name in names for at, char in enumerate(name) if char == "/"}


def _calls(node: Node) -> bool:
    """Whether a node calls a function."""
    return node.op.is_function or any(map(_is_function, node.attrs.values()))


def _is_function(attr: Any) -> bool:
    if isinstance(attr, tuple):
        return any(map(_is_function, attr))
    return isinstance(attr, FuncAttr)


def _facts(graph: Graph, device_of: Mapping[int, str]) -> list[NodeFact]:
    """All nodes, which read each other by their places in this."""
    place = {node.id: number for number, node in enumerate(graph)}
    frames = _frames(graph)
    return [
        NodeFact(
            name=node.name,
            op=node.op.name,
            device=device_of.get(node.id, ""),
            frame=frames.get(node.id, ""),
            function=node.function,
            inputs=tuple([(place[edge.src.id], edge.src_slot) for edge in node.in_edges()]),
            outputs=tuple([dtype.name for dtype in node.output_types]),
            attrs=tuple(_attrs(node.attrs)),
        )
        for node in graph
    ]


@collector_paused
def with_types(graph: GraphFacts, types: Mapping[tuple[str, int], str]) -> GraphFacts:
    """The same with the shapes of outputs, where they are known by name and slot."""
    nodes = [
        node._replace(
            outputs=tuple(types.get((node.name, n), dtype) for n, dtype in enumerate(node.outputs))
        )
        for node in graph.nodes
    ]
    return dataclasses.replace(graph, nodes=nodes)


def _frames(graph: Graph) -> dict[int, str]:
    """The loops around each node that is in one."""
    try:
        flow = build_control_flow_info(graph)
    except OpError:
        return {}
    known: dict[Frame, str] = {}
    for frame in flow.frames.values():
        known[frame] = NESTED.join(_around(frame))
    return {node: known[frame] for node, frame in flow.frame_of.items() if frame.parent}


def _around(frame: Frame) -> list[str]:
    """The names of a loop and of those around it, outermost first."""
    return [*_around(frame.parent), frame.name] if frame.parent is not None else []


def _attrs(attrs: Mapping[str, Any]) -> Iterator[str]:
    """Attributes as text; of tensors no more than type and shape."""
    for name, value in sorted(attrs.items()):
        if name != INLINED_FROM:
            text = _text(value)
            yield f"{name}={text}" if len(text) <= _MAX_CHARS else f"{name}={text[:_MAX_CHARS]}…"


def _text(value: Any) -> str:
    kind = _TEXTS.get(type(value))
    return kind(value) if kind is not None else str(value)


def _listed(values: Sequence[Any]) -> str:
    more = [f"and {len(values) - _MAX_ITEMS} more"] if len(values) > _MAX_ITEMS else []
    return f"[{', '.join([*map(_text, values[:_MAX_ITEMS]), *more])}]"


def _decoded(value: bytes) -> str:
    return value[: 2 * _MAX_CHARS].decode("utf-8", "replace")


def _type_of(value: TensorAttr) -> str:
    return f"{value.dtype.name}{value.shape}"


_TEXTS: Final[Mapping[type, Callable[[Any], str]]] = {
    bytes: _decoded,
    tuple: _listed,
    list: _listed,
    TensorAttr: _type_of,
    FuncAttr: lambda value: value.name,
    DType: lambda value: value.name,
    TensorShape: str,
}
