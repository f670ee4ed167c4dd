"""Deadlines, cancellation, Ctrl-C and close: a step can always be ended, and harms nothing."""

from __future__ import annotations

import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import penstock as ps
from penstock import errors
from penstock.runtime.step import Step
from support.custom import custom_kernels
from support.loops import counting_loop
from support.sketch import CPU, sketch

FOREVER = 2**31 - 1
GRAPH = (
    counting_loop()
    + """
    queue = FIFOQueueV2() component_types=["int32"]
    get = QueueDequeueV2(queue) component_types=["int32"]
    value = Placeholder() dtype=int32
    put = QueueEnqueueV2(queue, value)
    size = QueueSizeV2(queue)
    after = Neg(get)
    double = Add(value, value)
"""
)


@pytest.fixture
def session() -> Iterator[ps.Session]:
    """Yield a session with an empty queue and a loop of any length."""
    with ps.Session(sketch(GRAPH)) as opened:
        yield opened
        check_usable(opened)


def check_usable(session: ps.Session) -> None:
    """The queue and the loop still do what they should, and nobody else takes elements."""
    session.run("put", {"value": 5}, options=ps.RunOptions(timeout_in_ms=5000))
    assert session.run("size:0") == 1
    assert session.run("after:0", options=ps.RunOptions(timeout_in_ms=5000)) == -5
    assert session.run("exit:0", {"limit": 3}) == 3


#: What never ends by itself: a name to fetch, feeds, and what a dump must say of it.
ENDLESS: list[tuple[str, dict[str, Any], str]] = [
    ("after:0", {}, "get (QueueDequeueV2)"),
    ("exit:0", {"limit": FOREVER}, "compiled code"),
]
endless = pytest.mark.parametrize(("fetch", "feeds", "text"), ENDLESS, ids=["dequeue", "loop"])


@endless
@pytest.mark.parametrize("of", ["run", "session", "callable"])
def test_a_deadline_ends_a_step(fetch: str, feeds: dict[str, Any], text: str, of: str) -> None:
    """A run that takes too long fails, and the message says what it was waiting for."""
    config = ps.Config(operation_timeout_in_ms=30 if of == "session" else 0)
    options = None if of == "session" else ps.RunOptions(timeout_in_ms=30)
    with ps.Session(sketch(GRAPH), config=config) as session:
        call = session.make_callable(fetch, list(feeds), options)
        start = time.perf_counter()
        with pytest.raises(errors.DeadlineExceededError, match="Timed out waiting") as caught:
            call(*feeds.values()) if of == "callable" else session.run(fetch, feeds, options)
        assert 0.02 < time.perf_counter() - start < 3.0
        if "loop" not in text:
            assert text in str(caught.value)
        check_usable(session)


def test_a_deadline_is_no_error_for_what_is_quick(session: ps.Session) -> None:
    """A run that is done in time does not care."""
    options = ps.RunOptions(timeout_in_ms=60_000)
    assert session.run("double:0", {"value": 2}, options) == 4


@pytest.mark.parametrize("timeout", [2**62, 2**31, 10**12])
def test_a_deadline_in_the_far_future(session: ps.Session, timeout: int) -> None:
    """A timeout of centuries is as good as none."""
    options = ps.RunOptions(timeout_in_ms=timeout)
    assert session.run("double:0", {"value": 2}, options) == 4
    run = session.run_async("after:0", options=options)
    assert not run.is_done()
    run.cancel()
    with pytest.raises(errors.CancelledError):
        run.result(5.0)


def test_a_negative_timeout_is_the_sessions() -> None:
    """Only a positive timeout of the run replaces the session's."""
    config = ps.Config(operation_timeout_in_ms=30)
    with ps.Session(sketch(GRAPH), config=config) as session:
        for timeout in (0, -1):
            with pytest.raises(errors.DeadlineExceededError):
                session.run("get:0", options=ps.RunOptions(timeout_in_ms=timeout))


@endless
def test_a_run_can_be_cancelled(
    session: ps.Session, fetch: str, feeds: dict[str, Any], text: str
) -> None:
    """``cancel`` ends an asynchronous run within a tenth of a second."""
    seconds = []
    for _ in range(3):  # a busy machine may take the core away for as long
        run = session.run_async(fetch, feeds)
        wait_until(lambda run=run: text in run.dump_state() or "changing" in run.dump_state())
        assert not run.is_done()
        start = time.perf_counter()
        run.cancel()
        with pytest.raises(errors.CancelledError, match="cancelled"):
            run.result(5.0)
        seconds.append(time.perf_counter() - start)
        assert run.is_done()
        run.cancel()
    assert min(seconds) < 0.1


