"""From graphs to functions: whatever can be compiled is, and nothing changes by it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import penstock as ps
from penstock.config import GraphOptions
from penstock.graph.roles import Role
from penstock.runtime.call_functions import FunctionRuntime
from penstock.runtime.compiler import compile_regions
from support.compiled import Bare, compiled, leaving_out, regions_of, text_of, whole
from support.functions import graph_def_with
from support.loops import NESTED_LOOPS, counting_loop
from support.sketch import sketch


def answers(graph: Callable[[], Any], fetch: Any, feeds: Any, **config: Any) -> list[Any]:
    """What each tier says, without any optimisation."""
    found = []
    for tier in (ps.Tier.DATAFLOW, ps.Tier.COMPILED):
        options = ps.Config(tier=tier, graph_options=GraphOptions.nothing(), **config)
        with ps.Session(graph(), config=options) as session:
            found.append(session.run(fetch, feeds))
    return found


# -- sizes -------------------------------------------------------------------------------------


@pytest.mark.slow
def test_twenty_thousand_nodes() -> None:
    """A huge graph is compiled in several parts, and computes what it should."""
    rows = ["x = _Arg() T=int32 index=0", "one = Const() value=1", "n0 = Add(x, one)"]
    rows += [f"n{i} = Add(n{i - 1}, one)" for i in range(1, 20_000)]
    region = whole("\n".join([*rows, "r = _Retval(n19999) index=0"]))
    assert region.run(Bare(), np.int32(5)) == (20_005,)
    assert region.source.listing.count("def part") == 10


def nested(depth: int) -> str:
    """Loops in loops, each of two iterations: ``total`` is 2 to the power of ``depth``."""
    rows = ["zero = Const() value=0", "limit = Const() value=2", "unit = Const() value=1"]
    count = "zero"
    for d in range(depth):
        frame = f'frame_name="f{d}"'
        start, bound, one = ("zero", "limit", "unit") if not d else (f"z{d}", f"l{d}", f"u{d}")
        rows += [
            f"ie{d} = Enter({start}) {frame}",
            f"ce{d} = Enter({count}) {frame}",
            f"b{d} = Enter({bound}) {frame} is_constant=True",
            f"o{d} = Enter({one}) {frame} is_constant=True",
            f"i{d} = Merge(ie{d}, in{d})",
            f"c{d} = Merge(ce{d}, cn{d}) T=int32",
            f"p{d} = Less(i{d}, b{d})",
            f"cond{d} = LoopCond(p{d})",
            f"is{d} = Switch(i{d}, cond{d})",
            f"cs{d} = Switch(c{d}, cond{d}) T=int32",
            f"ib{d} = Identity(is{d}:1)",
            f"cb{d} = Identity(cs{d}:1) T=int32",
            f"ia{d} = Add(ib{d}, o{d})",
            f"in{d} = NextIteration(ia{d})",
            f"ix{d} = Exit(is{d})",
            f"cx{d} = Exit(cs{d}) T=int32",
            f"z{d + 1} = Sub(ib{d}, ib{d})",
            f"l{d + 1} = Identity(b{d})",
            f"u{d + 1} = Identity(o{d})",
        ]
        count = f"cb{d}"
    rows.append(f"ca = Add({count}, o{depth - 1})")
    inner = "ca"
    for d in reversed(range(depth)):
        rows.append(f"cn{d} = NextIteration({inner}) T=int32")
        inner = f"cx{d}"
    return "\n".join([*rows, "total = Identity(cx0) T=int32"])


@pytest.mark.parametrize(("depth", "is_compiled"), [(3, True), (14, True), (18, False)])
def test_loops_as_deep_as_python_allows(depth: int, is_compiled: bool) -> None:
    """Fourteen loops in each other are one text; eighteen are left to the executor."""
    text = nested(depth)
    made = compiled(text + "\nr = _Retval(total) index=0")
    assert (made is not None and made.whole is not None) == is_compiled
    if depth < 10:
        got = answers(lambda: sketch(text), "total:0", {})
        assert got == [2**depth] * 2
    elif made is not None and made.whole is not None:
        assert made.whole.run(Bare()) == (2**depth,)


def test_deeper_loops_still_have_answers() -> None:
    """What is too deep for Python is run by the executor, as far as it must."""
    # Eighteen loops of which the outer ones make one iteration only.
    text = nested(18).replace("limit = Const() value=2", "limit = Const() value=1")
    with ps.Session(sketch(text)) as session:
        assert session.run("total:0") == 1


def conds(depth: int) -> str:
    """Conds in each other."""
    rows = ["x0 = Placeholder() dtype=int32"]
    for i in range(depth):
        rows += [
            f"limit{i} = Const() value={depth - i}",
            f"p{i} = Less(x{i}, limit{i})",
            f"s{i} = Switch(x{i}, p{i})",
            f"x{i + 1} = Identity(s{i}:1)",
        ]
    rows.append(f"m{depth} = Neg(x{depth})")
    rows += [f"m{i} = Merge(s{i}, m{i + 1})" for i in reversed(range(depth))]
    return "\n".join(rows)


@pytest.mark.parametrize("x", [-3, 0, 40, 200])
def test_deeper_branches_still_have_answers(x: int) -> None:
    """Ninety-nine branches in each other give the same answers on both tiers."""
    want = -x if x < 1 else x
    assert answers(lambda: sketch(conds(99)), "m0:0", {"x0": x}) == [want] * 2


#: As ``NESTED_LOOPS``, but what does not change enters each loop straight from the one outside,
#: so that it is live in the outer loop's last iteration as well.
INVARIANT = NESTED_LOOPS.replace("bound = Mul(i_body, inner_value)", "").replace(
    "Enter(bound) frame", "Enter(inner_value) frame"
)


def test_what_is_live_in_the_last_iteration_too() -> None:
    """An inner loop is compiled though its constants are live when its variables are dead."""
    text = INVARIANT.replace("Placeholder() dtype=int32", "_Arg() T=int32 index=0", 1)
    text = text.replace("Placeholder() dtype=int32", "_Arg() T=int32 index=1")
    assert "# inner" in whole(text + "r = _Retval(total) index=0").source.listing
    assert answers(lambda: sketch(INVARIANT), "total:0", {"outer": 4, "inner": 3}) == [12] * 2


@pytest.mark.parametrize("tier", ps.Tier)
def test_variables_that_are_not_live_together(tier: ps.Tier) -> None:
    """A loop of which one variable may be dead is run by the executor."""
    text = """
        x = Placeholder() dtype=int32
        p = Placeholder() dtype=bool
        s = Switch(x, p)
        other = Enter(s:1) frame_name="loop"
        kept = Merge(other, other_next)
        kept_switch = Switch(kept, cond) T=int32
        other_next = NextIteration(kept_switch:1) T=int32
        other_exit = Exit(kept_switch) T=int32
    """ + counting_loop().replace("Placeholder() dtype=int32", "Const() value=5")
    with ps.Session(sketch(text), config=ps.Config(tier=tier)) as session:
        call = session.make_callable(["exit:0", "other_exit:0"], ["x", "p"])
        assert call(3, True) == [5, 3]
        count, dead = call(3, False)
        assert count == 5
        assert dead.shape == (0,)


def entangled(count: int) -> str:
    """A Merge that is live if p and q are, for some of ``count`` pairs of them."""
    rows = ["x = Placeholder() dtype=float32"]
    for i in range(count):
        rows += [f"p{i} = Placeholder() dtype=bool", f"q{i} = Placeholder() dtype=bool"]
        rows += [f"s{i} = Switch(x, p{i})", f"t{i} = Switch(s{i}:1, q{i})"]
    merged = ", ".join(f"t{i}:1" for i in range(count))
    return "\n".join([*rows, f"m = Merge({merged})", "y = Neg(m)", "z = Neg(y, ^m)"])


@pytest.mark.parametrize("count", [3, 40])
def test_entangled_branches_still_have_answers(count: int) -> None:
    """A predicate that would double with every condition is not written out."""
    text = entangled(count)
    with ps.Session(sketch(text)) as session:
        names = [f"{kind}{i}" for i in range(count) for kind in "pq"]
        call = session.make_callable(["y:0"], ["x", *names])
        assert call(1.0, *[False, True] * count)[0].shape == (0,)
        assert call(1.0, *[False, True] * (count - 1), True, True) == [-1.0]


def test_a_node_of_very_many_outputs_is_the_executors() -> None:
    """A line with a name for each of a million outputs would take Python longer than the node."""
    rows = "x = _Arg() T=float32 index=0\ny = Neg(x)\nz = Exp(y)\naxis = Const() value=0\n"
    made = compiled(rows + "s = Split(axis, z) num_split=100000\nr = _Retval(s:7) index=0")
    assert made is not None
    assert "s" in made.graph
    [region] = made.regions.values()
    assert {line.node.name for line in region.source.lines if line.node} == {"y", "z"}


# -- beside the executor -----------------------------------------------------------------------

QUEUE = """
    x = Placeholder() dtype=float32
    queue = FIFOQueueV2() component_types=["float32"]
    a = Neg(x)
    b = Mul(a, a)
    put = QueueEnqueueV2(queue, b)
    get = QueueDequeueV2(queue, ^put) component_types=["float32"]
    c = Sqrt(get)
    d = Add(c, a)
