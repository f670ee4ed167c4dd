"""Collective operations in a session with several devices."""

from __future__ import annotations

import numpy as np
import pytest

import penstock as ps
from penstock import errors


def reduced(value: ps.Tensor, size: int, key: int, **facts: str) -> ps.Tensor:
    facts = {"merge_op": "Add", "final_op": "Div", **facts}
    found: ps.Tensor = ps.ops.collective_reduce(
        value, group_size=size, group_key=1, instance_key=key, subdiv_offsets=[0], **facts
    )
    return found


@pytest.mark.parametrize("threads", [1, 4])
def test_data_parallel_steps_are_those_of_the_whole_batch(threads: int) -> None:
    """Four devices with a quarter of the rows each go where one device would go with all rows.

    Their weights stay equal to the last bit, with one thread and with several.
    """
    rng = np.random.default_rng(3)
    rows, targets = rng.normal(size=(64, 5)), rng.normal(size=(64, 1))
    graph = ps.Graph()
    weights, updates = [], []
    with graph.as_default():
        for number in range(4):
            with ps.device(f"/cpu:{number}"):
                part = slice(number * 16, (number + 1) * 16)
                w = ps.Variable(np.zeros((5, 1)), name=f"w{number}")
                x = ps.constant(rows[part])
                error = ps.ops.mat_mul(x, w.value()) - ps.constant(targets[part])
                gradient = ps.ops.mat_mul(x, error, transpose_a=True) / 16.0
                updates.append(w.assign_sub(0.125 * reduced(gradient, 4, 7)))
                weights.append(w)
        init = ps.global_variables_initializer()
    config = ps.Config(
        device_count={"CPU": 4},
        inter_op_parallelism_threads=threads,
        intra_op_parallelism_threads=threads,
    )
    with ps.Session(graph, config=config) as sess:
        sess.run(init)
        for _ in range(20):
            sess.run(updates)
        found = sess.run([w.value() for w in weights])
    expected = np.zeros((5, 1))
    for _ in range(20):
        expected -= 0.125 * rows.T @ (rows @ expected - targets) / 64
    np.testing.assert_allclose(found[0], expected, rtol=1e-12)
    for one in found:
        np.testing.assert_array_equal(one, found[0])


def test_many_steps_at_once_do_not_meet() -> None:
    """Each step's devices exchange with each other, whatever other steps do meanwhile."""
    graph = ps.Graph()
    with graph.as_default():
        x = ps.placeholder("float32", [3], name="x")
        totals = []
        for number in range(3):
            with ps.device(f"/cpu:{number}"):
                totals.append(reduced(x * float(number + 1), 3, 5, final_op="Id"))
    with ps.Session(graph, config=ps.Config(device_count={"CPU": 3})) as sess:
        runs = [
            (base, sess.run_async(totals, {x: np.arange(3) + base})) for base in range(0, 300, 10)
        ]
        for base, run in runs:
            for total in run.result():
                np.testing.assert_array_equal(total, 6 * np.float32(np.arange(3) + base))


def test_a_large_value_goes_around_in_pieces() -> None:
    """Ten million numbers on four devices; the sum is that of numpy."""
    values = np.random.default_rng(0).integers(-9, 9, (4, 5_000_000)).astype(np.int32)
    graph = ps.Graph()
    with graph.as_default():
        inputs = [ps.placeholder("int32", [None], name=f"x{number}") for number in range(4)]
        totals = []
        for number, x in enumerate(inputs):
            with ps.device(f"/cpu:{number}"):
                totals.append(reduced(x, 4, 1, final_op="Id"))
    with ps.Session(graph, config=ps.Config(device_count={"CPU": 4})) as sess:
        found = sess.run(totals, dict(zip(inputs, values, strict=True)))
    for one in found:
        np.testing.assert_array_equal(one, values.sum(axis=0))


def test_who_waits_in_vain_says_for_whom() -> None:
    """A member that nobody asked for does not come; the deadline says for whom the others wait."""
    graph = ps.Graph()
    with graph.as_default(), ps.device("/cpu:0"):
        total = reduced(ps.constant([1.0]), 2, 77)
    with (
        ps.Session(graph, config=ps.Config(device_count={"CPU": 2})) as sess,
        pytest.raises(errors.DeadlineExceededError, match="members of group 1, which are 2, in in"),
    ):
        sess.run(total, options=ps.RunOptions(timeout_in_ms=1000))
