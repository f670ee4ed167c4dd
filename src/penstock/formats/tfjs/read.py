"""``read``: a graph model of TensorFlow.js as a MetaGraphDef.

In:   the place of ``model.json``, or of its folder.
Out:  a MetaGraphDef: the graph with its weights as constants, its signature, and what fills tables.
Not:  runs nothing; opens no file outside of the folder.

``model.json`` has a GraphDef in protobuf's JSON form, whose constants are empty: their values lie
in the weight files, those of constants in functions too.  The node's type wins over the manifest's.
A second graph, the initializer, fills tables; it becomes a part of the first, and is run by the
signature that a SavedModel has for that.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from typing import Any, Final

import numpy as np
from google.protobuf import json_format

from penstock.core import dtypes
from penstock.core.files import FileSystem
from penstock.core.values import Array
from penstock.defs.schema import GraphDef, Message, MetaGraphDef
from penstock.defs.tensors import to_proto
from penstock.errors import DataLossError, InvalidArgumentError, UnimplementedError
from penstock.formats.place import Place
from penstock.formats.stored_model import (
    DEFAULT_SIGNATURE,
    INIT_SIGNATURE,
    PREDICT,
    SERVE,
    Companions,
    StoredModel,
    is_inside,
)
from penstock.formats.strict_json import parse_object
from penstock.formats.tfjs.fused import translated
from penstock.formats.tfjs.weights import Weights

_MODEL: Final = "model.json"
_FILES: Final = FileSystem()


def read(place: Place) -> StoredModel:
    """A graph model of TensorFlow.js: ``model.json``, by whatever name, or its folder.

    Raises:
        NotFoundError: a file is missing.
        InvalidArgumentError: it is no graph model, or names a file outside of its folder.
        UnimplementedError: it is a layers model, which is one of Keras.
        DataLossError: a weight file is too short.

    """
    path = place.path if place.content is not None else os.path.join(place.path, _MODEL)
    content = place.content if place.content is not None else _FILES.read(path)
    model = parse_object(content, path)
    topology = model.get("modelTopology")
    if not isinstance(topology, dict) or not isinstance(topology.get("node"), list):
        raise _no_graph(model, path)
    files = [path]

    def read_beside(name: str) -> bytes:
        if not is_inside(name) or not place.has_folder:
            raise InvalidArgumentError(f"{path}: the weight file {name!r} is outside of the folder")
        files.append(os.path.join(os.path.dirname(path), name))
        return _FILES.read(files[-1])

    weights = Weights(model.get("weightsManifest", []), read_beside)
    return StoredModel(
        what="a graph model of TensorFlow.js",
        path=path,
        meta_graphs=[_meta_graph(model, weights, path)],
        companions=Companions(files=tuple(files)),
    )


def _meta_graph(model: dict[str, Any], weights: Weights, path: str) -> Message:
    meta = MetaGraphDef()
    meta.meta_info_def.tags.append(SERVE)
    meta.graph_def.CopyFrom(_graph(model["modelTopology"], weights, path))
    _add_signature(meta, model, path)
    initializer = model.get("modelInitializer")
    if isinstance(initializer, dict):
        _add_initializer(meta, _graph(initializer, weights, path))
    return meta


def _no_graph(model: dict[str, Any], place: str) -> InvalidArgumentError | UnimplementedError:
    if model.get("format") == "layers-model":
        return UnimplementedError(
            f"{place} is a layers model of TensorFlow.js, not a graph model",
            next_step="tensorflowjs_converter makes a Keras file of it",
        )
    return InvalidArgumentError(
        f"{place} is no graph model of TensorFlow.js: it has no modelTopology with nodes"
    )


# -- the graph -------------------------------------------------------------------------


def _graph(json: Any, weights: Weights, place: str) -> Any:
    """A graph with its constants."""
    graph = GraphDef()
    _fill(graph, json, place)
    for nodes, in_function in _node_lists(graph):
        for node in nodes:
            if node.op == "Const":
                _set_constant(node, weights, place)
        made = list(translated(nodes, in_function=in_function))
        if len(made) != len(nodes):
            del nodes[:]
            nodes.extend(made)
    return graph


def _fill(message: Any, json: Any, place: str) -> None:
    try:
        json_format.ParseDict(json, message, ignore_unknown_fields=True)
    except (json_format.ParseError, ValueError, TypeError, RecursionError) as cause:
        name = message.DESCRIPTOR.name
        raise InvalidArgumentError(f"{place}: there is no {name} in it: {cause}") from None


def _node_lists(graph: Any) -> Iterator[tuple[Any, bool]]:
    """The nodes of the graph and of its functions, and whether they are a function's."""
    yield graph.node, False
    for function in graph.library.function:
        yield function.node_def, True


