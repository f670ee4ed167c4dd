"""What a graph has that cannot run here.

In:   a GraphDef, and the part of it that matters; or a library of functions, and some of these.
Out:  ops, how many nodes have them, and why they cannot run; or an error that lists them all.
Not:  prints nothing; makes no kernel.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from penstock.catalogue.registry import find_op
from penstock.core.dtypes import DType
from penstock.core.names import parse_endpoint
from penstock.defs.schema import Message
from penstock.errors import NotFoundError, OpError, UnimplementedError
from penstock.graph.functions import FunctionLibrary
from penstock.graph.import_graph_def import graph_from_def
from penstock.graph.near_names import near_names
from penstock.kernels.api.registry import find_kernel, kernels_of

_UNKNOWN = "not an op that is known here"
_NO_KERNEL = "no kernel"


def missing_in(
    graph_def: Message, fetches: Sequence[str] = (), feeds: Sequence[str] = ()
) -> Counter[tuple[str, str]]:
    """Nodes that cannot run, function bodies included, by op and reason.

    Args:
        graph_def: the graph.
        fetches: names of tensors or operations; only what they need counts.  None means all.
        feeds: names of tensors; what only leads to them does not count.

    Raises:
        NotFoundError: the graph has no node of a name.

    """
    nodes = _needed(graph_def, fetches, feeds) if fetches else graph_def.node
    names = {node.name for node in nodes}
    functions = {function.signature.name: function for function in graph_def.library.function}
    called = _called(nodes, functions) if fetches else functions.values()
    inner = (node for function in called for node in function.node_def)
    ops = Counter(node.op for node in [*nodes, *inner] if node.op not in functions)
    found = Counter({(op, why): n for op, n in ops.items() if (why := _reason(op))})
    if not any(why == _UNKNOWN for _, why in found):
        found.update(_wrong_types(graph_def, names))
    return found


def check_functions(library: FunctionLibrary, names: Iterable[str]) -> None:
    """Raise UnimplementedError if functions, or those that they call, have ops that cannot run."""
    functions = {name: library.get(name) for name in library}
    called = [*_called((), functions, names)]
    nodes = ((node.op, function) for function in called for node in function.node_def)
    places: dict[str, str] = {}
    for op, function in nodes:
        if op not in functions and op not in places:
            places[op] = "" if not _reason(op) else function.signature.name
    raise_missing({op: place for op, place in places.items() if place})


def check_nodes(graph_def: Message, fetches: Sequence[str], feeds: Sequence[str] = ()) -> None:
    """Raise UnimplementedError if what fetches need has ops that cannot run."""
    functions = {function.signature.name: function for function in graph_def.library.function}
    nodes = _needed(graph_def, fetches, feeds)
    places = {node.op: f"node {node.name}" for node in reversed(nodes)}
    for function in _called(nodes, functions):
        for node in function.node_def:
            places.setdefault(node.op, function.signature.name)
    raise_missing({op: at for op, at in places.items() if op not in functions and _reason(op)})


def needed_nodes(graph_def: Message, names: Sequence[str]) -> list[Any]:
    """The nodes that some tensors and operations need, in the graph's order."""
    needed = {node.name for node in _needed(graph_def, names, ())}
    return [node for node in graph_def.node if node.name in needed]


def called_functions(nodes: Iterable[Any], functions: Mapping[str, Any]) -> list[Any]:
    """The functions that nodes call, and those that these call, out of some by name."""
    return _called(nodes, functions)


def has_unknown_ops(graph_def: Message) -> bool:
    """Whether nodes outside functions have ops that nothing is known of."""
    functions = {function.signature.name for function in graph_def.library.function}
    return any(find_op(op) is None for op in {node.op for node in graph_def.node} - functions)


def raise_missing(places: Mapping[str, str]) -> None:
    """Raise UnimplementedError if there are ops that cannot run, by where they stand."""
    if not places:
        return
    listed = "; ".join(f"{op} ({_reason(op)}), in {place}" for op, place in sorted(places.items()))
    raise UnimplementedError(
        f"{len(places)} of the ops that are needed cannot run here: {listed}",
        next_step="install the packages that bring them, or register them with ps.register_op and "
        "a kernel for each",
    )


def _needed(graph_def: Message, fetches: Sequence[str], feeds: Sequence[str]) -> list[Any]:
    """The nodes that the fetches depend on, as far as nothing is fed."""
    by_name = {node.name: node for node in graph_def.node}
    fed = {parse_endpoint(name) for name in feeds}
    waiting = [parse_endpoint(name) for name in fetches]
    for endpoint in [*fed, *waiting]:
        if endpoint.node not in by_name:
            raise NotFoundError(
                f"The graph has no node called '{endpoint.node}'",
                next_step=near_names(endpoint.node, list(by_name)),
            )
    needed: dict[str, Any] = {}
    while waiting:
        endpoint = waiting.pop()
        if endpoint in fed or endpoint.node in needed or endpoint.node not in by_name:
            continue
        needed[endpoint.node] = by_name[endpoint.node]
        waiting += map(parse_endpoint, by_name[endpoint.node].input)
    return list(needed.values())


def _called(
    nodes: Iterable[Any], functions: Mapping[str, Any], names: Iterable[str] = ()
) -> list[Any]:
    """Functions that are named or that some nodes call, and those that these call."""
    found: dict[str, Any] = {name: functions[name] for name in names}
    waiting = [*nodes, *(node for function in found.values() for node in function.node_def)]
    while waiting:
        node = waiting.pop()
        attrs = node.attr.values()
        names = {node.op} | {attr.func.name for attr in attrs}
        names.update(func.name for attr in attrs for func in attr.list.func)
        for name in (names & functions.keys()) - found.keys():
            found[name] = functions[name]
            waiting += functions[name].node_def
    return list(found.values())


def _reason(op: str) -> str:
    if find_op(op) is None:
        return _UNKNOWN
    return "" if kernels_of(op) else _NO_KERNEL


def _wrong_types(graph_def: Message, names: set[str]) -> Iterator[tuple[str, str]]:
    """Of some nodes outside functions: those whose op has kernels, but none for their types."""
    try:
        graph = graph_from_def(graph_def)
    except OpError:  # `penstock show` says what is wrong with it
        return
    for node in graph:
        has_kernel = not kernels_of(node.op.name) or find_kernel(node.op.name, "CPU", node.attrs)
        if node.name in names and not has_kernel:
            types = [f"{k}={v}" for k, v in sorted(node.attrs.items()) if isinstance(v, DType)]
            yield node.op.name, f"no kernel for {', '.join(types)}"
