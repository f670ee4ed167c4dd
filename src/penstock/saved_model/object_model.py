"""A model of TensorFlow 2: objects with functions, variables and tables.

In:   a MetaGraphDef with objects; the files beside it.
Out:  a graph of functions, ready to be called, whose tables are filled; its signatures.
Not:  restores no variable before a function needs it.

The order is TensorFlow's: resources are made, then restored, then initialized, each in the order
of the objects' numbers.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from penstock.config import Config
from penstock.core.dtypes import DType
from penstock.core.values import Value
from penstock.defs.schema import Message, SignatureDef
from penstock.defs.tensors import from_proto
from penstock.errors import DataLossError
from penstock.formats.stored_model import Companions
from penstock.saved_model.function_graph import FunctionGraph
from penstock.saved_model.functions import ConcreteFunction
from penstock.saved_model.object_graph import (
    CONCRETE_FUNCTION,
    RESOURCE,
    SIGNATURES,
    SavedObjects,
)
from penstock.saved_model.signatures import Offer
from penstock.saved_model.structured import Spec, TensorSpec, is_spec
from penstock.saved_model.tensor_info import read_tensor_info

#: The edge to the function that initializes a resource.
INITIALIZE: Final = "_initialize"


def open_objects(meta_graph: Message, companions: Companions, config: Config) -> FunctionGraph:
    """The functions of a model, with their tables filled; raises OpError if that cannot be."""
    graph = FunctionGraph(meta_graph, SavedObjects(meta_graph.object_graph_def), companions, config)
    try:
        _fill_resources(graph)
    except BaseException:
        graph.close()
        raise
    return graph


def _fill_resources(graph: FunctionGraph) -> None:
    objects = graph.objects
    resources = [n for n in range(len(objects.nodes)) if objects.kind(n) == RESOURCE]
    for number in resources:
        graph.resource_handle(number)
    for number in range(len(objects.nodes)):
        for attribute, saveable in objects.nodes[number].saveable_objects.items():
            _restore(graph, graph.stored.keys(number).get(attribute), saveable)
    for number in resources:
        initializer = graph.concrete(objects.child(number, INITIALIZE))
        if initializer is not None:
            graph.ready(initializer)()


def _restore(graph: FunctionGraph, key: str | None, saveable: Any) -> None:
    """Restore what an object saves by functions of its own.

    The function that saves says under which keys; the one that restores takes what stands there.
    """
    functions = _saving_functions(graph, saveable)
    if key is None or functions is None:
        return
    names = [_text(spec["name"]) for spec in _specs(graph, functions[0], key)]
    graph.ready(functions[1])(*map(graph.stored.read, names))


def saved_tensors(
    graph: FunctionGraph, number: int
) -> Iterator[tuple[str, list[tuple[Value, DType]]]]:
    """Functions that restore an object, and what they would be given if it were saved now."""
    for key, saveable in graph.objects.nodes[number].saveable_objects.items():
        functions = _saving_functions(graph, saveable)
        if functions is not None:
            save, restore = functions
            types = graph.argument_specs(restore)
            values = [spec["tensor"] for spec in _specs(graph, save, key)]
            yield restore, [(v, spec.dtype) for v, spec in zip(values, types, strict=True)]


def _saving_functions(graph: FunctionGraph, saveable: Any) -> tuple[str, str] | None:
    """What saves, and what restores."""
    save = graph.concrete(_in_range(graph, saveable.save_function))
    restore = graph.concrete(_in_range(graph, saveable.restore_function))
    return None if save is None or restore is None else (save, restore)


def _specs(graph: FunctionGraph, save: str, key: str) -> list[Any]:
    """What a function that saves returns: names and tensors."""
    specs = ConcreteFunction(graph, save).run([key])
    is_sound = isinstance(specs, (list, tuple)) and all(
        isinstance(spec, dict) and {"name", "tensor"} <= spec.keys() for spec in specs
    )
    if not is_sound:
        raise DataLossError(f"the SavedModel is damaged: {save} does not say what it saves")
    return list(specs)


def _in_range(graph: FunctionGraph, number: int) -> int:
    if not 0 <= number < len(graph.objects.nodes):
        raise DataLossError(f"the SavedModel is damaged: there is no object {number}")
    return number


def _text(name: Value) -> str:
    if not isinstance(name, bytes):
        raise DataLossError("the SavedModel is damaged: the name of a tensor is no text")
    return name.decode("utf-8", "surrogateescape")


# -- signatures ----------------------------------------------------------------------------------


def offers_of(graph: FunctionGraph, meta_graph: Message) -> dict[str, Offer]:
    """The signatures of a model: functions that its root has under ``signatures``."""
    root = graph.objects.child(0, SIGNATURES)
    if root is None:
        return {}
    return {
        name: _offer(graph, number, meta_graph.signature_def.get(name))
        for name, number in graph.objects.children(root)
        if graph.objects.kind(number) == CONCRETE_FUNCTION
    }


def _offer(graph: FunctionGraph, number: int, proto: Any) -> Offer:
    facts = graph.objects.facts(number)
    function, described = facts.concrete_function_name, proto or SignatureDef()
    return Offer(
        inputs=_inputs(graph, function, list(facts.argument_keywords)),
        outputs=_outputs(graph, function, described),
        prepare=lambda: graph.ready(function),
        endpoints=lambda: graph.endpoints(function),
        defaults={name: from_proto(value) for name, value in described.defaults.items()},
        method=described.method_name,
    )


def _inputs(graph: FunctionGraph, name: str, keywords: list[str]) -> dict[str, Spec]:
    """Specifications by name, in the order of the function's arguments."""
    args, named = ConcreteFunction(graph, name).structure
    found = {spec.name: spec for spec in args if isinstance(spec, TensorSpec)} | named
    if set(found) == set(keywords) and all(map(is_spec, found.values())):
        return {keyword: found[keyword] for keyword in keywords}
    # What the structure calls them is unclear; types are known all the same.
    specs = graph.argument_specs(name)
    if len(specs) != len(keywords):
        raise DataLossError(f"the SavedModel is damaged: the inputs of {name} are unclear")
    return dict(zip(keywords, specs, strict=True))


def _outputs(graph: FunctionGraph, name: str, proto: Any) -> dict[str, Spec]:
    """Specifications by name, in the order of the function's results."""
    found = ConcreteFunction(graph, name).result
    if isinstance(found, dict) and all(map(is_spec, found.values())):
        return found
    infos = {key: read_tensor_info(proto.outputs[key]) for key in sorted(proto.outputs)}
    count = len(graph.definition(name).signature.output_arg)
    if sum(len(tensors) for _, tensors in infos.values()) != count:
        raise DataLossError(f"the SavedModel is damaged: the outputs of {name} are unclear")
    return {key: spec for key, (spec, _) in infos.items()}
