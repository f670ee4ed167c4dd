"""Expensive parts that do not need each other become groups of their own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.core.limits import DEFAULT_LIMITS
from penstock.runtime.compiler.loops import LoopOrNode
from penstock.runtime.compiler.partition_by_cost import partition_by_cost

SLOW, QUICK = 10 * DEFAULT_LIMITS.heavy_part, DEFAULT_LIMITS.heavy_part / 1000
Dag = Mapping[str, Sequence[str]]


def groups(
    dag: Dag, seconds: Mapping[str, float], threads: int = 2, cores: float = 1.0
) -> list[list[str]]:
    """The groups of units that are known by name; in ``dag``, sources come first."""
    made = partition_by_cost(
        cast("list[LoopOrNode]", list(dag)),
        lambda unit: cast("Sequence[LoopOrNode]", dag[cast("str", unit)]),
        cast("Mapping[LoopOrNode, float]", seconds),
        threads,
        cores,
    )
    return cast("list[list[str]]", made)


def heavy(*names: str) -> dict[str, float]:
    """These take long, and the rest takes no time."""
    return dict.fromkeys(names, SLOW)


def test_two_chains_are_two_groups() -> None:
    """What leads to a heavy part, and what follows it alone, stays with it."""
    dag = {"a": [], "b": ["a"], "c": ["b"], "p": [], "q": ["p"], "r": ["q"]}
    assert sorted(groups(dag, heavy("b", "q"))) == [["a", "b", "c"], ["p", "q", "r"]]


def test_one_chain_is_not_cut() -> None:
    """However heavy its parts are, one waits for the other."""
    dag = {"a": [], "b": ["a"], "c": ["b"]}
    assert groups(dag, heavy("a", "b", "c")) == []


def test_a_diamond_of_heavy_parts() -> None:
    """Both sides are apart from each other, from what is before and from what is after."""
    dag = {"top": [], "left": ["top"], "right": ["top"], "end": ["left", "right"]}
    made = groups(dag, heavy("top", "left", "right", "end") | {"left": 9 * SLOW, "right": 9 * SLOW})
    assert sorted(made) == [["end"], ["left"], ["right"], ["top"]]


def test_a_diamond_with_cheap_ends() -> None:
    """Cheap parts never keep heavy ones apart from their thread, and are not alone."""
    dag = {"top": [], "left": ["top"], "right": ["top"], "end": ["left", "right"]}
    made = groups(dag, heavy("left", "right"))
    sides = [[name for name in group if name in {"left", "right"}] for group in made]
    assert sorted(side for side in sides if side) == [["left"], ["right"]]


def test_cheap_parts_join() -> None:
    """A cheap part goes where it is needed, or where its only input is."""
    dag: Dag = {
        "a": [],
        "before a": ["a"],
        "heavy a": ["before a"],
        "after a": ["heavy a"],
        "heavy b": [],
        "after b": ["heavy b"],
        "end": ["after a", "after b"],
    }
    made = groups(dag, heavy("heavy a", "heavy b"))
    by_name = {name: tuple(group) for group in made for name in group}
    assert by_name["a"] == by_name["before a"] == by_name["heavy a"]
    assert by_name["heavy a"] != by_name["heavy b"]
    assert len(made) <= 3


def test_nothing_gained_means_no_groups() -> None:
    """Quick parts, one heavy one, or one much heavier than the other are left together."""
    dag: Dag = {"a": [], "b": [], "c": ["a", "b"]}
    assert groups(dag, {}) == []
    assert groups(dag, dict.fromkeys(dag, QUICK)) == []
    assert groups(dag, heavy("a")) == []
    assert groups(dag, {"a": 100 * SLOW, "b": SLOW}) == []
    assert groups(dag, heavy("a", "b")) != []
    assert groups({}, {}) == []


def test_one_thread_gains_nothing() -> None:
    """There must be someone to do the other part."""
    dag: Dag = {"a": [], "b": []}
    assert groups(dag, heavy("a", "b"), threads=1) == []
    assert sorted(groups(dag, heavy("a", "b"), threads=2)) == [["a"], ["b"]]


@pytest.mark.parametrize(
    ("cores", "threads", "least"),
    [(0.2, 2, 1.25), (1.0, 2, 1.25), (1.2, 2, 1.5), (2.0, 2, 1.8), (2.0, 4, 2.5), (4.0, 4, 3.6)],
)
def test_busy_cores_are_cut_for_more(cores: float, threads: int, least: float) -> None:
    """The more cores worked for each part, the more parts there must be; all cores are enough."""
    sides = {f"side {i}": 1.0 for i in range(threads)}
    dag: Dag = {**{name: [] for name in sides}, "end": list(sides)}
    # So many seconds after the sides, and all is ``least`` times as fast with them side by side.
    after = (threads - least) / (least - 1)
    assert groups(dag, {**sides, "end": 0.95 * after}, threads, cores)
    assert not groups(dag, {**sides, "end": 1.05 * after}, threads, cores)


def test_sources_outside_do_not_matter() -> None:
    """What a unit needs may be none of the units; nor does it matter that it is named twice."""
    dag: Dag = {"a": ["fed"], "b": ["fed", "fed"], "c": ["a", "a", "b", "c"]}
    made = groups(dag, heavy("a", "b"))
    assert sorted(name for group in made for name in group) == ["a", "b", "c"]


@st.composite
def dags(draw: st.DrawFn) -> tuple[Dag, dict[str, float]]:
    """Directed graphs without cycles, sources first, and what each unit takes."""
    names = [f"n{i:02}" for i in range(draw(st.integers(0, 16)))]
    dag = {
        name: draw(st.lists(st.sampled_from(names[:i]), max_size=3)) if i else []
        for i, name in enumerate(names)
    }
    costs = st.sampled_from(
        [0.0, QUICK, DEFAULT_LIMITS.heavy_part / 2, DEFAULT_LIMITS.heavy_part, SLOW]
    )
    return dag, {name: draw(costs) for name in names}


def order_of(made: Sequence[Sequence[str]], dag: Dag) -> list[int]:
    """An order in which the groups can be run, each as a whole."""
    group_of = {name: i for i, group in enumerate(made) for name in group}
    needs = [
        {group_of[source] for name in group for source in dag[name]} - {i}
        for i, group in enumerate(made)
    ]
    order: list[int] = []
    while len(order) < len(made):
        free = [i for i in range(len(made)) if i not in order and needs[i] <= set(order)]
        assert free, "groups wait for each other"
        order += free
    return order


@given(dags(), st.integers(1, 9))
def test_groups_can_be_run_one_after_the_other(made: Any, threads: int) -> None:
    """Every unit is in one group, after its sources, and no two groups wait for each other."""
    dag, seconds = made
    cut_up = groups(dag, seconds, threads)
    if not cut_up:
        return
    assert sorted(name for group in cut_up for name in group) == sorted(dag)
    done: set[str] = set()
    for index in order_of(cut_up, dag):
        for name in cut_up[index]:
            assert done.issuperset(dag[name])
            done.add(name)


@given(dags(), st.integers(2, 9))
def test_groups_are_faster(made: Any, threads: int) -> None:
    """With as many threads as can be used, the groups take less time than all in a row."""
    dag, seconds = made
    cut_up = groups(dag, seconds, threads)
    if not cut_up:
        return
    total = sum(seconds.values())
    ends: dict[int, float] = {}
    group_of = {name: i for i, group in enumerate(cut_up) for name in group}
    for index in order_of(cut_up, dag):
        needed = {group_of[source] for name in cut_up[index] for source in dag[name]} - {index}
        start = max((ends[i] for i in needed), default=0.0)
        ends[index] = start + sum(seconds[name] for name in cut_up[index])
    assert max(ends.values()) < total
    assert sum(sum(seconds[n] for n in group) >= DEFAULT_LIMITS.heavy_part for group in cut_up) >= 2
