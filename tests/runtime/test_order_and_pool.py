"""Neither the order of ready nodes nor the thread of a kernel changes a result."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import penstock as ps
from penstock import errors
from penstock.config import GraphOptions
from penstock.runtime import ExecutorArgs
from penstock.runtime.ready_order import ShuffledQueue, ready_queues
from penstock.runtime.step_loop import StepLoop, Trampoline
from penstock.runtime.thread_pool import SessionPools, thread_count
from penstock.state.step_state import StepState
from support.custom import custom_kernels
from support.loops import NESTED_LOOPS
from support.sketch import executor_of, sketch

ONE = "ExOne(x: float32) -> (y: float32)"


def every(number: int) -> ps.Config:
    """Every kernel that may leave its thread does; equal ones are as many as there are."""
    return ps.Config(
        tier=ps.Tier.DATAFLOW,
        graph_options=GraphOptions.nothing(),
        inter_op_parallelism_threads=8,
        offload_seconds=0.0,
        ready_order_seed=number or None,
    )


def test_a_shuffled_queue_gives_everything_back() -> None:
    """What goes in comes out once, in an order that the seed decides."""
    orders = []
    for seed in (1, 1, 2):
        queue = ShuffledQueue(seed)
        for number in range(100):
            queue.append(number)  # type: ignore[arg-type]
        assert len(queue) == 100
        orders.append([queue.popleft() for _ in range(100)])
        assert not queue
    assert orders[0] == orders[1] != orders[2]
    assert sorted(map(int, orders[0])) == list(range(100))  # type: ignore[call-overload]


def test_a_queue_can_be_cleared() -> None:
    """An interrupt drops what is ready, whatever the queue."""
    for seed in (None, 3):
        queue = ready_queues(seed)()
        queue.append(None)  # type: ignore[arg-type]
        queue.clear()
        assert len(queue) == 0


def test_the_seed_decides_the_order_of_kernels() -> None:
    """One seed gives one order, another one another; without a seed it is first come."""

    def order(seed: int | None) -> list[str]:
        seen: list[str] = []
        with custom_kernels(ONE) as register:
            register("ExOne", lambda c, x: (seen.append(c.node_name), x)[1], "context")
            rows = ["x = Const() value=1.0", *(f"n{i:02} = ExOne(x)" for i in range(20))]
            executor_of("\n".join(rows), make_ready_queue=ready_queues(seed)).run(ExecutorArgs())
        return seen

    assert order(None) == sorted(order(None))
    assert order(1) == order(1) != order(2)
    assert sorted(order(1)) == order(None)


@pytest.mark.parametrize("seed", range(6))
def test_nested_loops_on_eight_threads(seed: int) -> None:
    """Every kernel on another thread, in any order: nested loops still count right."""
    with ps.Session(sketch(NESTED_LOOPS), config=every(seed)) as session:
        for outer, inner in ((0, 3), (1, 1), (5, 2), (6, 3)):
            feeds = {"outer": outer, "inner": inner}
            want = inner * outer * (outer - 1) // 2
            assert session.run("total:0", feeds) == want


def test_slow_kernels_run_at_the_same_time() -> None:
    """Four kernels that wait for each other can only be done if all run at once."""
    meet = threading.Barrier(4)

    def wait(x: Any) -> Any:
        meet.wait(5.0)
        return x

    rows = ["x = Const() value=1.0", *(f"n{i} = ExOne(x)" for i in range(4))]
    rows.append("sum = AddN(n0, n1, n2, n3)")
    with custom_kernels(ONE) as register:
        register("ExOne", wait)
        with ps.Session(sketch("\n".join(rows)), config=every(0)) as session:
            assert session.run("sum:0") == 4.0


def test_a_kernel_that_proves_slow_goes_to_the_pool() -> None:
    """A kernel is measured; one that proves slow leaves the caller's thread."""
    threads: set[int] = set()

    def slow(x: Any) -> Any:
        threads.add(threading.get_ident())
        time.sleep(0.003)
        return x

    text = """
        x = Const() value=1.0
        s1 = ExOne(x)
        s2 = ExOne(x)
        sum = AddN(s1, s2)
    """
    with custom_kernels(ONE) as register:
        register("ExOne", slow)
        config = ps.Config(
            tier=ps.Tier.DATAFLOW,
            graph_options=GraphOptions.nothing(),
            inter_op_parallelism_threads=2,
            offload_seconds=0.002,
        )
        with ps.Session(sketch(text), config=config) as session:
            for _ in range(4):
                assert session.run("sum:0") == 2.0
    assert threads - {threading.get_ident()}