"""


def test_regions_around_queues() -> None:
    """What goes into a queue and what comes out of it are two regions."""
    args = QUEUE.replace("Placeholder() dtype=float32", "_Arg() T=float32 index=0")
    made = compiled(args + "\nr = _Retval(d) index=0")
    assert made is not None
    kept = {node.op.name for node in made.graph if node.role is not Role.REGION}
    assert kept == {"_Arg", "_Retval", "QueueEnqueueV2", "QueueDequeueV2"}
    assert len(made.regions) == 2
    assert answers(lambda: sketch(QUEUE), "d:0", {"x": 3.0}) == [0.0] * 2


@pytest.mark.parametrize(
    ("p", "q", "want"),
    [(True, False, 2.0), (False, True, np.exp(-2.0)), (False, False, None)],
)
def test_a_merge_of_two_conditions(p: bool, q: bool, want: float | None) -> None:
    """A Merge of what may be live together has the same answer as on the executor."""
    text = """
        x = Placeholder() dtype=float32
        p = Placeholder() dtype=bool
        q = Placeholder() dtype=bool
        s = Switch(x, p)
        r = Switch(x, q)
        a = Neg(s:1)
        b = Exp(r:1)
        m = Merge(a, b)
        y = Abs(m)
    """
    for tier in ps.Tier:
        with ps.Session(sketch(text), config=ps.Config(tier=tier)) as session:
            got = session.make_callable("y:0", ["x", "p", "q"])(-2.0, p, q)
        assert (got.item() if np.ndim(got) == 0 else None) == pytest.approx(want)


#: What comes later here depends on what comes earlier.
LATER = """
    x = Placeholder() dtype=float32
    p = Placeholder() dtype=bool
    s = Switch(x, p)
    a = Neg(s:1)
    b = Abs(a)
    c = Neg(x)
    d = Abs(c)
    five = Const() value=5.0
    e = Neg(five)
    m = Merge({inputs})
    y = Mul(m, m)
    z = Sub(y, m)
