"""``freeze``: a signature of a model as one GraphDef, in which variables are constants.

In:   a loaded model, or the path of one; a signature's name.
Out:  ``Frozen``: the graph of what the signature needs, and how it is fed and fetched.
Not:  optimizes nothing: sessions do.

Functions are kept, with copies of those that are given handles of variables.  Tables stay tables:
a node, if there is one to be run once and first, fills them.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field, replace
from typing import Any, Final

from penstock.core import dtypes
from penstock.core.dtypes import DType
from penstock.core.names import is_legal_name
from penstock.core.values import Value
from penstock.dataclass import dataclass
from penstock.defs.schema import GraphDef, Message
from penstock.defs.tensors import shape_to_proto, to_proto
from penstock.errors import InvalidArgumentError, UnimplementedError
from penstock.graph.export import graph_to_def
from penstock.graph.import_graph_def import graph_from_def
from penstock.passes.lower import lower
from penstock.passes.lowerable import Kinds
from penstock.saved_model.constant_variables import FunctionCopies
from penstock.saved_model.freeze_graph import freeze_graph, signature_for
from penstock.saved_model.function_graph import FunctionGraph
from penstock.saved_model.graph_model import init_ops
from penstock.saved_model.loaded_model import LoadedModel, load_model
from penstock.saved_model.object_graph import ASSET, CONSTANT, RESOURCE, VARIABLE
from penstock.saved_model.object_model import INITIALIZE, saved_tensors
from penstock.saved_model.structured import Spec, TensorSpec
from penstock.session.missing import called_functions

_ILLEGAL: Final = re.compile(r"[^A-Za-z0-9_.\-/]")


@dataclass(frozen=True, slots=True)
class Frozen:
    """A frozen signature."""

    #: The graph, for ``Session`` or a file.
    graph_def: Message
    #: What to feed: tensors by the names of the signature's inputs.
    inputs: Mapping[str, str]
    #: What to fetch: tensors by the names of the signature's outputs.
    outputs: Mapping[str, str]
    #: A node to be run once, before all others; empty if there is nothing to initialize.
    init: str = ""
    #: Paths of files that the graph reads, by the constants that name them.
    assets: Mapping[str, str] = field(default_factory=dict)


def freeze(
    model: LoadedModel | str | os.PathLike[str],
    signature: str = "serving_default",
    *,
    tags: Any = None,
    inline: bool = False,
) -> Frozen:
    """A signature of a model as one graph without variables.

    Args:
        model: a loaded model, whose variables are taken as they are now; or the path of one.
        signature: the signature's name.
        tags: of a path, which of its graphs is meant; see ``load_model``.
        inline: whether the bodies of functions are put where these are called, as far as that
            can be; branches and loops stay functions.

    Raises:
        NotFoundError: there is no such signature.
        FailedPreconditionError: the signature changes a variable.
        UnimplementedError: something takes a variable that is not known to read it, or an input
            or output consists of several tensors.

    """
    if not isinstance(model, LoadedModel):
        with load_model(model, tags) as opened:
            return freeze(opened, signature, inline=inline)
    described = model.signatures[signature]
    for spec in (*described.inputs.values(), *described.outputs.values()):
        if not isinstance(spec, TensorSpec):
            raise UnimplementedError(f"{described} has {spec}, which is no single tensor")
    if model.function_graph is None:
        frozen = _frozen_graph(model, model.meta_graph.signature_def[signature])
    else:
        freezer = _Freezer(model.function_graph)
        frozen = freezer.frozen(signature, described.inputs, described.outputs)
    return _inlined(frozen) if inline else frozen


def freeze_tensors(
    model: LoadedModel | str | os.PathLike[str],
    fetches: Sequence[str],
    *,
    checkpoint: str | os.PathLike[str] | None = None,
    inline: bool = False,
) -> Frozen:
    """What some tensors of a graph need as one graph without variables.

    Inputs are the placeholders that they need, and outputs the tensors, each by its node's name.

    Args:
        model: a loaded model that is one graph; or the path of one.
        fetches: tensors, or nodes, whose first outputs are meant.
        checkpoint: of a path, where variables have their values; see ``load_model``.
        inline: see ``freeze``.

    Raises:
        NotFoundError: the graph has no such tensor.
        InvalidArgumentError: the model has functions instead of one graph.
        FailedPreconditionError: a variable has no value, or is changed.
        UnimplementedError: something takes a variable that is not known to read it.

    """
    if not isinstance(model, LoadedModel):
        with load_model(model, checkpoint=checkpoint) as opened:
            return freeze_tensors(opened, fetches, inline=inline)
    if model.function_graph is not None:
        raise InvalidArgumentError(
            f"{model.path} is {model.what} with functions, which are no parts of a graph",
            next_step="freeze one of its signatures",
        )
    signature = signature_for(model.meta_graph, model.session.graph, fetches)
    frozen = _frozen_graph(model, signature)
    return _inlined(frozen) if inline else frozen


def _frozen_graph(model: LoadedModel, signature: Any) -> Frozen:
    inits = init_ops(model.meta_graph, by_collection=model.fills_by_collection)
    return Frozen(*freeze_graph(model.meta_graph, signature, model.variables, inits))


def _inlined(frozen: Frozen) -> Frozen:
    """The same graph with the bodies of functions where they were called."""
    graph = graph_from_def(frozen.graph_def)
    lower(graph, {}, kinds=Kinds.CALLS, targets={frozen.init})
    graph_def = graph_to_def(graph)
    functions = {
        function.signature.name: function for function in frozen.graph_def.library.function
    }
    needed = called_functions(graph_def.node, functions)
    graph_def.ClearField("library")
    graph_def.library.function.extend(needed)
    return replace(frozen, graph_def=graph_def)


class _Freezer:
    """A graph that grows around a function."""

    def __init__(self, functions: FunctionGraph) -> None:
        self._functions: Final = functions
        self._objects: Final = functions.objects
        self._graph_def: Final = GraphDef(versions=functions.meta_graph.graph_def.versions)
        self._copies: Final = FunctionCopies(functions.graph.library)
        self._names: Final[set[str]] = set()
        #: Paths of files by the constants that name them.
        self._assets: Final[dict[str, str]] = {}
        #: Nodes that give what objects stand for.
        self._captured: Final[dict[int, str]] = {}

    def frozen(
        self, signature: str, inputs: Mapping[str, Spec], outputs: Mapping[str, Spec]
    ) -> Frozen:
        """The graph of a signature."""
        fed = {name: self._placeholder(name, spec) for name, spec in inputs.items()}
        function = self._functions.signature_function(signature)
        call = self._call(function, list(fed.values()), "call")
        fetched = {}
        for slot, (name, spec) in enumerate(outputs.items()):
            node = self._node("Identity", name, [f"{call}:{slot}"])
            node.attr["T"].type = spec.dtype.number  # type: ignore[union-attr]  # a tensor
            fetched[name] = f"{node.name}:0"
        init = self._initializer()
        self._add_library()
        return Frozen(self._graph_def, fed, fetched, init, self._assets)

    def _placeholder(self, name: str, spec: Any) -> str:
        node = self._node("Placeholder", name, [])
        node.attr["dtype"].type = spec.dtype.number
        shape_to_proto(spec.shape, node.attr["shape"].shape)
        return f"{node.name}:0"

    def _call(self, function: str, given: Sequence[str], name: str) -> str:
        """A node that calls a function, or its copy for values, with all that it captures."""
        signature = self._functions.definition(function).signature
        types = [dtypes.of_number(arg.type) for arg in signature.input_arg]
        sources, changed = list(given), dict[int, DType]()
        for number in self._functions.captured(function):
            if self._objects.kind(number) == VARIABLE:
                changed[len(sources)] = types[len(sources)] = self._functions.variables.dtype(
                    number
                )
            sources.append(f"{self._source(number)}:0")
        if changed:
            function, _ = self._copies.copy(function, changed)
        node = self._node("StatefulPartitionedCall", name, sources)
        node.attr["f"].func.name = function
        node.attr["Tin"].list.type.extend(dtype.number for dtype in types)
        node.attr["Tout"].list.type.extend(arg.type for arg in signature.output_arg)
        return str(node.name)

    def _source(self, number: int) -> str:
        """The node that gives what an object stands for."""
        if number not in self._captured:
            self._captured[number] = self._made(number)
        return self._captured[number]

    def _made(self, number: int) -> str:
        kind, facts = self._objects.kind(number), self._objects.facts(number)
        path = f"{kind}/{self._objects.shown(number)}"
        if kind == VARIABLE:
            name = self._objects.shown(number)
            value, dtype = self._functions.variables[name], self._functions.variables.dtype(number)
            return self._constant(path, value, dtype)
        if kind == ASSET:
            asset = self._functions.asset(facts.asset_file_def_index)
            name = self._constant(path, asset.encode(), dtypes.string)
            self._assets[f"{name}:0"] = asset
            return name
        if kind == RESOURCE:
            creator = self._functions.concrete(self._objects.child(number, "_create_resource"))
            if creator is not None:
                return self._call(creator, [], path)
        if kind == CONSTANT:
            value = self._functions.constant(number)
            return self._constant(path, value.value, value.dtype)
        raise UnimplementedError(f"{self._objects.shown(number)}, a {kind}, cannot be frozen")

    def _constant(self, name: str, value: Value, dtype: DType) -> str:
        node = self._node("Const", name, [])
        node.attr["dtype"].type = dtype.number
        node.attr["value"].tensor.CopyFrom(to_proto(value, dtype))
        return str(node.name)

    def _initializer(self) -> str:
        """A node that fills all tables; empty if there are none."""
        calls: list[str] = []
        done: set[int] = set()
        while True:
            tables = [n for n in self._captured if self._objects.kind(n) == RESOURCE]
            new = [number for number in tables if number not in done]
            if not new:
                break
            done.update(new)
            for number in new:
                calls += self._fill(number)
        if not calls:
            return ""
        return str(self._node("NoOp", "init", [f"^{call}" for call in calls]).name)

    def _fill(self, number: int) -> Iterable[str]:
        """Calls that fill a table: with what it holds now, or as the model initializes it."""
        path = f"init/{self._objects.shown(number)}"
        for restore, tensors in saved_tensors(self._functions, number):
            sources = []
            for place, (value, dtype) in enumerate(tensors):
                sources.append(f"{self._constant(f'{path}/{place}', value, dtype)}:0")
            yield self._call(restore, sources, path)
        initializer = self._functions.concrete(self._objects.child(number, INITIALIZE))
        if initializer is not None:
            yield self._call(initializer, [], path)

    def _node(self, op: str, name: str, inputs: Sequence[str]) -> Any:
        """A new node of a free, legal name."""
        bare = _ILLEGAL.sub("_", name)
        bare = bare if is_legal_name(bare) else f"n{bare}"
        free, number = bare, 0
        while free in self._names:
            number += 1
            free = f"{bare}_{number}"
        self._names.add(free)
        node = self._graph_def.node.add(name=free, op=op)
        node.input.extend(inputs)
        return node

    def _add_library(self) -> None:
        library = self._functions.graph.library
        copies = {copy.signature.name: copy for copy in self._copies.functions}
        known = {**{name: library.get(name) for name in library}, **copies}
        self._graph_def.library.function.extend(called_functions(self._graph_def.node, known))
