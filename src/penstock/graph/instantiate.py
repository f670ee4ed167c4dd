"""Function → graph: the body of a library function for given attributes.

In:   a FunctionDef's name and the attributes of a call.
Out:  ``FunctionBody``: a graph with ``_Arg`` and ``_Retval`` nodes.
Not:  runs nothing; looks into no function that the body calls.

Inside a body, inputs are written ``arg``, ``arg:index``, ``node:output`` or
``node:output:index``; one that stands for a list may stand for all of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from penstock.catalogue.op_def import OpDef
from penstock.catalogue.registry import get_op
from penstock.core.dtypes import DType
from penstock.defs.attrs import Attr, FuncAttr, PlaceholderAttr
from penstock.defs.schema import Message
from penstock.errors import InvalidArgumentError, NotFoundError
from penstock.graph.functions import FunctionLibrary
from penstock.graph.graph import Graph, Node
from penstock.graph.roles import Role
from penstock.graph.validate import validated_attrs

_CONTROL_FLOW = frozenset(
    {Role.SWITCH, Role.MERGE, Role.ENTER, Role.EXIT, Role.NEXT_ITERATION, Role.LOOP_COND}
)


@dataclass(frozen=True, slots=True)
class FunctionBody:
    """A function, ready to be run."""

    name: str
    graph: Graph
    arg_types: tuple[DType, ...]
    ret_types: tuple[DType, ...]


@dataclass(frozen=False, slots=True)
class _Outputs:
    """Where the named outputs of one node of the body begin and end."""

    node: Node
    #: Slots by the output's name.
    slots: dict[str, range] = field(default_factory=dict)


def instantiate(library: FunctionLibrary, name: str, attrs: Mapping[str, Attr]) -> FunctionBody:
    """The body of ``name``, pruned to what it returns and what has effects.

    Raises:
        NotFoundError: the function, or an attribute that it needs, is not there.
        InvalidArgumentError: the definition contradicts itself.

    """
    function = library.get(name)
    return _Instantiation(library, function, library.op_def(name), attrs).run()


class _Instantiation:
    """One body under construction."""

    def __init__(
        self,
        library: FunctionLibrary,
        function: Message,
        signature: OpDef,
        attrs: Mapping[str, Attr],
    ) -> None:
        self.function = function
        self.signature = signature
        self.attrs = self.bound_attrs(attrs)
        self.graph = Graph(library)
        #: Argument nodes by the argument's name.
        self.args: dict[str, list[Node]] = {}
        #: Body nodes by name.
        self.outputs: dict[str, _Outputs] = {}

    def run(self) -> FunctionBody:
        """Arguments, nodes, their edges, results; then drop what has no use."""
        self.add_args()
        for proto in self.function.node_def:
            self.add_node(proto)
        for proto in self.function.node_def:
            self.add_edges(proto)
        wanted = self.add_results()
        prune_body(self.graph, wanted)
        return FunctionBody(
            self.signature.name,
            self.graph,
            self.signature.input_types(self.attrs),
            self.signature.output_types(self.attrs),
        )

    def bound_attrs(self, given: Mapping[str, Attr]) -> dict[str, Attr]:
        """The function's attributes for this call."""
        bound = dict(given)
        for name, attr in self.signature.attrs.items():
            if name not in bound:
                if attr.default is None:
                    raise NotFoundError(
                        f"Attr {name} is not found from the call of {self.signature.name}"
                    )
                bound[name] = attr.default
        return bound

    def add_args(self) -> None:
        """One ``_Arg`` per argument tensor."""
        op, index = get_op("_Arg"), 0
        for arg in self.signature.inputs:
            if arg.name in self.args:
                raise InvalidArgumentError(f"Duplicated arg name {arg.name}")
            nodes = []
            for position, dtype in enumerate(arg.types(self.attrs)):
                name = f"{arg.name}_{position}" if arg.is_list else arg.name
                nodes.append(self.graph.add_node(name, op, {"T": dtype, "index": index}))
                index += 1
            self.args[arg.name] = nodes

    def add_node(self, proto: Any) -> None:
        """One node without its edges."""
        if proto.name in self.graph:
            raise InvalidArgumentError(f"Duplicated node name {proto.name}")
        op = self.graph.op_def(proto.op)
        attrs = {k: self.bound(v, proto.name) for k, v in validated_attrs(proto, op).items()}
        node = self.graph.add_node(
            proto.name, op, attrs, device=proto.device, requested_inputs=list(proto.input)
        )
        outputs = self.outputs[proto.name] = _Outputs(node)
        start = 0
        for arg in op.outputs:
            stop = start + len(arg.types(attrs))
            outputs.slots[arg.name] = range(start, stop)
            start = stop

    def bound(self, value: Attr, node: str) -> Attr:
        """An attribute with the function's own attributes put in for placeholders."""
        if isinstance(value, PlaceholderAttr):
            if value.name not in self.attrs:
                raise InvalidArgumentError(
                    f"Failed to bind all placeholders in {node}: {value.name}"
                )
            return self.attrs[value.name]
        if isinstance(value, FuncAttr):
            return FuncAttr(value.name, {k: self.bound(v, node) for k, v in value.attrs.items()})
        if isinstance(value, tuple):
            return tuple(self.bound(item, node) for item in value)
        return value

    def add_edges(self, proto: Any) -> None:
        """All edges into one node."""
        node = self.outputs[proto.name].node
        slot, controls = 0, []
        for text in proto.input:
            if text.startswith("^"):
                controls.append(self.control_source(text[1:]))
                continue
            if controls:
                raise InvalidArgumentError(
                    f"Expected input '{text}' of {node.name} to be a control input."
                )
            for src, src_slot in self.resolve(text):
                if slot >= len(node.inputs):
                    raise InvalidArgumentError(f"Input {text} too long for inputs of {node.name}")
                self.graph.add_edge(src, src_slot, node, slot)
                slot += 1
        if slot < len(node.inputs):
            raise InvalidArgumentError(
                f"Attempt to access beyond input size: {slot} >= {slot} of {node.name}"
            )
        if controls:
            self.graph.add_control_edges(controls, node)

    def control_source(self, name: str) -> Node:
        """The node or argument that a control input names."""
        if name in self.outputs:
            return self.outputs[name].node
        if self.args.get(name):
            return self.args[name][0]
        raise InvalidArgumentError(f"input '^{name}' is not found.")

    def resolve(self, text: str) -> list[tuple[Node, int]]:
        """The endpoints that an input string stands for."""
        name, *rest = text.split(":")
        if name in self.args:
            nodes = self.args[name]
            chosen = nodes if not rest else [self.item(nodes, rest[-1], text)]
            return [(node, 0) for node in chosen]
        if name not in self.outputs:
            raise InvalidArgumentError(f"input {text} is not found")
        outputs = self.outputs[name]
        if not rest or rest[0] not in outputs.slots:
            slot = int(rest[0]) if rest and rest[0].isdigit() else 0
            return [(outputs.node, slot)]
        slots = outputs.slots[rest[0]]
        chosen_slots = slots if len(rest) == 1 else [self.item(slots, rest[1], text)]
        return [(outputs.node, slot) for slot in chosen_slots]

    @staticmethod
    def item(items: Any, index: str, text: str) -> Any:
        """One of a list, by an index written as text."""
        if not index.isdigit() or int(index) >= len(items):
            raise InvalidArgumentError(f"input {text} is not found: no such index")
        return items[int(index)]

    def add_results(self) -> list[Node]:
        """One ``_Retval`` per result tensor; returns everything that must run."""
        op, index, wanted = get_op("_Retval"), 0, []
        for out in self.signature.outputs:
            if out.name not in self.function.ret:
                raise InvalidArgumentError(f"Return {out.name} missing.")
            endpoints = self.resolve(self.function.ret[out.name])
            types = out.types(self.attrs)
            if len(endpoints) != len(types):
                raise InvalidArgumentError(
                    f"Return {out.name} has {len(endpoints)} tensors, not {len(types)}"
                )
            for position, ((src, slot), dtype) in enumerate(zip(endpoints, types, strict=True)):
                if src.output_types[slot].base is not dtype.base:
                    raise InvalidArgumentError(
                        f"Invalid ret types {out.name} : {dtype} vs. {src.output_types[slot]}"
                    )
                suffix = f"_RetVal_{position}" if out.is_list else "_RetVal"
                ret = self.graph.add_node(out.name + suffix, op, {"T": dtype, "index": index})
                self.graph.add_edge(src, slot, ret, 0)
                wanted.append(ret)
                index += 1
        wanted += [self.control_source(name) for name in self.function.control_ret.values()]
        return wanted


def prune_body(graph: Graph, wanted: Iterable[Node]) -> None:
    """Keep what results need, and whatever has effects: in a function, effects happen."""
    keep = set(wanted)
    keep |= {
        node
        for node in graph
        if (node.op.is_stateful and node.role is not Role.ARG) or node.role in _CONTROL_FLOW
    }
    waiting = list(keep)
    while waiting:
        for edge in waiting.pop().in_edges():
            if edge.src not in keep:
                keep.add(edge.src)
                waiting.append(edge.src)
    for node in reversed(list(graph)):
        if node not in keep:
            graph.remove_node(node)
