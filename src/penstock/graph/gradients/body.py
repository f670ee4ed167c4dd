"""The gradient of a function, as a body that can be run.

In:   a function of the library, or an op, by name and attributes.
Out:  a ``FunctionBody`` from arguments and gradients of results to gradients of arguments.
Not:  runs nothing; knows no op's own rule.

Going backwards starts at the results.  A node is looked at when the gradients of all that reads it
are known; where several come back to one value, they are added.  What does not depend on the
arguments has no gradient, whatever it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Final

from penstock.catalogue.registry import find_op, get_op
from penstock.core.dtypes import DType
from penstock.defs.attrs import FuncAttr
from penstock.errors import InvalidArgumentError, NotFoundError
from penstock.graph.functions import FunctionLibrary
from penstock.graph.gradients import array_rules, math_rules
from penstock.graph.gradients.rules import RULES, At, Gradients, no_gradient
from penstock.graph.gradients.values import NodeOutput, apply, outputs_of
from penstock.graph.graph import Graph, Node
from penstock.graph.instantiate import FunctionBody, instantiate, prune_body
from penstock.graph.roles import Role

#: The op that computes a gradient, and the name under which such bodies go.
GRADIENT: Final = "SymbolicGradient"
#: The modules that define the rules.
_DEFINED_IN: Final = (math_rules, array_rules)


def instantiate_gradient(library: FunctionLibrary, func: FuncAttr) -> FunctionBody:
    """The gradient of a function: the one registered for it, or else one that is made here.

    Raises:
        NotFoundError: some op between arguments and results has no gradient.

    """
    registered = library.gradient_of(func.name)
    if registered is not None:
        return instantiate(library, registered, func.attrs)
    body = _body(library, func)
    return _Backwards(body).run()


def _body(library: FunctionLibrary, func: FuncAttr) -> FunctionBody:
    """The function's body; for an op, a body of that one node."""
    if func.name == GRADIENT:
        return instantiate_gradient(library, func.attrs["f"])
    if func.name in library:
        return instantiate(library, func.name, func.attrs)
    op = find_op(func.name)
    if op is None:
        raise NotFoundError(
            f"No gradient defined for op: {func.name}",
            next_step="it is neither an op nor a function of the graph",
        )
    if RULES.get(func.name) is no_gradient:
        raise InvalidArgumentError(f"No gradient is defined for {func.name}")
    graph = Graph(library, function=func.name)
    defaults = {name: attr.default for name, attr in op.attrs.items() if attr.default is not None}
    node = graph.add_node("op", op, {**defaults, **func.attrs})
    for slot, dtype in enumerate(node.input_types):
        graph.add_edge(_add_arg(graph, slot, dtype).node, 0, node, slot)
    for slot in range(len(node.output_types)):
        _add_retval(graph, slot, NodeOutput(graph, node, slot))
    return FunctionBody(func.name, graph, node.input_types, node.output_types)


def _add_arg(graph: Graph, index: int, dtype: DType) -> NodeOutput:
    return apply(graph, "_Arg", T=dtype, index=index)[0]


def _add_retval(graph: Graph, index: int, value: NodeOutput) -> Node:
    name = f"gradient/_Retval_{graph.next_id}"
    node = graph.add_node(name, get_op("_Retval"), {"T": value.dtype, "index": index})
    graph.add_edge(value.node, value.slot, node, 0)
    return node


