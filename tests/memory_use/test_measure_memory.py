"""Which tensors take memory, what is kept, and what grows: by arithmetic, not by our own count."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import penstock as ps

#: Bytes of a vector of so many float32.
KILO = 4 * 1024


def vector(length: int) -> np.ndarray[Any, Any]:
    """Ones."""
    return np.ones(length, np.float32)


def test_the_peak_is_where_most_is_alive() -> None:
    """Three tensors at once: what is fed, its tiling by 8, and the sum of that with itself."""
    graph = ps.Graph()
    with graph.as_default():
        x = ps.placeholder(ps.dtypes.float32, [1024], name="x")
        wide = ps.ops.tile(x, [8], name="wide")
        twice = ps.ops.add_v2(wide, wide, name="twice")
        ps.ops.sum(twice, 0, name="out")
    found = ps.measure_memory(graph, "out:0", {"x:0": vector(1024)}, steps=2)

    sizes = {row.name: row.bytes for row in found.by_node}
    assert sizes["wide"] == sizes["twice"] == 8 * KILO
    assert found.peaks[0] == found.peaks[1]
    # What is fed may be counted twice: the caller's, and the session's copy.
    assert 17 * KILO <= found.peak <= 18 * KILO + 100
    assert found.kept == found.growth == ()
    assert str(found).splitlines()[0].endswith(f"in {len(found.at_peak)} tensors")


def test_what_hands_a_value_on_has_no_memory_of_its_own() -> None:
    """A reshaped tensor belongs to who made it."""
    graph = ps.Graph()
    with graph.as_default():
        wide = ps.ops.tile(ps.placeholder(ps.dtypes.float32, [256], name="x"), [64], name="wide")
        flat = ps.ops.reshape(wide, [128, 128], name="square")
        ps.ops.identity(flat, name="out")
    found = ps.measure_memory(graph, "out:0", {"x:0": vector(256)})

    names = {row.name for row in found.by_node}
    assert "wide" in names
    assert not names & {"square", "out"}


def test_iterations_are_told_apart() -> None:
    """Of a loop that stacks what it makes, every iteration has a tensor at the peak."""
    graph = ps.Graph()
    with graph.as_default():
        x = ps.placeholder(ps.dtypes.float32, [1024], name="x")
        array = ps.TensorArray(ps.dtypes.float32, size=6, clear_after_read=False)
        out = ps.while_loop(
            lambda i, _: i < 6,
            lambda i, a: (i + 1, a.write(i, ps.ops.mul(x, 2.0, name="made"))),
            [ps.constant(np.int32(0)), array],
            name="loop",
        )
        ps.ops.identity(out[1].stack(), name="out")
    found = ps.measure_memory(graph, "out:0", {"x:0": vector(1024)})

    made = [one for one in found.at_peak if one.owner.name.endswith("made")]
    assert sorted(one.owner.iteration for one in made) == list(range(6))
    assert {one.size for one in made} == {KILO}


def queue_graph() -> ps.Graph:
    """Two enqueues and a dequeue: the queue has one more element after each step."""
    graph = ps.Graph()
    with graph.as_default():
        x = ps.placeholder(ps.dtypes.float32, [1024], name="x")
        queue = ps.ops.fifo_queue_v2(component_types=["float32"], shared_name="q", name="queue")
        puts = [
            ps.ops.queue_enqueue_v2(
                queue, [ps.ops.mul(x, float(i), name=f"made{i}")], name=f"put{i}"
            )
            for i in (2, 3)
        ]
        with ps.control_dependencies(puts):
            ps.ops.queue_dequeue_v2(queue, [ps.dtypes.float32], name="get")
    return graph


def test_a_queue_that_fills_is_a_leak() -> None:
    """It is named, with how much it grows by, and who uses it."""
    found = ps.measure_memory(queue_graph(), "get:0", {"x:0": vector(1024)}, steps=5)

    (growth,) = found.growth
    assert (growth.name, growth.op) == ("q", "Queue")
    assert abs(growth.per_step - KILO) < 200
    assert set(growth.users) == {"put2", "put3", "get"}
    assert f"grows by {growth.per_step / 1024:.1f} KiB a step; used by" in str(found)


def test_what_stays_does_not_grow() -> None:
    """A variable that is written in each step is kept, but does not grow."""
    graph = ps.Graph()
    with graph.as_default():
        v = ps.Variable(vector(1024), name="v")
        more = v.assign_add(vector(1024))
        initialize = ps.global_variables_initializer()
    with ps.Session(graph) as session:
        session.run(initialize)
        found = ps.measure_memory(session, more, steps=4)

    (kept,) = found.kept
    assert (kept.bytes, found.growth) == (KILO, ())


def test_there_must_be_steps() -> None:
    """None have no memory."""
    with pytest.raises(ps.errors.InvalidArgumentError, match="0 steps"):
        ps.measure_memory(queue_graph(), "get:0", {"x:0": vector(1024)}, steps=0)
