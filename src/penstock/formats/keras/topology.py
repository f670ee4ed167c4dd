"""Who calls whom in a functional model.

In:   the settings of a functional model.
Out:  ``Topology``: its layers' calls in an order in which they can be made, its inputs and outputs.
Not:  makes no nodes, and knows no single class.

A *place* is an output of one call of one layer.  Files of Keras 2 write it as
``["dense", 0, 0, {keyword arguments}]``, those of Keras 3 as an object with a ``keras_history``.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np

from penstock.dataclass import dataclass
from penstock.formats.keras.config import Config, is_whole

#: The classes of models that are a graph of layers.
FUNCTIONAL: Final = ("Functional", "Model")
#: More inputs than these has no call of a layer, and more calls no layer.
_MANY: Final = 100_000


@dataclass(frozen=True, slots=True)
class Place:
    """One output of one call of a layer."""

    layer: str
    call: int
    output: int


@dataclass(frozen=True, slots=True)
class Call:
    """One call of a layer; places stand where its tensors do."""

    layer: str
    number: int
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Topology:
    """A model's calls, each behind those whose outputs it takes."""

    calls: tuple[Call, ...]
    #: Places in Keras' own nesting.
    inputs: Any
    outputs: Any


def read_topology(config: Config, layers: Mapping[str, Config]) -> Topology:
    """Read a functional model's settings.

    Raises:
        InvalidArgumentError: a call is of a layer that is not there, or waits for itself.

    """
    reader = _Reader(config, layers)
    entries = [entry for entry in config.items("layers") if isinstance(entry, dict)]
    calls = [call for entry in entries for call in reader.calls_of(entry)]
    outputs = reader.places(config.get("output_layers"))
    inputs = reader.places(config.get("input_layers"))
    # Files count the calls of models inside from 1 where the model itself is call 0.
    firsts = _first_numbers(calls, outputs, layers)
    numbered = [_renumbered(call, firsts) for call in calls]
    given = set(places_in(inputs))
    return Topology(
        _in_order(config, numbered, {(place.layer, place.call) for place in given}),
        inputs,
        _moved(outputs, firsts.outputs),
    )


def places_in(nest: Any) -> Iterator[Place]:
    """All places in a nesting."""
    if isinstance(nest, Place):
        yield nest
    elif isinstance(nest, dict):
        for item in nest.values():
            yield from places_in(item)
    elif isinstance(nest, (list, tuple)):
        for item in nest:
            yield from places_in(item)


class _Reader:
    """Reads references to layers."""

    def __init__(self, config: Config, layers: Mapping[str, Config]) -> None:
        self._config = config
        self._layers = layers

    def calls_of(self, entry: Mapping[str, Any]) -> list[Call]:
        """The calls that an entry of the list of layers says."""
        settings = entry.get("config")
        name = entry.get("name") or (settings or {}).get("name")
        nodes = entry.get("inbound_nodes") or []
        if not isinstance(name, str) or not isinstance(nodes, list) or len(nodes) > _MANY:
            raise self._config.error("the list of its layers has one without name or calls")
        return [self._call(name, number, node) for number, node in enumerate(nodes)]

    def _call(self, name: str, number: int, node: Any) -> Call:
        if isinstance(node, dict) and "args" in node:
            args, kwargs = self._value(node["args"]), self._value(node.get("kwargs") or {})
            if isinstance(args, (list, tuple)) and isinstance(kwargs, dict):
                return Call(name, number, tuple(args), kwargs)
            raise self._config.error(f"a call of its layer '{name}' has no arguments")
        kwargs = {}
        first = self._old_arguments(node, kwargs)
        return Call(name, number, (first,), kwargs)

    def _old_arguments(self, node: Any, kwargs: dict[str, Any]) -> Any:
        """The first argument of a call in Keras 2's form; keyword arguments go to ``kwargs``."""
        if isinstance(node, dict):
            return {key: self._old_arguments(item, kwargs) for key, item in node.items()}
        if not isinstance(node, list):
            raise self._config.error("a call of one of its layers has no list of inputs")
        if len(node) in (3, 4) and isinstance(node[0], str):
            if len(node) == 4 and isinstance(node[3], dict):
                kwargs.update({key: self._value(item) for key, item in node[3].items()})
            return node[2] if node[0] == "_CONSTANT_VALUE" else self._place(node[:3])
        items = [self._old_arguments(item, kwargs) for item in node]
        return items[0] if len(items) == 1 else items

    def places(self, nest: Any) -> Any:
        """A nesting of references, such as a model's outputs."""
        if isinstance(nest, dict):
            return {key: self.places(item) for key, item in nest.items()}
        if self._is_reference(nest):
            return self._place(nest)
        if isinstance(nest, list) and len(nest) <= _MANY:
            return [self.places(item) for item in nest]
        raise self._config.error("its inputs or outputs are no references to layers")

    def _is_reference(self, value: Any) -> bool:
        return (
            isinstance(value, list)
            and len(value) == 3
            and isinstance(value[0], str)
            and is_whole(value[1])
            and is_whole(value[2])
        )

    def _place(self, value: Sequence[Any]) -> Place:
        name, call, output = value
        if not isinstance(name, str) or name not in self._layers:
            raise self._config.error(f"it refers to a layer '{name}', which it has not")
        if not (is_whole(call) and is_whole(output)) or min(call, output) < 0:
            raise self._config.error(f"it refers to no output of its layer '{name}'")
        return Place(name, int(call), int(output))

    def _value(self, value: Any) -> Any:
        """An argument: places in place of references, Python's values in place of wrapped ones."""
        if isinstance(value, list):
            if self._is_reference(value) and value[0] in self._layers:
                return self._place(value)
            return [self._value(item) for item in value]
        if not isinstance(value, dict):
            return value
        kind, inner = value.get("class_name"), value.get("config")
        if kind == "__keras_tensor__" and isinstance(inner, dict):
            return self._place(inner.get("keras_history") or ["", 0, 0])
        if kind == "__tuple__":
            return tuple(self._value(item) for item in value.get("items") or ())
        if kind == "__ellipsis__":
            return ...
        if kind == "__slice__" and isinstance(inner, dict):
            return slice(*(inner.get(bound) for bound in ("start", "stop", "step")))
        if kind in ("__numpy__", "__tensor__") and isinstance(inner, dict):
            return self._array(inner)
        return {key: self._value(item) for key, item in value.items()}

    def _array(self, inner: Mapping[str, Any]) -> Any:
        dtype = inner.get("dtype")
        try:
            return np.array(inner.get("value"), dtype=dtype if isinstance(dtype, str) else None)
        except (ValueError, TypeError):
            raise self._config.error("a call of one of its layers has a damaged array") from None


