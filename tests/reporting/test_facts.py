"""What a report says is what the step's messages, and other commands, say of the same."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import penstock as ps
from penstock.explanations import Topic
from penstock.reporting import make_report
from penstock.reporting.collect_step import step_facts
from penstock.reporting.facts import StepFacts
from penstock.session.traced import TracedRun
from reporting.graphs import FEEDS, looping, slow_branch


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> list[TracedRun]:
    """What was traced for reports."""
    found: list[TracedRun] = []
    trace = make_report.trace

    def noted(*args: Any, **named: Any) -> TracedRun:
        found.append(trace(*args, **named))
        return found[-1]

    monkeypatch.setattr(make_report, "trace", noted)
    return found


def test_costs_are_those_of_the_step_statistics(runs: list[TracedRun]) -> None:
    """Times, runs and bytes of each node are the sums of TensorFlow's records."""
    step = ps.report(looping(), "out:0", FEEDS).step
    assert step is not None
    nanos, count, made = Counter[str](), Counter[str](), Counter[str]()
    for device in runs[0].metadata.step_stats.dev_stats:
        for record in device.node_stats:
            nanos[record.node_name] += record.op_end_rel_nanos - record.op_start_rel_nanos
            count[record.node_name] += 1
            made[record.node_name] += sum(used.total_bytes for used in record.memory)

    shown = {cost.name: cost for cost in step.costs if cost.runs and cost.name in nanos}
    assert len(shown) > 15
    assert {name: cost.nanos for name, cost in shown.items()} == {n: nanos[n] for n in shown}
    assert {name: cost.runs for name, cost in shown.items()} == {n: count[n] for n in shown}
    assert {name: cost.bytes for name, cost in shown.items()} == {n: made[n] for n in shown}
    dead = Counter(node.name for node in runs[0].trace.dead)
    assert dead
    assert {cost.name: cost.dead for cost in step.costs if cost.dead} == dead
    # What is fed and fetched has the caller's names, and not those of the runtime's nodes.
    assert set(nanos) - set(shown) == {"_arg_x_0_0", "_retval_out_0_0"}
    assert {"x", "out (fetched)"} <= {cost.name for cost in step.costs}


def step_on_two_devices() -> StepFacts:
    """``there`` on the second device, and ``out`` of it on the first."""
    graph = ps.Graph()
    with graph.as_default():
        x = ps.placeholder(ps.dtypes.float32, [4], name="x")
        with ps.device("/cpu:1"):
            there = ps.ops.neg(x, name="there")
        with ps.device("/cpu:0"):
            ps.ops.exp(there, name="out")
    with ps.Session(graph, config=ps.Config(device_count={"CPU": 2})) as session:
        step = ps.report(session, "out:0", FEEDS).step
    assert step is not None
    return step


def test_waiting_is_no_work() -> None:
    """What a Recv waits for is told apart from what kernels take."""
    step = step_on_two_devices()
    assert {cost.op for cost in step.costs if cost.waited} == {"_Recv"}
    assert all(cost.nanos == 0 for cost in step.costs if cost.op == "_Recv")


def test_iterations_of_a_loop() -> None:
    """Five that do something, and one that finds that there is nothing left to do."""
    step = ps.report(looping(), "out:0", FEEDS).step
    assert step is not None
    rows = step.iterations
    assert [row.number for row in rows] == [0, 1, 2, 3, 4, 5]
    assert len({row.frame for row in rows}) == 1
    by_number = Counter(a.iteration for a in step.activities if a.frame)
    assert {row.number: row.runs for row in rows} == by_number
    assert [row.dead for row in rows][:5] == [1] * 5  # the Exit
    assert all(a.start >= 0 and a.duration >= 0 for a in step.activities)
    last = max(a.start + a.duration for a in step.activities)
    assert all(0 <= row.start <= row.start + row.duration <= last for row in rows)


def test_what_became_of_nodes() -> None:
    """The same as ``penstock explain`` says of each, and what nobody needs is pruned."""
    graph = looping()
    found = ps.report(graph, "out:0", FEEDS).graph
    assert {fate.name for fate in found.fates} >= {"model/three", "model/nine"}
    for fate in found.fates:
        if fate.name in graph and fate.by != "drop_unused":
            said = ps.explain(graph, fate.name, ["out:0"], ["x:0"]).about(Topic.OPTIMISED)
            assert f"{fate.by}: {fate.text}" in said
    assert {one.name for one in found.left_out} == {"unused", "model/loop/Exit"}