"""


@pytest.mark.parametrize(
    ("earlier", "later", "value"),
    [("x", "b", 2), ("a", "b", -2), ("c", "d", -2), ("five", "e", 5), ("x", "s:1", 2)],
)
@pytest.mark.parametrize("is_turned", [False, True])
def test_a_merge_takes_the_earlier_value(
    earlier: str, later: str, value: float, is_turned: bool
) -> None:
    """Of two live values the one that the other depends on, on both tiers."""
    inputs = f"{later}, {earlier}" if is_turned else f"{earlier}, {later}"
    text = LATER.format(inputs=inputs)
    fetches = ["m:0", "m:1", "z:0"]
    want = [value, int(is_turned), value * value - value]
    assert answers(lambda: sketch(text), fetches, {"x": 2.0, "p": True}) == [want] * 2


def test_a_constant_that_a_merge_takes_comes_first() -> None:
    """What a region makes of a constant comes after it to whoever takes the first of both."""
    made = compiled(
        """
        x = _Arg() T=float32 index=0
        five = Const() value=5.0
        a = Mul(x, five)
        b = Exp(a)
        c = Neg(b)
        m = Merge(c, five)
        r = _Retval(m) index=0
        """
    )
    assert made is not None
    [region] = made.regions
    assert [edge.src.name for edge in region.control_inputs] == ["five"]


#: The Merge's second input is dead, but only comes when the first one has gone through the queue.
IN_TURN = """
    x = Placeholder() dtype=float32
    p = Placeholder() dtype=bool
    queue = FIFOQueueV2() component_types=["float32"]
    get = QueueDequeueV2(queue) component_types=["float32"]
    first = Switch(x, p)
    second = Switch(get, p)
    a = Neg(first)
    last = Exp(second:1)
    m = Merge(a, last)
    b = Exp(m)
    put = QueueEnqueueV2(queue, b)
    both = Add(b, get, ^put)
