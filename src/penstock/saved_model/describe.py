"""What is in a model, without opening it.

In:   the path of a model, or what was read there.
Out:  facts about each of its graphs: tags, signatures, functions, variables, ops that cannot run.
Not:  restores, initializes and runs nothing.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from penstock.core import dtypes
from penstock.dataclass import dataclass
from penstock.defs.schema import Message
from penstock.defs.tensors import shape_from_proto
from penstock.errors import OpError
from penstock.formats.read_model import read_model
from penstock.formats.stored_model import StoredModel, signature_names, tags_of
from penstock.graph.import_graph_def import graph_from_def
from penstock.graph.initializers import VARIABLES
from penstock.saved_model.assets import assets_of
from penstock.saved_model.functions import public_paths
from penstock.saved_model.inferred_outputs import with_inferred_shapes
from penstock.saved_model.object_graph import CONCRETE_FUNCTION, VARIABLE, SavedObjects
from penstock.saved_model.structured import Spec, TensorSpec, arguments_text, decode
from penstock.saved_model.tensor_info import read_tensor_info
from penstock.session.missing import missing_in


@dataclass(frozen=True, slots=True)
class SignatureFacts:
    """A signature: what it takes and gives, and what TensorFlow Serving calls its purpose."""

    inputs: Mapping[str, Spec]
    outputs: Mapping[str, Spec]
    method: str


@dataclass(frozen=True, slots=True)
class GraphFacts:
    """One of the graphs of a model; most have one."""

    tags: tuple[str, ...]
    #: Of which TensorFlow wrote it; empty if it does not say.
    tensorflow_version: str
    signatures: Mapping[str, SignatureFacts]
    #: Paths of functions, and the arguments that each was traced for.
    functions: Mapping[str, tuple[str, ...]]
    #: Types and shapes of variables, by path, or in graphs of TensorFlow 1 by name.
    variables: Mapping[str, TensorSpec]
    #: Names of files in the model's folder ``assets``.
    assets: tuple[str, ...]
    #: How many nodes cannot run, by op and reason.
    missing: Mapping[tuple[str, str], int]
    #: How many nodes have an op, functions included.
    ops: Mapping[str, int]


def describe(model: StoredModel | str | os.PathLike[str]) -> tuple[GraphFacts, ...]:
    """Facts about all graphs of a model, in its own order.

    Args:
        model: a path, as ``load`` takes it; or what was read there.

    Raises:
        NotFoundError: there is none.
        DataLossError: it is damaged.

    """
    stored = model if isinstance(model, StoredModel) else read_model(model)
    return tuple(map(_graph_facts, stored.meta_graphs))


def _graph_facts(meta_graph: Any) -> GraphFacts:
    objects = SavedObjects(meta_graph.object_graph_def)
    return GraphFacts(
        tags_of(meta_graph),
        meta_graph.meta_info_def.tensorflow_version,
        _signatures(meta_graph),
        {path: _traces(objects, path) for path in public_paths(objects)} if objects.nodes else {},
        _variables(objects, meta_graph.graph_def),
        tuple(asset.filename for asset in assets_of(meta_graph)),
        _missing(meta_graph.graph_def),
        _ops(meta_graph.graph_def),
    )


def _signatures(meta_graph: Any) -> dict[str, SignatureFacts]:
    protos = {name: meta_graph.signature_def[name] for name in signature_names(meta_graph)}
    facts = {name: _signature_facts(proto) for name, proto in protos.items()}
    if not any(_is_open(spec) for one in facts.values() for spec in one.outputs.values()):
        return facts
    try:
        graph = graph_from_def(meta_graph.graph_def)
    except OpError:  # what cannot be read is for ``load`` to refuse
        return facts
    return {
        name: replace(one, outputs=with_inferred_shapes(graph, _outputs(protos[name])))
        for name, one in facts.items()
    }


def _is_open(spec: Spec) -> bool:
    """Whether a graph may tell more: a batch of any size is what most models mean to take."""
    dims = spec.shape.dims if isinstance(spec, TensorSpec) else ()
    return dims is None or None in dims[1:]


def _signature_facts(proto: Any) -> SignatureFacts:
    inputs = {name: read_tensor_info(proto.inputs[name])[0] for name in sorted(proto.inputs)}
    outputs = {name: spec for name, (spec, _) in _outputs(proto).items()}
    return SignatureFacts(inputs, outputs, proto.method_name)


def _outputs(proto: Any) -> dict[str, tuple[Spec, list[str]]]:
    return {name: read_tensor_info(proto.outputs[name]) for name in sorted(proto.outputs)}


def _traces(objects: SavedObjects, path: str) -> tuple[str, ...]:
    number = objects.find(path)
    facts = objects.facts(number)
    is_one = objects.kind(number) == CONCRETE_FUNCTION
    names = [facts.concrete_function_name] if is_one else facts.concrete_functions
    known = [objects.functions[name] for name in names if name in objects.functions]
    return tuple(arguments_text(decode(one.canonicalized_input_signature)) for one in known)


def _variables(objects: SavedObjects, graph_def: Any) -> dict[str, TensorSpec]:
    if objects.nodes:
        found = {path: objects.facts(n) for path, n in objects.reached(VARIABLE).items()}
        return {path: _spec(facts.dtype, facts.shape) for path, facts in found.items()}
    nodes = [node for node in graph_def.node if node.op in VARIABLES]
    return {node.name: _spec(node.attr["dtype"].type, node.attr["shape"].shape) for node in nodes}


def _spec(dtype: int, shape: Message) -> TensorSpec:
    return TensorSpec(dtypes.of_number(dtype), shape_from_proto(shape))


def _missing(graph_def: Message) -> Mapping[tuple[str, str], int]:
    try:
        return missing_in(graph_def)
    except OpError:  # a graph that cannot be read at all is for ``load`` to refuse
        return {}


def _ops(graph_def: Any) -> Counter[str]:
    functions = {function.signature.name for function in graph_def.library.function}
    counts = Counter(node.op for node in graph_def.node)
    for function in graph_def.library.function:
        counts.update(node.op for node in function.node_def)
    return Counter({op: count for op, count in counts.items() if op not in functions})