def wait_until(condition: Callable[[], bool]) -> None:
    """Wait for something that is about to happen."""
    for _ in range(2000):
        if condition():
            return
        time.sleep(0.002)
    raise AssertionError("it did not happen")


def test_cancelling_what_is_done_changes_nothing(session: ps.Session) -> None:
    """A result that is there stays."""
    run = session.run_async("double:0", {"value": 2})
    assert run.result(5.0) == 4
    run.cancel()
    assert run.result() == 4


def test_waiting_for_a_result_can_time_out(session: ps.Session) -> None:
    """``result`` with a timeout gives up waiting, and the run goes on."""
    run = session.run_async("after:0")
    with pytest.raises(TimeoutError):
        run.result(0.01)
    session.run("put", {"value": 3})
    assert run.result(5.0) == -3


def test_a_step_that_is_cancelled_before_it_runs_does_nothing(session: ps.Session) -> None:
    """A step cancelled before its first node fails at once."""
    run = session.run_async("exit:0", {"limit": FOREVER})
    run.cancel()
    with pytest.raises(errors.CancelledError):
        run.result(5.0)


@endless
def test_close_ends_what_runs(fetch: str, feeds: dict[str, Any], text: str) -> None:
    """Closing a session cancels the runs of other threads."""
    del text
    session = ps.Session(sketch(GRAPH))
    runs = [session.run_async(fetch, feeds) for _ in range(4)]
    time.sleep(0.005)
    session.close()
    for run in runs:
        with pytest.raises(errors.CancelledError, match="Session has been closed"):
            run.result(5.0)
    session.close()


def test_close_ends_what_runs_on_its_own_pool() -> None:
    """A session with threads of its own may be closed while they work."""
    rows = [f"n{i} = Add(body, one)" for i in range(8)]
    text = counting_loop() + "\n".join(rows)
    for _ in range(10):
        config = ps.Config(
            use_per_session_threads=True, inter_op_parallelism_threads=4, offload_seconds=0.0
        )
        session = ps.Session(sketch(text), config=config)
        run = session.run_async(["exit:0"], {"limit": FOREVER})
        time.sleep(0.003)
        session.close()
        with pytest.raises(errors.CancelledError, match="Session has been closed"):
            run.result(5.0)


def test_use_after_close() -> None:
    """A closed session refuses everything, and says why."""
    session = ps.Session(sketch(GRAPH))
    call = session.make_callable("double:0", ["value"])
    handle = session.partial_run_setup(["double:0"], ["value"])
    session.close()
    uses: list[Callable[[], Any]] = [
        lambda: session.run("double:0", {"value": 1}),
        lambda: session.run([]),
        lambda: session.run_async("double:0", {"value": 1}),
        lambda: call(1),
        lambda: session.make_callable("double:0", ["value"]),
        lambda: session.partial_run_setup(["double:0"], ["value"]),
        lambda: session.partial_run(handle, "double:0", {"value": 1}),
        lambda: session.extend(b""),
    ]
    for use in uses:
        with pytest.raises(errors.CancelledError, match="Session has been closed"):
            use()