"""


@pytest.mark.parametrize("tier", ps.Tier)
def test_a_merge_waits_for_one_input(tier: ps.Tier) -> None:
    """No region has a Merge that would wait for an input which waits for the Merge."""
    options = ps.RunOptions(timeout_in_ms=5_000)
    with ps.Session(sketch(IN_TURN), config=ps.Config(tier=tier)) as session:
        assert session.run("both:0", {"x": 0.0, "p": False}, options) == 2.0


#: The Merge takes ``x``; its other input waits for a gradient that is made of what the Merge gives.
ACCUMULATED = """
    x = Placeholder() dtype=float32
    step = Const() value=0
    one = Const() value=1
    total = ConditionalAccumulator() dtype=float32 shape=[]
    taken = AccumulatorTakeGradient(total, one) dtype=float32
    late = Neg(taken)
    m = Merge(x, late)
    step_64 = Cast(step) DstT=int64
    give = AccumulatorApplyGradient(total, step_64, m)
    more = Add(m, taken)
    sum = Add(more, late)
"""


@pytest.mark.parametrize("tier", ps.Tier)
def test_who_needs_a_merge_need_not_wait_for_all_its_inputs(tier: ps.Tier) -> None:
    """What runs as soon as a Merge has one input is in no region that waits for another one."""
    options = ps.RunOptions(timeout_in_ms=5_000)
    with ps.Session(sketch(ACCUMULATED), config=ps.Config(tier=tier)) as session:
        assert session.run(["sum:0", "give"], {"x": 3.0}, options) == [3.0, None]


#: The loop waits for a gradient; only the loop needs to know that it was given.
GIVEN_BEFORE = """
    x = Placeholder() dtype=float32
    step = Const() value=0
    step_64 = Cast(step) DstT=int64
    many = Const() value=1
    total = ConditionalAccumulator() dtype=float32 shape=[]
    give = AccumulatorApplyGradient(total, step_64, x)
    taken = AccumulatorTakeGradient(total, many) dtype=float32
