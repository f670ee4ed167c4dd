"""Lowering: what becomes of calls, branches and loops, and what is left as it is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

import numpy as np
import pytest

import penstock as ps
from penstock import errors
from penstock.defs.schema import Message
from penstock.graph.check import check_graph
from penstock.graph.frames import build_control_flow_info
from penstock.graph.graph import Graph
from penstock.graph.import_graph_def import graph_from_def
from penstock.kernels.api.registry import kernel
from penstock.passes.lower import has_choices, lower
from penstock.passes.lowerable import AS_TENSORFLOW, Kinds
from support.custom import custom_kernels
from support.functions import graph_def_with

BRANCHES = """
Then(a: float32, b: float32) -> (y: float32)
ten = Const[value=10]
sum = Add[T=float32](a, ten:output)
return y = sum:z

Else(a: float32, b: float32) -> (y: float32)
return y = b
"""
LOOP = """
Below(i: int32, n: int32) -> (go: bool)
less = Less[T=int32](i, n)
return go = less:z

Step(i: int32, n: int32) -> (j: int32, m: int32)
one = Const[value=1; dtype=int32]
next = Add[T=int32](i, one:output)
return j = next:z
return m = n
"""
IF = "If[Tcond=bool; Tin=float32|float32; Tout=float32; then_branch=Then; else_branch=Else]"
WHILE = "While[T=int32|int32; cond=Below; body=Step]"
V = "container=; shared_name=v; dtype=float32; shape="
COUNT = """
Count(h: resource, x: float32) -> (y: float32) stateful
add = AssignAddVariableOp[dtype=float32](h, x)
now = ReadVariableOp[dtype=float32](h, ^add)
return y = now:value
control done = add
"""


def definition(text: str, functions: str, asks: bool = True) -> Message:
    """A GraphDef whose branches and loops ask to be lowered."""
    proto = graph_def_with(text, functions)
    bodies: Iterable[Any] = [proto.node, *(f.node_def for f in proto.library.function)]
    for node in (node for nodes in bodies for node in nodes):
        if asks and node.op in ("If", "While", "Case"):
            node.attr["_lower_using_switch_merge"].b = True
    return proto


def lowered(text: str, functions: str, *, asks: bool = True, **options: Any) -> Graph:
    """A graph after the pass, which leaves it well formed."""
    graph = graph_from_def(definition(text, functions, asks))
    devices = {node.id: f"/device:CPU:{node.id}" for node in graph}
    devices = lower(graph, devices, **options)
    assert set(devices) == {node.id for node in graph}
    check_graph(graph)
    build_control_flow_info(graph)
    return graph


def ops(graph: Graph) -> Counter[str]:
    """How many nodes of each op there are."""
    return Counter(node.op.name for node in graph)


def test_a_branch() -> None:
    """A Switch for each input that is read and for the gates, a Merge for each result."""
    graph = lowered(
        f"p = Placeholder[dtype=bool]\nx = Placeholder\ny = Placeholder\nr = {IF}(p, x, y)\n"
        "out = Neg[T=float32](r)",
        BRANCHES,
    )

    found = ops(graph)
    assert found["If"] == 0
    assert (found["Switch"], found["Merge"], found["Add"], found["Const"]) == (3, 1, 1, 1)
    (waits,) = graph.node("r/then/ten").control_inputs
    assert waits.src.name == "r/pivot_then"
    assert (waits.src.input(0).src.op.name, waits.src.input(0).src_slot) == ("Switch", 1)
    assert graph.node("out").input(0).src is graph.node("r/merge")


def test_a_loop() -> None:
    """One of each kind for what changes; what stays comes in by a constant Enter."""
    graph = lowered(
        f"i = Placeholder[dtype=int32]\nn = Placeholder[dtype=int32]\nr = {WHILE}(i, n)\n"
        "out = Neg[T=int32](r)\nsame = Neg[T=int32](r:1)",
        LOOP,
    )

    found = ops(graph)
    kinds = ("Merge", "Switch", "NextIteration", "Exit", "LoopCond")
    assert [found[op] for op in kinds] == [1] * len(kinds)
    assert found["Enter"] == 2
    assert graph.node("r/enter").attrs["is_constant"] is True
    assert graph.node("out").input(0).src.op.name == "Exit"
    assert graph.node("same").input(0).src is graph.node("n")


@pytest.mark.parametrize(
    "call",
    ["PartitionedCall[Tin=float32|float32; Tout=float32; f=Then](x, y)", "Then(x, y)"],
)
def test_a_call(call: str) -> None:
    """The body's nodes, on the call's device, under its name; constants wait for nothing."""
    graph = graph_from_def(definition(f"x = Placeholder\ny = Placeholder\nr = {call}", BRANCHES))
    devices = lower(graph, {node.id: f"/device:CPU:{node.id}" for node in graph})

    assert sorted(graph.names()) == ["r/sum", "r/ten", "x", "y"]
    assert devices[graph.node("r/sum").id] == "/device:CPU:2"
    assert not graph.node("r/ten").control_inputs
    assert graph.node("r/sum").function == "Then"


@pytest.mark.parametrize(
    ("text", "functions", "asks"),
    [
        pytest.param(
            f"p = Placeholder[dtype=bool]\nx = Placeholder\nr = {IF}(p, x, x)",
            BRANCHES,
            False,
            id="does not ask",
        ),
        pytest.param(
            "p = Placeholder[dtype=int32]\nx = Placeholder\n"
            f"r = {IF.replace('bool', 'int32')}(p, x, x)",
            BRANCHES,
            True,
            id="a number as condition",
        ),
        pytest.param(
            f"p = Placeholder[dtype=bool]\nx = Placeholder\nr = {IF}(p, x, x)",
            BRANCHES.replace("b: float32", "b: int32").replace("return y = b", "return y = a"),
            True,
            id="other types",
        ),
        pytest.param("r = Endless", "Endless() -> () stateful\nx = Endless", True, id="recursion"),
        pytest.param("r = Lost", "Lost() -> ()\nx = NoOp(^y)", True, id="damaged"),
        pytest.param(
            "r = Odd",
            "Odd() -> (s: string)\nx = TPUCompilationResult\nreturn s = x:output",
            True,
            id="no kernel",
        ),
        pytest.param(
            "x = Placeholder\nr = Branch1(x)",
            """
            Branch1(x: float32) -> (y: float32)
            yes = Const[value=True; dtype=bool]
            switch = Switch(x, yes:output)
            merge = Merge[N=2](switch:output_true:0, switch:output_false:0)
            return y = merge:output
            """,
            True,
            id="control flow of the first kind",
        ),
        pytest.param(
            "x = Placeholder\nr = PartitionedCall[Tin=float32|float32; Tout=float32; f=Then; "
            "executor_type=SINGLE_THREADED_EXECUTOR](x, x)",
            BRANCHES,
            True,
            id="another executor",
        ),
    ],
)
def test_what_is_left(text: str, functions: str, asks: bool) -> None:
    """What cannot be lowered, or does not ask for it, stays as it is."""
    graph = graph_from_def(definition(text, functions, asks))
    before = ops(graph)

    lower(graph, {})

    assert ops(graph) == before


PURE = AS_TENSORFLOW | Kinds.PURE_CHOICES
STATEFUL = """
Throw(i: int32, n: int32) -> (j: int32, m: int32)
zero = Const[value=0; dtype=int32]
shape = Const[value=2; dtype=int32]
begin = Pack[T=int32; N=1](shape:output)
roll = RandomUniformInt[T=int32; Tout=int32](begin:output, zero:output, n)
return j = roll:output
return m = n
"""
DEEP = """
Deep(i: int32, n: int32) -> (j: int32, m: int32)
call = StatefulPartitionedCall[Tin=int32|int32; Tout=int32|int32; f=INNER](i, n)
return j = call:output:0
return m = call:output:1
"""
#: Calls itself, as long as a number is not large.
TURN = """
Turn(i: int32, n: int32) -> (j: int32, m: int32)
less = Less[T=int32](i, n)
more = If[Tcond=bool; Tin=T2; Tout=T2; then_branch=Turn; else_branch=Step](less:z, i, n)
return j = more:output:0
return m = more:output:1
""".replace("T2", "int32|int32")
#: A function that calls one that calls one and so on, deeper than Python's own calls may be.
CHAIN = "".join(
    DEEP.replace("Deep", f"D{k}").replace("INNER", f"D{k + 1}" if k < 400 else "Step")
    for k in range(1, 401)
)


@pytest.mark.parametrize(
    ("loop", "functions", "is_lowered"),
    [
        pytest.param(WHILE, LOOP, True, id="only numbers"),
        pytest.param(
            WHILE.replace("Step", "Deep"), LOOP + DEEP.replace("INNER", "Step"), True, id="calls"
        ),
        pytest.param(WHILE.replace("Step", "Throw"), LOOP + STATEFUL, False, id="chance"),
        pytest.param(
            WHILE.replace("Step", "Deep"),
            LOOP + STATEFUL + DEEP.replace("INNER", "Throw"),
            False,
            id="calls of chance",
        ),
        pytest.param(
            WHILE.replace("Step", "Deep"), LOOP + DEEP.replace("INNER", "Deep"), True, id="itself"
        ),
        pytest.param(
            WHILE.replace("Step", "Deep"),
            LOOP + DEEP.replace("INNER", "Turn") + TURN,
            True,
            id="one that calls itself",
        ),
        pytest.param(
            WHILE.replace("Step", "Deep"),
            LOOP + DEEP.replace("INNER", "D1") + CHAIN,
            True,
            id="deep",
        ),
        pytest.param(
            WHILE.replace("Step", "Deep"),
            LOOP + DEEP.replace("INNER", "D1") + CHAIN.replace("Step", "Throw") + STATEFUL,
            False,
            id="deep chance",
        ),
    ],
)
def test_loops_that_do_not_ask_are_lowered_if_they_only_compute(
    loop: str, functions: str, is_lowered: bool
) -> None:
    """What has effects may tell how its iterations follow each other, so it is left."""
    text = f"i = Placeholder[dtype=int32]\nr = {loop}(i, i)\nout = Neg[T=int32](r)"
    as_asked = lowered(text, functions, asks=False)
    assert ops(as_asked)["While"] == 1

    found = ops(lowered(text, functions, asks=False, kinds=PURE))

    assert (found["While"], found["LoopCond"]) == ((0, 1) if is_lowered else (1, 0))


@pytest.mark.parametrize(
    ("dtype", "is_lowered"),
    [("bool", True), ("string", True), ("float32", True), ("resource", False)],
)
def test_what_decides_may_be_of_any_type_if_nobody_asks(dtype: str, is_lowered: bool) -> None:
    """ToBool says what it means, as the kernels of If and While do; a handle means nothing."""
    text = (
        f"p = Placeholder[dtype={dtype}]\nx = Placeholder\nr = {IF.replace('bool', dtype)}(p, x, x)"
    )

    found = ops(lowered(text, BRANCHES, asks=False, kinds=PURE))

    assert (found["If"], found["ToBool"]) == ((0, 1) if is_lowered else (1, 0))


def test_functions_that_are_not_to_be_inlined() -> None:
    """The function says so by an attribute of its own."""
    proto = definition("x = Placeholder\nr = Then(x, x)", BRANCHES)
    proto.library.function[0].attr["_noinline"].b = True
    graph = graph_from_def(proto)

    lower(graph, {})

    assert "r" in graph


@pytest.mark.parametrize("op", ["If", "StatelessIf", "PartitionedCall"])
@pytest.mark.parametrize(
    ("name", "value", "is_kept"),
    [
        ("_XlaMustCompile", True, True),
        ("_XlaMustCompile", False, False),
        ("_XlaMustCompile", b"yes", False),
        ("_xla_compile_id", b"cluster", True),
        ("_xla_compile_id", b"", False),
        ("_tpu_replicate", b"cluster", True),
        ("_tpu_replicate", True, False),
        ("_XlaCluster", b"cluster", False),
        ("_XlaScope", b"scope", False),
        ("_noinline", True, False),
    ],
)
def test_what_is_meant_for_xla(op: str, name: str, value: bytes | bool, *, is_kept: bool) -> None:
    """Nodes that a compiler is to have stay whole: TensorFlow's marks, no others."""
    call = "PartitionedCall[Tin=float32|float32; Tout=float32; f=Then](x, x)"
    proto = definition(
        "p = Placeholder[dtype=bool]\nx = Placeholder\nr = "
        + (call if op == "PartitionedCall" else f"{IF.replace('If', op, 1)}(p, x, x)"),
        BRANCHES,
    )
    node = proto.node[-1]
    node.attr["_lower_using_switch_merge"].b = True
    if isinstance(value, bool):
        node.attr[name].b = value
    else:
        node.attr[name].s = value
    metadata = ps.RunMetadata()
    options = ps.RunOptions(output_partition_graphs=True)
    with ps.Session(proto) as session:
        assert session.run("r:0", {"p:0": True, "x:0": 2.0}, options, metadata) == 12

    (graph,) = metadata.partition_graphs
    assert (op in {node.op for node in graph.node}) is is_kept