def test_close_from_many_threads_while_many_run() -> None:
    """Runs that race with close give their answer or say that the session is closed."""
    for _ in range(5):
        session = ps.Session(sketch(GRAPH))
        wrong: list[Any] = []

        def work(session: ps.Session = session, wrong: list[Any] = wrong) -> None:
            for number in range(300):
                try:
                    if session.run("double:0", {"value": number}) != 2 * number:
                        wrong.append(number)
                except errors.CancelledError:
                    return

        threads = [threading.Thread(target=work) for _ in range(4)]
        threads += [threading.Thread(target=session.close) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(20.0)
            assert not thread.is_alive()
        assert wrong == []


def test_an_error_beats_a_late_deadline(session: ps.Session) -> None:
    """A step that has failed reports its error, although it was also cancelled."""

    def fail(_x: Any) -> None:
        raise ValueError("no good")

    with custom_kernels("ExFail(x: int32) -> (y: int32)") as register:
        register("ExFail", fail)
        text = GRAPH + "bad = ExFail(value)\nboth = Add(bad, get)"
        with ps.Session(sketch(text)) as other:
            options = ps.RunOptions(timeout_in_ms=2000)
            with pytest.raises(errors.InvalidArgumentError, match="no good"):
                other.run("both:0", {"value": 1}, options)
            assert other.run("size:0") == 0
    del session


def test_a_handler_that_raises_leaves_no_step_behind(session: ps.Session) -> None:
    """An exception out of a signal handler ends the step before it leaves ``run``."""

    class RangError(Exception):
        pass

    def ring(_signal: int, _frame: Any) -> None:
        raise RangError

    before = signal.signal(signal.SIGALRM, ring)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.02)
        with pytest.raises(RangError):
            session.run("after:0")
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def test_ctrl_c_in_the_main_thread(session: ps.Session) -> None:
    """Ctrl-C raises KeyboardInterrupt, and Python's own handler is back afterwards."""
    for fetch, feeds, _ in ENDLESS:
        timer = threading.Timer(0.02, signal.raise_signal, [signal.SIGINT])
        timer.start()
        start = time.perf_counter()
        with pytest.raises(KeyboardInterrupt):
            session.run(fetch, feeds)
        assert time.perf_counter() - start < 1.0
        timer.join()
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_programs_own_handler_is_left_alone(session: ps.Session) -> None:
    """A handler that the program has set is called, and the run goes on."""
    seen: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, _frame: seen.append(number))
    try:
        timer = threading.Timer(0.01, signal.raise_signal, [signal.SIGINT])
        timer.start()
        with pytest.raises(errors.DeadlineExceededError):
            session.run("after:0", options=ps.RunOptions(timeout_in_ms=60))
        timer.join()
    finally:
        signal.signal(signal.SIGINT, before)
    assert seen == [signal.SIGINT]


CTRL_C = """
    import os, signal, threading
    import penstock as ps
    from session.test_endings import ENDLESS, GRAPH, check_usable
    from support.sketch import CPU, sketch

    text = GRAPH + '''
        v = VarHandleOp() dtype=int32 shape=[] shared_name="v"
        init = AssignVariableOp(v, value)
        unit = Const() value=1
        add = AssignAddVariableOp(v, unit)
        read = ReadVariableOp(v) dtype=int32
    '''
    session = ps.Session(sketch(text))
    session.run("init", {"value": 0})
    for number in range(6):
        fetch, feeds, _ = ENDLESS[number % 2]
        timer = threading.Timer(0.02 + 0.003 * number, os.kill, [os.getpid(), signal.SIGINT])
        timer.start()
        try:
            session.run([fetch, "add"], feeds)
        except KeyboardInterrupt:
            print("interrupted")
        timer.join()
        check_usable(session)
    print("read", session.run("read:0"))
    session.close()
"""


def test_ctrl_c_leaves_everything_usable() -> None:
    """In a program of its own: session, queue and variable survive six Ctrl-Cs."""
    root = Path(__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(CTRL_C)],
        env={"PYTHONPATH": f"{root / 'src'}:{root / 'tests'}", "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["interrupted"] * 6 + ["read", "6"], done.stdout


def test_a_step_can_be_used_once() -> None:
    """Steps are counted throughout the process, so that their resources do not meet."""
    with custom_kernels("ExStep() -> (id: int64)") as register:
        register("ExStep", lambda context: np.int64(context.step.step_id), "context")
        with ps.Session(sketch("s = ExStep()")) as one, ps.Session(sketch("s = ExStep()")) as two:
            ids = [one.run("s:0"), two.run("s:0"), one.run("s:0")]
    assert ids == sorted(set(ids))
    assert Step.__doc__


LONELY_RECV = (
    'value = _Recv() tensor_type=float32 tensor_name="nobody" client_terminated=False '
    f'send_device="{CPU}" send_device_incarnation=1 recv_device="{CPU}"'
)


@pytest.mark.parametrize("how", ["deadline", "cancel", "close"])
def test_a_receiver_that_nobody_sends_to_can_be_ended(how: str) -> None:
    """A Recv is woken like everything else that waits, though it knows no cancellation."""
    session = ps.Session(sketch(LONELY_RECV))
    options = ps.RunOptions(timeout_in_ms=40 if how == "deadline" else 0)
    run = session.run_async("value:0", options=options)
    time.sleep(0.01)
    if how == "cancel":
        run.cancel()
    if how == "close":
        session.close()
    kind = errors.DeadlineExceededError if how == "deadline" else errors.CancelledError
    with pytest.raises(kind):
        run.result(5.0)
    session.close()