""" + counting_loop(limit="Cast(taken, ^give) DstT=int32 SrcT=float32")


@pytest.mark.parametrize("tier", ps.Tier)
def test_no_effect_waits_for_the_loop_that_needs_it(tier: ps.Tier) -> None:
    """What somebody else may wait for does not run only when all that a loop needs has come."""
    options = ps.RunOptions(timeout_in_ms=5_000)
    with ps.Session(sketch(GIVEN_BEFORE), config=ps.Config(tier=tier)) as session:
        assert session.run("exit:0", {"x": 3.0}, options) == 3


#: The loop goes on until the step fails, and ``fails`` only needs what comes out of the queue.
FOREVER = (
    counting_loop(limit="Const() value=2147483647")
    + """
    queue = FIFOQueueV2() component_types=["int32"]
    one_more = Const() value=1
    put = QueueEnqueueV2(queue, one_more)
    get = QueueDequeueV2(queue, ^put) component_types=["int32"]
    none = Sub(get, get)
    fails = FloorDiv(get, none)
    both = Add(fails, exit)
"""
)


@pytest.mark.parametrize("tier", ps.Tier)
def test_nobody_waits_for_a_loop_without_need(tier: ps.Tier) -> None:
    """What does not depend on an endless loop runs beside it, and its error ends the loop."""
    config = ps.Config(tier=tier, offload_seconds=0.0, inter_op_parallelism_threads=2)
    options = ps.RunOptions(timeout_in_ms=10_000)
    with (
        ps.Session(sketch(FOREVER), config=config) as session,
        pytest.raises(ps.errors.InvalidArgumentError, match="division by zero"),
    ):
        session.run("both:0", options=options)


def test_a_result_in_a_loop_is_the_executors() -> None:
    """It may be set twice, which only the executor would notice: it iterations the loop."""
    text = counting_loop(limit="_Arg() T=int32 index=0") + "r = _Retval(body) index=0"
    assert not any("in count()" in text_of(region) for region in regions_of(text).values())


TWO = """
    x = Placeholder() dtype=float32
    p = Placeholder() dtype=bool
    a = Neg(x) device="/device:CPU:0"
    s = Switch(a, p) device="/device:CPU:0"
    b = Exp(s:1) device="/device:CPU:1"
    c = Mul(b, b) device="/device:CPU:1"
    d = Abs(s) device="/device:CPU:0"
    e = Neg(d) device="/device:CPU:0"
    m = Merge(e, c) device="/device:CPU:0"
    y = Add(m, a) device="/device:CPU:0"
"""


@pytest.mark.parametrize(("p", "want"), [(True, np.exp(-1.0) ** 2 - 1.0), (False, -2.0)])
def test_two_devices(p: bool, want: float) -> None:
    """Dead values cross from device to device, whichever way the graph is run."""
    got = answers(lambda: sketch(TWO), "y:0", {"x": 1.0, "p": p}, device_count={"CPU": 2})
    np.testing.assert_allclose(got, [want] * 2, rtol=1e-6)


@pytest.mark.parametrize("odd", ["", "less", "i", "j", "sum", "j_sum", "t_exit", "j_less", "bound"])
@pytest.mark.parametrize("limits", [(0, 0), (1, 1), (4, 3)])
def test_irregular_frames(
    odd: str, limits: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whichever node of two loops is left to the executor, the loops count as far as before."""
    monkeypatch.setattr(compile_regions, "can_be_line", leaving_out(odd))
    outer, inner = limits
    got = answers(lambda: sketch(NESTED_LOOPS), "total:0", {"outer": outer, "inner": inner})
    assert got == [inner * sum(range(outer))] * 2
    assert answers(lambda: sketch(counting_loop()), "exit:0", {"limit": outer}) == [outer] * 2


def test_an_inner_loop_is_a_region_of_an_irregular_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """In the frame that the executor iterations, an inner loop of one input is one node."""
    monkeypatch.setattr(compile_regions, "can_be_line", leaving_out("i_sum"))
    graph = NESTED_LOOPS.replace("Placeholder() dtype=int32", "_Arg() T=int32 index=0", 1)
    graph = graph.replace("null = Const(^i_body) value=0", "null = Sub(t_body, t_body)")
    graph = graph.replace("Mul(i_body, inner_value)", "Mul(t_body, t_body)")
    graph = graph.replace("Placeholder() dtype=int32", "_Arg() T=int32 index=1")
    texts = [r.source.listing for r in regions_of(graph + "r = _Retval(total) index=0").values()]
    assert sum("in count():  # inner" in text for text in texts) == 1
    assert not any("# outer" in text for text in texts)


