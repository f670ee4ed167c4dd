"""Loops are found again where they are regular, and left alone where they are not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import penstock as ps
from penstock.errors import InternalError
from penstock.graph.frames import build_control_flow_info
from penstock.graph.graph import Node
from penstock.runtime.compiler.loops import (
    Irregular,
    LoopOrNode,
    LoopTree,
    Odd,
    RegularLoop,
    loop_depth,
)
from support.loops import NESTED_LOOPS, counting_loop
from support.sketch import sketch

COUNT = counting_loop()


def levels_of(text: str, can_compile: Callable[[Node], bool] = lambda _node: True) -> LoopTree:
    """What is found in a graph."""
    graph = sketch(text)
    return LoopTree(graph, build_control_flow_info(graph), can_compile)


def names(units: Any) -> list[str]:
    """Units by name; a loop in brackets."""
    return [f"[{unit.name}]" if isinstance(unit, RegularLoop) else unit.name for unit in units]


def the_loop(levels: LoopTree) -> RegularLoop:
    """The only loop that stands outside of all others."""
    [loop] = [u for units in levels.units.values() for u in units if isinstance(u, RegularLoop)]
    return loop


def frames(levels: LoopTree) -> list[str]:
    """The names of the frames that are left as levels."""
    return sorted(frame.name for frame in levels.units)


# -- regular loops ---------------------------------------------------------------------------


def test_a_counting_loop_is_one_unit() -> None:
    """Outside of the loop stand what feeds it, and the loop."""
    levels = levels_of(COUNT + "\nafter = Neg(exit)")
    [units] = levels.units.values()
    assert names(units) == ["zero", "limit", "[loop]", "after"]


def test_what_a_loop_is_made_of() -> None:
    """Variables, exits, the condition, and everything else in order."""
    loop = the_loop(levels_of(COUNT))
    [variable] = loop.variables
    assert names([variable.merge, variable.enter, variable.next_iteration]) == [
        "merge",
        "enter",
        "next",
    ]
    assert names(loop.enters) == ["enter", "bound"]
    assert names(loop.exits) == ["exit"]
    assert loop.condition.name == "cond"
    assert names(loop.body) == ["less", "cond", "switch", "body", "one", "sum"]


def test_inner_loops_are_units_of_the_outer_body() -> None:
    """Nested loops nest, and only the outermost stands outside."""
    levels = levels_of(NESTED_LOOPS)
    [units] = levels.units.values()
    assert names(units) == ["outer", "inner", "zero", "[outer]"]
    loop = the_loop(levels)
    assert "[inner]" in names(loop.body)
    assert loop_depth(units) == 2
    assert loop_depth([]) == 0


@pytest.mark.parametrize("name", ["j_less", "j_enter", "s_exit", "i", "i_enter", "total"])
def test_everything_in_a_loop_stands_for_the_outermost(name: str) -> None:
    """Whoever asks for a node of a loop, however deep, is given the loop."""
    levels = levels_of(NESTED_LOOPS)
    loop = the_loop(levels)
    nodes = [n for n in _nodes_in(loop) if n.name == name]
    assert [levels.unit_of(node) for node in nodes] == [loop]


def _nodes_in(loop: RegularLoop) -> list[Node]:
    """All nodes of a loop, with those of loops inside."""
    nodes = [*loop.enters, *loop.exits, *(v.merge for v in loop.variables)]
    for unit in loop.body:
        nodes += _nodes_in(unit) if isinstance(unit, RegularLoop) else [unit]
    return nodes


def test_a_loop_depends_on_all_that_enters_it() -> None:
    """The sources of a loop are those of its Enters, control inputs included."""
    levels = levels_of(COUNT.replace("Enter(zero)", "Enter(zero, ^first)") + "\nfirst = NoOp()")
    loop = the_loop(levels)
    assert sorted(names(levels.sources(loop))) == ["first", "limit", "zero"]


def test_units_come_in_the_order_in_which_they_were_made() -> None:
    """Of several that could come next, the author's first: few values are alive at a time."""
    text = """
        late = Neg(c)
        a = Const() value=1.0
        b = Neg(a)
        c = Const() value=2.0
        d = Neg(c)
    """
    [units] = levels_of(text).units.values()
    assert names(units) == ["a", "b", "c", "late", "d"]


