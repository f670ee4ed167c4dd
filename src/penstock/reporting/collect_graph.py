"""The graph as it is run: what a request needs, with functions where they are called.

In:   a graph, a request, and the devices and options of a session.
Out:  ``GraphFacts``, and how names of nodes are shown.
Not:  runs nothing but what the optimiser folds.

If the request cannot be prepared, say since a kernel is missing, the graph is shown as it was
written.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
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
from penstock.runtime.optimize_request import optimize_request
from penstock.runtime.prepare import place_and_prune
from penstock.state.devices import DeviceSet

#: What is longer, an attribute, is cut.
_MAX_CHARS: Final = 120
#: Between the names of a loop and of one inside of it: names have slashes of their own.
NESTED: Final = " › "
#: So many items of a list are shown.
_MAX_ITEMS: Final = 16


class CollectedGraph:
    """A request's graph, and how its nodes are called in a report."""

    def __init__(self, graph: Graph, request: Request, config: Config, devices: DeviceSet) -> None:
        self._graph = graph
        self._request = request
        #: What nodes that stand for feeds and fetches are called, by name.
        self._shown: Final[dict[str, str]] = {}
        self.facts: Final[GraphFacts] = self._collected(config, devices)

    def shown(self, name: str) -> str:
        """What a node of the step is called in the report."""
        return self._shown.get(name, name)

    @collector_paused
    def _collected(self, config: Config, devices: DeviceSet) -> GraphFacts:
        environment = Environment(self._graph, config, devices)
        finder, nodes, needed = FateFinder(), list[NodeFact](), dict[str, str]()

        def prune() -> Pruned:
            pruned = place_and_prune(self._request, environment)
            needed.update((node.name, node.op.name) for node in pruned.graph)
            return pruned

        def opened(pruned: Pruned) -> None:
            finder.begin(pruned.graph)
            nodes[:] = self._nodes(pruned.graph, pruned.device_of)

        try:
            with self._graph.lock:
                made = optimize_request(prune, config, devices, finder.passed, opened)
        except OpError as error:
            written = list(self._nodes(self._graph, {}))
            return GraphFacts(written, trouble=str(error))
        finder.end(made.graph)
        called = _called(needed, {node.name for node in nodes} | self._shown.keys())
        fates = [*called, *finder.shown(self.shown)]
        return GraphFacts(nodes, fates, list(self._left_out(needed)))

    def _nodes(self, graph: Graph, device_of: Mapping[int, str]) -> Iterator[NodeFact]:
        """All nodes, which read each other by their places in this."""
        place = {node.id: number for number, node in enumerate(graph)}
        frames = _frames(graph)
        for node in graph:
            self._note_end(node)
            yield NodeFact(
                name=self.shown(node.name),
                op=node.op.name,
                device=device_of.get(node.id, ""),
                frame=frames.get(node.id, ""),
                function=node.function,
                inputs=tuple((place[edge.src.id], edge.src_slot) for edge in node.in_edges()),
                outputs=tuple(dtype.name for dtype in node.output_types),
                attrs=tuple(_attrs(node.attrs)),
            )

    def _note_end(self, node: Node) -> None:
        """What is fed and fetched is called as whoever asked for it calls it."""
        if node.role is Role.ARG and "index" in node.attrs:
            self._shown[node.name] = _fed(self._request.feeds, node.attrs["index"], node.name)
        elif node.role is Role.RETVAL and "index" in node.attrs:
            name = _fed(self._request.fetches, node.attrs["index"], node.name)
            self._shown[node.name] = f"{name} (fetched)"

    def _left_out(self, needed: Mapping[str, str]) -> Iterator[LeftOut]:
        fed = {parse_endpoint(name).node for name in self._request.feeds}
        for node in self._graph:
            if node.name not in needed and node.name not in fed:
                yield LeftOut(node.name, node.op.name)


def with_types(graph: GraphFacts, types: Mapping[tuple[str, int], str]) -> GraphFacts:
    """The same with the shapes of outputs, where they are known by name and slot."""
    nodes = [
        node._replace(
            outputs=tuple(types.get((node.name, n), dtype) for n, dtype in enumerate(node.outputs))
        )
        for node in graph.nodes
    ]
    return dataclasses.replace(graph, nodes=nodes)


def _fed(names: Sequence[str], index: int, default: str) -> str:
    """The name of a feed or fetch; without its slot if that is the first one."""
    name = names[index] if index < len(names) else default
    return name.removesuffix(":0")


def _called(needed: Mapping[str, str], there: set[str]) -> Iterator[Fate]:
    """Nodes that called functions, and so are nodes no more."""
    for name, op in needed.items():
        if name not in there:
            text = "the nodes of what it calls stand in its place"
            yield Fate(name, op, "lower", text, ())


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
