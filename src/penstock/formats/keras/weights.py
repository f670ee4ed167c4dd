"""Which array of a file is which weight of which layer.

In:   the layers of a model, the HDF5 file with their weights, the files beside that.
Out:  every layer's ``arrays`` and ``assets``.
Not:  checks no shapes: layers do that when they are built.

There are two layouts.  Since Keras 2.12 (``.keras``) a layer's arrays are numbered in a group whose
path follows the attributes of the objects: ``layers/bidirectional/forward_layer/cell/vars/0``.
Before (``.h5``), each layer of the outermost model has one flat list of arrays, in which those that
training changes stand first.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final, TypeAlias

from penstock.core.values import Array
from penstock.errors import NotFoundError
from penstock.formats.keras.config import Config
from penstock.formats.keras.h5 import H5File
from penstock.formats.keras.layer import Layer

#: Takes the path of a file beside the weights; returns its content, or None if there is none.
FindAsset: TypeAlias = Callable[[str], bytes | None]
#: The attribute of a model, or of stacked cells, that is a list of layers.
CONTAINERS: Final = ("layers", "cells")
#: What a class is called in Keras' own code, where that differs from its public name.
_OTHER_CLASSES: Final = {"GroupQueryAttention": "GroupedQueryAttention"}
_OTHER_MODEL: Final = "the weights belong to another model than the layers, or the file is damaged"
#: States of random generators, which stand among the weights of some layers of Keras 2.
_NO_WEIGHT: Final = re.compile(r"(^|/)(StateVar|seed_generator_state)(:\d+)?$")


# -- numbered arrays in a tree of groups ----------------------------------------------------------


def read_tree(model: Layer, file: H5File, find_asset: FindAsset) -> None:
    """Fill in what a model and everything inside has in a ``.keras`` file."""
    _TreeReader(file, find_asset).read(model, [""])


class _TreeReader:
    """Goes through layers and groups in step."""

    def __init__(self, file: H5File, find_asset: FindAsset) -> None:
        self._file = file
        self._find_asset = find_asset
        #: The layers that were read: one may stand at several places.
        self._done: set[int] = set()

    def read(self, layer: Layer, paths: Sequence[str]) -> None:
        """Read one layer, which lies at the first of ``paths`` that exists, and those inside."""
        if id(layer) in self._done:
            return
        self._done.add(id(layer))
        self._read_arrays(layer, paths)
        for name in layer.kind.assets:
            found = (self._find_asset(f"{path}{name}") for path in paths)
            content = next((content for content in found if content is not None), None)
            if content is not None:
                layer.assets[name] = content
        for names, part in _spelled_parts(layer):
            self.read(part, [f"{path}{n}/" for path in paths for n in names])

    def _read_arrays(self, layer: Layer, paths: Sequence[str]) -> None:
        # What is not trained lies behind what is, whether or not the layer is frozen.
        ordered = sorted(layer.own_weights(), key=lambda weight: not weight.is_trained)
        here = [path for path in paths if f"{path}vars" in self._file]
        for number, weight in enumerate(ordered):
            title = weight.name if weight.is_named else str(number)
            if not here:
                raise _missing(layer.config, self._file, f"{paths[0]}vars/{title}")
            layer.arrays[weight.name] = self._file.array(f"{here[0]}vars/{title}")


def _spelled_parts(layer: Layer) -> Iterator[tuple[list[str], Layer]]:
    """The layers inside, each with the ways in which the path to it may go on."""
    used: Counter[str] = Counter()
    for name, part in layer.parts.items():
        container, _, _ = name.partition("/")
        if container in CONTAINERS:
            class_name = part.config.class_name
            kind = snake_case(_OTHER_CLASSES.get(class_name, class_name))
            numbered = f"{kind}_{used[kind]}" if used[kind] else kind
            used[kind] += 1
            prefixes = [container, "_layer_checkpoint_dependencies"]
            yield [f"{prefix}/{numbered}" for prefix in prefixes], part
        else:
            yield [name, f"_{name}"], part


def snake_case(class_name: str) -> str:
    """A class's name as Keras writes it in paths: ``Conv2DTranspose`` is ``conv2d_transpose``."""
    name = re.sub(r"\W+", "", class_name)
    name = re.sub(r"(.)([A-Z][a-z]+)", r"\1_\2", name)
    return re.sub(r"([a-z])([A-Z])", r"\1_\2", name).lower()


# -- a flat list of arrays for each layer ---------------------------------------------------------


def read_lists(model: Layer, file: H5File) -> None:
    """Fill in the arrays of a model and of everything inside from a full ``.h5`` file."""
    for name, part in model.parts.items():
        title = name.partition("/")[2]
        wanted = list(_flat(part))
        if not wanted:
            continue
        group = file.below(title)
        names = (
            [n for n in (group.texts("weight_names") or []) if not _NO_WEIGHT.search(n)]
            if (group is not None)
            else []
        )
        if group is None or len(names) != len(wanted):
            raise part.config.error(
                f"the file has {len(names)} arrays for it, but it has {len(wanted)} weights",
                _OTHER_MODEL,
            )
        for (layer, weight), path in zip(wanted, names, strict=True):
            layer.arrays[weight] = group.array(path)


def _flat(layer: Layer) -> Iterator[tuple[Layer, str]]:
    """All weights of a layer and those inside in the order of old files, none twice."""
    found = list(dict.fromkeys(_all(layer, is_frozen=False)))
    for wanted in (True, False):
        for owner, name, is_trained in found:
            if is_trained is wanted:
                yield owner, name


def _all(layer: Layer, *, is_frozen: bool) -> Iterator[tuple[Layer, str, bool]]:
    """Weights in the order of layers, each with whether training would change it."""
    is_frozen = is_frozen or layer.config.settings.get("trainable") is False
    for weight in layer.own_weights():
        if not weight.is_named:
            yield layer, weight.name, weight.is_trained and not is_frozen
    for part in layer.parts.values():
        yield from _all(part, is_frozen=is_frozen)


def _missing(config: Config, file: H5File, path: str) -> NotFoundError:
    return NotFoundError(f"{config}: {file.origin} has no '{path}'", next_step=_OTHER_MODEL)


def all_arrays(layer: Layer) -> Mapping[str, Array]:
    """The arrays of a layer and of all inside, by path; for tests and listings."""
    found = {f"{layer.config.path}/{name}": array for name, array in layer.arrays.items()}
    for part in layer.parts.values():
        found.update(all_arrays(part))
    return found