def test_a_cycle_is_a_mistake_of_ours() -> None:
    """A graph that was checked has no cycle without NextIteration."""
    text = "c = Const() value=1.0\na = Add(c, b)\nb = Neg(a)"
    with pytest.raises(InternalError, match="cycle"):
        levels_of(text)


# -- irregular loops ---------------------------------------------------------------------------

#: How a loop can fail to be regular: what to change in the counting loop, and the reason.
IRREGULAR: dict[str, tuple[str, str, str]] = {
    "no LoopCond": ("cond = LoopCond(less)", "cond = Identity(less)", "0 LoopConds"),
    "two LoopConds": (
        "cond = LoopCond(less)",
        "cond = LoopCond(less)\nLoopCounter = LoopCond(less)",
        "2 LoopConds",
    ),
    "a NextIteration that nobody takes": (
        "next = NextIteration(sum)",
        "next = NextIteration(sum)\nlost = NextIteration(sum)",
        "lost does not lead to one Merge",
    ),
    "a NextIteration that two take": (
        "merge = Merge(enter, next)",
        "merge = Merge(enter, next)\nmerge2 = Merge(enter, next)",
        "next does not lead to one Merge",
    ),
    "a Merge of three": (
        "merge = Merge(enter, next)",
        "merge = Merge(enter, next, next2) T=int32\nnext2 = NextIteration(sum) T=int32",
        "merge is not the Merge of a loop",
    ),
    "a Merge that waits": (
        "merge = Merge(enter, next)",
        "merge = Merge(enter, next, ^bound)",
        "merge is not the Merge of a loop",
    ),
    "a Merge without Enter": (
        "merge = Merge(enter, next)",
        "first = Identity(enter)\nmerge = Merge(first, next)",
        "merge has no Enter",
    ),
    "two NextIterations at one Merge": (
        "merge = Merge(enter, next)",
        "merge = Merge(next2, next) T=int32\nnext2 = NextIteration(sum) T=int32",
        "merge has no Enter",
    ),
    "a variable that comes anew": (
        'enter = Enter(zero) frame_name="loop"',
        'enter = Enter(zero) frame_name="loop" is_constant=True',
        "enter comes anew in each iteration",
    ),
    "an Enter that is used in the first iteration": (
        "sum = Add(body, one)",
        "sum = Add(body, one)\nonce = Neg(enter)",
        "enter is used in the first iteration only",
    ),
}


@pytest.mark.parametrize(("old", "new", "reason"), IRREGULAR.values(), ids=IRREGULAR)
def test_irregular_loops_are_left_to_the_executor(old: str, new: str, reason: str) -> None:
    """A loop of another form stays a level of its own, with its nodes as units."""
    assert old in COUNT
    levels = levels_of(COUNT.replace(old, new))
    assert frames(levels) == ["", "loop"]
    for frame, units in levels.units.items():
        assert not any(isinstance(unit, RegularLoop) for unit in units)
        assert levels.is_odd(frame) == (frame.name == "loop")
        if frame.name == "loop":
            with pytest.raises(Odd, match=reason):
                levels._find_loop(frame, units)


def test_all_loops_in_one_of_another_form_are_the_executors() -> None:
    """What enters an inner loop need not come in the same iterations of the outer one."""
    levels = levels_of(
        NESTED_LOOPS.replace("i_cond = LoopCond(i_less)", "i_cond = Identity(i_less)")
    )
    inner = [unit.frame for unit in _all_units(levels) if isinstance(unit, RegularLoop)]
    assert [frame.name for frame in inner] == ["inner"]
    assert levels.is_odd(inner[0])
    assert [frame.name for frame in levels.frames()] == ["", "outer"]