@pytest.mark.parametrize("mark", ["_noinline", "api_implements"])
@pytest.mark.parametrize("tier", ps.Tier)
def test_branches_that_are_not_to_be_opened(mark: str, tier: ps.Tier) -> None:
    """Branches and loops become dataflow around calls, as they do in TensorFlow."""
    text = f"""
        p = Placeholder[dtype=bool]
        x = Placeholder
        i = Const[value=0; dtype=int32]
        n = Const[value=5; dtype=int32]
        r = {IF}(p, x, x)
        w = {WHILE}(i, n)
        c = Case[Tin=float32|float32; Tout=float32; branches=Then|Else](i, x, x)
    """
    proto = definition(text, BRANCHES + "\n" + LOOP)
    for function in proto.library.function:
        if mark == "_noinline":
            function.attr[mark].b = True
        else:
            function.attr[mark].s = b"something"
    graph = graph_from_def(proto)
    lower(graph, {})

    found = ops(graph)
    assert {"If", "While", "Case"}.isdisjoint(found)
    assert (found["Then"], found["Else"], found["Below"], found["Step"]) == (2, 2, 1, 1)
    assert "Less" not in found
    check_graph(graph)
    with ps.Session(proto, config=ps.Config(tier=tier, check_graphs=True)) as session:
        feeds = {"x:0": 2.0, "p:0": False}
        assert session.run(["r:0", "w:0", "c:0"], feeds) == [2, 5, 12]


