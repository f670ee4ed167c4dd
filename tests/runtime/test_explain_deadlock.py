"""Nodes that wait for each other are named; nodes that merely wait are not."""

from __future__ import annotations

import pytest

import penstock as ps


def two_queues(*, crossed: bool) -> ps.Graph:
    """Each queue is filled with what the other one gives, or with itself and a constant."""
    graph = ps.Graph()
    with graph.as_default():
        queues = {
            name: ps.ops.fifo_queue_v2(component_types=["float"], shapes=[[]], shared_name=name)
            for name in ("left", "right")
        }
        taken = {}
        for name, made in queues.items():
            value = ps.ops.queue_dequeue_v2(made, component_types=["float"], name=f"take_{name}")
            taken[name] = value[0] if isinstance(value, list) else value
        ps.ops.queue_enqueue_v2(queues["left"], [taken["right"]], name="put_left")
        right = taken["left"] if crossed else ps.constant(1.0)
        ps.ops.queue_enqueue_v2(queues["right"], [right], name="put_right")
    return graph


def timed_out(graph: ps.Graph, *targets: str) -> str:
    """What the error of a step says that never ends."""
    options = ps.RunOptions(timeout_in_ms=1000)
    with (
        ps.Session(graph, config=ps.Config(tier=ps.Tier.DATAFLOW)) as session,
        pytest.raises(ps.errors.DeadlineExceededError) as caught,
    ):
        session.run(list(targets), options=options)
    return str(caught.value)


def test_a_circle_is_named() -> None:
    """Whoever could fill a queue waits for the other one."""
    text = timed_out(two_queues(crossed=True), "put_left", "put_right")
    assert (
        "deadlock take_left waits for put_left, which waits for take_right, which waits for "
        "put_right, which waits for take_left; only another step could end that"
    ) in text


def test_who_could_be_helped_is_in_none() -> None:
    """The other queue can be filled, though this step does not do so."""
    assert "deadlock" not in timed_out(two_queues(crossed=False), "put_left")


def test_a_queue_that_is_filled_from_itself() -> None:
    """The smallest circle."""
    graph = ps.Graph()
    with graph.as_default():
        made = ps.ops.fifo_queue_v2(component_types=["float"], shapes=[[]], shared_name="q")
        value = ps.ops.queue_dequeue_v2(made, component_types=["float"], name="take")
        ps.ops.queue_enqueue_v2(made, [value[0] if isinstance(value, list) else value], name="put")
    text = timed_out(graph, "put")
    assert "deadlock take waits for put, which waits for take; only another step" in text
