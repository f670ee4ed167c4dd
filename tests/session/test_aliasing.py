"""What a caller gets is the caller's own, and what a caller gives stays so."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import penstock as ps
from penstock.config import GraphOptions
from penstock.kernels.api import registry as kernels
from support.sketch import sketch


def needs(*ops: str) -> None:
    """Skip a test as long as there are no kernels for what it uses."""
    missing = [op for op in ops if not kernels.kernels_of(op)]
    if missing:
        pytest.skip(f"no kernels for {missing}")


def spoil(array: Any) -> None:
    """Overwrite an array that must be the caller's own."""
    assert array.flags.writeable
    array[...] = -1


@pytest.mark.parametrize(
    "row",
    [
        "y = Identity(x)",
        "y = Snapshot(x)",
        "y = Reshape(x, shape)",
        "y = ExpandDims(x, zero)",
        "y = Squeeze(x)",
        "y = BroadcastTo(x, shape)",
        "y = Slice(x, begin, size)",
        "y = Transpose(x, begin)",
        "y = StopGradient(x)",
        "y = Abs(x)",
        "y = Relu(x)",
        "y = Merge(x, x)",
        "y = Cast(x) DstT=float32",
    ],
)
@pytest.mark.parametrize("source", ["Const() value=[1.0, 2.0]", "Placeholder() dtype=float32"])
def test_fetched_arrays_are_the_callers_own(row: str, source: str) -> None:
    """Changing what was fetched changes neither constants nor feeds nor the next result."""
    text = f"""
        x = {source}
        shape = Const() value=[2]
        zero = Const() value=0
        begin = Const() value=[0]
        size = Const() value=[2]
        {row}
        z = Neg(x)
    """
    feed = np.array([1.0, 2.0], np.float32)
    feeds = {"x": feed} if "Placeholder" in source else {}
    with ps.Session(sketch(text)) as session:
        for _ in range(2):
            got, also = session.run(["y:0", "z:0"], feeds)
            assert got.reshape(-1).tolist() == [1.0, 2.0]
            assert also.tolist() == [-1.0, -2.0]
            spoil(got)
            spoil(also)
        assert feed.tolist() == [1.0, 2.0]


def test_two_names_of_one_value_are_two_arrays() -> None:
    """A value that is fetched under two names comes as two arrays."""
    with ps.Session(sketch("x = Const() value=[1.0]\na = Neg(x)\nb = Identity(a)")) as session:
        first, second = session.run(["a:0", "b:0"])
        spoil(first)
        assert second.tolist() == [-1.0]


FORMS = """
    x = Placeholder() dtype=float32
    shape = Const() value=[2, 2]
    a = Neg(x)
    b = Reshape(a, shape)
    c = Reshape(x, shape)
"""


def test_two_forms_of_one_array_are_two_arrays() -> None:
    """Views of what others hold are copies: of another result, of a feed, of each other."""
    feed = np.float32([1.0, 2.0, 3.0, 4.0])
    text = f"{FORMS}\nflat = Const() value=[4]\nd = Reshape(b, flat)"
    with ps.Session(
        sketch(text), config=ps.Config(graph_options=GraphOptions.nothing())
    ) as session:
        for fetches in (["a:0", "b:0", "c:0"], ["b:0", "d:0", "c:0"], ["c:0", "c:0", "b:0"]):
            got = session.run(fetches, {"x": feed})
            for index, array in enumerate(got):
                others = [other.copy() for other in got[:index] + got[index + 1 :]]
                spoil(array)
                for other, before in zip(got[:index] + got[index + 1 :], others, strict=True):
                    if other is not array:
                        np.testing.assert_array_equal(other, before)
        assert feed.tolist() == [1.0, 2.0, 3.0, 4.0]


@pytest.mark.parametrize("tier", [ps.Tier.DATAFLOW, ps.Tier.COMPILED])
def test_another_form_of_an_array_that_nobody_knows_is_no_copy(tier: ps.Tier) -> None:
    """Its memory is all that the view shows, and the caller has it for himself."""
    with ps.Session(sketch(FORMS), config=ps.Config(tier=tier)) as session:
        got = session.run("b:0", {"x": np.float32([1.0, 2.0, 3.0, 4.0])})
        assert got.base is not None
        assert got.base.nbytes == got.nbytes
        spoil(got)
        again = session.run("b:0", {"x": np.float32([1.0, 2.0, 3.0, 4.0])})
        assert again.tolist() == [[-1.0, -2.0], [-3.0, -4.0]]


def test_fed_and_fetched_arrays_are_copies() -> None:
    """A tensor that is fed and fetched is not the fed array itself."""
    feed = np.ones(2, np.float32)
    with ps.Session(sketch("x = Placeholder() dtype=float32\ny = Neg(x)")) as session:
        got = session.run("x:0", {"x": feed})
        spoil(got)
        got, _ = session.run(["x:0", "y:0"], {"x": feed})
        spoil(got)
    assert feed.tolist() == [1.0, 1.0]


def test_parts_of_one_value_are_arrays_of_their_own() -> None:
    """Outputs that are views of one buffer come as separate arrays."""
    text = "axis = Const() value=0\nx = Const() value=[1.0, 2.0]\ns = Split(axis, x) num_split=2"
    with ps.Session(sketch(text)) as session:
        first, second = session.run(["s:0", "s:1"])
        spoil(first)
        assert second.tolist() == [2.0]
        assert session.run("s:0").tolist() == [1.0]


