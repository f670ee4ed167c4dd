"""From graphs and costs to predictions: placement, traffic, replicas, loops, search."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import penstock as ps
from penstock.cli import main
from penstock.defs import schema
from penstock.session.graphs import graph_of
from penstock.simulator import Costs, Forecast, Machine, NodeCost, better_placement, measure

MB = 1_000_000
#: Two products on workers, and their sum on the parameter task: 1 s and 2 s, then 0.5 s.
COSTS = Costs(
    {
        "a": NodeCost(1.0, 1, (5 * MB,)),
        "b": NodeCost(2.0, 1, (5 * MB,)),
        "sum": NodeCost(0.5, 1, (5 * MB,)),
        "x": NodeCost(0.0, 1, (8,)),
    }
)


def two_and_one() -> ps.Graph:
    """The graph of ``COSTS``."""
    graph = ps.Graph()
    with graph.as_default():
        with ps.device("/job:ps/task:0"):
            x = ps.placeholder(ps.dtypes.float32, [2], name="x")
        with ps.device("/job:worker/task:0"):
            a = ps.ops.mul(x, x, name="a")
        with ps.device("/job:worker/task:1"):
            b = ps.ops.add(x, x, name="b")
        with ps.device("/job:ps/task:0"):
            ps.ops.add(a, b, name="sum")
    return graph


def forecast(machine: Machine, costs: Costs = COSTS, **request: Any) -> Forecast:
    """Of that graph, whose last node is run."""
    wanted = {"targets": ["sum"], "feeds": ["x:0"]} | request
    return Forecast(graph_of(two_and_one()), machine, costs, **wanted)


def test_a_step_is_its_longest_way() -> None:
    """There in 10 ms, 2 s, back in 10 ms + 5 MB at 10 MB/s, 0.5 s; and what it takes besides."""
    machine = Machine.parse("ps=1x1,worker=2x1", "10MB/s", "10ms", step="3ms")
    predicted = forecast(machine).predict()
    assert predicted.seconds == pytest.approx(0.01 + 2 + 0.01 + 0.5 + 0.5 + 0.003, abs=1e-4)
    ps_0, worker_1 = "/job:ps/replica:0/task:0", "/job:worker/replica:0/task:1"
    assert predicted.traffic[worker_1, ps_0] == 5 * MB
    assert predicted.utilisation[worker_1] == pytest.approx(2 / predicted.seconds)


def test_tasks_of_one_machine_share_its_cores() -> None:
    """The two products are one after the other on one core."""
    machine = Machine.parse("ps=1x1,worker=2x1", "1TB/s", "0s", shared_cores=1)
    assert forecast(machine).predict().seconds == pytest.approx(3.5, abs=1e-3)


def test_thousands_of_replicas_meet_at_one_task() -> None:
    """Each brings 10 MB by the parameter task's link, and 0.5 s of work for its one core."""
    machine = Machine.parse("ps=1x1,worker=2000x1", "10GB/s", "1us")
    graph = ps.Graph()
    with graph.as_default():
        with ps.device("/job:worker/task:0"):
            x = ps.placeholder(ps.dtypes.float32, [2], name="x")
            a = ps.ops.mul(x, x, name="a")
        with ps.device("/job:ps/task:0"):
            ps.ops.neg(a, name="sum")
    predicted = Forecast(
        graph_of(graph), machine, COSTS, targets=["sum"], feeds=["x:0"],
        replicated="worker",
    ).predict()  # fmt: skip
    assert predicted.total_bytes == 2_000 * 5 * MB
    assert predicted.seconds == pytest.approx(1 + 2_000 * 0.5, rel=1e-3)


def test_a_loop_has_as_many_iterations_as_were_measured() -> None:
    """Ten times the body."""
    graph = ps.Graph()
    with graph.as_default():
        n = ps.placeholder(ps.dtypes.int32, [], name="n")
        out = ps.while_loop(lambda i: i < n, lambda i: i + 1, [ps.constant(np.int32(0))])
        last = ps.ops.identity(out[0], name="last")
    config = ps.Config(tier=ps.Tier.DATAFLOW, inter_op_parallelism_threads=1)
    with ps.Session(graph, config=config) as session:
        costs = measure(lambda options, metadata: session.run(last, {"n:0": 10}, options, metadata))
    nodes = {
        name: NodeCost(float(name == "while/add"), cost.count, (4,))
        for name, cost in costs.nodes.items()
    }
    fixed = Costs(nodes, 0.0)
    whole = graph_of(graph)
    predicted = Forecast(
        whole, Machine.parse("1x4"), fixed, fetches=["last:0"], feeds=["n:0"]
    ).predict()
    assert predicted.seconds == pytest.approx(10.0)


