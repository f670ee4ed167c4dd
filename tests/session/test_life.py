"""A session from its beginning to its end: growing graphs, handles, many threads."""

from __future__ import annotations

import gc
import sys
import threading
import time
import tracemalloc
import weakref
from typing import Any

import numpy as np
import pytest

import penstock as ps
from penstock import builder, errors
from penstock.graph.export import graph_to_def
from penstock.runtime.executor.driver import ExecutorState
from penstock.runtime.executor.state import FrameState, IterationState
from penstock.runtime.step import Step
from support.graphs import graph_def
from support.loops import NESTED_LOOPS, counting_loop
from support.sketch import sketch

# -- growing -------------------------------------------------------------------------


def test_a_graph_may_grow_after_the_session_is_made() -> None:
    """Nodes that are added to the graph can be fetched in the next run."""
    graph = builder.Graph()
    with graph.as_default(), ps.Session(graph) as session:
        x = builder.placeholder("float32")
        y = x + 1.0
        assert session.run(y, {x: 1.0}) == 2.0
        z = y * 10.0
        assert session.run([y, z], {x: 1.0}) == [2.0, 20.0]
        again = builder.placeholder("float32")
        assert session.run(z + again, {x: 1.0, again: 5.0}) == 25.0


def test_two_sessions_on_one_graph() -> None:
    """Sessions share the graph, and nothing of its state."""
    text = """
        v = VarHandleOp() dtype=float32 shape=[] shared_name="v"
        x = Placeholder() dtype=float32
        assign = AssignVariableOp(v, x)
        read = ReadVariableOp(v)
    """
    graph = sketch(text)
    with ps.Session(graph) as one, ps.Session(graph) as two:
        one.run("assign", {"x": 1.0})
        with pytest.raises(errors.FailedPreconditionError):
            two.run("read:0")
        two.run("assign", {"x": 2.0})
        assert (one.run("read:0"), two.run("read:0")) == (1.0, 2.0)


def test_extend_adds_nodes() -> None:
    """New nodes may take inputs from old ones; state and prepared requests survive."""
    graph = sketch("x = Const() value=1.0\nv = Identity(x)")
    with ps.Session(graph_to_def(graph)) as session:
        assert session.run("v:0") == 1.0
        more = sketch("x = Const() value=1.0\nv = Identity(x)\ny = Neg(v)\nz = Add(y, v, ^x)")
        proto = graph_to_def(more)
        del proto.node[:2]
        session.extend(proto.SerializeToString())
        assert session.run(["y:0", "z:0", "v:0"]) == [-1.0, 0.0, 1.0]


def test_extend_refuses_what_is_there() -> None:
    """A node that is there already is refused, and nothing is added."""
    graph = graph_to_def(sketch("x = Const() value=1.0\ny = Neg(x)"))
    with ps.Session(graph) as session:
        with pytest.raises(errors.InvalidArgumentError, match="created by a previous call"):
            session.extend(graph)
        assert session.run("y:0") == -1.0


def test_a_static_graph_does_not_grow() -> None:
    """With optimize_for_static_graph, extend is refused."""
    graph = graph_to_def(sketch("x = Const() value=1.0"))
    session = ps.Session(graph, config=ps.Config(optimize_for_static_graph=True))
    with session, pytest.raises(errors.FailedPreconditionError, match="static"):
        session.extend(graph_to_def(sketch("y = Const() value=1.0")))


def test_a_session_is_a_context_manager() -> None:
    """Leaving the block closes the session, also after an error."""
    with pytest.raises(ZeroDivisionError), ps.Session(sketch("x = Const() value=1.0")) as session:
        raise ZeroDivisionError
    with pytest.raises(errors.CancelledError):
        session.run("x:0")


# -- session handles -----------------------------------------------------------------

HANDLES = """
    x = Placeholder() dtype=float32
    put = GetSessionHandleV2(x)
    keep = GetSessionHandle(x)
    h = Placeholder() dtype=string
    get = GetSessionTensor(h) dtype=float32
    forget = DeleteSessionTensor(h)
    twice = Add(get, get)
"""


def test_tensors_stay_under_handles() -> None:
    """A tensor whose handle was fetched can be used in later runs, until it is deleted."""
    with ps.Session(sketch(HANDLES)) as session:
        handle = session.run("keep:0", {"x": [1.0, 2.0]})
        assert isinstance(handle, bytes)
        other = session.run("keep:0", {"x": 5.0})
        assert other != handle
        assert session.run("twice:0", {"h": handle}).tolist() == [2.0, 4.0]
        assert session.run("get:0", {"h": other}) == 5.0
        session.run("forget", {"h": handle})
        for name in ("get:0", "forget"):
            with pytest.raises(errors.InvalidArgumentError, match="handle"):
                session.run(name, {"h": handle})
        assert session.run("get:0", {"h": other}) == 5.0


