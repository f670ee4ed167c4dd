"""Legal mutations of edges and nodes: what feeds what, what waits for what, and what is there."""

from __future__ import annotations

from random import Random
from typing import Final

from fuzzing.mutant import Mutant, controls_of, set_inputs
from fuzzing.table import legal
from penstock.core import dtypes
from penstock.core.dtypes import DType
from penstock.core.names import CONTROL_SLOT, parse_endpoint
from penstock.defs.schema import Message, NodeDef

#: How many of a hundred new edges may close a cycle: those refuse the whole graph.
_CYCLES: Final = 5
#: Ops with equal signatures.
_SIBLINGS: Final = (
    ("Add", "AddV2", "Sub", "Mul", "Maximum", "Minimum", "FloorDiv", "SquaredDifference"),
    ("Less", "LessEqual", "Greater", "GreaterEqual"),
    ("LogicalAnd", "LogicalOr"),
    ("Neg", "Identity", "Square", "Abs", "Sign", "StopGradient", "Snapshot"),
    ("Sum", "Prod", "Max", "Min", "Mean"),
    ("Exp", "Log", "Sqrt", "Tanh", "Sigmoid", "Sin", "Relu"),
    ("AssignAddVariableOp", "AssignSubVariableOp", "AssignVariableOp"),
    ("AssignAdd", "AssignSub", "Assign"),
    ("If", "StatelessIf"),
    ("While", "StatelessWhile"),
    ("PartitionedCall", "StatefulPartitionedCall"),
)


@legal(8)
def rewire(mutant: Mutant, draw: Random) -> str | None:
    """Take an input from another endpoint of the same type."""
    uses = list(mutant.uses())
    if not uses:
        return None
    node, place, old = draw.choice(uses)
    wanted = mutant.type_at(node, place)
    new = _source(mutant, draw, node, wanted) if wanted is not None else None
    if new is None or new == old:
        return None
    node.input[place] = new
    return f"input {place} of {node.name} is {new}, not {old}"


@legal(4)
def add_control_edge(mutant: Mutant, draw: Random) -> str | None:
    """Have a node wait for another one."""
    if len(mutant.graph.node) < 2:
        return None
    node = draw.choice(mutant.graph.node)
    sources = _allowed(mutant, draw, node, [n.name for n in mutant.graph.node])
    if not sources:
        return None
    name = draw.choice(sources)
    node.input.append(f"^{name}")
    return f"{node.name} waits for {name}"


@legal(3)
def drop_control_edge(mutant: Mutant, draw: Random) -> str | None:
    """Have a node not wait any more."""
    waiting = [node for node in mutant.all_nodes() if controls_of(node)]
    if not waiting:
        return None
    node = draw.choice(waiting)
    place = draw.choice(controls_of(node))
    name = node.input[place]
    del node.input[place]
    return f"{node.name} does not wait for {name}"


@legal(3)
def move_control_edge(mutant: Mutant, draw: Random) -> str | None:
    """Have a node wait for another one instead."""
    waiting = [node for node in mutant.graph.node if controls_of(node)]
    if not waiting:
        return None
    node = draw.choice(waiting)
    place = draw.choice(controls_of(node))
    sources = _allowed(mutant, draw, node, [n.name for n in mutant.graph.node])
    if not sources:
        return None
    old, node.input[place] = node.input[place], f"^{draw.choice(sources)}"
    return f"{node.name} waits for {node.input[place]}, not for {old}"


@legal(3)
def swap_switch_outputs(mutant: Mutant, draw: Random) -> str | None:
    """Have one user of a Switch, or all of them, take its other output."""
    switches = {node.name for node in mutant.of_op("Switch", "RefSwitch")}
    uses = [use for use in mutant.uses() if parse_endpoint(use[2]).node in switches]
    if not uses:
        return None
    node, place, text = draw.choice(uses)
    name = parse_endpoint(text).node
    swapped = uses if draw.random() < 0.4 else [(node, place, text)]
    for user, at, old in swapped:
        endpoint = parse_endpoint(old)
        if endpoint.node == name:
            user.input[at] = f"{name}:{1 - endpoint.slot}" if endpoint.slot in (0, 1) else old
    return f"{len(swapped)} users of {name} take its other output"