@dataclass(frozen=True, slots=True)
class _FirstNumbers:
    """By layer, what number the file gives to its first call, in calls and in outputs."""

    calls: Mapping[str, int]
    outputs: Mapping[str, int]


def _first_numbers(
    calls: Sequence[Call], outputs: Any, layers: Mapping[str, Config]
) -> _FirstNumbers:
    """Where files begin to count calls.

    Keras 2 numbers the calls of a model inside from 1 where making the model counts as a call, on
    which versions differ.  A file only has calls that somebody uses, so the last one is named
    somewhere.  Keras 3 begins at 1 with the outputs of functional models, otherwise at 0.
    """
    count: dict[str, int] = {}
    named: dict[str, int] = {}
    for call in calls:
        count[call.layer] = call.number + 1
        for place in places_in([call.args, call.kwargs]):
            named[place.layer] = max(named.get(place.layer, 0), place.call)
    by_outputs = dict(named)
    for place in places_in(outputs):
        by_outputs[place.layer] = max(by_outputs.get(place.layer, 0), place.call)

    def first(layer: str, highest: int) -> int:
        return max(highest + 1 - count[layer], 0) if count.get(layer) else 0

    models = [n for n, c in layers.items() if c.class_name in (*FUNCTIONAL, "Sequential")]
    if any(config.is_keras_3 for config in layers.values()):
        functional = {n: 1 for n in models if layers[n].class_name in FUNCTIONAL and n in count}
        return _FirstNumbers({n: first(n, named.get(n, 0)) for n in models}, functional)
    firsts = {name: first(name, by_outputs.get(name, 0)) for name in models}
    return _FirstNumbers(firsts, firsts)


def _moved(nest: Any, firsts: Mapping[str, int]) -> Any:
    """A nesting with the places' calls counted from 0."""
    if isinstance(nest, Place):
        return Place(nest.layer, nest.call - firsts.get(nest.layer, 0), nest.output)
    if isinstance(nest, dict):
        return {key: _moved(item, firsts) for key, item in nest.items()}
    if isinstance(nest, (list, tuple)):
        return type(nest)(_moved(item, firsts) for item in nest)
    return nest


def _renumbered(call: Call, firsts: _FirstNumbers) -> Call:
    args, kwargs = _moved((call.args, dict(call.kwargs)), firsts.calls)
    return Call(call.layer, call.number, args, kwargs)


def _in_order(
    config: Config, calls: Sequence[Call], given: set[tuple[str, int]]
) -> tuple[Call, ...]:
    """The calls, each behind those that it needs; of those that may be next, the first."""
    waiting: dict[tuple[str, int], list[int]] = {}
    missing: list[int] = []
    for index, call in enumerate(calls):
        needs = {(place.layer, place.call) for place in places_in([call.args, call.kwargs])}
        needs -= given
        missing.append(len(needs))
        for need in needs:
            waiting.setdefault(need, []).append(index)
    ready = deque(index for index, count in enumerate(missing) if not count)
    order: list[Call] = []
    while ready:
        call = calls[ready.popleft()]
        order.append(call)
        for index in waiting.get((call.layer, call.number), ()):
            missing[index] -= 1
            if not missing[index]:
                ready.append(index)
    if len(order) < len(calls):
        stuck = next(call.layer for call, count in zip(calls, missing, strict=True) if count)
        raise config.error(f"its layer '{stuck}' waits for itself, or for a call that is not there")
    return tuple(order)
