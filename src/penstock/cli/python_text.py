"""The Python text that a request is compiled to, and what of it is left to the executor.

In:   a graph, names to fetch and to feed.
Out:  lines of Python; what is not compiled stands in comments.
Not:  runs nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from penstock.cli.layout import counted
from penstock.config import Config
from penstock.core.names import parse_endpoint
from penstock.explanations.compiled import explained_parts
from penstock.graph.graph import Graph, Node
from penstock.graph.roles import Role
from penstock.passes.prune import Request
from penstock.printable import printable
from penstock.runtime.compiler.explain import Explained
from penstock.runtime.environment import Environment
from penstock.runtime.prepare import PreparedRequest, prepare
from penstock.state.devices import local_devices

#: What stands before the text that is for what programs do not know.
_OTHERWISE: Final = (
    "# Where there is no program for the shapes that come, or one finds something wrong:\n"
)


def python_text(graph: Graph, fetches: Sequence[str], feeds: Sequence[str]) -> str:
    """What a request is compiled to.

    Args:
        graph: the graph.
        fetches: names of tensors, or of operations to run; if there are none, all that nobody
            in the graph uses.
        feeds: names of tensors to feed; if there are none, the placeholders.

    Raises:
        OpError: the request does not fit the graph, or part of it cannot be run.

    """
    config = Config()
    environment = Environment(graph, config, local_devices(config.device_count))
    request = _request(graph, fetches or list(_sinks(graph)), feeds)
    with graph.lock:
        prepared = prepare(request, environment)
    return "\n".join(_pieces(prepared, environment))


def _request(graph: Graph, fetches: Sequence[str], feeds: Sequence[str]) -> Request:
    placeholders = [node.name for node in graph if node.role is Role.PLACEHOLDER]
    fed = {_endpoint(name) for name in feeds or placeholders}
    nodes = [graph.find(name) for name in fetches]
    names = list(zip(fetches, nodes, strict=True))
    targets = dict.fromkeys(name for name, node in names if node and not node.output_types)
    endpoints = dict.fromkeys(_endpoint(name) for name, _ in names if name not in targets)
    return Request(tuple(sorted(fed)), tuple(n for n in endpoints if n not in fed), tuple(targets))


def _endpoint(name: str) -> str:
    endpoint = parse_endpoint(name)
    return f"{endpoint.node}:{endpoint.slot}"


def _sinks(graph: Graph) -> Iterator[str]:
    """Everything that nobody in the graph uses."""
    for node in graph:
        used = {edge.src_slot for edge in node.out_edges}
        if not used and node.role is not Role.PLACEHOLDER:
            yield from [f"{node.name}:{s}" for s in range(len(node.output_types))] or [node.name]


def _pieces(prepared: PreparedRequest, environment: Environment) -> Iterator[str]:
    """Texts of regions, and comments."""
    whole = prepared.runnable.whole
    if whole is not None:
        first, *others = whole.sources()
        yield first.listing
        for source in others:
            yield f"{_OTHERWISE}{source.listing}"
        return
    for part, explained in explained_parts(prepared, environment):
        for region in explained.regions:
            yield region.source.listing
        yield _left(part.device, explained)


def _left(device: str, explained: Explained) -> str:
    """Comments on what the executor runs."""
    count = counted(len(explained.reasons), "node")
    lines = [device, f"{count} run by the executor" + (":" if explained.reasons else "")]
    for reason, nodes in _by_reason(explained.reasons).items():
        lines.append(f"  {reason}")
        lines += [f"    {node.name} ({node.op.name})" for node in nodes]
    return "".join(f"# {printable(line)}\n" for line in lines)


def _by_reason(reasons: Mapping[Node, str]) -> dict[str, list[Node]]:
    found: dict[str, list[Node]] = {}
    for node, reason in reasons.items():
        found.setdefault(reason, []).append(node)
    return found