def test_a_branch_that_calls_itself() -> None:
    """What would go on for ever is a call in the branch; the If around it is dataflow."""
    choice = "If[Tcond=bool; Tin=float32; Tout=float32; then_branch=Less1; else_branch=Same]"
    functions = f"""
        Down(x: float32) -> (y: float32)
        one = Const[value=1]
        more = Greater(x, one:output)
        r = {choice}(more:z, x)
        return y = r:output:0

        Less1(x: float32) -> (y: float32)
        one = Const[value=1]
        less = Sub(x, one:output)
        more = Greater(less:z, one:output)
        r = {choice}(more:z, less:z)
        return y = r:output:0

        Same(x: float32) -> (y: float32)
        return y = x
    """
    proto = definition("x = Placeholder\nr = Down(x)", functions)
    graph = graph_from_def(proto)
    lower(graph, {})

    assert (ops(graph)["If"], ops(graph)["Less1"]) == (0, 1)
    with ps.Session(proto) as session:
        assert session.run("r:0", {"x:0": 7.5}) == 0.5


@pytest.mark.parametrize(
    "call", ["Two", "PartitionedCall[Tin=float32; Tout=float32|float32; f=Two]"]
)
def test_what_waits_for_a_call_waits_for_its_results(call: str) -> None:
    """A call is over when all of its results are there, also those that nobody reads."""
    two = """
    Two(x: float32) -> (y: float32, z: float32)
    neg = Neg(x)
    exp = Exp(x)
    return y = neg:y
    return z = exp:y
    """
    graph = lowered(f"x = Placeholder\nr = {call}(x)\nafter = NoOp(^r)", two)

    waited, found = [graph.node("after")], set[str]()
    while waited:
        node = waited.pop()
        found.add(node.op.name)
        waited += [edge.src for edge in node.in_edges()]
    assert {"Neg", "Exp"} <= found


