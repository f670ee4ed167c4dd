"""Function → graph: the body of a library function for given attributes.

In:   a FunctionDef's name and the attributes of a call.
Out:  ``FunctionBody``: a graph with ``_Arg`` and ``_Retval`` nodes.
Not:  runs nothing; looks into no function that the body calls.

Inside a body, inputs are written ``arg``, ``arg:index``, ``node:output`` or
``node:output:index``.  Without an index, the name of a list stands for all of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from typing import Any

from penstock.catalogue.op_def import ArgDef, OpDef
from penstock.catalogue.registry import get_op
from penstock.core.device_names import DeviceName
from penstock.core.dtypes import DType
from penstock.dataclass import dataclass
from penstock.defs.attrs import Attr, FuncAttr, PlaceholderAttr
from penstock.defs.schema import Message
from penstock.errors import InvalidArgumentError, NotFoundError
from penstock.graph.cycles import check_cycles
from penstock.graph.functions import FunctionLibrary
from penstock.graph.graph import Graph, Node
from penstock.graph.roles import CONTROL_FLOW, Role
from penstock.graph.validate import listed_types, validated_attrs


@dataclass(frozen=True, slots=True)
class FunctionBody:
    """A function, ready to be run."""

    name: str
    graph: Graph
    arg_types: tuple[DType, ...]
    ret_types: tuple[DType, ...]
    #: What must have run before the function is over, as its definition says (``control_ret``).
    controls: tuple[Node, ...] = ()

    @property
    def wanted(self) -> list[Node]:
        """The nodes that the others are there for: results, and what must have run."""
        return [*(node for node in self.graph if node.role is Role.RETVAL), *self.controls]


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
    body = instantiate_whole(library, name, attrs)
    prune_body(body.graph, body.wanted)
    return body


def instantiate_whole(
    library: FunctionLibrary, name: str, attrs: Mapping[str, Attr]
) -> FunctionBody:
    """The body of ``name`` with all of its nodes; raises what ``instantiate`` raises.

    What has no use may still say where others lie, unless it asks for what is no device.
    """
    body = _Instantiation(library, library.get(name), library.op_def(name), attrs).run()
    if any(map(_is_lost, body.graph)):
        prune_body(body.graph, body.wanted)
        _check_devices(body.graph)
    return body


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
        self.graph = Graph(library, function=signature.name)
        #: Argument nodes by the argument's name.
        self.args: dict[str, list[Node]] = {}
        #: Body nodes by name.
        self.outputs: dict[str, _Outputs] = {}

    def run(self) -> FunctionBody:
        """Arguments, nodes, their edges, results."""
        self.add_args()
        for proto in self.function.node_def:
            self.add_node(proto)
        for proto in self.function.node_def:
            self.add_edges(proto)
        self.join_boundary()
        self.add_results()
        check_cycles(self.graph)
        return FunctionBody(
            self.signature.name,
            self.graph,
            self.signature.input_types(self.attrs),
            self.signature.output_types(self.attrs),
            self.controls(),
        )

    def bound_attrs(self, given: Mapping[str, Attr]) -> dict[str, Attr]:
        """The function's attributes for this call; one without a value takes its default."""
        bound = {name: value for name, value in given.items() if value is not None}
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

    def join_boundary(self) -> None:
        """Arguments and results that the body writes out as nodes are those of the signature."""
        own = [node for nodes in self.args.values() for node in nodes]
        written = [
            outputs.node
            for outputs in self.outputs.values()
            if outputs.node.role in (Role.ARG, Role.RETVAL)
        ]
        same = {
            node: [(own[node.attrs["index"]], 0)]
            for node in written
            if node.role is Role.ARG and node.attrs["index"] < len(own)
        }
        self.graph.redirect(same)
        self.graph.remove_nodes(node for node in written if node in same or not node.output_types)

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
        for position, text in enumerate(proto.input):
            if text.startswith("^"):
                source = self.control_source(text[1:])
                if source is None:
                    raise InvalidArgumentError(
                        f"input[{position}] == '{text}', is not found: {_tag(node)}"
                    )
                controls.append(source)
                continue
            endpoints = self.resolve(text)
            if endpoints is None:
                raise InvalidArgumentError(f"input {text} is not found: {_tag(node)}")
            if controls or (endpoints and slot == len(node.inputs)):
                raise InvalidArgumentError(
                    f"Expected input[{position}] == '{text}' to be a control input: {_tag(node)}"
                )
            slot = self.add_data_edges(endpoints, node, slot, text)
        if slot < len(node.inputs):
            count = len(proto.input) - len(controls)
            raise InvalidArgumentError(
                f"Attempt to access beyond input size: {count} >= {count}: {_tag(node)}"
            )
        if controls:
            self.graph.add_control_edges(controls, node)

    def add_data_edges(
        self, endpoints: Sequence[tuple[Node, int]], node: Node, slot: int, text: str
    ) -> int:
        """Edges from all that ``text`` stands for, from ``slot`` on; returns the next slot."""
        name, start, stop = _input_at(node, slot)
        if slot + len(endpoints) > stop:
            raise InvalidArgumentError(f"Input {text} too long for inputs: {_tag(node)}")
        for index, (src, src_slot) in enumerate(endpoints):
            given, wanted = src.output_types[src_slot], node.input_types[slot]
            if not given.may_feed(wanted):
                raise InvalidArgumentError(
                    f"input {name}[{slot - start}] expected type {wanted} != {given}, "
                    f"the type of {text}[{index}]: {_tag(node)}"
                )
            self.graph.add_edge(src, src_slot, node, slot)
            slot += 1
        return slot

    def control_source(self, name: str) -> Node | None:
        """The node or argument that a control input names."""
        if name in self.outputs:
            return self.outputs[name].node
        return self.args[name][0] if self.args.get(name) else None

    def resolve(self, text: str) -> list[tuple[Node, int]] | None:
        """The endpoints that an input string stands for; None if it names nothing."""
        name, *rest = text.split(":")
        if name in self.args:
            endpoints = [(node, 0) for node in self.args[name]]
        elif name in self.outputs and rest and rest[0] in self.outputs[name].slots:
            outputs = self.outputs[name]
            endpoints = [(outputs.node, slot) for slot in outputs.slots[rest.pop(0)]]
        else:
            return None
        if not rest:
            return endpoints
        is_index = len(rest) == 1 and rest[0].isdecimal() and int(rest[0]) < len(endpoints)
        return [endpoints[int(rest[0])]] if is_index else None

    def add_results(self) -> None:
        """One ``_Retval`` per result tensor."""
        op, index = get_op("_Retval"), 0
        names = [out.name for out in self.signature.outputs]
        for position, out in enumerate(self.signature.outputs):
            if out.name in names[:position]:
                raise InvalidArgumentError(f"Duplicated ret name {out.name}")
            for item, (src, slot) in enumerate(self.result(out)):
                name = f"{out.name}_RetVal_{item}" if out.is_list else f"{out.name}_RetVal"
                facts = {"T": src.output_types[slot].base, "index": index}
                ret = self.graph.add_node(name, op, facts)
                self.graph.add_edge(src, slot, ret, 0)
                index += 1

    def controls(self) -> tuple[Node, ...]:
        """What the function names as having to run, each node once."""
        found: dict[Node, None] = {}
        for name, target in self.function.control_ret.items():
            source = self.control_source(target)
            if source is None:
                raise InvalidArgumentError(f"control output {name} -> {target} is not found")
            found[source] = None
        return tuple(found)

    def result(self, out: ArgDef) -> list[tuple[Node, int]]:
        """The endpoints that one result, which may be a list, is taken from."""
        if out.name not in self.function.ret:
            raise InvalidArgumentError(f"Return {out.name} missing.")
        text = self.function.ret[out.name]
        endpoints = self.resolve(text)
        if endpoints is None:
            raise InvalidArgumentError(f"Return {out.name} -> {text} is not found.")
        wanted = [dtype.base for dtype in out.types(self.attrs)]
        given = [src.output_types[slot].base for src, slot in endpoints]
        if given != wanted:
            raise InvalidArgumentError(
                f"Invalid ret types {out.name} : {listed_types(wanted)} vs. {listed_types(given)}"
            )
        return endpoints