def test_a_loop_that_waits_for_itself_is_the_executors() -> None:
    """An Enter may come after an Exit of the same frame: there is no order of units then."""
    text = COUNT + 'late = Enter(zero, ^exit) frame_name="loop"\nafter = Exit(late)'
    assert "late waits for what leaves its own loop" in levels_of(text).refusal


def test_a_node_that_is_left_to_the_executor() -> None:
    """With a node in a loop, so is the loop; with one outside of it, just that node."""
    levels = levels_of(COUNT + "\nafter = Neg(exit)\nlast = Neg(after)")
    nodes = {unit.name: unit for unit in _all_units(levels) if not isinstance(unit, RegularLoop)}
    levels.leave([nodes["after"]])
    assert frames(levels) == [""]
    assert not levels.can_compile(nodes["after"])
    assert levels.can_compile(nodes["last"])
    levels.leave([node for node in the_loop(levels).body if node.name == "sum"])
    assert frames(levels) == ["", "loop"]
    assert not any(levels.is_odd(frame) for frame in levels.units)


def test_a_node_that_cannot_be_compiled_makes_its_loop_irregular() -> None:
    """One such node in the body is enough."""
    levels = levels_of(COUNT, lambda node: node.name != "sum")
    assert frames(levels) == ["", "loop"]
    frame, units = next((f, us) for f, us in levels.units.items() if f.name == "loop")
    with pytest.raises(Irregular, match="sum cannot be compiled"):
        levels._find_loop(frame, units)


def test_a_loop_around_an_irregular_one_is_irregular() -> None:
    """The executor cannot be called from inside of compiled code."""
    levels = levels_of(NESTED_LOOPS, lambda node: node.name != "s_sum")
    assert frames(levels) == ["", "inner", "outer"]
    frame, units = next((f, us) for f, us in levels.units.items() if f.name == "outer")
    with pytest.raises(Irregular, match="an inner loop is irregular"):
        levels._find_loop(frame, units)


def test_a_regular_loop_inside_of_an_irregular_one_is_found() -> None:
    """Only what is around an odd node is left to the executor."""
    levels = levels_of(NESTED_LOOPS, lambda node: node.name != "i_sum")
    assert frames(levels) == ["", "outer"]
    [units] = [us for f, us in levels.units.items() if f.name == "outer"]
    assert "[inner]" in names(units)


def test_what_leaves_an_irregular_loop_depends_on_what_enters_it() -> None:
    """An Exit comes after all that its frame waits for, though no path shows it, or never."""
    text = COUNT.replace("cond = LoopCond(less)", "cond = Identity(less)") + "\nafter = Neg(exit)"
    levels = levels_of(text)
    [after] = [u for u in _all_units(levels) if u.name == "after"]
    assert sorted(names(levels.sources(after))) == ["bound", "enter", "exit"]
    assert names(levels.exits()) == ["exit"]


def _all_units(levels: LoopTree) -> list[LoopOrNode]:
    return [unit for units in levels.units.values() for unit in units]


@pytest.mark.parametrize(
    ("which", "left"),
    [("outer", ["", "outer"]), ("inner", ["", "inner", "outer"])],
)
def test_a_loop_that_iterations_out_not_to_be_one_is_forgotten(which: str, left: list[str]) -> None:
    """It is left to the executor, and so are those around it; those inside stay loops."""
    levels = levels_of(NESTED_LOOPS)
    outer = the_loop(levels)
    [inner] = [unit for unit in outer.body if isinstance(unit, RegularLoop)]
    levels.forget({outer if which == "outer" else inner: "odd"})
    assert frames(levels) == left
    assert "odd" in levels.reasons.values()
    levels.forget({outer: "odd"})
    assert frames(levels) in (["", "inner", "outer"], ["", "outer"])


