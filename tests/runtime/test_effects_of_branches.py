"""Which effects of branches, loops and calls happen, depending on what is asked for.

The numbers are TensorFlow's, with its optimiser and without: how much a variable has grown after
a run of what reads the node, of the node itself, or of what waits for it.
"""

from __future__ import annotations

import pytest

import penstock as ps
from penstock.defs.schema import ConfigProto, Message
from support.functions import graph_def_with

V = "container=; shared_name=v; dtype=float32; shape="
COUNTS = "one = Const[value=1]\nadd = AssignAddVariableOp[dtype=float32](h, one:output)"
FUNCTIONS = """
Counts(h: resource, x: float32) -> (y: float32) stateful
{counts}
y = Neg(x)
return y = y:y
{control}

Pure(h: resource, x: float32) -> (y: float32)
y = Neg(x)
return y = y:y

Below(h: resource, x: float32) -> (go: bool)
three = Const[value=3]
less = Less(x, three:output)
return go = less:z

CountsBelow(h: resource, x: float32) -> (go: bool) stateful
{counts}
three = Const[value=3]
less = Less(x, three:output)
return go = less:z
{control}

Step(h: resource, x: float32) -> (same: resource, y: float32)
unit = Const[value=1]
y = Add(x, unit:output)
return same = h
return y = y:z

CountsStep(h: resource, x: float32) -> (same: resource, y: float32) stateful
{counts}
unit = Const[value=1]
y = Add(x, unit:output)
return same = h
return y = y:z
{control}
"""
CHOICE = "Tin=resource|float32; Tout=float32"
NODES = {
    "If": f"If[Tcond=bool; {CHOICE}; then_branch=Counts; else_branch=Pure](p, h, x)",
    "Case": f"Case[{CHOICE}; branches=Pure|Counts](i, h, x)",
    "While": "While[T=resource|float32; cond=Below; body=CountsStep](h, x)",
    "condition": "While[T=resource|float32; cond=CountsBelow; body=Step](h, x)",
    "call": "Counts(h, x)",
}
#: For each node: without ``control_ret``, and with it.
EXPECTED = {
    "If": ([0, 0, 0], [0, 1, 1]),
    "Case": ([0, 0, 0], [0, 1, 1]),
    "While": ([0, 0, 0], [3, 3, 3]),
    "condition": ([0, 0, 0], [0, 0, 0]),
    "call": ([1, 1, 1], [1, 1, 1]),
}


def definition(kind: str, *, is_named: bool) -> Message:
    """A variable, a node of one kind, what reads it and what waits for it."""
    control = "control done = add" if is_named else ""
    slot = ":1" if "While" in NODES[kind] else ""
    proto = graph_def_with(
        f"""
        p = Const[value=True; dtype=bool]
        i = Const[value=1; dtype=int32]
        x = Const[value=0]
        zero = Const[value=0]
        h = VarHandleOp[{V}]
        init = AssignVariableOp[dtype=float32](h, zero)
        read = ReadVariableOp[dtype=float32](h)
        r = {NODES[kind]}
        reads = Neg(r{slot})
        waits = Neg(x, ^r)
        """,
        FUNCTIONS.format(counts=COUNTS, control=control),
    )
    for node in proto.node:
        if node.name == "r" and kind != "call":
            node.attr["_lower_using_switch_merge"].b = True
    return proto


def grown(proto: Message, config: ps.Config) -> list[float]:
    """How much the variable grows by each of three runs."""
    found = []
    with ps.Session(proto, config=config) as session:
        for asked in (["reads:0"], ["r"], ["waits:0"]):
            session.run("init")
            session.run(asked)
            found.append(float(session.run("read:0")))
    return found


OPTIONS = [
    pytest.param(ps.Config(tier=tier, ready_order_seed=seed, graph_options=options), id=name)
    for tier, seed, options, name in (
        (ps.Tier.COMPILED, None, ps.GraphOptions(), "compiled"),
        (ps.Tier.DATAFLOW, 1, ps.GraphOptions(), "dataflow"),
        (ps.Tier.COMPILED, None, ps.GraphOptions.nothing(), "compiled as it is"),
        (ps.Tier.DATAFLOW, 2, ps.GraphOptions.nothing(), "dataflow as it is"),
    )
]


@pytest.mark.parametrize("config", OPTIONS)
@pytest.mark.parametrize("is_named", [False, True])
@pytest.mark.parametrize("kind", NODES)
def test_effects_happen_where_they_are_needed(
    kind: str, config: ps.Config, *, is_named: bool
) -> None:
    """A branch does what its results need, and what its function names, for those who wait.

    An iteration of a loop does what its function names before the next one; what the condition names
    nobody waits for.  A call by name does all that has effects.
    """
    assert grown(definition(kind, is_named=is_named), config) == EXPECTED[kind][is_named]


@pytest.mark.parametrize("kind", ["If", "Case", "While", "condition"])
def test_what_is_not_lowered_does_all_that_has_effects(kind: str) -> None:
    """Left to its kernel, a branch or an iteration is a call like others."""
    proto = definition(kind, is_named=False)
    times = {"While": 3.0, "condition": 4.0}.get(kind, 1.0)
    assert grown(proto, ps.Config(disable_functional_ops_lowering=True)) == [times] * 3
    for name in ("disable_functional_ops_lowering", "executor_type"):
        message = ConfigProto()
        if name == "executor_type":
            message.experimental.executor_type = "SINGLE_THREADED_EXECUTOR"
        else:
            message.experimental.disable_functional_ops_lowering = True
        assert grown(proto, ps.Config.of(message)) == [times] * 3


@pytest.mark.parametrize("config", OPTIONS)
@pytest.mark.parametrize("is_named", [False, True])
def test_who_waits_for_a_loop_waits_for_all_of_its_variables(
    config: ps.Config, *, is_named: bool
) -> None:
    """Also for one that no iteration reads or changes; who reads another one does not."""
    proto = loop_with_a_bad_variable(is_named=is_named)
    with ps.Session(proto, config=config) as session:
        if is_named:
            with pytest.raises(ps.errors.InvalidArgumentError, match="oops"):
                session.run("r:0", {"p:0": True, "x:0": float("nan")})
        else:
            assert session.run("r:0", {"p:0": True, "x:0": float("nan")}) == -3


def loop_with_a_bad_variable(*, is_named: bool) -> Message:
    """A call of a function that waits for a loop, or only reads what is good of it."""
    functions = f"""
        Few(x: float32, y: float32) -> (go: bool)
        three = Const[value=3]
        less = Less(x, three:output)
        return go = less:z

        More(x: float32, y: float32) -> (a: float32, b: float32)
        unit = Const[value=1]
        sum = Add(x, unit:output)
        return a = sum:z
        return b = y

        Loops(x: float32) -> (y: float32)
        zero = Const[value=0]
        bad = CheckNumerics[message=oops](x)
        r = While[T=float32|float32; cond=Few; body=More](zero:output, bad:output)
        reads = Neg(r:output:0)
        return y = reads:y
        {"control r = r" if is_named else ""}
    """
    facts = "Tcond=bool; Tin=float32; Tout=float32; then_branch=Loops; else_branch=Loops"
    graph = f"""
        p = Placeholder[dtype=bool]
        x = Placeholder
        c = If[{facts}](p, x)
        waits = Neg(c, ^c)
        r = Neg(waits)
    """
    proto = graph_def_with(graph, functions)
    for nodes in (proto.node, proto.library.function[2].node_def):
        for node in nodes:
            if node.op in ("If", "While"):
                node.attr["_lower_using_switch_merge"].b = True
    return proto
