"""A step that is one compiled function can be ended like any other, and says where it is."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import penstock as ps
from penstock import errors
from penstock.core.limits import Limits
from penstock.runtime.compiled_step import CompiledStep
from penstock.runtime.compiler import compile_regions
from support.compiled import leaving_out
from support.custom import custom_kernels
from support.functions import graph_def_with
from support.loops import NESTED_LOOPS, counting_loop
from support.native import WITHOUT
from support.pythons import with_gil
from support.sketch import sketch

#: Loops are text.
TEXT = ps.Config(graph_options=WITHOUT)
FOREVER = 2**31 - 1
BODY = """
    Less_(i: int32) -> (go: bool)
    go = Less[T=int32](i, most:output)
    most = Const[value=2147483647; dtype=int32]()
    return go = go:z

    Next(i: int32) -> (j: int32)
    j = Add[T=int32](i, one:output)
    one = Const[value=1; dtype=int32]()
    return j = j:z
"""
WHILE = """
    i = Placeholder[dtype=int32]
    w = While[T=int32; cond=Less_; body=Next](i)
    done = Neg[T=int32](w)
"""
#: ``c`` is n - n * n.
COUNT = counting_loop() + "\na = Neg(exit)\nb = Mul(a, exit)\nc = Add(b, exit)"
#: Graphs that never end: the graph, a fetch, its feeds.
ENDLESS: dict[str, tuple[Callable[[], Any], str, dict[str, int]]] = {
    "loop": (lambda: sketch(COUNT), "c:0", {"limit": FOREVER}),
    "inner loop": (lambda: sketch(NESTED_LOOPS), "total:0", {"outer": 9, "inner": FOREVER // 8}),
    "function": (lambda: graph_def_with(WHILE, BODY), "done:0", {"i": 0}),
}


@pytest.fixture(params=ENDLESS)
def endless(request: pytest.FixtureRequest) -> Iterator[tuple[ps.Session, str, dict[str, int]]]:
    """Yield a session, and a request that never ends."""
    graph, fetch, feeds = ENDLESS[request.param]
    with ps.Session(graph()) as session:
        yield session, fetch, feeds
        if request.param != "function":  # its loop does not depend on what is fed
            assert session.run(fetch, dict.fromkeys(feeds, 0)) == 0


def wait_until(condition: Callable[[], bool]) -> None:
    """Wait for something that is about to happen."""
    for _ in range(2000):
        if condition():
            return
        time.sleep(0.002)
    raise AssertionError("it did not happen")


Endless = tuple[ps.Session, str, dict[str, int]]


@pytest.mark.parametrize("how", ["run", "callable"])
def test_a_deadline_ends_a_compiled_loop(endless: Endless, how: str) -> None:
    """The loop asks in every iteration whether it must end."""
    session, fetch, feeds = endless
    options = ps.RunOptions(timeout_in_ms=30)
    call = session.make_callable(fetch, list(feeds), options)
    with pytest.raises(errors.DeadlineExceededError, match="Timed out waiting"):
        call(*feeds.values()) if how == "callable" else session.run(fetch, feeds, options)


def test_a_compiled_loop_can_be_cancelled(endless: Endless) -> None:
    """``cancel`` from another thread ends it at its next iteration."""
    session, fetch, feeds = endless
    run = session.run_async(fetch, feeds)
    wait_until(lambda: bool(run.dump_state()))
    run.cancel()
    with pytest.raises(errors.CancelledError, match="cancelled"):
        run.result(5.0)


def test_ctrl_c_ends_a_compiled_loop(endless: Endless) -> None:
    """Python's own KeyboardInterrupt comes out, and its handler is left in place."""
    session, fetch, feeds = endless
    timer = threading.Timer(0.03, signal.raise_signal, [signal.SIGINT])
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        session.run(fetch, feeds)
    timer.join()
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@pytest.mark.parametrize("name", ENDLESS)
def test_close_ends_compiled_loops(name: str) -> None:
    """Closing the session ends runs and callables of other threads."""
    graph, fetch, feeds = ENDLESS[name]
    session = ps.Session(graph())
    call = session.make_callable(fetch, list(feeds))
    caught: list[BaseException] = []

    def work() -> None:
        try:
            call(*feeds.values())
        except errors.OpError as error:
            caught.append(error)

    thread = threading.Thread(target=work)
    run = session.run_async(fetch, feeds)
    thread.start()
    wait_until(lambda: len(session._under_way.steps) == 2)
    session.close()
    thread.join(5.0)
    assert not thread.is_alive()
    with pytest.raises(errors.CancelledError, match="Session has been closed"):
        run.result(5.0)
    [error] = caught
    assert "Session has been closed" in str(error)