def test_inline_runs_stay_on_their_thread() -> None:
    """With inter_op_thread_pool -1, every kernel runs on the caller's thread."""
    threads: set[int] = set()
    with custom_kernels(ONE) as register:
        register("ExOne", lambda x: (threads.add(threading.get_ident()), x)[1])
        rows = ["x = Const() value=1.0", *(f"n{i} = ExOne(x)" for i in range(9))]
        with ps.Session(sketch("\n".join(rows)), config=every(0)) as session:
            session.run([f"n{i}" for i in range(9)], options=ps.RunOptions(inter_op_thread_pool=-1))
    assert threads == {threading.get_ident()}


def test_errors_on_the_pool_are_the_steps() -> None:
    """A kernel that fails on the pool fails the step, with its node."""

    def fail(_x: Any) -> None:
        raise ValueError("no good")

    rows = ["x = Const() value=1.0", *(f"n{i} = ExOne(x)" for i in range(9))]
    with custom_kernels(ONE) as register:
        register("ExOne", fail)
        with ps.Session(sketch("\n".join(rows)), config=every(0)) as session:
            with pytest.raises(errors.InvalidArgumentError, match="no good") as caught:
                session.run([f"n{i}" for i in range(9)])
            assert str(caught.value.node_name)[0] == "n"


@pytest.mark.parametrize("cause", [SystemExit(1), KeyboardInterrupt()])
def test_nothing_that_is_raised_on_the_pool_hangs(cause: BaseException) -> None:
    """Even what is no Exception ends the step when a pool's thread meets it."""

    def fail(_x: Any) -> None:
        raise cause

    with custom_kernels(ONE) as register:
        register("ExOne", fail)
        graph = sketch("x = Const() value=1.0\na = ExOne(x)\nb = ExOne(x)")
        with ps.Session(graph, config=every(0)) as session, pytest.raises(errors.OpError):
            session.run(["a", "b"])


def test_a_pool_that_is_shut_down_does_not_hang_the_step() -> None:
    """A step that meets a closed pool fails, rather than waiting for nobody."""
    pool = ThreadPoolExecutor(2)
    pool.shutdown()
    executor = executor_of(
        "x = Const() value=1.0\na = Neg(x)\nb = Neg(x)\nc = Add(a, b)", offload_seconds=0.0
    )
    args = ExecutorArgs(StepState(pool=lambda closure: pool.submit(closure) and None))
    outcome: list[errors.OpError | None] = []
    thread = threading.Thread(
        target=lambda: outcome.append(executor.run_async(args, outcome.append) and None)
    )
    thread.start()
    thread.join(10.0)
    assert isinstance(outcome[0], errors.InternalError)


def test_results_on_eight_threads_are_the_same() -> None:
    """A wide and deep graph of arrays gives the same on one thread and on eight."""
    rows = ["x = Placeholder() dtype=float32"]
    rows += [f"a{i} = Mul(x, x)\nb{i} = Add(a{i}, x)\nc{i} = Neg(b{i})" for i in range(40)]
    rows.append(f"sum = AddN({', '.join(f'c{i}' for i in range(40))})")
    x = np.random.default_rng(5).normal(size=(64, 64)).astype(np.float32)
    graph = sketch("\n".join(rows))
    with ps.Session(graph, config=ps.Config(inter_op_parallelism_threads=1)) as session:
        want = session.run("sum:0", {"x": x})
    for seed in (0, 1, 2):
        with ps.Session(graph, config=every(seed)) as session:
            assert np.array_equal(session.run("sum:0", {"x": x}), want)


