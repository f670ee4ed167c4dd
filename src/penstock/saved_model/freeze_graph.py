"""Freezing a signature of a model of TensorFlow 1.

In:   a MetaGraphDef without objects, a signature, the values of variables.
Out:  the part of the graph that the signature needs, with constants for variables.
Not:  runs nothing.

Names of nodes stay, so that what the signature calls its tensors is what the frozen graph does.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any, Final

from penstock.core import dtypes
from penstock.core.names import parse_endpoint
from penstock.core.values import Value
from penstock.defs.schema import GraphDef, Message, SignatureDef
from penstock.defs.tensors import to_proto
from penstock.errors import FailedPreconditionError
from penstock.formats.stored_model import PREDICT
from penstock.graph.functions import FunctionLibrary
from penstock.graph.graph import Graph
from penstock.graph.initializers import FILLERS, VARIABLES
from penstock.saved_model.assets import assets_of
from penstock.saved_model.constant_variables import Body, FunctionCopies, GraphNames
from penstock.saved_model.tensor_info import read_tensor_info
from penstock.session.missing import called_functions, needed_nodes

_HANDLE: Final = "VarHandleOp"
_INITIALIZERS: Final = frozenset(op for ops in FILLERS.values() for op in ops)


def freeze_graph(
    meta_graph: Any, signature: Any, variables: Mapping[str, Value], inits: Sequence[str]
) -> tuple[Message, dict[str, str], dict[str, str], str, dict[str, str]]:
    """The graph, its inputs and outputs by the signature's names, what initializes it, its assets.

    Args:
        meta_graph: where the graph is, and what initializes it.
        signature: a SignatureDef, of this graph or made for it.
        variables: their values by name.
        inits: the nodes that initialize what is no variable.

    Raises:
        FailedPreconditionError: the signature changes a variable, or one has no value.
        UnimplementedError: something takes a variable that is not known to read it.

    """
    inputs = {name: read_tensor_info(info)[1][0] for name, info in sorted(signature.inputs.items())}
    outputs = {
        name: read_tensor_info(info)[1][0] for name, info in sorted(signature.outputs.items())
    }
    source = GraphDef()
    source.CopyFrom(meta_graph.graph_def)
    _cut_at(source, signature.inputs.values())
    fillers = _fillers(source, inits)
    nodes = needed_nodes(source, [*outputs.values(), *fillers])
    missing = [node for node in source.node if f"{node.name}:0" in inputs.values()]
    nodes += [node for node in missing if node.name not in {known.name for known in nodes}]
    graph_def = GraphDef(versions=source.versions)
    graph_def.node.extend(nodes)
    copies = _without_variables(graph_def, source, variables)
    known = {name: copies.library.get(name) for name in copies.library}
    known.update({copy.signature.name: copy for copy in copies.functions})
    init = _init_node(graph_def, fillers)
    graph_def.library.function.extend(called_functions(graph_def.node, known))
    return graph_def, inputs, outputs, init, _assets(graph_def, meta_graph)


def signature_for(meta_graph: Any, graph: Graph, fetches: Sequence[str]) -> Any:
    """A signature of tensors, and of the placeholders that they need; each by its node's name.

    Raises:
        NotFoundError: the graph has no such tensor.

    """
    signature: Any = SignatureDef(method_name=PREDICT)
    for fetch in fetches:
        node, slot = graph.endpoint(parse_endpoint(fetch))
        info = signature.outputs[node.name if slot == 0 else f"{node.name}_{slot}"]
        info.name, info.dtype = f"{node.name}:{slot}", node.output_types[slot].number
        info.tensor_shape.unknown_rank = True
    for needed in needed_nodes(meta_graph.graph_def, fetches):
        if needed.op in ("Placeholder", "PlaceholderV2"):
            info = signature.inputs[needed.name]
            info.name, info.dtype = f"{needed.name}:0", needed.attr["dtype"].type
            info.tensor_shape.CopyFrom(needed.attr["shape"].shape)
    return signature


def _assets(graph_def: Any, meta_graph: Any) -> dict[str, str]:
    """Paths of files by the constants that name them; loading has put the paths there."""
    names = {parse_endpoint(asset.tensor_info.name).node for asset in assets_of(meta_graph)}
    nodes = [node for node in graph_def.node if node.name in names and node.op == "Const"]
    return {
        f"{node.name}:0": os.fsdecode(node.attr["value"].tensor.string_val[0]) for node in nodes
    }


def _cut_at(graph_def: Any, infos: Any) -> None:
    """Have what is fed be placeholders, so that nothing behind them is needed."""
    fed = {read_tensor_info(info)[1][0]: info.dtype for info in infos}
    for node in graph_def.node:
        endpoint = f"{node.name}:0"
        if endpoint in fed and node.op not in ("Placeholder", "PlaceholderWithDefault"):
            shape = node.attr["shape"].shape if node.op == "PlaceholderV2" else None
            node.Clear()
            node.name, node.op = parse_endpoint(endpoint).node, "Placeholder"
            node.attr["dtype"].type = fed[endpoint]
            if shape is not None:
                node.attr["shape"].shape.CopyFrom(shape)
            else:
                node.attr["shape"].shape.unknown_rank = True


def _fillers(graph_def: Any, inits: Sequence[str]) -> list[str]:
    """What of a model's initialization fills tables."""
    return [node.name for node in needed_nodes(graph_def, inits) if node.op in _INITIALIZERS]


def _without_variables(
    graph_def: Any, source: Any, variables: Mapping[str, Value]
) -> FunctionCopies:
    """Put constants in the place of variables, and rewrite what was given their handles."""
    library = FunctionLibrary()
    library.add_library(source.library)
    copies = FunctionCopies(library)
    handles = {}
    for node in graph_def.node:
        node.attr.pop("_class", None)  # who it lies with may be gone
        if node.op in VARIABLES:
            dtype = dtypes.of_number(node.attr["dtype"].type)
            if node.op == _HANDLE:
                handles[f"{node.name}:0"] = dtype
            _become_constant(node, variables[node.name])
    references = {node.name for node in graph_def.node if node.op == "Const"}
    body = Body(graph_def.node, copies, GraphNames, "the signature")
    body.rewrite(handles)
    graph_def.node.extend(body.added)
    for node in graph_def.node:
        _check_reader(node, references)
    return copies


def _become_constant(node: Any, value: Value) -> None:
    dtype = dtypes.of_number(node.attr["dtype"].type)
    node.op = "Const"
    node.attr.clear()
    node.attr["dtype"].type = dtype.number
    node.attr["value"].tensor.CopyFrom(to_proto(value, dtype))


def _check_reader(node: Any, constants: set[str]) -> None:
    """Refuse a node that assigns to what was a variable of TensorFlow 1."""
    first = parse_endpoint(node.input[0]).node if len(node.input) else ""
    if first in constants and node.op.startswith(("Assign", "Scatter", "Apply", "CountUpTo")):
        raise FailedPreconditionError(
            f"{node.name} ({node.op}) changes a variable, which so cannot become a constant",
            next_step="freeze a signature that only reads variables, or keep the SavedModel",
        )


def _init_node(graph_def: Any, fillers: Sequence[str]) -> str:
    if not fillers:
        return ""
    taken, name, number = {node.name for node in graph_def.node}, "init", 0
    while name in taken:
        number += 1
        name = f"init_{number}"
    graph_def.node.add(name=name, op="NoOp", input=[f"^{filler}" for filler in fillers])
    return name