# -- functions ---------------------------------------------------------------------------------

FUNCTIONS = """
    Below(i: int32, n: int32) -> (go: bool)
    go = Less[T=int32](i, n)
    return go = go:z

    Step(i: int32, n: int32) -> (j: int32, m: int32)
    one = Const[value=1; dtype=int32]()
    j = Add[T=int32](i, one:output)
    return j = j:z
    return m = n

    Twice(x: int32) -> (y: int32)
    y = Add[T=int32](x, x)
    return y = y:z

    Minus(x: int32) -> (y: int32)
    y = Neg[T=int32](x)
    return y = y:y
"""
CALLS = """
    x = Placeholder[dtype=int32]
    zero = Const[value=0; dtype=int32]
    p = Less[T=int32](zero, x)
    w = While[T=int32|int32; cond=Below; body=Step](zero, x)
    i = If[Tcond=bool; Tin=int32; Tout=int32; then_branch=Twice; else_branch=Minus](p, w)
    c = PartitionedCall[Tin=int32; Tout=int32; f=Twice](i)
    y = Neg[T=int32](c)
"""


@pytest.mark.parametrize(("x", "want"), [(5, -20), (-5, 0)])
def test_functions_give_the_same_on_both_tiers(x: int, want: int) -> None:
    """While, If and calls: bodies are compiled as well, and the answers are the same."""
    assert answers(lambda: graph_def_with(CALLS, FUNCTIONS), "y:0", {"x": x}) == [want] * 2


def test_bodies_are_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each body that is run is one function."""
    made: dict[str, bool] = {}
    instance = FunctionRuntime._instance

    def watched(self: FunctionRuntime, name: str, *call: Any) -> Any:
        found = instance(self, name, *call)
        made[name] = found.whole is not None
        return found

    monkeypatch.setattr(FunctionRuntime, "_instance", watched)
    config = ps.Config(disable_functional_ops_lowering=True)
    with ps.Session(graph_def_with(CALLS, FUNCTIONS), config=config) as session:
        session.run("y:0", {"x": 3})
    assert made
    assert all(made.values())


# -- what surely arrives -----------------------------------------------------------------------


@pytest.mark.parametrize("p", [True, False])
def test_a_control_input_does_not_make_a_merge_live(
    p: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A Merge whose data are dead is dead, whatever it waits for, and regions know it."""
    text = """
        x = Placeholder() dtype=float32
        p = Placeholder() dtype=bool
        s = Switch(x, p)
        m = Merge(s:1, s:1, ^x)
        a = Neg(m)
        b = Exp(a)
    """
    monkeypatch.setattr(compile_regions, "can_be_line", leaving_out("m"))
    with ps.Session(sketch(text)) as session:
        got = session.make_callable("b:0", ["x", "p"])(0.0, p)
    assert np.shape(got) == (() if p else (0,))