def test_the_step_loop_runs_what_others_schedule() -> None:
    """Closures run on the loop's thread, in order, until it is stopped."""
    loop = StepLoop()
    seen: list[Any] = []

    def work() -> None:
        for number in range(100):
            loop.schedule(lambda number=number: seen.append((number, threading.get_ident())))
        loop.schedule(loop.stop)

    thread = threading.Thread(target=work)
    thread.start()
    loop.run()
    thread.join()
    assert seen == [(number, threading.get_ident()) for number in range(100)]


def test_the_step_loop_polls_while_it_waits() -> None:
    """While nothing is to be done, ``poll`` is called every period."""
    loop = StepLoop()
    polls: list[int] = []

    def poll() -> None:
        polls.append(1)
        if len(polls) == 3:
            loop.stop()

    loop.run(poll=poll, period=0.001)
    assert len(polls) == 3


def test_a_trampoline_never_nests() -> None:
    """A closure that is scheduled inside another one runs after it."""
    seen: list[str] = []
    trampoline = Trampoline()

    def outer() -> None:
        trampoline.schedule(lambda: seen.append("inner"))
        seen.append("outer")

    trampoline.schedule(outer)
    assert seen == ["outer", "inner"]


def test_threads_are_counted() -> None:
    """Zero means one per core; below zero there is the caller's thread only."""
    assert thread_count(-3) == thread_count(1) == 1
    assert thread_count(0) >= 1
    assert SessionPools(ps.Config(inter_op_parallelism_threads=1)).runner(0) is None


@pytest.mark.parametrize(
    ("calling", "leaves"), [("plain", True), ("context", False), ("async", False)]
)
def test_only_kernels_that_see_nothing_but_their_inputs_leave(
    calling: str, *, leaves: bool
) -> None:
    """One that is given its context may do anything there: it stays with the driver."""
    threads: set[int] = set()

    def note(x: Any) -> Any:
        threads.add(threading.get_ident())
        time.sleep(0.003)
        return x

    kernels: dict[str, Any] = {
        "plain": note,
        "context": lambda _context, x: note(x),
        "async": lambda _context, done, x: done(note(x)),
    }
    rows = ["x = Const() value=1.0", *(f"n{i} = ExOne(x)" for i in range(9))]
    rows.append(f"sum = AddN({', '.join(f'n{i}' for i in range(9))})")
    with custom_kernels(ONE) as register:
        register("ExOne", kernels[calling], calling)
        with ps.Session(sketch("\n".join(rows)), config=every(0)) as session:
            assert session.run("sum:0") == 9.0
            driver = threading.get_ident()
    assert bool(threads - {driver}) is leaves


@pytest.mark.parametrize("threads", [1, 4])
def test_a_kernel_that_is_alone_stays_with_the_driver(threads: int) -> None:
    """While nothing else is ready, or runs, there is nothing to do beside a slow kernel."""
    seen: set[int] = set()

    def note(x: Any) -> Any:
        seen.add(threading.get_ident())
        return x

    rows = [
        "x = Const() value=1.0",
        "n0 = ExOne(x)",
        *(f"n{i} = ExOne(n{i - 1})" for i in range(1, 9)),
    ]
    with custom_kernels(ONE) as register, ThreadPoolExecutor(threads) as pool:
        register("ExOne", note)
        executor = executor_of("\n".join(rows), offload_seconds=1e-9)
        for _ in range(3):
            executor.run(
                ExecutorArgs(StepState(pool=lambda closure: pool.submit(closure) and None))
            )
    assert seen == {threading.get_ident()}
