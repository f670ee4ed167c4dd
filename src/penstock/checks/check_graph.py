"""Look for mistakes in a graph, without running it.

In:   a graph in any form, and what is asked of it if that is known.
Out:  findings, the worst first.
Not:  runs nothing, and touches no file but the graph's.

Calls and functional control flow are put where they stand, as they are before a step, so that
rules see one graph of nodes.  Where that cannot be done, say since a kernel is missing, they see
the graph as it was written.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, Final

from penstock.checks import branches, growth, loops, numerics, queues, races, structure
from penstock.checks.finding import Finding, Severity
from penstock.checks.rule import Rule
from penstock.checks.subject import Subject
from penstock.config import Config
from penstock.core.names import parse_endpoint
from penstock.errors import OpError
from penstock.graph.graph import Graph, Node
from penstock.graph.roles import Role
from penstock.kernels.api.registry import kernels_of
from penstock.passes.prune import Request
from penstock.runtime.environment import Environment
from penstock.runtime.optimize_request import lower_request
from penstock.runtime.prepare import place_and_prune
from penstock.session.graphs import graph_of
from penstock.state.devices import local_devices

_ERROR, _WARNING, _NOTE = Severity.ERROR, Severity.WARNING, Severity.NOTE
#: What looks at the graph as it was written.
_AS_WRITTEN: Final = (
    Rule("PS107", "missing-kernel", _ERROR, structure.missing_kernels),
    Rule("PS109", "unfitting-shapes", _ERROR, structure.unfitting_shapes),
    Rule("PS110", "idle-control-edge", _NOTE, structure.idle_control_edges),
)
#: What looks at the graph as it is run.
_AS_RUN: Final = (
    Rule("PS101", "race", _WARNING, races.look),
    Rule("PS102", "dead-fetch", _ERROR, branches.look),
    Rule("PS103", "endless-loop", _ERROR, loops.endless),
    Rule("PS104", "idle-loop", _WARNING, loops.idle),
    Rule("PS105", "deadlocked-queue", _ERROR, queues.look),
    Rule("PS106", "mixed-frames", _ERROR, structure.mixed_frames),
    Rule("PS111", "copy-per-iteration", _WARNING, growth.look),
    Rule("PS112", "doubtful-numbers", _WARNING, numerics.look),
)
#: Not loaded, and not placed: what keeps a graph from being looked at.
_UNREADABLE, _UNPLACED = ("PS100", "unreadable"), ("PS108", "unplaceable")
#: Every code with its name.
NAMES: Final = {
    **dict([_UNREADABLE, _UNPLACED]),
    **{rule.code: rule.name for rule in (*_AS_WRITTEN, *_AS_RUN)},
}
_ORDER: Final = list(Severity)


def check(graph: Any, fetches: Sequence[str] = (), feeds: Sequence[str] = ()) -> list[Finding]:
    """Mistakes in a graph, the worst first.

    Args:
        graph: a ``Graph``, or a GraphDef in any form that ``Session`` takes.
        fetches: names of the tensors and operations that one step runs; if none are given, each
            node that nobody reads counts as a step.
        feeds: names of the tensors that the step feeds.

    Raises:
        InvalidArgumentError: a fetch or a feed is not in the graph.

    """
    try:
        loaded = graph_of(graph)
    except OpError as error:
        return [_of_error(_UNREADABLE[0], error)]
    return _sorted(_findings(loaded, fetches, feeds))


def _findings(graph: Graph, fetches: Sequence[str], feeds: Sequence[str]) -> Iterator[Finding]:
    request = request_of(graph, fetches, feeds)
    written = Subject(graph, _asked(graph, request) if fetches else ())
    for rule in _AS_WRITTEN:
        yield from rule.findings(written)
    yield from _missing_in_functions(graph)
    subject = written
    if not isinstance(written.flow, OpError) and _has_all_kernels(graph):
        try:
            run = _as_run(graph, request)
            subject = Subject(run, _asked(run, request) if fetches else ())
        except OpError as error:
            yield _of_error(_UNPLACED[0], error)
    for rule in _AS_RUN:
        yield from rule.findings(subject)


def request_of(graph: Graph, fetches: Sequence[str], feeds: Sequence[str]) -> Request:
    """What is asked for; everything that nobody reads, if nobody said."""
    if not fetches:
        targets = [node.name for node in graph if not node.out_edges]
        return Request(tuple(map(_endpoint, feeds)), (), tuple(targets))
    ends = [(name, graph.node(parse_endpoint(name).node)) for name in fetches]
    targets = [node.name for _, node in ends if not node.output_types]
    endpoints = [_endpoint(name) for name, node in ends if node.output_types]
    fed = [name for name in map(_endpoint, feeds) if name not in endpoints]
    return Request(tuple(sorted(set(fed))), tuple(dict.fromkeys(endpoints)), tuple(targets))


def _endpoint(name: str) -> str:
    endpoint = parse_endpoint(name)
    return f"{endpoint.node}:{max(endpoint.slot, 0)}"


def _asked(graph: Graph, request: Request) -> list[Node]:
    """The nodes that a request fetches and runs."""
    fetched = [node.input(0).src for node in graph if node.role is Role.RETVAL]
    names = [parse_endpoint(name).node for name in request.fetches] if not fetched else []
    found = [graph.find(name) for name in (*names, *request.targets)]
    return [*fetched, *(node for node in found if node is not None)]


def _as_run(graph: Graph, request: Request) -> Graph:
    """The part of a graph that a request needs, with bodies where they are called."""
    config = Config()
    environment = Environment(graph, config, local_devices(config.device_count))
    with graph.lock:
        pruned = partial(place_and_prune, request, environment)
        return lower_request(pruned, config, environment.devices).graph


def _has_all_kernels(graph: Graph) -> bool:
    return all(node.op.is_function or kernels_of(node.op.name) for node in graph)


def _missing_in_functions(graph: Graph) -> Iterator[Finding]:
    """Ops without kernels in the bodies of functions."""
    for function in graph.library:
        for node in graph.library.get(function).node_def:
            if node.op not in graph.library and not kernels_of(node.op):
                yield Finding("PS107", _ERROR, node.name, function,
                              f"the op {node.op} has no kernel here",
                              "docs/add-an-op.md adds one")  # fmt: skip


def _of_error(code: str, error: OpError) -> Finding:
    return Finding(code, _ERROR, error.node_name or "", "", error.reason, error.next_step)


def _sorted(findings: Iterator[Finding]) -> list[Finding]:
    unique = dict.fromkeys(findings)
    return sorted(unique, key=lambda f: (_ORDER.index(f.severity), f.code))