def _set_constant(node: Any, weights: Weights, place: str) -> None:
    """Have a constant hold its weight; one without a weight holds what it has."""
    value = weights.take(node.name)
    if value is None:
        return
    dtype = dtypes.of_number(node.attr["dtype"].type)
    if dtype.is_object != value.dtype.hasobject or (dtype.is_object and dtype is not dtypes.string):
        raise DataLossError(f"{place}: the weight of {node.name} is no {dtype}")
    node.attr["value"].tensor.CopyFrom(to_proto(_as_type(value, dtype), dtype))


def _as_type(value: Array, dtype: dtypes.DType) -> Array:
    if dtype is dtypes.string or value.dtype == dtype.numpy:
        return value
    if dtype.is_integer and value.dtype.kind == "f":
        value = np.rint(value)  # quantized whole numbers
    with np.errstate(invalid="ignore", over="ignore"):
        return value.astype(dtype.numpy)


# -- signature and initializer ---------------------------------------------------------


def _add_signature(meta: Any, model: dict[str, Any], place: str) -> None:
    """What to feed and to fetch; if the model does not say, its placeholders and its ends."""
    given = model.get("signature") or (model.get("userDefinedMetadata") or {}).get("signature")
    signature = meta.signature_def[DEFAULT_SIGNATURE]
    signature.method_name = PREDICT
    if isinstance(given, dict) and given.get("outputs"):
        _fill(signature, given, place)
        for infos in (signature.inputs, signature.outputs):
            for info in infos.values():
                info.name = info.name if ":" in info.name else f"{info.name}:0"
        return
    read_by_others = {_source(name) for node in meta.graph_def.node for name in node.input}
    for node in meta.graph_def.node:
        if node.op in ("Placeholder", "PlaceholderWithDefault"):
            _add_info(signature.inputs[node.name], node)
        elif node.name not in read_by_others and node.op not in ("Const", "NoOp"):
            _add_info(signature.outputs[node.name], node)


def _add_info(info: Any, node: Any) -> None:
    info.name = f"{node.name}:0"
    info.dtype = node.attr["dtype"].type or node.attr["T"].type
    info.tensor_shape.unknown_rank = True


def _add_initializer(meta: Any, initializer: Any) -> None:
    """Put the initializer's nodes to the others; what nobody reads of them is to be run."""
    known = {node.name for node in meta.graph_def.node}
    read_by_others = {_source(name) for node in initializer.node for name in node.input}
    new = [node for node in initializer.node if node.name not in known]
    ends = [node.name for node in new if node.name not in read_by_others]
    functions = {function.signature.name for function in meta.graph_def.library.function}
    meta.graph_def.node.extend(new)
    for function in _needed(new, initializer.library.function):
        if function.signature.name not in functions:
            meta.graph_def.library.function.append(function)
    if ends:
        name = _free_name("initializer", known | {node.name for node in new})
        meta.graph_def.node.add(name=name, op="NoOp", input=[f"^{end}" for end in ends])
        meta.signature_def[INIT_SIGNATURE].outputs[INIT_SIGNATURE].name = name


def _needed(nodes: Iterable[Any], functions: Iterable[Any]) -> list[Any]:
    """The functions that nodes call, and those that these call."""
    by_name = {function.signature.name: function for function in functions}
    waiting, found = list(nodes), dict[str, Any]()
    while waiting:
        node = waiting.pop()
        names = [node.op, *(attr.func.name for attr in node.attr.values())]
        names += [func.name for attr in node.attr.values() for func in attr.list.func]
        for name in names:
            if name in by_name and name not in found:
                found[name] = by_name[name]
                waiting += by_name[name].node_def
    return list(found.values())


def _source(name: str) -> str:
    """The node of an input."""
    return name.removeprefix("^").partition(":")[0]


def _free_name(name: str, taken: set[str]) -> str:
    while name in taken:
        name += "_"
    return name