def test_no_more_than_enough() -> None:
    """Functions that call others twice grow without bounds; the last ones are left as calls."""
    functions = "F0(x: float32) -> (y: float32)\nneg = Neg(x)\nreturn y = neg:y\n"
    for i in range(1, 12):
        functions += f"""
        F{i}(x: float32) -> (y: float32)
        a = F{i - 1}(x)
        b = F{i - 1}(a:y)
        return y = b:y
        """
    graph = lowered("x = Placeholder\nr = F11(x)", functions, max_new_nodes=100)

    assert 1 < len(graph) <= 102
    assert any(node.op.is_function for node in graph)
    with ps.Session(definition("x = Placeholder\nr = F11(x)", functions)) as session:
        assert session.run("r:0", {"x:0": 2.0}) == 2.0


@pytest.mark.parametrize("tier", ps.Tier)
def test_what_waits_for_a_branch(tier: ps.Tier) -> None:
    """A node that waits for an If, a While or a call sees all that it does."""
    functions = (
        COUNT
        + """
        Two(h: resource, x: float32) -> (y: float32) stateful
        a = Count(h, x)
        b = Count(h, x, ^a)
        return y = x
        control done = b

        Nothing(h: resource, x: float32) -> (y: float32)
        return y = x
        """
    )
    choice = "Tcond=bool; Tin=resource|float32; Tout=float32; then_branch=Two; else_branch=Nothing"
    text = f"""
        p = Placeholder[dtype=bool]
        x = Const[value=1]
        h = VarHandleOp[{V}]
        zero = Const[value=0]
        init = AssignVariableOp[dtype=float32](h, zero)
        first = StatefulPartitionedCall[Tin=resource|float32; Tout=float32; f=Two](h, x)
        then = If[{choice}](p, h, x, ^first)
        after = ReadVariableOp[dtype=float32](h, ^then)
    """
    config = ps.Config(tier=tier, ready_order_seed=3, check_graphs=True)
    with ps.Session(definition(text, functions), config=config) as session:
        session.run(["init"])
        assert session.run("after:0", {"p:0": True}) == 4
        assert session.run("after:0", {"p:0": False}) == 6


