"""A file of Keras as a graph.

In:   the path of a ``.keras``, ``.h5`` or ``.hdf5`` file.
Out:  ``KerasGraph``: a graph with the weights as constants, and what to feed and to fetch.
Not:  runs nothing; the author's own code, if the file has some, least of all.
"""

from __future__ import annotations

import os
from itertools import count
from typing import Any

from penstock.builder import Graph, ops, placeholder
from penstock.builder.tensor import Tensor
from penstock.core.dtypes import DType
from penstock.core.shapes import TensorShape
from penstock.dataclass import dataclass
from penstock.errors import InvalidArgumentError
from penstock.formats.keras import layers
from penstock.formats.keras.archive import open_archive
from penstock.formats.keras.config import Config, policy_name
from penstock.formats.keras.layer import Layer, node_name, sound
from penstock.formats.keras.models import check_size, make_layer, topology_of
from penstock.formats.keras.symbol import Nest, Shape, Symbol
from penstock.formats.keras.topology import FUNCTIONAL, Place

assert layers  # its import has made them known


@dataclass(frozen=True, slots=True)
class Endpoint:
    """An input or an output of a model."""

    tensor: Tensor
    dtype: DType
    #: Sizes; those that only a step knows, such as the batch's, are unknown.
    shape: TensorShape

    @property
    def name(self) -> str:
        """The tensor's name, such as ``x:0``."""
        return self.tensor.name


@dataclass(frozen=True, slots=True)
class KerasGraph:
    """A model of Keras as a graph."""

    graph: Graph
    #: By the names of the model's input layers, or of the keys of its dict of inputs.
    inputs: dict[str, Endpoint]
    #: By the names of the layers that make them, or of the keys of its dict of outputs.
    outputs: dict[str, Endpoint]
    #: The Keras that wrote it, such as ``3.8.0``; empty if the file does not say.
    version: str


def read(source: str | os.PathLike[str] | bytes, origin: str = "") -> KerasGraph:
    """Make a graph of a model of Keras, as it computes when it is not trained.

    Args:
        source: a path, or the bytes of a file: a ``.keras`` archive, or an HDF5 file with a whole
            model.
        origin: what to call bytes in errors.

    Raises:
        NotFoundError: there is no such file.
        InvalidArgumentError: it is no model of Keras, or only its weights.
        UnimplementedError: the model has layers that are not known, all of
            which are named; or such as hold Python code, which is never run.
        DataLossError: the file is damaged.

    """
    archive = open_archive(source if isinstance(source, bytes) else os.fspath(source), origin)
    graph = Graph()
    with sound(archive.config), graph.as_default():
        model = make_layer(archive.config)
        check_size(model)
        archive.read_weights(model)
        inputs, given = _placeholders(model)
        outputs = _named_outputs(model, model(given))
    return KerasGraph(graph, inputs, outputs, archive.version)


# -- inputs ---------------------------------------------------------------------------------------


def _placeholders(model: Layer) -> tuple[dict[str, Endpoint], Nest]:
    """A placeholder for each input, by name, and all in the nesting that the model takes."""
    made: dict[str, Endpoint] = {}

    def make(name: str, config: Config) -> Symbol:
        shape = _input_shape(config)
        title = node_name(name)
        tensor = placeholder(_input_type(config), shape=shape, name=title)
        made[name] = Endpoint(tensor, tensor.dtype, TensorShape.of(shape))
        return Symbol(tensor, shape)

    if model.config.class_name in FUNCTIONAL:
        layers_by_name = {part.config.name: part.config for part in model.parts.values()}
        topology = topology_of(model)

        def filled(nest: Any, key: str = "") -> Nest:
            if isinstance(nest, Place):
                return make(key or nest.layer, layers_by_name[nest.layer])
            if isinstance(nest, dict):
                return {name: filled(item, name) for name, item in nest.items()}
            return [filled(item) for item in nest]

        return made, filled(topology.inputs)
    if model.config.class_name == "Sequential":
        first = _first(model)
        return made, make(_input_name(first), first)
    raise model.config.unsupported("a class that is no model of layers")


def _first(model: Layer) -> Config:
    """What knows the shape of a Sequential model's input."""
    config = model.config
    while config.class_name in ("Sequential", *FUNCTIONAL):
        shape = config.settings.get("batch_input_shape") or config.settings.get("build_input_shape")
        if not model.parts:
            raise config.error("it has no layers")
        model = next(iter(model.parts.values()))
        config = model.config
        if shape is not None and not _has_shape(config):
            settings = {**config.settings, "batch_input_shape": shape}
            return Config(
                config.class_name, config.module, config.name, settings, config.generation
            )
    return config


def _has_shape(config: Config) -> bool:
    return any(config.settings.get(key) is not None for key in ("batch_shape", "batch_input_shape"))


def _input_name(config: Config) -> str:
    return config.name if config.class_name == "InputLayer" else f"{config.name}_input"


def _input_shape(config: Config) -> Shape:
    """The shape of a model's input; the size of the batch is never fixed."""
    if not _has_shape(config):
        raise InvalidArgumentError(
            f"The shape of the model's input is not known: {config} does not say it",
            next_step="load the model with Keras, call it once, and save it again",
        )
    key = "batch_shape" if config.settings.get("batch_shape") is not None else "batch_input_shape"
    return config.shape(key)


def _input_type(config: Config) -> DType:
    for flag in ("sparse", "ragged"):
        if config.settings.get(flag) is True:
            raise config.unsupported(f"a {flag} input")
    if config.class_name == "InputLayer":
        return config.type_of("dtype", "float32")
    # Layers that take a model's input without an InputLayer say what type they compute in.
    own = policy_name(config.settings.get("dtype")) or "float32"
    return config.type_of("dtype", "float32") if not own.startswith("mixed") else config.dtype


# -- outputs --------------------------------------------------------------------------------------


def _named_outputs(model: Layer, outputs: Nest) -> dict[str, Endpoint]:
    """Each output by a name of its own, as a node of that name."""
    found: dict[str, Endpoint] = {}
    named = _with_names(outputs, _output_names(model))
    names = {name for name, _ in named}
    for name, x in named:
        # The number of another output may make the name of a third one.
        numbered = (f"{name}_{number}" for number in count(1))
        free = (title for title in numbered if title not in found and title not in names)
        title = name if name not in found else next(free)
        tensor = ops.identity(x.tensor, name=node_name(title))
        found[title] = Endpoint(tensor, tensor.dtype, TensorShape.of(x.shape))
    return found


def _output_names(model: Layer) -> Any:
    """The names of the layers that make the outputs, in the nesting of the outputs."""
    if model.config.class_name in FUNCTIONAL:
        return topology_of(model).outputs
    return list(model.parts.values())[-1].config.name


def _with_names(nest: Nest, names: Any, key: str = "") -> list[tuple[str, Symbol]]:
    if isinstance(nest, Symbol):
        while isinstance(names, list) and len(names) == 1:
            names = names[0]
        own = names.layer if isinstance(names, Place) else names
        return [(key or (own if isinstance(own, str) else "output"), nest)]
    if isinstance(nest, dict):
        inner = names if isinstance(names, dict) else {}
        return [pair for k, item in nest.items() for pair in _with_names(item, inner.get(k), k)]
    listed = names if isinstance(names, list) and len(names) == len(nest) else [names] * len(nest)
    return [
        pair for item, name in zip(nest, listed, strict=True) for pair in _with_names(item, name)
    ]
