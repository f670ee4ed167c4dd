"""Which effects of a called function happen, depending on how it is called and what is asked for.

The numbers are TensorFlow's, for graphs as they are and after its optimiser: how much a variable
has grown after a run of what reads the node, of the node itself, of what waits for it, and of its
value.  The function adds one, and names that (``control_ret``) or does not.
"""

from __future__ import annotations

from itertools import product

import pytest

import penstock as ps
from penstock.defs.schema import Message
from support.functions import graph_def_with

V = "container=; shared_name=v; dtype=float32; shape="
TYPES = "Tin=resource|float32; Tout=float32"
ONE = "one = Const[value=1]\nadd = AssignAddVariableOp[dtype=float32](h, one:output)"
FUNCTIONS = f"""
Counts(h: resource, x: float32) -> (y: float32) stateful
{ONE}
y = Neg(x)
return y = y:y
{{control}}

Passes(h: resource, x: float32) -> (y: float32) stateful
{ONE}
return y = x
{{control}}

Pure(h: resource, x: float32) -> (y: float32)
y = Neg(x)
return y = y:y

NoResult(h: resource, x: float32) -> () stateful
{ONE}
{{control}}
"""
IF = f"If[Tcond=bool; {TYPES}; then_branch={{}}; else_branch=Pure]"
PURE_CALL = f"PartitionedCall[{TYPES}; f={{}}]"
CALL = f"StatefulPartitionedCall[{TYPES}; f={{}}]"
#: What the function between the graph and ``Counts`` has, if there is one; and whether it is named.
BETWEEN = {
    "Pure": (PURE_CALL.format("Counts"), False),
    "PureNamed": (PURE_CALL.format("Counts"), True),
    "Stateful": (CALL.format("Counts"), False),
    "StatefulNamed": (CALL.format("Counts"), True),
    "Branch": (IF.format("Counts"), False),
    "BranchNamed": (IF.format("Counts"), True),
    "Handed": (PURE_CALL.format("Passes"), False),
}
#: How the graph calls that, by what, and how much the variable grows: without ``control_ret`` and
#: with it, each as it is and after TensorFlow's optimiser.
EXPECTED = {
    (PURE_CALL, "Counts"): (("0000", "0000"), ("1111", "1111")),
    (CALL, "Counts"): (("0000", "0010"), ("1111", "1111")),
    ("{}", "Counts"): (("1111", "1111"), ("1111", "1111")),
    (PURE_CALL, "Pure"): (("0000", "0000"), ("1111", "1101")),
    (CALL, "Stateful"): (("0000", "0010"), ("1111", "1111")),
    ("{}", "Pure"): (("0000", "0000"), ("1111", "1101")),
    ("{}", "Stateful"): (("0000", "0010"), ("1111", "1111")),
    (PURE_CALL, "PureNamed"): (("0000", "0000"), ("1111", "1111")),
    (CALL, "StatefulNamed"): (("0000", "0010"), ("1111", "1111")),
    ("{}", "StatefulNamed"): (("0000", "0010"), ("1111", "1111")),
    (PURE_CALL, "Branch"): (("0000", "0000"), ("0000", "0000")),
    (CALL, "Branch"): (("0000", "0010"), ("0000", "0010")),
    ("{}", "Branch"): (("1111", "1000"), ("1111", "1000")),
    (PURE_CALL, "BranchNamed"): (("0000", "0000"), ("1111", "1111")),
    (CALL, "BranchNamed"): (("0000", "0000"), ("1111", "1111")),
    (IF, "Pure"): (("0000", "0000"), ("1101", "1101")),
    (IF, "Stateful"): (("0000", "0000"), ("1101", "1101")),
    (IF, "PureNamed"): (("0000", "0000"), ("1111", "1111")),
    (IF, "StatefulNamed"): (("0000", "0010"), ("1111", "1111")),
    (IF, "Branch"): (("0000", "0000"), ("0000", "0000")),
    (IF, "BranchNamed"): (("0000", "0000"), ("0111", "0111")),
    (IF, "Handed"): (("0000", "0000"), ("1101", "1101")),
    (IF, "Passes"): (("0000", "0000"), ("0111", "0111")),
    (PURE_CALL, "Handed"): (("0000", "0000"), ("1111", "1101")),
    (PURE_CALL, "Passes"): (("0000", "0000"), ("1111", "1111")),
}
#: Where TensorFlow's optimiser changes effects, in a way that this one does not follow.
OTHERWISE = {
    ((PURE_CALL, "Pure"), True),
    (("{}", "Pure"), True),
    ((PURE_CALL, "Handed"), True),
    (("{}", "Branch"), False),
    (("{}", "Branch"), True),
    ((CALL, "Branch"), False),
    ((IF, "StatefulNamed"), False),
}
CASES = list(product(EXPECTED, (False, True)))