@pytest.mark.parametrize("tier", ps.Tier)
def test_a_call_with_resources_that_lie_apart(tier: ps.Tier) -> None:
    """What no node could lie with is called as it is, and nobody need hear of it."""
    function = """
        Step(v: resource, m: resource, x: float32) -> (y: float32)
        a = ResourceApplyAdagrad[T=float32](v, m, x, x)
        y = ReadVariableOp[dtype=float32](v, ^a)
        return y = y:value:0
    """
    proto = definition(
        f"""
        v = VarHandleOp[{V}; shared_name=v]
        m = VarHandleOp[{V}; shared_name=m]
        one = Const[value=1]
        init = AssignVariableOp[dtype=float32](v, one)
        more = AssignVariableOp[dtype=float32](m, one)
        y = StatefulPartitionedCall[Tin=resource|resource|float32; Tout=float32; f=Step](v, m, one)
        """,
        function,
    )
    next(node for node in proto.node if node.name == "m").device = "/device:CPU:1"
    config = ps.Config(tier=tier, device_count={"CPU": 2}, check_graphs=True)
    with ps.Session(proto, config=config) as session:
        session.run(["init", "more"])
        # The sum of squares is 2 then, and the step 1 / sqrt(2).
        assert session.run("y:0") == pytest.approx(1 - 0.5**0.5)


@pytest.mark.parametrize("tier", ps.Tier)
def test_calls_among_the_first_kind(tier: ps.Tier) -> None:
    """In a branch that is not taken a call does nothing, in a loop it is one of each iteration."""
    text = f"""
        p = Placeholder[dtype=bool]
        x = Const[value=1]
        h = VarHandleOp[{V}]
        zero = Const[value=0]
        init = AssignVariableOp[dtype=float32](h, zero)
        switch = Switch(x, p)
        call = Count(h, switch:1)
        both = Merge[N=2](switch, call)
        read = ReadVariableOp[dtype=float32](h)
    """
    ten = """
        Ten(x: float32) -> (y: float32)
        ten = Const[value=10]
        return y = ten:output
    """
    config = ps.Config(tier=tier, check_graphs=True)
    with ps.Session(definition(text, COUNT + ten), config=config) as session:
        session.run(["init"])
        assert session.run("both:0", {"p:0": False}) == 1
        assert session.run("read:0") == 0
        assert session.run("both:0", {"p:0": True}) == 1
        assert session.run("read:0") == 1
    dead = "p = Placeholder[dtype=bool]\nx = Placeholder\ns = Switch(x, p)\nr = Ten(s:1)"
    with (
        ps.Session(definition(dead, ten), config=config) as session,
        pytest.raises(errors.InvalidArgumentError, match="dead"),
    ):
        session.run("r:0", {"p:0": np.bool_(False), "x:0": 1.0})


def test_the_last_iteration_of_a_loop() -> None:
    """What reads a constant of the loop through a Case of one branch is no part of it."""
    functions = LOOP + (
        """
        Same(n: int32) -> (m: int32)
        return m = n

        Turn(i: int32, n: int32) -> (j: int32, m: int32) stateful
        same = Case[Tin=int32; Tout=int32; branches=Same](i, n)
        noted = Note(same:output:0)
        one = Const[value=1; dtype=int32]
        next = Add[T=int32](i, one:output)
        return j = next:z
        return m = n
        control done = noted
        """
    )
    text = "i = Placeholder[dtype=int32]\nn = Placeholder[dtype=int32]\n" + (
        f"r = {WHILE.replace('Step', 'Turn')}(i, n)"
    )
    proto, noted = definition(text, functions), list[int]()
    with custom_kernels("Note(x: int32) -> (y: int32) stateful"):
        kernel("Note")(lambda _: lambda x: noted.append(int(x)) or x)
        with ps.Session(proto, config=ps.Config(tier=ps.Tier.DATAFLOW)) as session:
            assert session.run("r:0", {"i:0": 0, "n:0": 3}) == 3

    assert noted == [3, 3, 3]


