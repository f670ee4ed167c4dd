"""Liveness predicates obey the laws of logic: compared with their truth tables."""

from __future__ import annotations

import functools
import itertools
from typing import NamedTuple

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from penstock.errors import ResourceExhaustedError
from penstock.runtime.compiler.predicates import (
    ALWAYS,
    NEVER,
    Condition,
    Predicate,
    Predicates,
)

CONDITIONS = 4
WORLDS = list(itertools.product([False, True], repeat=CONDITIONS))


class Table(NamedTuple):
    """A predicate, and in which worlds it is true."""

    predicate: Predicate
    truth: tuple[bool, ...]


class Both:
    """Predicates, and truth tables that are computed by Python's own operators."""

    def __init__(self) -> None:
        self.predicates = Predicates()
        conditions = [self.predicates.new_condition() for _ in range(CONDITIONS)]
        self.made = [
            Table(NEVER, (False,) * len(WORLDS)),
            Table(ALWAYS, (True,) * len(WORLDS)),
        ]
        for condition in conditions:
            truth = tuple(world[condition] for world in WORLDS)
            self.made.append(Table(self.predicates.is_true(condition), truth))

    def add(self, op: str, first: int, second: int) -> None:
        """Combine two that there are already."""
        a, b = self.made[first % len(self.made)], self.made[second % len(self.made)]
        pairs = zip(a.truth, b.truth, strict=True)
        if op == "not":
            made = Table(self.predicates.not_(a.predicate), tuple(not x for x in a.truth))
        elif op == "and":
            both = self.predicates.and_(a.predicate, b.predicate)
            made = Table(both, tuple(x and y for x, y in pairs))
        else:
            either = self.predicates.or_(a.predicate, b.predicate)
            made = Table(either, tuple(x or y for x, y in pairs))
        self.made.append(made)

    def value(self, predicate: Predicate, world: tuple[bool, ...]) -> bool:
        """What a predicate says of a world, read from the root of its diagram."""
        asked = -1
        while predicate not in (NEVER, ALWAYS):
            condition, low, high = self.predicates.parts(predicate)
            assert condition > asked, "a condition is asked before an earlier one"
            asked = condition
            predicate = high if world[condition] else low
        return predicate == ALWAYS

    def conditions_of(self, predicate: Predicate) -> set[Condition]:
        """Every condition that a diagram asks."""
        if predicate in (NEVER, ALWAYS):
            return set()
        condition, low, high = self.predicates.parts(predicate)
        return {condition} | self.conditions_of(low) | self.conditions_of(high)


@st.composite
def both(draw: st.DrawFn) -> Both:
    """Up to fifteen predicates beside the conditions themselves."""
    made = Both()
    numbers = st.integers(0, 30)
    steps = st.tuples(st.sampled_from(["not", "and", "or"]), numbers, numbers)
    for op, first, second in draw(st.lists(steps, min_size=3, max_size=15)):
        made.add(op, first, second)
    return made


@given(both())
def test_predicates_say_what_truth_tables_say(made: Both) -> None:
    """However it came about, a predicate is true in exactly the worlds that it should be."""
    for predicate, truth in made.made:
        assert tuple(made.value(predicate, world) for world in WORLDS) == truth


@given(both())
def test_equal_predicates_are_the_same_number(made: Both) -> None:
    """Two predicates have the same truth table if and only if they are one number."""
    for a, b in itertools.combinations(made.made, 2):
        assert (a.predicate == b.predicate) == (a.truth == b.truth)


@given(both())
def test_questions_are_those_of_the_tree(made: Both) -> None:
    """What is written out asks as often as its tree has forks."""

    def forks(predicate: Predicate) -> int:
        if predicate in (NEVER, ALWAYS):
            return 0
        _, low, high = made.predicates.parts(predicate)
        return 1 + forks(low) + forks(high)

    for predicate, _ in made.made:
        assert made.predicates.questions(predicate) == forks(predicate)


@given(both())
def test_implication_is_inclusion(made: Both) -> None:
    """``a`` implies ``b`` if and only if b is true wherever a is."""
    for a, b in itertools.product(made.made, repeat=2):
        included = all(y or not x for x, y in zip(a.truth, b.truth, strict=True))
        assert made.predicates.implies(a.predicate, b.predicate) == included


@given(both(), st.integers(0, 30), st.integers(0, 30))
def test_under_agrees_where_it_is_given(made: Both, first: int, second: int) -> None:
    """``under`` equals the predicate wherever the given one is true, and asks no more."""
    a, given_ = made.made[first % len(made.made)], made.made[second % len(made.made)]
    assume(any(given_.truth))
    simpler = made.predicates.under(a.predicate, given_.predicate)
    for world, x, holds in zip(WORLDS, a.truth, given_.truth, strict=True):
        if holds:
            assert made.value(simpler, world) == x
    assert made.conditions_of(simpler) <= made.conditions_of(a.predicate)


@pytest.mark.parametrize(
    ("wanted", "given_", "left"),
    [
        ("a and b", "a", "b"),
        ("a", "a", "always"),
        ("b", "a", "b"),
        ("a or b", "not a", "b"),
        ("a and b", "b", "a"),
        ("not a", "a", "never"),
    ],
)
def test_under_leaves_only_what_is_open(wanted: str, given_: str, left: str) -> None:
    """What is known inside of a branch is not asked again."""
    made = Predicates()
    a, b = (made.is_true(made.new_condition()) for _ in range(2))
    named: dict[str, Predicate] = {
        "a": a,
        "b": b,
        "not a": made.not_(a),
        "a and b": made.and_(a, b),
        "a or b": made.or_(a, b),
        "always": ALWAYS,
        "never": NEVER,
    }
    assert made.under(named[wanted], named[given_]) == named[left]


def test_both_sides_of_a_condition_are_its_own_liveness() -> None:
    """A Merge of both branches of a condition is live whenever the condition is known."""
    made = Predicates()
    outer = made.is_true(made.new_condition())
    inner = made.is_true(made.new_condition())
    yes, no = made.and_(outer, inner), made.and_(outer, made.not_(inner))
    assert made.or_(no, yes) == outer
    assert made.or_(made.or_(yes, made.not_(outer)), no) == ALWAYS


def test_conditions_are_numbered_as_they_come() -> None:
    """A new condition becomes known after all others."""
    made = Predicates()
    assert [made.new_condition() for _ in range(3)] == [0, 1, 2]
    assert made.count == 3


def test_entangled_predicates_are_given_up() -> None:
    """A diagram of more nodes than it may have is refused, rather than built for hours."""
    made = Predicates(max_nodes=300)
    numbers = [made.is_true(made.new_condition()) for _ in range(40)]
    # Pairs that lie far apart: the diagram doubles with each.
    pairs = [made.and_(a, b) for a, b in zip(numbers[:20], numbers[20:], strict=True)]
    with pytest.raises(ResourceExhaustedError, match="too entangled"):
        functools.reduce(made.or_, pairs)