def test_what_a_compiled_step_takes_is_spread_over_its_nodes() -> None:
    """Their shares stay; together they take what the step took, however often each runs."""
    costs = Costs({"a": NodeCost(1.0, 3.0, (4,)), "b": NodeCost(5.0)}, 0.5)
    spread = costs.spread(1.0)
    assert costs.seconds == 10.0
    assert spread == Costs({"a": NodeCost(0.1, 3.0, (4,)), "b": NodeCost(0.5)}, 0.05)
    assert Costs({}).spread(1.0) == Costs({})


def test_a_step_that_takes_longer_than_its_nodes_is_measured() -> None:
    """It runs as often as the one whose nodes are measured, so that what either reads suffices."""
    with ps.Graph().as_default() as graph:
        last = ps.ops.neg(ps.constant(2.0), name="last")
    by_node, whole = [], []

    def run_whole() -> None:
        whole.append(time.sleep(0.02))

    config = ps.Config(tier=ps.Tier.DATAFLOW, inter_op_parallelism_threads=1)
    with ps.Session(graph, config=config) as session:

        def run(options: ps.RunOptions, metadata: ps.RunMetadata | None) -> None:
            by_node.append(session.run(last, None, options, metadata))

        assert measure(run, run_whole, steps=3).seconds >= 0.02
    assert len(by_node) == len(whole) == 7


def test_search_finds_what_is_better() -> None:
    """Sending takes longer than computing: everything goes to one task."""
    graph = two_and_one()
    definition = ps.graph_to_def(graph)
    for node in definition.node:
        node.ClearField("device")
    machine = Machine.parse("3x4", "1MB/s", "1ms")
    with ps.Graph().as_default() as free:
        ps.import_graph_def(definition, name="")
    found = Forecast(graph_of(free), machine, COSTS, fetches=["sum:0"], feeds=["x:0"])
    devices, predicted = better_placement(found, evaluations=50)
    assert found.predict(devices).seconds == predicted.seconds <= found.predict().seconds
    assert found.predict(devices).seconds == pytest.approx(2.5, abs=1e-2)


def test_costs_are_kept(tmp_path: Path) -> None:
    """What was saved is loaded; what is something else is refused."""
    COSTS.save(tmp_path / "costs.json")
    assert Costs.load(tmp_path / "costs.json") == COSTS
    (tmp_path / "other.json").write_text(json.dumps({"format": "penstock costs 1"}), "utf-8")
    with pytest.raises(ps.errors.InvalidArgumentError, match="holds no costs"):
        Costs.load(tmp_path / "other.json")


def test_the_command(tmp_path: Path) -> None:
    """It says how long, who is busy and what is sent; and writes a trace and step stats."""
    (tmp_path / "graph.pb").write_bytes(ps.graph_to_def(two_and_one()).SerializeToString())
    COSTS.save(tmp_path / "costs.json")
    trace, stats = tmp_path / "trace.json", tmp_path / "step.pb"
    command = [
        "simulate", str(tmp_path / "graph.pb"), "--feed", "x:0=", "--target", "sum",
        "--cluster", "ps=1x1,worker=2x1", "--bandwidth", "10MB", "--latency", "10ms",
        "--step-overhead", "3ms", "--costs", str(tmp_path / "costs.json"),
        "--trace", str(trace), "--step-stats", str(stats),
    ]  # fmt: skip
    done = CliRunner().invoke(main, command, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    assert "3.02" in done.output
    events = json.loads(trace.read_text("utf-8"))["traceEvents"]
    (took,) = (event["dur"] for event in events if event["name"] == "b")
    assert took == pytest.approx(2e6)
    found = schema.StepStats.FromString(stats.read_bytes())
    names = {node.node_name for device in found.dev_stats for node in device.node_stats}
    assert {"a", "b", "sum"} <= names
