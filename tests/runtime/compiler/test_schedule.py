"""Any schedule respects what statements wait for, and stands in branches as they are live."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import InternalError
from penstock.graph.graph import Node
from penstock.runtime.compiler import program
from penstock.runtime.compiler.predicates import ALWAYS, NEVER, Condition, Predicate, Predicates
from penstock.runtime.compiler.program import (
    Body,
    Constant,
    Move,
    Nothing,
    Statement,
    Var,
)
from penstock.runtime.compiler.schedule import (
    CompoundPredicate,
    Outcome,
    Path,
    ScheduledStatement,
    path_of,
    schedule,
    schedule_iteration,
)
from support.sketch import sketch

NODE: Node = sketch("node = NoOp()").node("node")
ONE = Constant("one", 1)


class Writing:
    """A body under construction: statements by name."""

    def __init__(self) -> None:
        self.body = Body(Predicates())
        self.vars: dict[str, Var] = {}
        #: What made each variable.
        self.made: dict[str, Statement] = {}
        self.conditions: dict[str, Condition] = {}

    def add(self, name: str, live: Predicate = ALWAYS, after: Sequence[str] = ()) -> Statement:
        """A move that waits for others, and reads the last of them."""
        source = self.vars[after[-1]] if after else ONE
        self.vars[name] = Var(name)
        waits = tuple(self.made[other] for other in after)
        self.made[name] = Move(NODE, live, waits, source, self.vars[name])
        self.body.statements.append(self.made[name])
        return self.made[name]

    def test(self, name: str, live: Predicate = ALWAYS, after: Sequence[str] = ()) -> Predicate:
        """A test that becomes a new condition; returns the condition as a predicate."""
        waits = tuple(self.made[other] for other in after)
        self.vars[name] = Var(name)
        condition = self.conditions[name] = self.body.predicates.new_condition()
        self.body.conditions.append(self.vars[name])
        self.made[name] = program.Test(
            NODE, live, waits, condition, self.vars[name], self.vars[name]
        )
        self.body.statements.append(self.made[name])
        return self.body.predicates.is_true(condition)

    def names(self, placed: Sequence[ScheduledStatement]) -> list[str]:
        """ScheduledStatement statements by name, with a bar where the branch changes."""
        name_of = {statement: name for name, statement in self.made.items()}
        out: list[str] = []
        path: Path = ()
        for item in placed:
            if item.path != path:
                out.append("|")
                path = item.path
            out.append(name_of[item.statement])
        return out


def holds(predicates: Predicates, predicate: Predicate, world: Sequence[bool]) -> bool:
    """Whether a predicate is true in a world."""
    while predicate not in (NEVER, ALWAYS):
        condition, low, high = predicates.parts(predicate)
        predicate = high if world[condition] else low
    return predicate == ALWAYS


def is_open(predicates: Predicates, path: Path, world: Sequence[bool]) -> bool:
    """Whether a world leads into a branch."""
    return all(
        world[step.condition] == step.is_true
        if isinstance(step, Outcome)
        else holds(predicates, step.predicate, world)
        for step in path
    )


@st.composite
def writings(draw: st.DrawFn) -> Writing:
    """Up to twenty statements with up to four conditions, in branches, out of them, merged."""
    made = Writing()
    predicates = made.body.predicates
    branches = [ALWAYS]
    for number in range(draw(st.integers(1, 20))):
        live = branches[draw(st.integers(0, len(branches) - 1))]
        # What decides the branch comes first; beyond that, anything that is live there.
        known = [
            name
            for name, statement in made.made.items()
            if predicates.implies(live, statement.live)
        ]
        after = draw(st.lists(st.sampled_from(known), max_size=3, unique=True)) if known else []
        deciding = [name for name in made.conditions if name in known]
        if len(made.conditions) < 4 and draw(st.integers(0, 3)) == 0:
            yes = made.test(f"t{number}", live, [*deciding, *after])
            branches += [predicates.and_(live, yes), predicates.and_(live, predicates.not_(yes))]
        elif draw(st.integers(0, 5)) == 0:
            other = branches[draw(st.integers(0, len(branches) - 1))]
            branches.append(predicates.or_(live, other))
        else:
            made.add(f"s{number}", live, [*made.conditions, *after])
    return made


@given(writings())
def test_every_statement_comes_once_after_what_it_waits_for(made: Writing) -> None:
    """The schedule is a topological order of all statements."""
    placed = schedule(made.body)
    position = {item.statement: index for index, item in enumerate(placed)}
    assert sorted(map(id, position)) == sorted(map(id, made.body.statements))
    assert len(placed) == len(position)
    for statement, index in position.items():
        assert all(position[source] < index for source in statement.waits)


@given(writings())
def test_a_branch_is_open_exactly_when_its_statements_are_live(made: Writing) -> None:
    """In every world, the branch of a statement is entered if and only if it is live."""
    predicates = made.body.predicates
    for world in itertools.product([False, True], repeat=predicates.count):
        for item in schedule(made.body):
            is_live = holds(predicates, item.statement.live, world)
            assert is_open(predicates, item.path, world) == is_live


@given(writings())
def test_what_a_branch_asks_is_read(made: Writing) -> None:
    """A statement's reads name its operands, and every condition on its path."""
    for item in schedule(made.body):
        asked = {made.body.conditions[s.condition] for s in item.path if isinstance(s, Outcome)}
        assert asked <= set(item.reads)
        if isinstance(item.statement, Move):
            assert item.statement.source in item.reads