@legal(3)
def duplicate(mutant: Mutant, draw: Random) -> str | None:
    """Make a copy of a node, and have some of its users take that."""
    node = draw.choice(mutant.graph.node)
    copy = NodeDef()
    copy.CopyFrom(node)
    copy.name = mutant.fresh_name(node.name)
    users = [use for use in mutant.uses() if parse_endpoint(use[2]).node == node.name]
    for user, place, text in users:
        if draw.random() < 0.5:
            user.input[place] = f"{copy.name}:{parse_endpoint(text).slot}"
    mutant.graph.node.append(copy)
    return f"{copy.name} is a copy of {node.name}"


@legal(3)
def drop_node(mutant: Mutant, draw: Random) -> str | None:
    """Take a node away; its users take something else of the same type."""
    asked_for = mutant.asked_for()
    nodes = [node for node in mutant.graph.node if node.name not in asked_for]
    if not nodes or mutant.typed() is None:
        return None
    node = draw.choice(nodes)
    uses = [use for use in mutant.uses() if parse_endpoint(use[2]).node == node.name]
    types = [mutant.type_at(user, place) for user, place, _ in uses]
    new = [
        _source(mutant, draw, user, wanted, but=node.name) if wanted else None
        for (user, _, _), wanted in zip(uses, types, strict=True)
    ]
    if None in new:
        return None
    for (user, place, _), text in zip(uses, new, strict=True):
        user.input[place] = text
    for user in mutant.graph.node:
        set_inputs(user, [text for text in user.input if text != f"^{node.name}"])
    for step in mutant.steps:
        step.feeds = {k: v for k, v in step.feeds.items() if parse_endpoint(k).node != node.name}
    name = node.name
    mutant.graph.node.remove(node)
    return f"{name} is gone"


@legal(3)
def insert_identity(mutant: Mutant, draw: Random) -> str | None:
    """Put an Identity into an edge; it may wait for something."""
    use = _use_of_a_value(mutant, draw)
    if use is None:
        return None
    node, place, text, dtype = use
    added = _add(mutant, "Identity", [text], {"T": dtype})
    if draw.random() < 0.5:
        sources = _allowed(mutant, draw, node, [n.name for n in mutant.graph.node])
        added.input.extend([f"^{draw.choice(sources)}"] if sources else [])
    node.input[place] = added.name
    return f"an Identity between {text} and {node.name}"


@legal(5)
def insert_switch(mutant: Mutant, draw: Random) -> str | None:
    """Put a Switch into an edge: one side of it, or both with a Merge behind them."""
    use = _use_of_a_value(mutant, draw)
    if use is None:
        return None
    node, place, text, dtype = use
    predicate = _source(mutant, draw, node, dtypes.bool_)
    if predicate is None:
        return None
    switch = _add(mutant, "Switch", [text, predicate], {"T": dtype})
    if draw.random() < 0.5:
        node.input[place] = f"{switch.name}:{draw.randrange(2)}"
        return f"a Switch by {predicate} between {text} and {node.name}"
    sides = [f"{switch.name}:0", f"{switch.name}:1"]
    draw.shuffle(sides)
    side = _add(mutant, "Identity", [sides[1]], {"T": dtype})
    merge = _add(mutant, "Merge", [sides[0], side.name], {"T": dtype}, count=2)
    node.input[place] = merge.name
    return f"a Switch by {predicate} and a Merge between {text} and {node.name}"


@legal(3)
def insert_merge(mutant: Mutant, draw: Random) -> str | None:
    """Have an input come from a Merge of what it was and of something else."""
    use = _use_of_a_value(mutant, draw)
    if use is None:
        return None
    node, place, text, dtype = use
    other = _source(mutant, draw, node, dtype)
    if other is None:
        return None
    inputs = [text, other]
    draw.shuffle(inputs)
    merge = _add(mutant, "Merge", inputs, {"T": dtype}, count=2)
    node.input[place] = merge.name
    return f"a Merge of {inputs[0]} and {inputs[1]} before {node.name}"


