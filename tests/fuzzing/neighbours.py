"""Graphs beside a mutant, which say what else it may give.

In:   a mutant.
Out:  another one: with a way into each Merge, or with none, with late reads, in which nobody waits
      for some node, with a stand-in for a node, with nothing but a node, with other seeds, or with
      other last bits.
Not:  runs nothing, and changes no mutant.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any, Final

import numpy as np

from fuzzing.mutant import Mutant, Run, set_inputs
from penstock.catalogue.registry import find_op
from penstock.core import dtypes
from penstock.core.names import parse_endpoint
from penstock.defs import tensors
from penstock.defs.schema import GraphDef, Message
from penstock.errors import OpError

#: What the names of Identities before Merges begin with.
INTO_MERGE: Final = "way_into_"
#: What decides whether others are dead, or stands at the border of a loop.
_CONTROL_FLOW: Final = frozenset({
    "Switch", "RefSwitch", "_SwitchN", "Merge", "RefMerge", "Enter", "RefEnter", "Exit", "RefExit",
    "NextIteration", "RefNextIteration", "LoopCond", "_Send", "_Recv",
})  # fmt: skip


def with_ways_into_merges(mutant: Mutant) -> Mutant:
    """The same graph with an Identity before each input of each Merge, but around no loop.

    Which of two live values a Merge takes is left open, even where one is computed from the other
    and so comes later: who folds constants has both at once, and TensorFlow gives now the one and
    now the other.  An Identity can be kept back.
    """
    made = mutant.copy()
    backwards = {node.name for node in made.of_op("NextIteration")}
    for merge in made.of_op("Merge"):
        for place, text in enumerate(list(merge.input)):
            dtype = None if text.startswith("^") else mutant.type_at(merge, place)
            is_backwards = parse_endpoint(text).node in backwards
            if dtype is not None and not is_backwards and not mutant.is_reference(text):
                name = made.fresh_name(INTO_MERGE + merge.name)
                way = made.graph.node.add(name=name, op="Identity", device=merge.device)
                way.input.append(text)
                way.attr["T"].type = dtype.number
                merge.input[place] = name
    return made


def without_ways_into_merges(mutant: Mutant) -> Mutant:
    """The same graph in which Merges read what an Identity hands on to them.

    It comes sooner then: what enters a loop as a constant is there before what comes round.
    """
    made = mutant.copy()
    ways = {node.name: node for node in made.of_op("Identity")}
    for merge in made.of_op("Merge"):
        for place, text in enumerate(list(merge.input)):
            way = None if text.startswith("^") else ways.get(parse_endpoint(text).node)
            if way is not None and len(way.input) == 1 and not mutant.is_reference(way.input[0]):
                merge.input[place] = way.input[0]
    return made


def reading_late(mutant: Mutant) -> Mutant:
    """The same graph in which nobody takes what an Identity has read of a reference.

    Who did reads the reference itself, later.  That is left open: in TensorFlow such an Identity
    shares its memory with the variable, and gives what that holds when it is looked at.
    """
    made = mutant.copy()
    read = {
        (node.name, 0): node.input[0]
        for node in mutant.of_op("Identity")
        if node.input and mutant.is_reference(node.input[0])
    }
    for node, place, text in list(made.uses()):
        endpoint = parse_endpoint(text)
        if (endpoint.node, endpoint.slot) in read and node.op not in _CONTROL_FLOW:
            node.input[place] = read[endpoint.node, endpoint.slot]
            node.input.append(f"^{endpoint.node}")
    for step in made.steps:
        step.fetches = [_instead(read, text) for text in step.fetches]
    return made


def _instead(read: Mapping[tuple[str, int], str], text: str) -> str:
    endpoint = parse_endpoint(text)
    source = read.get((endpoint.node, endpoint.slot))
    if source is None:
        return text
    # What is fetched without a slot is a node, and not its output.
    found = parse_endpoint(source)
    return f"{found.node}:{found.slot}"


# -- a node that nobody reads -------------------------------------------------------------------


def without_waits(mutant: Mutant, name: str) -> Mutant | None:
    """The same graph in which nobody waits for a node, nor for what is computed from it.

    Who did waits for something that has the same inputs, so that it is alive when the node would
    be, and does nothing.  So the node runs only where somebody reads it.  None if it must run
    whether or not it is read: it has effects, or says what is alive.
    """
    graph = mutant.typed()
    if graph is None or name not in graph or _must_run(mutant.node(name)):
        return None
    made = mutant.copy()
    computed = _computed_from(mutant, name)
    stand_in = {f"^{each}": f"^{made.fresh_name(f'after_{each}')}" for each in computed}
    for each in computed:
        node, name = mutant.node(each), stand_in[f"^{each}"][1:]
        _add_stand_in(made, name, node, dict(_inputs(mutant, node)), computed)
    for node in made.graph.node:
        set_inputs(node, [stand_in.get(text, text) for text in node.input])
    return made if made.typed() is not None else None


# -- a node that cannot be made -------------------------------------------------------------------


def each_alone(mutant: Mutant, name: str) -> Iterator[Mutant]:
    """The nodes that an error may mean, each by itself, run by a step.

    Where a function was opened the node's name begins with that of the call.
    """
    for node in _called(mutant, name):
        made = Mutant(GraphDef(), [Run({}, [], [node.name])], 1)
        made.graph.versions.CopyFrom(mutant.graph.versions)
        copied = made.graph.node.add()
        copied.CopyFrom(node)
        set_inputs(copied, [])
        if node.op != "Const":
            given = made.graph.node.add(name=made.fresh_name("given"), op="Placeholder")
            given.attr["dtype"].type = node.attr["T"].type
            copied.input.append(given.name)
        yield made


def with_stand_in(mutant: Mutant, name: str, value: int) -> Mutant | None:
    """The same graph with something that can be made for a node, in functions as well.

    For a constant that is a number, for what is like an Identity it is one.  None for other nodes.
    """
    made = mutant.copy()
    nodes = list(_called(made, name))
    return made if nodes and all(_replace(node, value) for node in nodes) else None


def _called(mutant: Mutant, name: str) -> Iterator[Message]:
    """The nodes that an error may mean, if they are of a kind that something can stand in for."""
    for node in mutant.all_nodes():
        is_named = node.name == name or name.endswith(f"/{node.name}")
        if is_named and (node.op == "Const" or _is_like_identity(node)):
            yield node


def _is_like_identity(node: Message) -> bool:
    """Whether a node takes one value of type T and gives another one, as far as its op says."""
    op = find_op(node.op)
    if op is None or op.is_stateful or [len(op.inputs), len(op.outputs)] != [1, 1]:
        return False
    return all(arg.type_attr == "T" and not arg.is_list for arg in (*op.inputs, *op.outputs))


def _replace(node: Message, value: int) -> bool:
    """Turn a node into what can be made; False where nothing is known that could."""
    if node.op != "Const":
        dtype = node.attr["T"].type
        node.op = "Identity"
        node.attr.clear()
        node.attr["T"].type = dtype
        return True
    dtype = dtypes.of_number(node.attr["dtype"].type)
    if dtype.is_object or dtype.is_quantized:
        return False
    number = np.asarray(value, dtype.numpy)[()]
    node.attr["value"].tensor.CopyFrom(tensors.to_proto(number, dtype))
    return True


def _must_run(node: Message) -> bool:
    op = find_op(node.op)
    return op is None or op.is_stateful or node.op in _CONTROL_FLOW


def _inputs(mutant: Mutant, node: Message) -> Iterator[tuple[str, int]]:
    """What a node needs, with its type's number: data once, and no type of what is waited for."""
    for place, text in enumerate(node.input):
        dtype = None if text.startswith("^") else mutant.type_at(node, place)
        if dtype is None:
            yield text, 0
        elif mutant.is_reference(
            text
        ):  # Whoever reads it needs its value, which may be what fails.
            yield f"^{parse_endpoint(text).node}", 0
        else:
            yield text, dtype.number