def test_nodes_and_edges_are_those_of_the_graph() -> None:
    """Each edge of the graph is there, with its slot; each node with its loop and its shape."""
    graph = looping()
    found = ps.report(graph, "out:0", FEEDS).graph
    by_name = {node.name: node for node in found.nodes}
    names = [node.name for node in found.nodes]
    assert set(graph.names()) - set(names) == {"unused", "model/loop/Exit"}
    for node in graph:
        if node.name in by_name and node.name != "x":
            read = {(names[source], slot) for source, slot in by_name[node.name].inputs}
            assert read == {(edge.src.name, edge.src_slot) for edge in node.in_edges()}
    frames = {name.split("/")[1] for name in names if by_name[name].frame}
    assert frames == {"loop"}
    assert by_name["model/total"].outputs == ("float32[4]",)
    assert by_name["model/two"].attrs == ("dtype=float32", "value=float32[]")
    assert all(node.device.endswith("CPU:0") for node in found.nodes)


def test_the_critical_path_goes_through_what_takes_long() -> None:
    """Through the slow branch, and not through the other one."""
    step = ps.report(slow_branch(), "out:0", FEEDS).step
    assert step is not None
    path = [step.activities[at].name for at in step.critical]
    assert path == ["x", "slow", "late", "out", "out (fetched)"]


def test_the_critical_path_crosses_devices() -> None:
    """What was received comes from who sent it."""
    step = step_on_two_devices()
    path = [step.activities[at] for at in step.critical]
    names = [one.name for one in path]
    assert [name for name in names if name in ("x", "there", "out")] == ["x", "there", "out"]
    assert [one.op for one in path].count("_Send") == [one.op for one in path].count("_Recv") == 2


def test_the_python_is_what_show_prints() -> None:
    """Line by line, with the node that each is for."""
    graph = looping()
    code = ps.report(graph, "out:0", FEEDS).code
    with ps.Session(graph) as session:
        whole = session.prepared("out:0", FEEDS).runnable.whole
    assert whole is not None
    lines = [line.code for source in whole.sources() for line in source.lines]
    assert [line.text for line in code.lines] == lines
    assert "model/loop/mul" in {line.node for line in code.lines}


def test_a_step_that_fails_is_shown() -> None:
    """Up to the node that failed, with what it said."""
    graph = ps.Graph()
    with graph.as_default():
        x = ps.placeholder(ps.dtypes.float32, [4], name="x")
        ps.ops.check_numerics(ps.ops.log(x, name="log"), message="bad", name="out")
    step = ps.report(graph, "out:0", {"x:0": [-1, 1, 1, 1]}).step
    assert step is not None
    assert "bad : Tensor had NaN" in step.error
    assert "log" in {one.name for one in step.activities}


def test_without_fetches_nothing_is_run() -> None:
    """The graph is shown with what is known of shapes; what cannot be prepared, as it was."""
    found = ps.report(looping())
    assert found.step is None
    assert not found.code.lines
    by_name = {node.name: node for node in found.graph.nodes}
    assert by_name["unused"].outputs == ("float32[4]",)
    graph = ps.Graph()
    with graph.as_default():
        ps.ops.NcclAllReduce(
            input=ps.constant(1.0), reduction="sum", num_devices=1, shared_name="", name="n"
        )
    found = ps.report(graph)
    assert {node.name for node in found.graph.nodes} == {"Const", "n"}


def test_bodies_of_functions_know_their_function() -> None:
    """Nodes of a body stand where it is called, and say what they were written in."""
    folder = Path(__file__).parents[2] / "benchmarks" / "graphs" / "function_counter"
    found = ps.report(str(folder / "graph.pb")).graph
    inside = [node for node in found.nodes if node.function]
    assert inside
    assert {fate.by for fate in found.fates} >= {"lower"}


def test_of_very_many_the_first_and_the_largest_are_shown() -> None:
    """Sums are of all; how many are not shown is said."""
    trace = ps.trace(looping(), "out:0", FEEDS, detail="nodes").trace
    whole, step = step_facts(trace, str), step_facts(trace, str, most=5)
    assert list(step.activities) == list(whole.activities[:5])
    assert step.more_activities == len(whole.activities) - 5
    assert step.more_lifetimes == len(whole.lifetimes) - 5
    sizes = sorted((one.size for one in whole.lifetimes), reverse=True)
    assert sorted((one.size for one in step.lifetimes), reverse=True) == sizes[:5]
    assert step.costs == whole.costs
    assert all(at < 5 for at in step.critical)


def test_a_report_is_short_where_it_is_printed() -> None:
    """It says what it is of, and not all that it holds."""
    found = ps.report(looping(), "out:0", FEEDS, title="one")
    assert repr(found).startswith("<Report of one: 27 nodes, a step of ")
    assert repr(ps.report(looping())) == "<Report of graph: 28 nodes, nothing run>"


def test_memory_of_tensors(runs: list[TracedRun]) -> None:
    """What is alive at the peak is what the trace's own counter says."""
    step = ps.report(looping(), "out:0", FEEDS).step
    assert step is not None
    [counter] = [one for one in runs[0].trace.counters if one.name == "live bytes"]
    changes = [(one.start, one.size) for one in step.lifetimes]
    changes += [(one.start + one.duration, -one.size) for one in step.lifetimes]
    peak = max(np.cumsum([change for _, change in sorted(changes)]))
    assert peak == max(value for _, value in counter.points)