def definition(case: tuple[str, str], *, is_named: bool) -> Message:
    """A variable, a node that calls, what reads it and what waits for it."""
    call, called = case
    functions = FUNCTIONS.format(control="control add = add" if is_named else "")
    for name, (inner, is_inner_named) in BETWEEN.items():
        args = "p:output, h, x" if inner.startswith("If") else "h, x"
        functions += (
            f"""
            Outer{name}(h: resource, x: float32) -> (y: float32) stateful
            p = Const[value=True; dtype=bool]
            c = {inner}({args})
            y = {"Identity[T=float32]" if name == "Handed" else "Neg"}(c:output:0)
            return y = {"c:output:0" if name == "Handed" else "y:y"}
            {"control c = c" if is_inner_named else ""}
        """.replace("            ", "")
            + "\n"
        )
    function = f"Outer{called}" if called in BETWEEN else called
    proto = graph_def_with(
        f"""
        p = Const[value=True; dtype=bool]
        x = Const[value=0]
        zero = Const[value=0]
        h = VarHandleOp[{V}]
        init = AssignVariableOp[dtype=float32](h, zero)
        read = ReadVariableOp[dtype=float32](h)
        r = {call.format(function)}({"p, " if call == IF else ""}h, x)
        reads = Neg(r)
        waits = Neg(x, ^r)
        """,
        functions,
    )
    for nodes in (proto.node, *(made.node_def for made in proto.library.function)):
        for node in nodes:
            if node.op == "If":
                node.attr["_lower_using_switch_merge"].b = True
    return proto


def grown(proto: Message, config: ps.Config) -> str:
    """How much the variable grows by each of four runs."""
    found = ""
    with ps.Session(proto, config=config) as session:
        for asked in (["reads:0"], ["r"], ["waits:0"], ["r:0"]):
            session.run("init")
            session.run(asked)
            found += f"{session.run('read:0'):.0f}"
    return found


@pytest.mark.parametrize("devices", [1, 2])
@pytest.mark.parametrize("tier", ps.Tier)
@pytest.mark.parametrize(("case", "is_named"), CASES)
def test_effects_of_graphs_as_they_are(
    case: tuple[str, str], tier: ps.Tier, devices: int, *, is_named: bool
) -> None:
    """A partitioned call does what its results need and what its function names, when it runs.

    A call by name does all that has effects.  A branch does what it names for those who wait.
    """
    config = ps.Config(
        tier=tier,
        ready_order_seed=3 if tier is ps.Tier.DATAFLOW else None,
        device_count={"CPU": devices},
        graph_options=ps.GraphOptions.nothing(),
    )
    assert grown(definition(case, is_named=is_named), config) == EXPECTED[case][is_named][0]


@pytest.mark.parametrize("devices", [1, 2])
@pytest.mark.parametrize("tier", ps.Tier)
@pytest.mark.parametrize(("case", "is_named"), [case for case in CASES if case not in OTHERWISE])
def test_effects_of_opened_functions(
    case: tuple[str, str], tier: ps.Tier, devices: int, *, is_named: bool
) -> None:
    """The same, but who waits for a stateful call waits for all that has effects in it."""
    config = ps.Config(tier=tier, device_count={"CPU": devices})
    assert grown(definition(case, is_named=is_named), config) == EXPECTED[case][is_named][1]


@pytest.mark.parametrize("optimised", [False, True])
@pytest.mark.parametrize("devices", [1, 2])
@pytest.mark.parametrize("tier", ps.Tier)
def test_functions_of_effects_alone(tier: ps.Tier, devices: int, *, optimised: bool) -> None:
    """A function that neither returns nor names anything does all that has effects."""
    proto = graph_def_with(
        f"""
        x = Const[value=0]
        h = VarHandleOp[{V}]
        init = AssignVariableOp[dtype=float32](h, x)
        read = ReadVariableOp[dtype=float32](h)
        r = StatefulPartitionedCall[Tin=resource|float32; Tout=; f=NoResult](h, x)
        after = ReadVariableOp[dtype=float32](h, ^r)
        """,
        FUNCTIONS.format(control=""),
    )
    options = ps.GraphOptions() if optimised else ps.GraphOptions.nothing()
    config = ps.Config(tier=tier, device_count={"CPU": devices}, graph_options=options)
    with ps.Session(proto, config=config) as session:
        session.run("init")
        session.run("r")
        assert session.run("read:0") == 1
        assert session.run("after:0") == 2
