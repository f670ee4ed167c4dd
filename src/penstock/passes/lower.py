"""Functional control flow → Switch, Merge and loops; calls → the nodes of what they call.

In:   the graph of one request, or of a function's body, and the devices of its nodes.
Out:  the same graph, in which as much as possible is one level of dataflow.
Not:  lowers nothing that calls itself, or whose functions have control flow of TensorFlow 1 or
      an op without a kernel here, nor what does not ask for it; that is left to the kernels that
      call functions, and means the same.

So branches and loops of both generations are one thing to all that comes after: they are
optimised across the borders of functions, and compiled.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from penstock.core import dtypes
from penstock.core.device_names import DeviceName
from penstock.defs.attrs import FuncAttr
from penstock.errors import OpError
from penstock.graph.functions import FunctionLibrary
from penstock.graph.graph import Graph, Node
from penstock.graph.instantiate import FunctionBody, instantiate
from penstock.graph.roles import CONTROL_FLOW
from penstock.kernels.control_flow.functional_ops import LOWERED
from penstock.kernels.registry import find_kernel
from penstock.passes.lower_branches import lower_case, lower_if
from penstock.passes.lower_call import lower_call
from penstock.passes.lower_loop import lower_while, unchanged
from penstock.passes.site import Replacement, Site

#: A graph that has grown by so many nodes is lowered no further.
MAX_NEW_NODES: Final = 100_000
_CALLS: Final = frozenset({"PartitionedCall", "StatefulPartitionedCall"})
_BRANCHES: Final = frozenset({"If", "StatelessIf"})
_CASES: Final = frozenset({"Case", "StatelessCase"})
_LOOPS: Final = frozenset({"While", "StatelessWhile"})
_LOWERED: Final = _CALLS | _BRANCHES | _CASES | _LOOPS
#: A Case of more branches is left to its kernel.
_MOST_BRANCHES: Final = 16


def lower(graph: Graph, device_of: Mapping[int, str]) -> Mapping[int, str]:
    """Lower a graph in place; returns the devices of the nodes that it has afterwards."""
    may_call = (node for node in graph if node.op.is_function or node.op.name in _LOWERED)
    calls = [node for node in may_call if functions_of(node)]
    if not calls:
        return device_of
    return _Lowering(graph, device_of).run(calls)


def functions_of(node: Node) -> list[FuncAttr]:
    """The functions that a node calls, if it is one that can be lowered."""
    attrs, name = node.attrs, node.op.name
    if node.op.is_function:
        return [FuncAttr(name, {k: v for k, v in attrs.items() if k in node.op.attrs})]
    if name in _CALLS:
        return [attrs["f"]] if attrs["executor_type"] in (b"", b"DEFAULT") else []
    if not asks(node):
        return []
    if name in _BRANCHES:
        return [attrs["then_branch"], attrs["else_branch"]]
    if name in _CASES:
        return list(attrs["branches"]) if len(attrs["branches"]) <= _MOST_BRANCHES else []
    return [attrs["cond"], attrs["body"]] if name in _LOOPS else []


def asks(node: Node) -> bool:
    """Whether an If, a Case or a While is meant to be lowered; those of TensorFlow 2 are."""
    return node.attrs.get(LOWERED) is True


class _Call:
    """A node that may be lowered."""

    __slots__ = ("callers", "gate", "node")

    def __init__(self, node: Node, gate: Node | None, callers: frozenset[str]) -> None:
        self.node = node
        #: Alive exactly when the node may run; None if that is always, or not known.
        self.gate = gate
        #: The functions in whose bodies it stands.
        self.callers = callers


class _Lowering:
    """One pass over a graph: calls from outside in, then those that were in their bodies."""

    def __init__(self, graph: Graph, device_of: Mapping[int, str]) -> None:
        self.graph = graph
        self.device_of = dict(device_of)
        #: Whether a node outside of all functions may be dead, or in a frame.
        self.may_be_dead = any(node.role in CONTROL_FLOW for node in graph)
        self.loop_constants: set[Node] = set()
        self.bodies = _Bodies(graph.library)
        self.most = graph.next_id + MAX_NEW_NODES

    def run(self, nodes: list[Node]) -> dict[int, str]:
        """Lower what can be lowered."""
        waiting = deque(_Call(node, None, frozenset({self.graph.function})) for node in nodes)
        while waiting and self.graph.next_id < self.most:
            waiting.extend(self.lower(waiting.popleft()))
        return self.device_of

    def lower(self, call: _Call) -> Iterator[_Call]:
        """Lower one node, if it can be; yields the calls that come to light."""
        functions = functions_of(call.node)
        names = {function.name for function in functions}
        bodies = self.bodies.find(functions, self._device_type(call.node))
        if bodies is None or names & call.callers or not _fits(call.node, bodies):
            return
        site = Site(self.graph, self.device_of, self.loop_constants, call.node, call.gate)
        if call.gate is None and self.may_be_dead:
            site.seal()
        made = _replacement(site, bodies)
        self._replace(call.node, made)
        for inlined in made.inlined:
            for node in inlined.nodes:
                if functions_of(node):
                    yield _Call(node, inlined.gate, call.callers | names)

    def _replace(self, call: Node, made: Replacement) -> None:
        """Let what reads the call, or waits for it, turn to what takes its place."""
        waiting = [edge for edge in call.out_edges if edge.is_control]
        if waiting:
            end = made.add_end()
            for edge in waiting:
                self.graph.remove_edge(edge)
                self.graph.add_control_edge(end, edge.dst)
        self.graph.redirect({call: made.outputs})
        self.graph.remove_nodes([call])
        self.device_of.pop(call.id, None)

    def _device_type(self, node: Node) -> str:
        device = self.device_of.get(node.id)
        return (DeviceName.parse(device).type if device else None) or "CPU"


class _Bodies:
    """The bodies of functions; each is read any number of times and never changed."""

    def __init__(self, library: FunctionLibrary) -> None:
        self._library = library
        #: By name, identity of the attributes, and device type; None if one cannot be inlined.
        #: The attributes are kept, so that no others get their place in memory.
        self._known: dict[tuple[str, int, str], tuple[FuncAttr, FunctionBody | None]] = {}

    def find(self, functions: Sequence[FuncAttr], device_type: str) -> list[FunctionBody] | None:
        """The bodies of functions; None if one of them cannot be inlined."""
        found = [self._body(function, device_type) for function in functions]
        bodies = [body for body in found if body is not None]
        return bodies if len(bodies) == len(found) else None

    def _body(self, function: FuncAttr, device_type: str) -> FunctionBody | None:
        key = function.name, id(function.attrs), device_type
        if key not in self._known:
            self._known[key] = function, self._made(function, device_type)
        return self._known[key][1]

    def _made(self, function: FuncAttr, device_type: str) -> FunctionBody | None:
        try:
            if "_noinline" in self._library.get(function.name).attr:
                return None
            body = instantiate(self._library, function.name, function.attrs)
        except OpError:  # it is told when the function is called
            return None
        can_run = all(_can_run(node, device_type) for node in body.graph)
        return body if can_run else None


def _can_run(node: Node, device_type: str) -> bool:
    if node.role in CONTROL_FLOW:
        return False
    return node.op.is_function or find_kernel(node.op.name, device_type, node.attrs) is not None


def _fits(node: Node, bodies: Sequence[FunctionBody]) -> bool:
    """Whether the functions take and give what the node does, and nothing is a reference."""
    if any(dtype.is_ref for dtype in (*node.input_types, *node.output_types)):
        return False
    if node.op.name in _BRANCHES:
        taken, given = node.input_types[1:], [node.output_types] * 2
        if node.input_types[0] is not dtypes.bool_:
            return False
    elif node.op.name in _CASES:
        taken, given = node.input_types[1:], [node.output_types] * len(bodies)
    elif node.op.name in _LOOPS:
        taken, given = node.input_types, [(dtypes.bool_,), node.output_types]
        if len(unchanged(bodies[1])) == len(taken):
            return False
    else:
        taken, given = node.input_types, [node.output_types]
    return all(
        body.arg_types == taken and body.ret_types == types
        for body, types in zip(bodies, given, strict=True)
    )


def _replacement(site: Site, bodies: Sequence[FunctionBody]) -> Replacement:
    name = site.node.op.name
    if name in _BRANCHES:
        return lower_if(site, bodies)
    if name in _CASES:
        return lower_case(site, bodies)
    return lower_while(site, *bodies) if name in _LOOPS else lower_call(site, *bodies)