VARIABLE = """
    v = VarHandleOp() dtype=float32 shape=[2] shared_name="v"
    x = Placeholder() dtype=float32
    y = Neg(x)
    assign = AssignVariableOp(v, x)
    assign_y = AssignVariableOp(v, y)
    add = AssignAddVariableOp(v, x)
    read = ReadVariableOp(v)
"""


def test_a_resource_variable_is_nobodys_array() -> None:
    """Neither what was assigned nor what was read is the variable's own array."""
    needs("VarHandleOp", "AssignVariableOp", "ReadVariableOp", "AssignAddVariableOp")
    with ps.Session(sketch(VARIABLE)) as session:
        feed = np.ones(2, np.float32)
        session.run("assign", {"x": feed})
        spoil(feed)
        got = session.run("read:0")
        assert got.tolist() == [1.0, 1.0]
        spoil(got)
        assert session.run("read:0").tolist() == [1.0, 1.0]
        feed = np.ones(2, np.float32)
        session.run("add", {"x": feed})
        spoil(feed)
        assert session.run("read:0").tolist() == [2.0, 2.0]
        got, _ = session.run(["y:0", "assign_y"], {"x": np.ones(2)})
        spoil(got)
        assert session.run("read:0").tolist() == [-1.0, -1.0]


def test_a_reference_variable_is_nobodys_array() -> None:
    """The same holds for variables of the reference kind."""
    needs("VariableV2", "Assign", "AssignAdd")
    text = """
        v = VariableV2() dtype=float32 shape=[2]
        x = Placeholder() dtype=float32
        y = Neg(x)
        assign = Assign(v, x)
        assign_y = Assign(v, y)
        read = Identity(v)
    """
    with ps.Session(sketch(text)) as session:
        feed = np.ones(2, np.float32)
        got = session.run("assign:0", {"x": feed})
        spoil(feed)
        assert got.tolist() == [1.0, 1.0]
        spoil(got)
        for name in ("read:0", "v:0"):
            got = session.run(name)
            assert got.tolist() == [1.0, 1.0]
            spoil(got)
        got, _ = session.run(["y:0", "assign_y"], {"x": np.ones(2)})
        spoil(got)
        assert session.run("read:0").tolist() == [-1.0, -1.0]


def test_a_queue_keeps_its_own() -> None:
    """What waits in a queue is neither the fed nor the fetched array."""
    needs("FIFOQueueV2", "QueueEnqueueV2", "QueueDequeueV2")
    text = """
        q = FIFOQueueV2() component_types=["float32"]
        x = Placeholder() dtype=float32
        y = Neg(x)
        put = QueueEnqueueV2(q, x)
        put_y = QueueEnqueueV2(q, y)
        get = QueueDequeueV2(q) component_types=["float32"]
    """
    with ps.Session(sketch(text)) as session:
        feed = np.ones(2, np.float32)
        session.run("put", {"x": feed})
        spoil(feed)
        assert session.run("get:0").tolist() == [1.0, 1.0]
        got, _ = session.run(["y:0", "put_y"], {"x": np.ones(2)})
        spoil(got)
        assert session.run("get:0").tolist() == [-1.0, -1.0]


def test_a_session_handle_keeps_its_own() -> None:
    """What a session keeps under a handle is neither the fed nor the fetched array."""
    needs("GetSessionHandle", "GetSessionTensor")
    text = """
        x = Placeholder() dtype=float32
        y = Neg(x)
        h = GetSessionHandle(x)
        hy = GetSessionHandle(y)
        handle = Placeholder() dtype=string
        get = GetSessionTensor(handle) dtype=float32
    """
    with ps.Session(sketch(text)) as session:
        feed = np.ones(2, np.float32)
        handle = session.run("h:0", {"x": feed})
        spoil(feed)
        assert session.run("get:0", {"handle": handle}).tolist() == [1.0, 1.0]
        handle, got = session.run(["hy:0", "y:0"], {"x": np.ones(2)})
        spoil(got)
        got = session.run("get:0", {"handle": handle})
        assert got.tolist() == [-1.0, -1.0]
        spoil(got)
        assert session.run("get:0", {"handle": handle}).tolist() == [-1.0, -1.0]


def test_an_array_that_is_fed_asynchronously_may_be_reused() -> None:
    """After ``run_async`` has returned, the caller may change the array that it fed."""
    text = "x = Placeholder() dtype=float32\ny = Neg(x)"
    feed = np.ones(200_000, np.float32)
    with ps.Session(sketch(text)) as session:
        runs = []
        for _ in range(5):
            feed[:] = 1.0
            runs.append(session.run_async("y:0", {"x": feed}))
            feed[:] = 7.0
        for run in runs:
            assert set(run.result(10.0).tolist()) == {-1.0}


def test_an_array_that_is_fed_to_a_partial_run_may_be_reused() -> None:
    """Between two calls of a partial run, the caller may change the array that it fed."""
    text = """
        x = Placeholder() dtype=float32
        w = Placeholder() dtype=float32
        y = Add(x, w)
        n = Neg(w)
    """
    feed = np.ones(2, np.float32)
    with ps.Session(sketch(text)) as session:
        handle = session.partial_run_setup(["y:0"], ["x:0", "w:0"])
        session.partial_run(handle, [], {"x": feed})
        feed[:] = 7.0
        assert session.partial_run(handle, "y:0", {"w": feed}).tolist() == [8.0, 8.0]
