"""A kernel that computes for long: who waits for it when its step is ended, and who need not."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import penstock as ps
from penstock import errors
from support.custom import custom_kernels
from support.graphs import graph_def

#: Computes for long; with something that the compiler leaves to the executor, or without.
COMPUTES = """
    x = Placeholder[dtype=float32]
    long = ExLong(x)
    y = Neg(long)
"""
BESIDE = """
    q = FIFOQueueV2[component_types=float32]
    put = QueueEnqueueV2[Tcomponents=float32](q, y)
"""
#: Assigns what it has computed for long.
ASSIGNS = """
    x = Placeholder[dtype=float32]
    v = VarHandleOp[dtype=float32; shape=; shared_name=v]
    init = AssignVariableOp[dtype=float32](v, x)
    long = ExLong(x)
    set = AssignVariableOp[dtype=float32](v, long)
    y = ReadVariableOp[dtype=float32](v, ^set)
    read = ReadVariableOp[dtype=float32](v)
"""
LARGE = np.ones(1 << 17, np.float32)


class Long:
    """A kernel that runs until it is let go."""

    def __init__(self) -> None:
        self.has_begun = threading.Event()
        self.may_end = threading.Event()
        self.ended: list[Any] = []
        self.is_quick = False

    def __call__(self, x: Any) -> Any:
        if not self.is_quick:
            self.has_begun.set()
            assert self.may_end.wait(20.0)
            self.ended.append(float(np.sum(x)))
        return x


@pytest.fixture
def long() -> Iterator[Long]:
    """Yield the kernel of ExLong, an op that has no effects."""
    with custom_kernels("ExLong(x: float32) -> (y: float32)") as register:
        kernel = Long()
        register("ExLong", kernel)
        yield kernel
        kernel.may_end.set()


FORMS = {
    "whole": (COMPUTES, "y:0", ps.Config()),
    "regions": (COMPUTES + BESIDE, ["y:0", "put"], ps.Config()),
    "dataflow": (COMPUTES, "y:0", ps.Config(tier=ps.Tier.DATAFLOW)),
}


@pytest.mark.parametrize("how", ["deadline", "cancel", "close"])
@pytest.mark.parametrize("fed", [LARGE, np.ones(2, np.float32)], ids=["large", "small"])
@pytest.mark.parametrize("form", FORMS)
def test_a_kernel_without_effects_is_left(long: Long, form: str, fed: Any, how: str) -> None:
    """Who called goes when time is up; the kernel ends by itself, and its result is dropped."""
    text, fetches, config = FORMS[form]
    session = ps.Session(graph_def(text), config=config)
    session.make_callable(fetches, ["x"])
    options = ps.RunOptions(timeout_in_ms=100 if how == "deadline" else 0)
    run = session.run_async(fetches, {"x": fed}, options)
    assert long.has_begun.wait(10.0)
    if how == "cancel":
        run.cancel()
    if how == "close":
        session.close()
    kind = errors.DeadlineExceededError if how == "deadline" else errors.CancelledError
    with pytest.raises(kind, match="left ") as caught:
        run.result(10.0)
    assert "long" in str(caught.value)
    assert not long.ended
    long.may_end.set()
    wait_until(lambda: long.ended == [float(fed.size)])
    if how != "close":
        long.is_quick = True
        assert np.array_equal(session.run("y:0", {"x": fed}), -fed)
        session.close()


def wait_until(condition: Callable[[], object]) -> None:
    """Wait for something that is about to happen."""
    for _ in range(5000):
        if condition():
            return
        time.sleep(0.002)
    raise AssertionError("it did not happen")


@pytest.mark.parametrize("how", ["run", "callable"])
@pytest.mark.parametrize("form", FORMS)
def test_a_deadline_frees_the_calling_thread(long: Long, form: str, how: str) -> None:
    """``run`` itself raises, on the thread that called it, while the kernel goes on."""
    text, fetches, config = FORMS[form]
    options = ps.RunOptions(timeout_in_ms=100)
    with ps.Session(graph_def(text), config=config) as session:
        call = session.make_callable(fetches, ["x"], options)
        with pytest.raises(errors.DeadlineExceededError):
            call(LARGE) if how == "callable" else session.run(fetches, {"x": LARGE}, options)
        assert not long.ended
        long.may_end.set()


def test_the_callers_own_thread_is_kept(long: Long) -> None:
    """Without a pool nothing runs elsewhere: the deadline is told when the kernel has ended."""
    threads: list[threading.Thread] = []

    def end_it() -> None:
        assert long.has_begun.wait(10.0)
        time.sleep(0.2)
        long.may_end.set()

    for config in (ps.Config(inter_op_parallelism_threads=1), ps.Config()):
        number = 0 if config.inter_op_parallelism_threads else -1
        options = ps.RunOptions(timeout_in_ms=50, inter_op_thread_pool=number)
        with ps.Session(graph_def(COMPUTES), config=config) as session:
            session.make_callable("y:0", ["x"])
            long.may_end.clear()
            long.has_begun.clear()
            timer = threading.Thread(target=end_it)
            timer.start()
            with pytest.raises(errors.DeadlineExceededError):
                session.run("y:0", {"x": LARGE}, options)
            threads.append(timer)
    assert len(long.ended) == 2


@pytest.mark.parametrize("tier", ps.Tier)
def test_a_variable_does_not_change_when_run_has_returned(long: Long, tier: ps.Tier) -> None:
    """Nothing with effects runs after the end: what was computed too late is not assigned."""
    with ps.Session(graph_def(ASSIGNS), config=ps.Config(tier=tier)) as session:
        session.run("init", {"x": np.float32(1)})
        session.make_callable("y:0", ["x"])
        run = session.run_async("y:0", {"x": np.float32(2)}, ps.RunOptions(timeout_in_ms=50))
        assert long.has_begun.wait(10.0)
        threading.Timer(0.2, long.may_end.set).start()
        with pytest.raises(errors.DeadlineExceededError):
            run.result(10.0)
        assert long.ended or tier is ps.Tier.DATAFLOW
        value = session.run("read:0")
        wait_until(lambda: long.ended)
        time.sleep(0.05)
        assert session.run("read:0") == value


def test_feeds_may_change_when_run_has_returned(long: Long) -> None:
    """The user's kernel that was left has a copy: it does not see what the caller writes then."""
    with ps.Session(graph_def(COMPUTES)) as session:
        fed = LARGE.copy()
        session.make_callable("y:0", ["x"])
        with pytest.raises(errors.DeadlineExceededError):
            session.run("y:0", {"x": fed}, ps.RunOptions(timeout_in_ms=50))
        fed[:] = 0
        long.may_end.set()
        wait_until(lambda: long.ended == [float(LARGE.size)])
        long.is_quick = True
        assert np.array_equal(session.run("y:0", {"x": LARGE}), -LARGE)


def test_many_kernels_in_a_row_are_not_all_waited_for() -> None:
    """Straight-line code with effects asks now and then whether its step must end."""
    ran: list[int] = []

    def slow(x: Any) -> Any:
        ran.append(1)
        time.sleep(0.01)
        return x

    rows = ["x = Placeholder[dtype=float32]", "v = VarHandleOp[dtype=float32; shape=]"]
    rows += ["n0 = ExSlow(x)", *(f"n{i} = ExSlow(n{i - 1})" for i in range(1, 200))]
    rows += ["set = AssignVariableOp[dtype=float32](v, n199)"]
    with custom_kernels("ExSlow(x: float32) -> (y: float32)") as register:
        register("ExSlow", slow)
        with ps.Session(graph_def("\n".join(rows))) as session:
            with pytest.raises(errors.DeadlineExceededError):
                session.run("set", {"x": 1.0}, ps.RunOptions(timeout_in_ms=50))
            assert len(ran) < 100
