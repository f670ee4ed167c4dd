"""Models, which are layers made of layers: Sequential and functional ones.

In:   a model's description.
Out:  its layers, and their calls one after the other.
Not:  makes no placeholders; whoever calls a model brings its inputs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from penstock.errors import ResourceExhaustedError, UnimplementedError
from penstock.formats.keras.config import EXPORT, Config
from penstock.formats.keras.layer import Layer, Masking, find_kind, layer, operation_kind
from penstock.formats.keras.symbol import Nest, Symbol, each, flatten
from penstock.formats.keras.topology import FUNCTIONAL, Place, Topology, read_topology

#: How many models may be inside of each other.
_DEEPEST = 30
#: Most unknown layers that an error names.
_NAMED = 10
#: The largest model: ten times what Keras' own applications have.
_MOST_CALLS = 20_000


def make_layer(config: Config) -> Layer:
    """The layer of a description, with all that are inside, and without weights.

    Raises:
        UnimplementedError: some of their classes are not known; all are named.

    """
    unknown: list[Config] = []
    made = _make(config, unknown, 0)
    if unknown:
        raise _unknown(unknown)
    assert made is not None
    return made


def check_size(model: Layer) -> None:
    """Say so if a file, whose models may call models that call models, becomes absurdly large."""
    count = _calls(model, {})
    if count > _MOST_CALLS:
        raise ResourceExhaustedError(
            f"{model.config} calls {count} layers; a model calls {_MOST_CALLS} at most"
        )


def _calls(layer: Layer, known: dict[int, int]) -> int:
    """How many layers one call of a layer calls."""
    if id(layer) not in known:
        called = list(layer.parts.values())
        if layer.config.class_name in FUNCTIONAL:
            parts = {part.config.name: part for part in called}
            called = [parts[call.layer] for call in topology_of(layer).calls]
        known[id(layer)] = 1 + sum(_calls(part, known) for part in called)
    return known[id(layer)]


def _make(config: Config, unknown: list[Config], depth: int) -> Layer | None:
    kind = find_kind(config)
    if kind is None:
        unknown.append(config)
        return None
    if depth > _DEEPEST:
        raise config.error("it is nested too deeply")
    parts = {name: _make(part, unknown, depth + 1) for name, part in kind.parts(config).items()}
    return Layer(config, kind, {name: part for name, part in parts.items() if part is not None})


def _unknown(configs: list[Config]) -> UnimplementedError:
    """All layers of which nothing is known, with the places where they stand."""
    first = configs[:_NAMED]
    lines = [f"{c}{f' of {c.module}' if c.module else ''}" for c in first]
    more = f" and {len(configs) - _NAMED} more" if len(configs) > _NAMED else ""
    what = "layers" if len(configs) > 1 else "a layer"
    return UnimplementedError(
        f"The model has {what} that Penstock does not know: {', '.join(lines)}{more}",
        next_step=f"{EXPORT}; docs/models.md lists the layers that are known",
    )


# -- one layer after the other --------------------------------------------------------------------


def entries(config: Config) -> dict[str, Config]:
    """The layers of a model, by attribute and name."""
    found: dict[str, Config] = {}
    for number, entry in enumerate(config.items("layers")):
        inner = config.inner(entry, f"layer_{number}")
        key = f"layers/{inner.name}"
        if key in found:
            raise config.error(f"it has two layers of the name '{inner.name}'")
        found[key] = inner
    return found


@layer("Sequential", parts=entries, masking=Masking.OWN, converts=False)
def sequential(model: Layer, inputs: Nest, **_: Any) -> Nest:
    """Each layer takes what the one before gives."""
    x = inputs
    for part in model.parts.values():
        if part.config.class_name != "InputLayer":
            x = part(x)
    return x


# -- a graph of layers ----------------------------------------------------------------------------


def topology_of(model: Layer) -> Topology:
    """Who calls whom in a functional model."""
    layers = {part.config.name: part.config for part in model.parts.values()}
    return read_topology(model.config, layers)


@layer(*FUNCTIONAL, parts=entries, masking=Masking.OWN, converts=False)
def functional(model: Layer, inputs: Nest, **_: Any) -> Nest:
    """The layers' calls in an order in which each finds what it takes."""
    topology = topology_of(model)
    values = _given(model.config, topology.inputs, inputs)
    layers = {part.config.name: part for part in model.parts.values()}
    find = _finder(model.config, values)
    for call in topology.calls:
        args = [_filled(arg, find) for arg in call.args]
        kwargs = {key: _filled(value, find) for key, value in call.kwargs.items()}
        outputs = call_layer(layers[call.layer], args, kwargs)
        values[call.layer, call.number] = flatten(outputs)
    outputs = _filled(topology.outputs, find)
    return outputs[0] if isinstance(outputs, list) and len(outputs) == 1 else outputs