@pytest.mark.parametrize("how", ["deadline", "cancel", "close"])
def test_a_loop_in_a_part_can_be_ended(how: str) -> None:
    """A text that is cut into several functions asks for interrupts in each."""
    session = ps.Session(sketch(COUNT), config=ps.Config(limits=Limits(statements=1)))
    options = ps.RunOptions(timeout_in_ms=30 if how == "deadline" else 0)
    run = session.run_async("c:0", {"limit": FOREVER}, options)
    if how != "deadline":
        wait_until(lambda: "compiled code" in run.dump_state())
    if how == "cancel":
        run.cancel()
    if how == "close":
        session.close()
    kind = errors.DeadlineExceededError if how == "deadline" else errors.CancelledError
    with pytest.raises(kind):
        run.result(5.0)
    session.close()


def test_a_loop_beside_the_executor_can_be_ended() -> None:
    """A loop that is a region of a larger graph ends with its step."""
    text = (
        COUNT
        + """
        queue = FIFOQueueV2() component_types=["int32"]
        put = QueueEnqueueV2(queue, c)
        """
    )
    with ps.Session(sketch(text)) as session:
        with pytest.raises(errors.DeadlineExceededError):
            session.run("put", {"limit": FOREVER}, ps.RunOptions(timeout_in_ms=30))
        run = session.run_async("put", {"limit": FOREVER})
        time.sleep(0.005)
        run.cancel()
        with pytest.raises(errors.CancelledError):
            run.result(5.0)
        assert session.run("put", {"limit": 3}) is None


def test_a_loop_ends_when_another_branch_fails() -> None:
    """The error of one region ends the endless loop of another, as it would on one tier."""
    text = (
        counting_loop()
        + """
        queue = FIFOQueueV2() component_types=["int32"]
        get = QueueDequeueV2(queue) component_types=["int32"]
        bad = ExFail(get)
        value = Placeholder() dtype=int32
        put = QueueEnqueueV2(queue, value)
        both = Add(bad, exit)
    """
    )

    def fail(_x: Any) -> None:
        raise ValueError("no good")

    with custom_kernels("ExFail(x: int32) -> (y: int32)") as register:
        register("ExFail", fail)
        config = ps.Config(offload_seconds=0.0, inter_op_parallelism_threads=4)
        with ps.Session(sketch(text), config=config) as session:
            session.run("put", {"value": 1})
            with pytest.raises(errors.InvalidArgumentError, match="no good"):
                session.run("both:0", {"limit": FOREVER}, ps.RunOptions(timeout_in_ms=20_000))