# -- what only liveness tells ------------------------------------------------------------------

#: Loops that look regular, and are not: the executor must give the answer.
ODD_BODIES: dict[str, tuple[str, str]] = {
    # What NextIteration carries is dead in iteration 1: the loop ends by starving.
    "a variable that may be dead": (
        "sum = Add(body, one)",
        "stop = Less(body, one)\nonly = Switch(body, stop)\nsum = Add(only:1, one)",
    ),
    "an index that is used": ("sum = Add(body, one)", "sum = Add(body, one)\nuse = Neg(merge:1)"),
    "a condition that decides nothing": (
        "switch = Switch(merge, cond)",
        "switch = Switch(merge, less)",
    ),
}


@pytest.mark.parametrize("tier", ps.Tier)
@pytest.mark.parametrize("odd", ["an index that is used", "a condition that decides nothing"])
def test_odd_bodies_give_the_same_answer(odd: str, tier: ps.Tier) -> None:
    """A loop that only looks regular counts as far as any other."""
    old, new = ODD_BODIES[odd]
    with ps.Session(sketch(COUNT.replace(old, new)), config=ps.Config(tier=tier)) as session:
        assert session.run("exit:0", {"limit": 7}) == 7


@pytest.mark.parametrize("tier", ps.Tier)
def test_a_variable_that_dies_starves_the_loop(tier: ps.Tier) -> None:
    """A dead value starts no iteration; without another one neither exit nor value ever comes."""
    old, new = ODD_BODIES["a variable that may be dead"]
    with (
        ps.Session(sketch(COUNT.replace(old, new)), config=ps.Config(tier=tier)) as session,
        pytest.raises(ps.errors.InvalidArgumentError, match="does not have value"),
    ):
        session.run("exit:0", {"limit": 7})


@pytest.mark.parametrize("tier", ps.Tier)
@pytest.mark.parametrize("is_alive", [True, False])
def test_a_constant_that_may_be_dead(is_alive: bool, tier: ps.Tier) -> None:
    """A loop whose limit is dead gives nothing, though all its variables are alive."""
    text = """
        x = Placeholder() dtype=int32
        p = Placeholder() dtype=bool
        s = Switch(x, p)
        zero = Const() value=0
        one = Const() value=1
        enter = Enter(zero) frame_name="loop"
        bound = Enter(s:1) frame_name="loop" is_constant=True
        more = Enter(one) frame_name="loop" is_constant=True
        merge = Merge(enter, next) T=int32
        less = Less(merge, bound) T=int32
        go = LoopCond(less)
        switch = Switch(merge, go) T=int32
        sum = Add(switch:1, more) T=int32
        next = NextIteration(sum) T=int32
        exit = Exit(switch) T=int32
        other = Neg(s) T=int32
        both = Merge(exit, other) T=int32
    """
    with ps.Session(sketch(text), config=ps.Config(tier=tier)) as session:
        assert session.run("both:0", {"x": np.int32(3), "p": is_alive}) == (3 if is_alive else -3)


#: The condition reads constants only, and nothing comes round.
ONCE = """
    n = Placeholder() dtype=int32
    d = Placeholder() dtype=int32
    lim = Enter(n) frame_name="f" is_constant=True
    step = Enter(d) frame_name="f" is_constant=True
    less = Less(step, lim)
    cond = LoopCond(less)
    switch = Switch(step, cond)
    exit = Exit(switch)
"""


@pytest.mark.parametrize("tier", ps.Tier)
def test_where_nothing_comes_round_there_is_one_iteration(tier: ps.Tier) -> None:
    """As in TensorFlow: the exit is alive if the condition is false, and never comes if not."""
    with ps.Session(sketch(ONCE), config=ps.Config(tier=tier)) as session:
        call = session.make_callable("exit:0", ["n", "d"], ps.RunOptions(timeout_in_ms=20_000))
        assert call(1, 100) == 100
        assert call(10, 3).size == 0