def _add_stand_in(
    made: Mutant, name: str, node: Message, inputs: Mapping[str, int], computed: Collection[str]
) -> None:
    """A node that is alive when another one is, but takes nothing that is computed."""
    data = {
        text: number
        for text, number in inputs.items()
        if number and parse_endpoint(text).node not in computed
    }
    waits = [f"^{parse_endpoint(text).node}" for text in inputs if text not in data]
    added = made.graph.node.add(name=name, op="IdentityN" if data else "NoOp", device=node.device)
    if data:
        added.attr["T"].list.type.extend(data.values())
    added.input.extend([*data, *waits])


def _computed_from(mutant: Mutant, name: str) -> list[str]:
    """A node, and all that is computed from it without need."""
    users: dict[str, set[str]] = {}
    for node, _, text in mutant.uses():
        if not _must_run(node):
            users.setdefault(parse_endpoint(text).node, set()).add(node.name)
    seen, waiting = {name: None}, [name]
    while waiting:
        new = sorted(users.get(waiting.pop(), set()) - seen.keys())
        seen.update(dict.fromkeys(new))
        waiting += new
    return list(seen)


# -- other numbers ------------------------------------------------------------------------------


def reseeded(mutant: Mutant) -> Mutant:
    """The same graph in which functions draw other random numbers."""
    made = mutant.copy()
    for function in made.graph.library.function:
        for node in function.node_def:
            if "seed2" in node.attr:
                node.attr["seed2"].i += 1
    return made


def nudged(mutant: Mutant, seed: int) -> Mutant:
    """The same graph with constants and feeds that are off by about a bit, up or down."""
    draw = np.random.default_rng(seed)
    made = mutant.copy()
    for node, value in _float_constants(made):
        tensor = tensors.to_proto(_moved(value, draw)[()])
        tensor.dtype = node.attr["value"].tensor.dtype
        node.attr["value"].tensor.CopyFrom(tensor)
    for step in made.steps:
        step.feeds = {name: _moved(np.asarray(v), draw) for name, v in step.feeds.items()}
    return made


def _float_constants(mutant: Mutant) -> Iterator[tuple[Message, Any]]:
    for node in mutant.all_nodes():
        if node.op == "Const" and "value" in node.attr:
            try:
                value = np.asarray(tensors.from_proto(node.attr["value"].tensor))
            except (OpError, ValueError):
                continue
            if value.dtype.kind in "fc":
                yield node, value


def _moved(value: Any, draw: np.random.Generator) -> Any:
    if value.dtype.kind not in "fc":
        return value
    bits = draw.integers(-1, 2, value.shape) * np.finfo(value.dtype).eps
    with np.errstate(all="ignore"):
        return (value * (1 + bits)).astype(value.dtype)
