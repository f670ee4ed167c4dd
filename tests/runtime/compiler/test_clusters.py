"""Groups are regions that can run as one: nothing in between has to run elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from graphlib import TopologicalSorter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.graph.frames import build_control_flow_info
from penstock.runtime.compiler.clusters import Clustering
from penstock.runtime.compiler.loops import LoopTree
from support.loops import counting_loop
from support.sketch import sketch


class Dag:
    """Units 0, 1, …; each depends on some before it; some are for the executor."""

    def __init__(self, sources: list[set[int]], outside: set[int]) -> None:
        self.sources = sources
        self.outside = outside

    def groups(self) -> list[list[int]]:
        """What ``Clustering`` makes of it; it only ever hashes units."""
        units: Any = range(len(self.sources))
        sources: Callable[[Any], Iterable[Any]] = self.sources.__getitem__
        made: Any = Clustering(sources, self.outside.__contains__).group(units)
        return made

    def reached_from(self, start: set[int]) -> set[int]:
        """Everything that depends on one of ``start``, those themselves included."""
        reached = set(start)
        for unit, sources in enumerate(self.sources):
            if sources & reached:
                reached.add(unit)
        return reached


@st.composite
def dags(draw: st.DrawFn) -> Dag:
    """Graphs of up to 25 units without cycles."""
    count = draw(st.integers(1, 25))
    sources = [
        draw(st.sets(st.integers(0, unit - 1), max_size=3)) if unit else set()
        for unit in range(count)
    ]
    return Dag(sources, draw(st.sets(st.integers(0, count - 1), max_size=count // 2)))


@given(dags())
def test_everything_that_can_be_compiled_is_in_one_group(dag: Dag) -> None:
    """Groups are a partition of the units that are not outside, each sources first."""
    groups = dag.groups()
    assert sorted(unit for members in groups for unit in members) == [
        unit for unit in range(len(dag.sources)) if unit not in dag.outside
    ]
    assert all(members == sorted(members) for members in groups)


@given(dags())
def test_no_path_leaves_a_group_and_comes_back(dag: Dag) -> None:
    """What depends on a group and is not in it feeds nothing of the group."""
    for members in dag.groups():
        inside = set(members)
        beyond = dag.reached_from(inside) - inside
        behind_it = {
            unit for unit in dag.reached_from(beyond) - beyond if dag.sources[unit] & beyond
        }
        assert not behind_it & inside
        assert not any(dag.sources[unit] & beyond for unit in inside)


@given(dags())
def test_groups_do_not_wait_for_each_other(dag: Dag) -> None:
    """With every group as one node, the graph still has no cycle."""
    home: dict[int, Any] = {unit: ("outside", unit) for unit in dag.outside}
    for number, members in enumerate(dag.groups()):
        home |= dict.fromkeys(members, ("group", number))
    waits: dict[Any, set[Any]] = {}
    for unit, sources in enumerate(dag.sources):
        needed = {home[source] for source in sources} - {home[unit]}
        waits.setdefault(home[unit], set()).update(needed)
    list(TopologicalSorter(waits).static_order())  # raises CycleError


@given(dags())
def test_without_outsiders_everything_is_one_region(dag: Dag) -> None:
    """A frame of which nothing is left to the executor is a single group."""
    dag.outside = set()
    assert len(dag.groups()) == 1


@pytest.mark.parametrize(
    ("sources", "outside", "groups"),
    [
        # 0 → 1 → 2, and 1 is outside.
        ([set(), {0}, {1}], {1}, [[0], [2]]),
        # 3 could run before 1 has come, 2 could not.
        ([set(), {0}, {1}, {0}], {1}, [[0, 3], [2]]),
        # Two outsiders in parallel: what needs both is a group of its own.
        ([set(), set(), {0}, {1}, {2, 3}], {0, 1}, [[2], [3], [4]]),
    ],
)
def test_small_graphs(sources: list[set[int]], outside: set[int], groups: list[Any]) -> None:
    """Units are grouped by the outsiders that they depend on."""
    assert Dag(sources, outside).groups() == groups


# -- graphs with Merges and loops --------------------------------------------------------------


def groups_of(text: str, *outside: str) -> list[list[str]]:
    """How the nodes outside of loops are grouped, by name; loops by their frames."""
    graph = sketch(text)
    info = build_control_flow_info(graph)
    levels = LoopTree(graph, info, lambda node: node.name not in outside)
    grouping = Clustering(
        levels.sources,
        lambda unit: not levels.can_compile(unit),
        mark=levels.mark,
        choices=levels.choices,
    )
    grouping.expect(levels.exits())
    made = grouping.group(levels.units[info.root])
    return [[unit.name for unit in members] for members in made]


MERGE = """
    x = Placeholder() dtype=int32
    p = Placeholder() dtype=bool
    s = Switch(x, p)
    a = Neg(s)
    b = Neg(s:1)
    m = Merge(a, b)
    y = Neg(m)
"""


@pytest.mark.parametrize(
    ("outside", "groups"),
    [
        (("x",), [["p"], ["s", "a", "b", "m", "y"]]),
        (("b",), [["x", "p", "s", "a"], ["y"]]),
        (("a", "b"), [["x", "p", "s"], ["y"]]),
    ],
)
def test_a_merge_of_what_comes_apart_is_outside(outside: tuple[str, ...], groups: Any) -> None:
    """A Merge is in a group if its inputs depend on the same outside units, and only then."""
    assert groups_of(MERGE, *outside) == groups


def test_who_waits_for_a_loop() -> None:
    """A loop takes along what only it needs, and what needs it; nothing else waits for it."""
    loop = counting_loop(limit="Neg(start)").replace("= Neg(start)", "= Neg(start) T=int32")
    text = f"""
        start = Placeholder() dtype=int32
        {loop}
        other = Neg(start)
        given = Neg(other)
        after = Add(exit, other) T=int32
        last = Neg(given)
    """
    assert groups_of(text, "last") == [
        ["start", "other", "given"],
        ["zero", "limit", "loop", "after"],
    ]


def test_what_leaves_a_loop_of_the_executors_comes_by_itself() -> None:
    """An Exit may come when another one never does: what depends on it only, is by itself."""
    text = (
        counting_loop()
        + """
        exit2 = Exit(switch)
        a = Neg(exit) T=int32
        b = Neg(exit2) T=int32
        c = Add(a, b) T=int32
        d = Neg(a) T=int32
    """
    )
    assert groups_of(text, "sum", "enter", "bound") == [["zero", "limit"], ["a", "d"], ["b"], ["c"]]