@pytest.mark.parametrize("is_lowered", [False, True])
@pytest.mark.parametrize("is_alive", [False, True])
@pytest.mark.parametrize(
    "node",
    [
        "r = Second(s:1, y)",
        "r = PartitionedCall[Tin=float32|float32; Tout=float32; f=Second](s:1, y)",
        "r = If[Tcond=bool; Tin=float32|float32; Tout=float32; then_branch=Second; "
        "else_branch=Second](p, s:1, y)",
        "a = While[T=float32|float32|float32; cond=No; body=Turn](s:1, y, y)\n"
        "r = Identity[T=float32](a:1)",
    ],
)
def test_a_dead_input_is_enough(node: str, *, is_alive: bool, is_lowered: bool) -> None:
    """A call whose input is dead gives nothing, not even what it has not to do with that."""
    functions = """
        Second(a: float32, b: float32) -> (y: float32)
        return y = b

        No(a: float32, b: float32, c: float32) -> (go: bool)
        no = Const[value=False; dtype=bool]
        return go = no:output

        Turn(a: float32, b: float32, c: float32) -> (x: float32, y: float32, z: float32)
        neg = Neg[T=float32](c)
        return x = a
        return y = b
        return z = neg:y
    """
    text = f"""
        p = Placeholder[dtype=bool]
        x = Const[value=1]
        y = Const[value=2]
        s = Switch(x, p)
        {node}
    """
    toggle = ps.RewriterConfig.DEFAULT if is_lowered else ps.RewriterConfig.OFF
    rewriter = ps.RewriterConfig(function_optimization=toggle)
    config = ps.Config(graph_options=ps.GraphOptions(rewrite_options=rewriter), check_graphs=True)
    with ps.Session(definition(text, functions), config=config) as session:
        if is_alive:
            assert session.run("r:0", {"p:0": True}) == 2
        else:
            with pytest.raises(errors.InvalidArgumentError, match="dead"):
                session.run("r:0", {"p:0": False})


@pytest.mark.parametrize("seed", range(10))
def test_what_an_iteration_does_is_done_before_the_next(seed: int) -> None:
    """Effects come turn by turn, even if nothing that the next iteration reads waits for them."""
    way = "\n".join(f"w{i + 1} = Neg[T=int32](w{i}:y)" for i in range(29))  # it is a long one
    functions = LOOP + (
        f"""
        Turn(i: int32, n: int32) -> (j: int32, m: int32) stateful
        one = Const[value=1; dtype=int32]
        next = Add[T=int32](i, one:output)
        w0 = Neg[T=int32](i)
        {way}
        noted = Note(w29:y)
        return j = next:z
        return m = n
        control done = noted
        """
    )
    text = "i = Placeholder[dtype=int32]\nn = Placeholder[dtype=int32]\n" + (
        f"r = {WHILE.replace('Step', 'Turn')}(i, n)"
    )
    proto, noted = definition(text, functions), list[int]()
    rewriter = ps.RewriterConfig(arithmetic_optimization=ps.RewriterConfig.OFF)
    config = ps.Config(
        tier=ps.Tier.DATAFLOW,
        ready_order_seed=seed,
        graph_options=ps.GraphOptions(rewrite_options=rewriter),
    )
    with custom_kernels("Note(x: int32) -> (y: int32) stateful"):
        kernel("Note")(lambda _: lambda x: noted.append(int(x)) or x)
        with ps.Session(proto, config=config) as session:
            session.run("r:0", {"i:0": 0, "n:0": 8})

    assert noted == list(range(8))


def test_a_loop_keeps_its_window() -> None:
    """As many iterations may be alive as the While says."""
    window = f"{WHILE[:-1]}; parallel_iterations=3]"
    graph = lowered(
        "i = Placeholder[dtype=int32]\nn = Placeholder[dtype=int32]\n"
        f"r = {window}(i, n)\nout = Neg[T=int32](r)",
        LOOP,
    )

    enters = [node for node in graph if node.op.name == "Enter"]
    assert [node.attrs["parallel_iterations"] for node in enters] == [3, 3]


def test_a_loop_without_variables_is_left() -> None:
    """Nothing would tell its iterations apart."""
    functions = """
        Stop() -> (go: bool)
        no = Const[value=False; dtype=bool]
        return go = no:output

        Nothing() -> ()
        rest = NoOp
    """
    graph = lowered("r = While[T=; cond=Stop; body=Nothing]", functions)

    assert ops(graph)["While"] == 1


def test_calls_of_references_are_left() -> None:
    """A function whose signature has a reference keeps its call: a body has values only."""
    functions = """
        Read(v: ref float32) -> (y: float32)
        y = Identity[T=float32](v)
        return y = y:output
    """
    graph = lowered("v = VariableV2[shape=; dtype=float32]\nr = Read(v)", functions)

    assert ops(graph)["Read"] == 1