@pytest.mark.parametrize("odd", ["", "a"])
@pytest.mark.parametrize("tier", ps.Tier)
def test_an_exit_may_be_dead_though_its_loop_was_entered(
    tier: ps.Tier, odd: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A loop that starves has dead exits, and what comes after it is dead as well."""
    monkeypatch.setattr(compile_regions, "can_be_line", leaving_out(odd))
    text = counting_loop().replace(
        "sum = Add(body, one)",
        "stop = Less(body, one)\nonly = Switch(body, stop)\nsum = Add(only:1, one)",
    )
    text += "a = Neg(exit)\nb = Mul(a, a)\nc = Add(limit, b)"
    with ps.Session(sketch(text), config=ps.Config(tier=tier)) as session:
        call = session.make_callable(["b:0", "c:0"], ["limit"])
        assert call(0) == [0, 0]
        assert call(1) == [1, 2]
        assert [value.shape for value in call(7)] == [(0,), (0,)]


@pytest.mark.parametrize("tier", ps.Tier)
def test_a_condition_may_die_by_what_it_waits_for(tier: ps.Tier) -> None:
    """A LoopCond with a dead control input is dead, and so is the loop from then on."""
    text = counting_loop().replace("LoopCond(less)", "LoopCond(less, ^maybe)")
    text += """
        two = Const(^merge) value=2
        few = Less(merge, two)
        side = Switch(merge, few)
        maybe = Identity(side:1)
    """
    with ps.Session(sketch(text), config=ps.Config(tier=tier)) as session:
        call = session.make_callable(["exit:0", "limit:0"], ["limit"])
        assert call(1) == [1, 1]
        assert [np.shape(value) for value in call(7)] == [(0,), ()]


# -- predicates --------------------------------------------------------------------------------

#: Two branches, in each of which q decides, and one beside them.
SHARED_PREDICATE = """
    x = Placeholder() dtype=float32
    p = Placeholder() dtype=bool
    q = Placeholder() dtype=bool
    r = Placeholder() dtype=bool
    a = Switch(x, p)
    s = Switch(a:1, q)
    on = Neg(s:1)
    inner = Merge(s, on)
    m = Merge(a, inner)
    b = Switch(x, r)
    t = Switch(b:1, q)
    up = Square(t:1)
    other = Merge(t, up)
    n = Merge(b, other)
    o = Switch(x, q)
    c = Merge(o, o:1)
"""


@pytest.mark.parametrize(
    ("p", "r", "fetches", "results"),
    [
        (False, False, ["m:0", "n:0"], [3, 3]),
        (False, True, ["m:0"], [3]),
        (True, False, ["n:0"], [3]),
        (False, True, ["m:0", "n:0"], None),
        (True, False, ["m:0", "n:0"], None),
        (False, False, ["m:0", "c:0"], None),
    ],
)
@pytest.mark.parametrize("tier", list(ps.Tier))
def test_a_predicate_is_looked_at_where_a_switch_is_live(
    tier: ps.Tier, p: Any, r: Any, fetches: list[str], results: list[float] | None
) -> None:
    """One that is no scalar is an error only of a Switch that has something to switch.

    TensorFlow gives these answers.
    """
    feeds = {"x:0": np.float32(3), "p:0": np.bool_(p), "r:0": np.bool_(r)}
    with ps.Session(sketch(SHARED_PREDICATE), config=ps.Config(tier=tier)) as session:
        if results is None:
            with pytest.raises(ps.errors.InvalidArgumentError, match="must be a scalar"):
                session.run(fetches, {**feeds, "q:0": np.array([True, False])})
        else:
            assert session.run(fetches, {**feeds, "q:0": np.array([True, False])}) == results
        want = [-3.0 if p else 3.0, 9.0 if r else 3.0, 3.0]
        good = session.run(["m:0", "n:0", "c:0"], {**feeds, "q:0": np.True_})
        assert good == want


@pytest.mark.parametrize("q", [True, False])
def test_a_predicate_may_come_again_later(q: bool) -> None:
    """First in a branch, then beside it and after something that it decided."""
    text = """
        x = Placeholder() dtype=float32
        p = Placeholder() dtype=bool
        q = Placeholder() dtype=bool
        a = Switch(x, p)
        s = Switch(a:1, q)
        on = Neg(s:1)
        inner = Merge(s, on)
        m = Merge(a, inner)
        again = Identity(q, ^m)
        t = Switch(x, again)
        up = Square(t:1)
        n = Merge(t, up)
    """
    feeds = {"x:0": np.float32(3), "p:0": True, "q:0": q}
    want = [-3, 9] if q else [3, 3]
    assert answers(lambda: sketch(text), ["m:0", "n:0"], feeds) == [want] * 2