def test_an_unfetched_handle_keeps_nothing() -> None:
    """A handle that is made and not fetched means nothing afterwards."""
    with ps.Session(sketch(HANDLES)) as session:
        session.run("keep", {"x": 1.0})
        assert not session._session_state._tensors


@pytest.mark.parametrize("handle", ["", "nonsense", "a;b;c;d"])
def test_bad_handles(handle: str) -> None:
    """A handle that nobody gave is refused."""
    session = ps.Session(sketch(HANDLES))
    with session, pytest.raises(errors.InvalidArgumentError, match="not in the session store"):
        session.run("get:0", {"h": handle})


# -- many threads --------------------------------------------------------------------


def in_threads(count: int, work: Any) -> None:
    """Call ``work(number)`` on several threads; whatever one raises fails the test."""
    wrong: list[BaseException] = []

    def guarded(number: int) -> None:
        try:
            work(number)
        except BaseException as error:  # noqa: BLE001
            wrong.append(error)

    threads = [threading.Thread(target=guarded, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60.0)
        assert not thread.is_alive()
    assert wrong == []


@pytest.mark.parametrize("config", [ps.Config(), ps.Config(offload_seconds=0.0)], ids=["", "pool"])
def test_runs_from_eight_threads(config: ps.Config) -> None:
    """Concurrent runs of one session, of the same and of other requests, give right answers."""
    with ps.Session(sketch(NESTED_LOOPS + "double = Add(t, t)"), config=config) as session:

        def work(number: int) -> None:
            for turn in range(12):
                outer, inner = (number + turn) % 4, turn % 3
                want = inner * outer * (outer - 1) // 2
                feeds = {"outer": outer, "inner": inner}
                assert session.run("total:0", feeds) == want
                assert session.run(["i_exit:0", "total:0"], feeds) == [outer, want]

        in_threads(8, work)


def test_a_request_is_prepared_from_many_threads_at_once() -> None:
    """Threads that ask for the same new request at once share what one of them prepared."""
    rows = ["x = Placeholder() dtype=float32", "n0 = Neg(x)"]
    rows += [f"n{i} = Neg(n{i - 1})" for i in range(1, 200)]
    with ps.Session(sketch("\n".join(rows))) as session:
        start = threading.Barrier(8)

        def work(number: int) -> None:
            start.wait(5.0)
            for i in (199, 100, 50):
                assert session.run(f"n{i}:0", {"x": number}) == number * (-1) ** (i + 1)

        in_threads(8, work)
        assert len(session._requests._prepared) == 3


def test_additions_from_eight_threads_are_all_done() -> None:
    """Each of 400 concurrent additions to a variable counts."""
    text = """
        v = VarHandleOp() dtype=int32 shape=[] shared_name="v"
        zero = Const() value=0
        one = Const() value=1
        init = AssignVariableOp(v, zero)
        add = AssignAddVariableOp(v, one)
        read = ReadVariableOp(v) dtype=int32
    """
    with ps.Session(sketch(text)) as session:
        session.run("init")
        in_threads(8, lambda _number: [session.run("add") for _ in range(50)])
        assert session.run("read:0") == 400


def test_variables_survive_runs_and_requests() -> None:
    """What one request assigns, another one reads."""
    text = """
        v = VariableV2() dtype=float32 shape=[]
        x = Placeholder() dtype=float32
        set = Assign(v, x)
        add = AssignAdd(v, x)
        y = Neg(v)
    """
    with ps.Session(sketch(text)) as session:
        with pytest.raises(errors.FailedPreconditionError, match="uninitialized value v"):
            session.run("y:0")
        session.run("set", {"x": 5.0})
        session.run("add", {"x": 1.0})
        assert session.run(["y:0", "v:0"]) == [-6.0, 6.0]


def test_feeding_a_variable_that_is_assigned_is_refused() -> None:
    """A fed reference is a value, to which nothing can be assigned."""
    text = "v = VariableV2() dtype=float32 shape=[]\nx = Const() value=1.0\nset = Assign(v, x)"
    with ps.Session(sketch(text)) as session, pytest.raises(errors.InvalidArgumentError):
        session.run("set:0", {"v": 3.0})


# -- memory --------------------------------------------------------------------------


def living(*kinds: type) -> int:
    """How many objects of some classes are alive."""
    gc.collect()
    # Not isinstance: a weak proxy in the list would be asked for its dead referent.
    return sum(issubclass(type(thing), kinds) for thing in gc.get_objects())


def settled(*kinds: type) -> int:
    """The same, when what earlier tests have ended is gone, which other threads see to."""
    count = living(*kinds)
    for _ in range(100):
        time.sleep(0.05)
        last, count = count, living(*kinds)
        if count == last:
            break
    return count


def test_runs_leave_nothing_behind() -> None:
    """After 2,000 runs from 8 threads no step, frame or iteration is alive."""
    kinds = (Step, ExecutorState, FrameState, IterationState)
    with ps.Session(sketch(counting_loop())) as session:
        before = settled(*kinds)

        def work(number: int) -> None:
            for _ in range(250):
                assert session.run("exit:0", {"limit": number % 3}) == number % 3

        in_threads(8, work)
        assert not session._under_way.steps
        assert living(*kinds) == before


@pytest.mark.slow
def test_failed_and_cancelled_runs_leave_nothing_behind() -> None:
    """Neither do runs that end early."""
    kinds = (Step, ExecutorState, FrameState, IterationState)
    text = counting_loop() + "bad = Placeholder() dtype=int32\nboth = Add(exit, bad)"
    with ps.Session(sketch(text)) as session:
        before = settled(*kinds)
        for _ in range(20):
            with pytest.raises(errors.InvalidArgumentError):
                session.run("both:0", {"limit": 3})
            run = session.run_async("exit:0", {"limit": 2**31 - 1})
            run.cancel()
            with pytest.raises(errors.CancelledError):
                run.result(5.0)
        del run
        assert living(*kinds) == before
        assert not session._under_way.steps


def test_feeds_are_freed_at_once() -> None:
    """A fed array is freed when its run is over, without waiting for a garbage collection."""
    text = "x = Placeholder() dtype=float32\na = Const() value=0\ny = Neg(x)\nz = Sum(y, a)"
    with ps.Session(sketch(text)) as session:
        session.run("z:0", {"x": np.ones(3, np.float32)})
        gc.collect()
        gc.disable()
        try:
            feed = np.ones(1000, np.float32)
            alive = weakref.ref(feed)
            assert session.run("z:0", {"x": feed}) == -1000.0
            del feed
            assert alive() is None
        finally:
            gc.enable()


def test_intermediate_arrays_are_freed_as_soon_as_they_were_used() -> None:
    """A chain of large arrays needs memory for a few of them, not for all."""
    size = 1 << 18
    rows = ["x = Placeholder() dtype=float32", "n0 = Neg(x)"]
    rows += [f"n{i} = Neg(n{i - 1})" for i in range(1, 50)]
    with ps.Session(sketch("\n".join(rows))) as session:
        feed = np.ones(size, np.float32)
        session.run("n49:0", {"x": feed})
        tracemalloc.start()
        try:
            session.run("n49:0", {"x": feed})
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
    assert peak < 6 * feed.nbytes


def test_a_merge_reads_the_variable_it_is_given() -> None:
    """A reference that meets a Merge of values is read there."""
    text = (
        "v = VariableV2() dtype=float32 shape=[]\nc = Const() value=5.0\n"
        "p = Placeholder() dtype=bool\nset = Assign(v, c)\nside = Switch(c, p)\n"
        "m = Merge(v, side:0)\ny = Neg(m)"
    )
    with ps.Session(sketch(text)) as session:
        session.run("set")
        assert session.run("y:0", {"p": True}) == -5.0


def test_readers_of_a_variable_see_what_it_holds_when_they_run() -> None:
    """What an Identity of a variable gives is the variable's memory, not a copy of it."""
    text = (
        "v = VariableV2() dtype=float32 shape=[]\nc = Const() value=5.0\none = Const() value=1.0\n"
        "set = Assign(v, c)\nread = Identity(v)\nadd = AssignAdd(v, one, ^read)\n"
        "late = Neg(read, ^add)"
    )
    with ps.Session(sketch(text)) as session:
        session.run("set")
        options, recorded = ps.RunOptions(trace_level=ps.RunOptions.FULL_TRACE), ps.RunMetadata()
        assert session.run("late:0", options=options, run_metadata=recorded) == -6.0


def test_a_graph_grows_while_it_runs() -> None:
    """Threads that extend the graph and run what they added do not disturb each other."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ps.Session(graph_def("x = Placeholder\ny = Neg(x)")) as session:

            def work(number: int) -> None:
                for turn in range(8):
                    name = f"n{number}_{turn}"
                    session.extend(graph_def(f"{name} = Neg(y)\n{name}b = Neg({name})"))
                    assert session.run(f"{name}b:0", {"x": 1.0}) == -1.0

            in_threads(8, work)
            ids = [node.id for node in session.graph]
            assert ids == sorted(set(ids))
            assert len(ids) == 2 + 8 * 8 * 2
    finally:
        sys.setswitchinterval(interval)