def _check_devices(graph: Graph) -> None:
    """Refuse what is no name of a device; whether there is such a one does not matter here."""
    for node in filter(_is_lost, graph):
        raise InvalidArgumentError(
            f"Malformed device specification '{node.requested_device}' in node: {node.name}"
        )


def _is_lost(node: Node) -> bool:
    return bool(node.requested_device) and DeviceName.try_parse(node.requested_device) is None


def _input_at(node: Node, slot: int) -> tuple[str, int, int]:
    """The input argument of ``node`` that ``slot`` belongs to: name, first slot, slot after."""
    start = 0
    for arg in node.op.inputs:
        stop = start + len(arg.types(node.attrs))
        if slot < stop:
            return arg.name, start, stop
        start = stop
    return "", start, start


def _tag(node: Node) -> str:
    """The node as error messages mark it."""
    return f"{{{{node {node.name}}}}}"


def prune_body(graph: Graph, wanted: Iterable[Node], *, keeps_effects: bool = True) -> None:
    """Keep what is wanted, what that needs, and all that has effects unless told otherwise."""
    effects = filter(_has_effects, graph) if keeps_effects else ()
    graph.remove_nodes(idle_nodes(graph, [*wanted, *effects]))


def idle_nodes(graph: Graph, wanted: Iterable[Node]) -> list[Node]:
    """What nobody needs, if only some nodes are wanted."""
    keep = set(wanted)
    waiting = list(keep)
    while waiting:
        for edge in waiting.pop().in_edges():
            if edge.src not in keep:
                keep.add(edge.src)
                waiting.append(edge.src)
    return [node for node in graph if node not in keep]


def _has_effects(node: Node) -> bool:
    is_stateful = node.op.is_stateful and node.role is not Role.ARG
    return is_stateful or node.role in CONTROL_FLOW