class _Backwards:
    """One walk from a function's results to its arguments."""

    def __init__(self, body: FunctionBody) -> None:
        self.body = body
        self.graph = body.graph
        self.args = _by_index(self.graph, Role.ARG)
        self.results = _by_index(self.graph, Role.RETVAL)
        #: Nodes that depend on an argument.
        self.dependent = _downstream(list(self.args.values()))
        #: Gradients that came back to an output, by node and slot.
        self.came_back: dict[tuple[Node, int], list[NodeOutput]] = {}

    def run(self) -> FunctionBody:
        """Add the gradients' nodes; results become gradients of arguments."""
        arg_types, ret_types = self.body.arg_types, self.body.ret_types
        order = _order(self.graph)
        in_loops = self.dependent.difference(order)
        if in_loops:
            raise _no_gradient(min(in_loops, key=lambda node: node.id))
        for index, dtype in enumerate(ret_types):
            source = self.results[index].input(0)
            arg = _add_arg(self.graph, len(arg_types) + index, dtype)
            self.note(source.src, source.src_slot, arg)
        self.graph.remove_nodes(self.results.values())
        for node in reversed(order):
            if node in self.dependent and node.role not in (Role.ARG, Role.RETVAL):
                self.pass_on(node)
        wanted = [self.add_result(index, dtype) for index, dtype in enumerate(arg_types)]
        prune_body(self.graph, wanted)
        return FunctionBody(GRADIENT, self.graph, (*arg_types, *ret_types), arg_types)

    def note(self, node: Node, slot: int, gradient: NodeOutput) -> None:
        """A gradient has come back to an output."""
        self.came_back.setdefault((node, slot), []).append(gradient)

    def pass_on(self, node: Node) -> None:
        """Bring what came back to a node's outputs to its inputs."""
        y = outputs_of(self.graph, node)
        if not any((node, value.slot) in self.came_back for value in y):
            return
        dy = [self.total(value) or value.to("ZerosLike") for value in y]
        x = [NodeOutput(self.graph, edge.src, edge.src_slot) for edge in node.inputs if edge]
        for value, gradient in zip(x, _gradients(node, x, y, dy), strict=True):
            if gradient is not None and value.node in self.dependent:
                self.note(value.node, value.slot, gradient)

    def total(self, value: NodeOutput) -> NodeOutput | None:
        """The sum of what came back to an output."""
        parts = self.came_back.get((value.node, value.slot))
        return None if parts is None else reduce(NodeOutput.__add__, parts)

    def add_result(self, index: int, dtype: DType) -> Node:
        """The gradient of an argument as a result; zeros if none came back."""
        node = self.args.get(index)
        arg = NodeOutput(self.graph, node, 0) if node else _add_arg(self.graph, index, dtype)
        return _add_retval(self.graph, index, self.total(arg) or arg.to("ZerosLike"))


def _gradients(
    node: Node, x: list[NodeOutput], y: list[NodeOutput], dy: list[NodeOutput]
) -> Gradients:
    """What a node's rule says; a function is called again, by way of its gradient."""
    if node.op.is_function or node.op.name == GRADIENT:
        func = FuncAttr(node.op.name, {name: node.attrs[name] for name in node.op.attrs})
        types = tuple(value.dtype for value in x)
        return apply(dy[0].graph, GRADIENT, [*x, *dy], f=func, Tout=types)
    rule = RULES.get(node.op.name)
    if rule is None:
        raise _no_gradient(node)
    return rule(At(node.op.name, x, y, dy, node.attrs))


def _no_gradient(node: Node) -> NotFoundError:
    return NotFoundError(
        f"No gradient defined for op: {node.op.name}",
        next_step=f"register a gradient for the function that node '{node.name}' is in",
    )


def _by_index(graph: Graph, role: Role) -> dict[int, Node]:
    return {node.attrs["index"]: node for node in graph if node.role is role}


def _downstream(nodes: Sequence[Node]) -> set[Node]:
    """All that depend on some nodes by data, and the nodes themselves."""
    found, waiting = set(nodes), list(nodes)
    while waiting:
        for edge in waiting.pop().out_edges:
            if not edge.is_control and edge.dst not in found:
                found.add(edge.dst)
                waiting.append(edge.dst)
    return found


def _order(graph: Graph) -> list[Node]:
    """The nodes, each after those it reads."""
    missing = {node: sum(edge is not None for edge in node.inputs) for node in graph}
    ready = [node for node, count in missing.items() if count == 0]
    for node in ready:
        for edge in node.out_edges:
            if not edge.is_control:
                missing[edge.dst] -= 1
                if missing[edge.dst] == 0:
                    ready.append(edge.dst)
    return ready
