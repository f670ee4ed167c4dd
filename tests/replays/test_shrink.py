"""Of a failing order what is left are the exchanged pairs that it takes to fail, and no more."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest

import penstock as ps
from support.functions import graph_def_with

#: What a result is a failure of.
Fails = Callable[[Mapping[str, Any], Any], bool]


class Races:
    """A graph with some pairs of nodes of which each may be first, and much else that races."""

    def __init__(self, pairs: int, others: int, seed: int) -> None:
        self.graph = ps.Graph()
        self.names: list[tuple[str, str]] = []
        parts: list[tuple[str, Callable[[], list[Any]]]] = []
        with self.graph.as_default():
            variables = [
                ps.Variable(np.float64(0), name=f"v{number}") for number in range(pairs + others)
            ]
            ps.global_variables_initializer(name="init")
            for number, variable in enumerate(variables):
                is_pair = number < pairs
                parts.append((f"v{number}", lambda v=variable, p=is_pair: self._race(v, is_pair=p)))
            random.Random(seed).shuffle(parts)
            done = [node for _, make in parts for node in make()]
            with ps.control_dependencies(done):
                for number in range(pairs):
                    ps.identity(variables[number].read_value(), name=f"out{number}")
        self.outs = [f"out{number}:0" for number in range(pairs)]

    def _race(self, variable: Any, *, is_pair: bool) -> list[Any]:
        """Two nodes: those of a pair leave 1 or 2, the others 3, whichever is first."""
        name = variable.name.partition(":")[0]
        if not is_pair:
            return [variable.assign_add(np.float64(1)), variable.assign_add(np.float64(2))]
        with ps.name_scope(f"set_{name}"):
            return [variable.assign(np.float64(1)), variable.assign(np.float64(2))]


def failing(races: Races, fails: Fails) -> ps.Recording:
    """A recording that fails, of an order by lot."""
    with ps.Session(races.graph) as session:
        session.run("init")
        start = session.snapshot()
        for seed in range(500):
            recording = ps.record(session, races.outs, seed=seed)
            if fails(recording.results, recording.error):
                return recording
            session.restore(start)
    raise AssertionError("no order fails")


def canonical(races: Races) -> Mapping[str, float]:
    with ps.Session(races.graph) as session:
        session.run("init")
        return ps.record(session, races.outs).results


def variables_of(found: ps.Shrunk) -> list[str]:
    """Of which variable each exchanged pair is; both nodes must be of the same."""
    names = []
    for exchange in found.exchanges:
        first, second = (one.node.partition("/")[0] for one in exchange)
        assert first == second
        names.append(first.removeprefix("set_"))
    return sorted(names)


@pytest.mark.parametrize("seed", range(4))
def test_one_racy_pair_among_many_is_named(seed: int) -> None:
    """Whatever else the failing order has the other way round."""
    races = Races(1, others=5, seed=seed)
    usual = canonical(races)["out0:0"]

    def fails(results: Mapping[str, Any], _error: Any) -> bool:
        return bool(results["out0:0"] != usual)

    recording = failing(races, fails)
    found = ps.shrink(recording, fails)
    assert variables_of(found) == ["v0"]
    assert found.is_minimal
    assert ps.replay(found.recording)["out0:0"] != usual


@pytest.mark.parametrize("seed", range(4))
def test_two_racy_pairs_that_it_takes_are_named(seed: int) -> None:
    """A failure of two exchanges at once is shrunk to exactly these two."""
    races = Races(3, others=3, seed=seed)
    usual = canonical(races)

    def fails(results: Mapping[str, Any], _error: Any) -> bool:
        return all(results[name] != usual[name] for name in ("out0:0", "out1:0"))

    found = ps.shrink(failing(races, fails), fails)
    assert variables_of(found) == ["v0", "v1"]
    assert found.is_minimal


def test_without_a_predicate_it_is_the_recorded_result() -> None:
    """All pairs that it takes for these very values, and none for those that came as usual."""
    races = Races(3, others=2, seed=9)
    usual = canonical(races)

    def differs(results: Mapping[str, Any], _error: Any) -> bool:
        return sum(results[name] != usual[name] for name in races.outs) >= 2

    recording = failing(races, differs)
    found = ps.shrink(recording)
    changed = [
        f"v{at}" for at in range(3) if recording.results[f"out{at}:0"] != usual[f"out{at}:0"]
    ]
    assert variables_of(found) == changed
    assert found.recording.results == recording.results


def test_the_text_says_who_is_first() -> None:
    """In the words that a person would use."""
    races = Races(1, others=0, seed=0)
    usual = canonical(races)["out0:0"]
    recording = failing(races, lambda results, _: bool(results["out0:0"] != usual))
    [exchange] = ps.shrink(recording).exchanges
    events = [event.node_run for event in recording.events if not event.is_end]
    assert events.index(exchange.first) < events.index(exchange.second)
    first, second = exchange.first.node, exchange.second.node
    assert str(exchange) == f"`{first}` before `{second}` instead of after"


def test_an_error_is_a_failure_like_any_other() -> None:
    """Reading a variable before its first assignment, say."""
    graph = ps.Graph()
    with graph.as_default():
        v = ps.Variable(np.float64(0), name="v")
        start = ps.group(v.initializer, name="start")
        ps.identity(v.read_value(), name="read")
        assert start is not None
    with ps.Session(graph) as session:
        fresh = session.snapshot()
        recordings = []
        for seed in range(40):
            session.restore(fresh)
            recordings.append(ps.record(session, ["read:0", "start"], seed=seed))
        session.restore(fresh)
        usual = ps.record(session, ["read:0", "start"])
    others = [one for one in recordings if one.ending.code is not usual.ending.code]
    found = ps.shrink(others[0])
    assert len(found.exchanges) == 1


def test_what_fails_in_any_order_is_no_matter_of_order() -> None:
    """Nor is what the recording does not do."""
    races = Races(1, others=1, seed=0)
    with ps.Session(races.graph) as session:
        session.run("init")
        recording = ps.record(session, races.outs)
    with pytest.raises(ps.errors.FailedPreconditionError, match="no matter of order"):
        ps.shrink(recording)
    with pytest.raises(ps.errors.FailedPreconditionError, match="does not fail"):
        ps.shrink(recording, lambda _results, _error: False)


def test_few_runs_give_what_they_can() -> None:
    """It ends after as many runs as it may take; what it has found by then fails."""
    races = Races(2, others=4, seed=3)
    usual = canonical(races)

    def fails(results: Mapping[str, Any], _error: Any) -> bool:
        return all(results[name] != usual[name] for name in races.outs)

    found = ps.shrink(failing(races, fails), fails, max_runs=3)
    assert not found.is_minimal
    assert found.runs <= 3
    assert fails(found.recording.results, None)


@pytest.mark.parametrize("is_inlined", [True, False])
def test_calls_or_nodes_in_functions_are_named(*, is_inlined: bool) -> None:
    """Calls, where they are calls; nodes, where a function's nodes are put into their place."""
    proto = graph_def_with(
        """
        v = VarHandleOp[container=; dtype=float32; shape=; shared_name=v]
        one = Const[value=1]
        init = AssignVariableOp[dtype=float32](v, one)
        first = StatefulPartitionedCall[Tin=resource; Tout=; f=SetOne](v)
        second = StatefulPartitionedCall[Tin=resource; Tout=; f=SetTwo](v)
        read = ReadVariableOp[dtype=float32](v, ^first, ^second)
        """,
        """
        SetOne(h: resource) -> ()
        number = Const[value=1]
        set_one = AssignVariableOp[dtype=float32](h, number:output)
        control set_one = set_one

        SetTwo(h: resource) -> ()
        number = Const[value=2]
        set_two = AssignVariableOp[dtype=float32](h, number:output)
        control set_two = set_two
        """,
    )
    options = ps.GraphOptions() if is_inlined else ps.GraphOptions.nothing()
    with ps.Session(proto, config=ps.Config(graph_options=options)) as session:
        session.run("init")
        usual = ps.record(session, "read:0").results
        for seed in range(100):
            recording = ps.record(session, "read:0", seed=seed)
            if recording.results != usual:
                break
    [exchange] = ps.shrink(recording).exchanges
    named = {one.node.rpartition("/")[2] for one in exchange}
    assert named == ({"set_one", "set_two"} if is_inlined else {"first", "second"})