@pytest.mark.parametrize("tier", ps.Tier)
def test_a_loop_inside_a_branch_gives_nothing_if_the_branch_does_not(tier: ps.Tier) -> None:
    """Neither what its iterations change nor what they hand on as it is."""
    functions = (
        LOOP
        + f"""
        Loop(i: int32, n: int32) -> (j: int32, m: int32)
        r = {WHILE}(i, n)
        return j = r:output:0
        return m = r:output:1
        """
    )
    text = """
        p = Placeholder[dtype=bool]
        i = Const[value=0; dtype=int32]
        n = Const[value=5; dtype=int32]
        s = Switch[T=int32](i, p)
        r = Loop(s:1, n)
        out = Neg[T=int32](r:1)
        other = Neg[T=int32](s)
        both = Merge[N=2; T=int32](out, other)
    """
    with ps.Session(definition(text, functions), config=ps.Config(tier=tier)) as session:
        assert session.run(["both:0", "both:1"], {"p:0": True}) == [-5, 0]
        assert session.run(["both:0", "both:1"], {"p:0": False}) == [0, 1]


def test_what_a_loop_hands_on_inside_a_loop_is_alive_no_oftener_than_it() -> None:
    """A constant of the outer loop is alive in its last iteration; what a body gives is not."""
    functions = (
        LOOP
        + f"""
        Outer(i: int32, n: int32) -> (j: int32, m: int32) stateful
        r = {WHILE}(i, n)
        noted = Note(r:output:1)
        one = Const[value=1; dtype=int32]
        next = Add[T=int32](i, one:output)
        return j = next:z
        return m = n
        control done = noted
        """
    )
    text = "i = Placeholder[dtype=int32]\nn = Placeholder[dtype=int32]\n" + (
        f"r = {WHILE.replace('Step', 'Outer')}(i, n)"
    )
    proto, noted = definition(text, functions), list[int]()
    with custom_kernels("Note(x: int32) -> (y: int32) stateful"):
        kernel("Note")(lambda _: lambda x: noted.append(int(x)) or x)
        with ps.Session(proto, config=ps.Config(tier=ps.Tier.DATAFLOW)) as session:
            assert session.run("r:0", {"i:0": 0, "n:0": 3}) == 3

    assert noted == [3, 3, 3]


@pytest.mark.parametrize("seed", range(6))
def test_what_a_call_does_comes_after_what_it_waits_for(seed: int) -> None:
    """Also what reads an argument, and so has all that it reads long before."""
    functions = """
        Do(x: float32) -> (y: float32) stateful
        late = Second(x)
        return y = late:y
        control done = late
    """
    way = "\n".join(f"w{i + 1} = Neg(w{i})" for i in range(20))  # it is a long one
    text = f"""
        x = Placeholder
        w0 = Neg(x)
        {way}
        first = First(w20)
        r = StatefulPartitionedCall[Tin=float32; Tout=float32; f=Do](x, ^first)
    """
    order: list[str] = []
    ops = [f"{name}(x: float32) -> (y: float32) stateful" for name in ("First", "Second")]
    rewriter = ps.RewriterConfig(arithmetic_optimization=ps.RewriterConfig.OFF)
    config = ps.Config(
        tier=ps.Tier.DATAFLOW,
        ready_order_seed=seed + 1,
        graph_options=ps.GraphOptions(rewrite_options=rewriter),
    )
    with custom_kernels(*ops) as register:
        register("First", lambda x: (order.append("first"), x)[1])
        register("Second", lambda x: (order.append("second"), x)[1])
        with ps.Session(definition(text, functions), config=config) as session:
            session.run("r:0", {"x:0": 1.0})

    assert order == ["first", "second"]


def test_who_waits_for_a_branch_waits_for_its_end_only() -> None:
    """One node is done when the branch is over; nobody waits for what it gives."""
    graph = lowered(
        f"p = Placeholder[dtype=bool]\nx = Placeholder\nr = {IF}(p, x, x)\n"
        "out = Neg[T=float32](r)\nafter = Neg[T=float32](x, ^r)",
        BRANCHES,
    )

    (wait,) = graph.node("after").control_inputs
    assert not wait.src.out_edges[1:]
    assert wait.src is not graph.node("out").input(0).src


def test_nobody_needs_the_end_of_a_branch_that_nobody_waits_for() -> None:
    """An If inside a branch leaves no node that tells when it is over."""
    functions = (
        BRANCHES
        + f"""
        Outer(p: bool, a: float32, b: float32) -> (y: float32)
        r = {IF}(p, a, b)
        return y = r:output:0

        Pass(p: bool, a: float32, b: float32) -> (y: float32)
        return y = b
        """
    )
    choice = (
        "Tcond=bool; Tin=bool|float32|float32; Tout=float32; then_branch=Outer; else_branch=Pass"
    )
    graph = lowered(
        f"p = Placeholder[dtype=bool]\nx = Placeholder\nr = If[{choice}](p, p, x, x)\n"
        "out = Neg[T=float32](r)",
        functions,
    )

    assert (ops(graph)["If"], ops(graph)["Merge"], ops(graph)["NoOp"]) == (0, 2, 0)
    assert all("over" not in name for name in graph.names())