@with_gil
def test_the_state_names_the_place() -> None:
    """A dump says which node a compiled step is at, in which frame and iteration."""
    with ps.Session(sketch(NESTED_LOOPS), config=TEXT) as session:
        run = session.run_async("total:0", {"outer": 9, "inner": FOREVER // 8})
        wait_until(lambda: "outer[1]/inner" in run.dump_state())
        text = run.dump_state()
        run.cancel()
        with pytest.raises(errors.CancelledError):
            run.result(5.0)
    assert text.startswith("compiled code on /job:localhost/replica:0/task:0/device:CPU:0 is at")
    assert "{{node j_" in text


def test_the_state_names_the_loop_of_a_program() -> None:
    """The loop that goes on, in the iteration of the one around it."""
    with ps.Session(sketch(NESTED_LOOPS)) as session:
        run = session.run_async("total:0", {"outer": 9, "inner": FOREVER // 8})
        wait_until(lambda: "frame outer[1]/inner" in run.dump_state())
        text = run.dump_state()
        run.cancel()
        with pytest.raises(errors.CancelledError):
            run.result(5.0)
    assert "{{node total/loop}}" in text


def test_a_deadline_names_the_place() -> None:
    """The error of a deadline says what the step was doing."""
    with ps.Session(sketch(COUNT)) as session:
        session.make_callable("c:0", ["limit"])
        options = ps.RunOptions(timeout_in_ms=50)
        with pytest.raises(errors.DeadlineExceededError, match="compiled code on"):
            session.run("c:0", {"limit": FOREVER}, options)


def test_a_step_that_is_cancelled_first_does_nothing() -> None:
    """A step cancelled before it runs computes nothing that it could notice."""
    with ps.Session(sketch(COUNT)) as session:
        run = session.run_async("c:0", {"limit": FOREVER})
        run.cancel()
        with pytest.raises(errors.CancelledError):
            run.result(5.0)


def test_the_first_reason_counts() -> None:
    """Cancelling twice does not change why."""
    seen: list[CompiledStep] = []
    with ps.Session(sketch(COUNT)) as session:
        run = session.run_async("c:0", {"limit": FOREVER})

        def is_seen() -> bool:
            seen[:] = [step for step in session._under_way.steps if isinstance(step, CompiledStep)]
            return bool(seen)

        wait_until(is_seen)
        [step] = seen
        step.cancel(errors.UnavailableError("first"))
        step.cancel(errors.AbortedError("second"))
        with pytest.raises(errors.UnavailableError, match="first"):
            run.result(5.0)


def test_what_is_done_in_time_is_given() -> None:
    """A deadline does no harm to what is quick, and its timer does not outlive the step."""
    with ps.Session(sketch(COUNT), config=ps.Config(adaptive=False)) as session:
        before = threading.active_count()
        for _ in range(20):
            assert session.run("c:0", {"limit": 3}, ps.RunOptions(timeout_in_ms=60_000)) == -6
        # A timer that is called off takes a moment to go.
        wait_until(lambda: threading.active_count() <= before)


# -- where one function does not do ------------------------------------------------------------


def test_a_traced_run_shows_every_node() -> None:
    """FULL_TRACE runs node by node, and records each activation, loops included."""
    metadata = ps.RunMetadata()
    with ps.Session(sketch(COUNT)) as session:
        assert session.run("c:0", {"limit": 3}) == -6
        options = ps.RunOptions(trace_level=ps.TraceLevel.FULL_TRACE)
        assert session.run("c:0", {"limit": 3}, options, metadata) == -6
    [device] = metadata.step_stats.dev_stats
    names = [node.node_name for node in device.node_stats]
    assert not [name for name in names if "region" in name.lower()]
    assert names.count("sum") == 3
    assert names.count("less") == 4
    assert {"a", "b", "c", "merge", "switch", "exit"} <= set(names)


def test_a_traced_run_shows_nodes_inside_of_regions(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where only parts of the graph are compiled."""
    monkeypatch.setattr(compile_regions, "can_be_line", leaving_out("b"))
    metadata = ps.RunMetadata()
    with ps.Session(sketch(COUNT)) as session:
        options = ps.RunOptions(trace_level=ps.TraceLevel.FULL_TRACE)
        assert session.run("c:0", {"limit": 3}, options, metadata) == -6
    names = [n.node_name for device in metadata.step_stats.dev_stats for n in device.node_stats]
    assert names.count("sum") == 3
    assert not [name for name in names if "region" in name.lower()]