@legal(2)
def negate_predicate(mutant: Mutant, draw: Random) -> str | None:
    """Have a Switch or a LoopCond decide the other way round."""
    nodes = [n for n in mutant.of_op("Switch", "LoopCond", "If", "StatelessIf") if n.input]
    if not nodes:
        return None
    node = draw.choice(nodes)
    place = 1 if node.op == "Switch" else 0
    if len(node.input) <= place or mutant.type_at(node, place) is not dtypes.bool_:
        return None
    added = _add(mutant, "LogicalNot", [node.input[place]], {})
    node.input[place] = added.name
    return f"{node.name} decides the other way round"


@legal(3)
def change_op(mutant: Mutant, draw: Random) -> str | None:
    """Have a node do something else with the same inputs."""
    nodes = [n for n in mutant.all_nodes() if any(n.op in ops for ops in _SIBLINGS)]
    if not nodes:
        return None
    node = draw.choice(nodes)
    old = node.op
    node.op = draw.choice(next(ops for ops in _SIBLINGS if old in ops))
    return f"{node.name} is {node.op}, not {old}" if node.op != old else None


@legal(2)
def rewire_body(mutant: Mutant, draw: Random) -> str | None:
    """Have an input of a node in a function be that of another one."""
    bodies = [f for f in mutant.graph.library.function if any(n.input for n in f.node_def)]
    if not bodies:
        return None
    body = draw.choice(bodies)
    texts = [text for node in body.node_def for text in node.input if not text.startswith("^")]
    node = draw.choice([node for node in body.node_def if node.input])
    if not texts:
        return None
    place = draw.randrange(len(node.input))
    new = draw.choice(texts)
    node.input[place] = f"^{new.split(':')[0]}" if node.input[place].startswith("^") else new
    return f"input {place} of {node.name} in {body.signature.name} is {node.input[place]}"


@legal(2)
def rewire_result(mutant: Mutant, draw: Random) -> str | None:
    """Have a function return something else."""
    bodies = [f for f in mutant.graph.library.function if f.ret and f.node_def]
    if not bodies:
        return None
    body = draw.choice(bodies)
    results = sorted(body.ret)
    texts = [*body.ret.values(), *(t for n in body.node_def for t in n.input if t[:1] != "^")]
    name = draw.choice(results)
    body.ret[name] = draw.choice(sorted(texts))
    return f"{body.signature.name} returns {body.ret[name]} as {name}"


# -- what edges may come from ----------------------------------------------------------------


def _allowed(mutant: Mutant, draw: Random, node: Message, names: list[str]) -> list[str]:
    """The names of nodes that a node may depend on; sometimes those that depend on it, too."""
    if draw.randrange(100) < _CYCLES:
        return names
    later = mutant.downstream(node.name)
    return [name for name in names if name not in later]


def _source(
    mutant: Mutant, draw: Random, node: Message, wanted: DType, *, but: str = ""
) -> str | None:
    """An endpoint of some type that a node may take."""
    found = [text for text, _ in mutant.endpoints(wanted)]
    by_name = {text: parse_endpoint(text).node for text in found}
    allowed = set(_allowed(mutant, draw, node, sorted(set(by_name.values()))))
    texts = [text for text in found if by_name[text] in allowed and by_name[text] != but]
    return draw.choice(texts) if texts else None


def _use_of_a_value(mutant: Mutant, draw: Random) -> tuple[Message, int, str, DType] | None:
    """Some data input that is no reference."""
    uses = list(mutant.uses())
    if not uses:
        return None
    node, place, text = draw.choice(uses)
    wanted = mutant.type_at(node, place)
    return None if wanted is None or wanted.is_ref else (node, place, text, wanted)


def _add(
    mutant: Mutant, op: str, inputs: list[str], types: dict[str, DType], count: int = 0
) -> Message:
    """A new node."""
    node = mutant.graph.node.add(name=mutant.fresh_name(f"new_{op}"), op=op)
    node.input.extend(inputs)
    for name, dtype in types.items():
        node.attr[name].type = dtype.number
    if count:
        node.attr["N"].i = count
    assert all(parse_endpoint(text).slot != CONTROL_SLOT for text in inputs)
    return node