def test_a_branch_without_an_input_is_left() -> None:
    """A node that is only there to be fed is no branch that could be taken."""
    proto = definition(f"p = Placeholder[dtype=bool]\nx = Placeholder\nr = {IF}(p, x, x)", BRANCHES)
    graph = graph_from_def(proto)
    graph.remove_edge(graph.node("r").input(1))

    lower(graph, {})

    assert ops(graph)["If"] == 1


@pytest.mark.parametrize(
    ("row", "asks", "has_some"),
    [
        (f"r = {IF}(p, x, x)", True, True),
        (f"r = {IF}(p, x, x)", False, False),
        ("r = PartitionedCall[Tin=float32|float32; Tout=float32; f=Then](x, x)", True, False),
        ("r = Add[T=float32](x, x)", True, False),
    ],
)
def test_choices_are_found(row: str, asks: bool, has_some: bool) -> None:
    """A graph has some if an If, a Case or a While asks to be lowered."""
    text = f"p = Placeholder[dtype=bool]\nx = Placeholder\n{row}"
    assert has_choices(graph_from_def(definition(text, BRANCHES, asks))) is has_some


@pytest.mark.parametrize("is_read", [False, True])
def test_what_has_effects_runs_though_nobody_reads_its_result(is_read: bool) -> None:
    """A function that names no effects has them where a result depends on them."""
    functions = """
        Both(h: resource, x: float32) -> (y: float32, z: float32) stateful
        add = AssignAddVariableOp[dtype=float32](h, x)
        now = ReadVariableOp[dtype=float32](h, ^add)
        twice = Mul[T=float32](x, x)
        return y = now:value
        return z = twice:z
    """
    text = (
        f"h = VarHandleOp[{V}]\nx = Placeholder\n"
        "r = StatefulPartitionedCall[Tin=resource|float32; Tout=float32|float32; f=Both](h, x)\n"
        "out = Neg[T=float32](r:1)"
    )
    found = ops(lowered(text, functions, targets={"r"}, read={"r"} if is_read else ()))

    assert (found["AssignAddVariableOp"], found["ReadVariableOp"], found["Mul"]) == (1, 1, 1)


PICKY = """
Picky(x: float32) -> (y: float32, z: float32)
fails = Fails(x)
twice = Mul[T=float32](x, x)
return y = fails:y
return z = twice:z
"""


@pytest.mark.parametrize("tier", ps.Tier)
@pytest.mark.parametrize(
    ("fetches", "switch", "is_computed"),
    [
        ("r:1", ps.RewriterConfig.ON, False),
        ("r:1", ps.RewriterConfig.OFF, True),
        ("r", ps.RewriterConfig.ON, True),
        (["r:1", "r"], ps.RewriterConfig.ON, True),
        (["r:0", "r:1"], ps.RewriterConfig.ON, True),
    ],
    ids=["unread", "not optimised", "asked for", "asked for as well", "read"],
)
def test_what_a_fetched_call_computes(
    tier: ps.Tier, fetches: Any, switch: Any, *, is_computed: bool
) -> None:
    """A result that nobody reads is not computed, unless the call as a whole is asked for."""
    proto = definition(
        "x = Placeholder\nr = PartitionedCall[Tin=float32; Tout=float32|float32; f=Picky](x)", PICKY
    )
    rewriter = ps.RewriterConfig(dependency_optimization=switch)
    options = ps.GraphOptions(rewrite_options=rewriter)
    seen: list[float] = []
    with custom_kernels("Fails(x: float32) -> (y: float32)"):
        kernel("Fails")(lambda _: lambda x: seen.append(float(x)) or x)
        config = ps.Config(tier=tier, graph_options=options)
        with ps.Session(proto, config=config) as session:
            session.run(fetches, {"x:0": 3})

    assert seen == ([3.0] if is_computed else [])


@pytest.mark.parametrize("is_lowered", [True, False])
def test_what_is_idle_goes(is_lowered: bool) -> None:
    """Also where nothing could be lowered, and nothing was added."""
    graph = graph_from_def(
        definition(f"p = Placeholder[dtype=bool]\nx = Placeholder\nr = {IF}(p, x, x)", BRANCHES)
    )
    idle = graph.add_node("idle", graph.node("x").op, graph.node("x").attrs)
    if not is_lowered:
        graph.remove_edge(graph.node("r").input(1))
    devices = lower(graph, {node.id: "/device:CPU:0" for node in graph}, idle=[idle])

    assert ("r" in graph) is not is_lowered or ops(graph)["If"] == 0
    assert "idle" not in graph
    assert set(devices) == {node.id for node in graph}