def test_a_branch_is_left_when_nothing_in_it_can_be_done() -> None:
    """Chains on both sides of a condition are not mixed: there, opposite, and back out."""
    made = Writing()
    yes = made.test("p")
    no = made.body.predicates.not_(yes)
    made.add("a1", yes, ["p"])
    made.add("b1", no, ["p"])
    made.add("a2", yes, ["a1"])
    made.add("b2", no, ["b1"])
    made.add("after", ALWAYS, ["a2", "b2"])
    assert made.names(schedule(made.body)) == ["p", "|", "a1", "a2", "|", "b1", "b2", "|", "after"]


def test_what_stands_outside_is_done_before_a_branch_is_entered() -> None:
    """A branch that is left early would have to be entered again."""
    made = Writing()
    yes = made.test("p")
    made.add("a1", yes, ["p"])
    made.add("x", ALWAYS)
    made.add("a2", yes, ["x", "a1"])
    assert made.names(schedule(made.body)) == ["p", "x", "|", "a1", "a2"]


def test_inner_branches_are_finished_before_outer_ones() -> None:
    """From a branch in a branch, the way out leads over the opposite of the innermost."""
    made = Writing()
    predicates = made.body.predicates
    p = made.test("p")
    q = made.test("q", p, ["p"])
    made.add("else", predicates.not_(p), ["p"])
    made.add("pq", predicates.and_(p, q), ["p", "q"])
    made.add("p~q", predicates.and_(p, predicates.not_(q)), ["p", "q"])
    assert made.names(schedule(made.body)) == ["p", "|", "q", "|", "pq", "|", "p~q", "|", "else"]


def test_otherwise_the_order_is_that_of_the_body() -> None:
    """What waits for nothing comes as it was made."""
    made = Writing()
    for name in "dbca":
        made.add(name)
    assert made.names(schedule(made.body)) == list("dbca")


def test_what_does_nothing_is_not_written() -> None:
    """A statement that only waits hands its waiting on, and vanishes."""
    made = Writing()
    a = made.add("a")
    nothing = Nothing(NODE, ALWAYS, (a,))
    made.body.statements.append(nothing)
    after = made.add("after")
    after.waits = (nothing,)
    first = made.add("first")
    a.waits = (first,)
    assert made.names(schedule(made.body)) == ["first", "a", "after"]


def test_statements_that_wait_for_each_other_are_a_mistake_of_ours() -> None:
    """A cycle would leave statements out silently."""
    made = Writing()
    a, b = made.add("a"), made.add("b")
    a.waits, b.waits = (b,), (a,)
    with pytest.raises(InternalError, match="wait for each other"):
        schedule(made.body)


def test_an_iteration_is_cut_where_it_is_known_whether_the_loop_goes_on() -> None:
    """What the condition needs comes before it; what needs the condition comes after."""
    made = Writing()
    made.add("x")
    goes_on = made.test("less", ALWAYS, ["x"])
    made.add("body", goes_on, ["less"])
    made.add("exit", made.body.predicates.not_(goes_on), ["less"])
    iteration = schedule_iteration(made.body, made.conditions["less"])
    # The exit is done in the last iteration only, and before the loop is left.
    assert made.names(iteration.before) == ["x", "less", "|", "exit"]
    # After the condition it is known to be true: the path is empty.
    assert made.names(iteration.after) == ["body"]


def test_branches_in_an_iteration_do_not_ask_again_whether_it_goes_on() -> None:
    """Inside of the body only the conditions of the body are asked."""
    made = Writing()
    predicates = made.body.predicates
    goes_on = made.test("less")
    p = made.test("p", goes_on, ["less"])
    made.add("yes", predicates.and_(goes_on, p), ["p"])
    iteration = schedule_iteration(made.body, made.conditions["less"])
    assert [item.path for item in iteration.after] == [(), (Outcome(made.conditions["p"], True),)]


def test_paths() -> None:
    """Outcomes as far as they go; an "or" of several conditions is asked as a whole."""
    made = Predicates()
    first, second = made.new_condition(), made.new_condition()
    p, q = made.is_true(first), made.is_true(second)
    yes, no = Outcome(first, True), Outcome(first, False)
    assert path_of(made, ALWAYS) == ()
    assert path_of(made, made.not_(p)) == (no,)
    assert path_of(made, made.and_(p, made.not_(q))) == (yes, Outcome(second, False))
    either = made.or_(p, q)
    assert path_of(made, either) == (CompoundPredicate(either),)