def call_layer(part: Layer, args: list[Any], kwargs: dict[str, Any]) -> Nest:
    """Call a layer; masks that are given take the place of those that the inputs bring."""
    kwargs.pop("training", None)
    operation = operation_kind(part.config) if len(args) > 1 else None
    if operation is not None:
        part.kind = operation
    mask = kwargs.pop("mask", None)
    if mask is not None and args:
        args[0] = _with_masks(args[0], mask)
    return part(*args, **kwargs)


def _with_masks(nest: Nest, masks: Any) -> Nest:
    if isinstance(nest, Symbol):
        return nest.masked(masks.tensor) if isinstance(masks, Symbol) else nest
    if isinstance(nest, (list, tuple)) and isinstance(masks, (list, tuple)):
        paired = [_with_masks(x, mask) for x, mask in zip(nest, masks, strict=False)]
        return [*paired, *nest[len(paired) :]]
    return nest


def _given(config: Config, places: Any, inputs: Nest) -> dict[tuple[str, int], list[Symbol]]:
    """The inputs by the calls whose outputs they are in the model."""
    wanted = _named_places(places)
    if isinstance(inputs, dict) and set(inputs) >= set(wanted):
        given = [inputs[name] for name in wanted]
    else:
        given = flatten(inputs)
    if len(given) != len(wanted):
        raise config.error(f"it takes {len(wanted)} inputs, and is given {len(given)}")
    return {(place.layer, place.call): [x] for place, x in zip(wanted.values(), given, strict=True)}


def _named_places(places: Any) -> dict[str, Place]:
    """The places of inputs, by the keys of a dict or by layer, in the order of ``flatten``."""
    if isinstance(places, Place):
        return {places.layer: places}
    if isinstance(places, dict):
        named: dict[str, Place] = {}
        for key in sorted(places):
            inner = _named_places(places[key])
            named.update({key: next(iter(inner.values()))} if len(inner) == 1 else inner)
        return named
    return {name: p for item in places for name, p in _named_places(item).items()}


def _finder(
    config: Config, values: Mapping[tuple[str, int], list[Symbol]]
) -> Callable[[Place], Symbol]:
    def find(place: Place) -> Symbol:
        outputs = values.get((place.layer, place.call), [])
        if place.output >= len(outputs):
            raise config.error(f"its layer '{place.layer}' has no output {place.output}")
        return outputs[place.output]

    return find


def _filled(nest: Any, find: Callable[[Place], Symbol]) -> Any:
    """A nesting with symbols in place of places."""
    if isinstance(nest, Place):
        return find(nest)
    if isinstance(nest, dict):
        return {key: _filled(item, find) for key, item in nest.items()}
    if isinstance(nest, (list, tuple)):
        return type(nest)(_filled(item, find) for item in nest)
    return nest


def without_masks(nest: Nest) -> Nest:
    """The same symbols, of which every part counts."""
    return each(lambda x: x.masked(None), nest)
