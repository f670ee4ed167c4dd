"""A trace of a cluster's step has all its tasks, on one axis, with arrows between them."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("grpc")

import penstock as ps
from penstock.tracing.from_step_stats import task_of
from support.clusters import new_cluster, serving

FIRST, SECOND = "/job:worker/task:0", "/job:worker/task:1"


def test_tasks_and_arrows_between_them(tmp_path: Path) -> None:
    """Whether values are sent, or go along with a call; each step is a step."""
    graph = ps.Graph()
    with graph.as_default():
        x = ps.placeholder(ps.dtypes.float32, [], name="x")
        with ps.device(SECOND):
            square = ps.ops.square(x, name="square")
        with ps.device(FIRST):
            total = ps.ops.add_v2(square, x, name="total")
        with ps.device(SECOND):
            less = ps.ops.neg(total, name="less")
        with ps.device(FIRST):
            ps.ops.exp(less, name="out")
    with (
        serving(new_cluster(worker=2)) as servers,
        ps.Session(graph, target=servers[0].target) as session,
    ):
        run = ps.trace(session, "out:0", {x: 0.0}, steps=2)
        brief = ps.trace(session, "square:0", {x: 2.0})
        failed = ps.trace(session, "nothing:0", {x: 2.0})
    assert run.value == 1.0
    assert len(run.trace.steps) == 2
    assert {task_of(device)[-6:] for device in run.trace.devices} == {"task:0", "task:1"}
    found = run.trace.activations
    arrows = [(found[f.source].name, found[f.target].name) for f in run.trace.flows]
    for pair in (("square", "total"), ("total", "less"), ("less", "out")):
        assert arrows.count(pair) == 2
    first, second = run.trace.steps
    for flow in run.trace.flows:  # none from step to step
        ends = found[flow.source].op_start, found[flow.target].op_start
        assert any(start <= min(ends) <= max(ends) <= end for start, end in (first, second))
    for flow in run.trace.flows:
        assert found[flow.source].op_end <= found[flow.target].op_start
    assert Path(run.save(tmp_path / "a.pftrace")).stat().st_size > 0
    nodes = brief.trace.activations
    (arrow,) = brief.trace.flows
    assert nodes[arrow.source].name == "square"
    assert task_of(nodes[arrow.target].place.device).endswith("task:0")
    assert failed.error is not None
