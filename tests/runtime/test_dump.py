"""Why does a step hang?  The dump says it for every unfinished node."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np

from penstock import errors
from penstock.core.values import Value
from penstock.kernels.api.context import Interrupt, OpKernelContext
from penstock.runtime import ExecutorArgs
from penstock.runtime.executor.driver import ExecutorState
from penstock.state.rendezvous import Rendezvous
from penstock.state.step_state import StepState
from support.custom import custom_kernels
from support.loops import counting_loop
from support.sketch import CPU, executor_of

RECV = (
    f'= _Recv() tensor_name="%s" send_device="{CPU}" send_device_incarnation=1 recv_device="{CPU}"'
)


def started(text: str, rendezvous: Rendezvous, **args: Any) -> tuple[ExecutorState, list[Any]]:
    """A run that waits for the rendezvous, and the list that its outcome will be in."""
    outcome: list[errors.OpError | None] = []
    executor = executor_of(text)
    return executor.run_async(
        ExecutorArgs(StepState(rendezvous=rendezvous), **args), outcome.append
    ), outcome


def test_a_dump_names_what_runs_and_what_waits() -> None:
    """A blocked Recv runs; what got one of two inputs waits for the other."""
    rendezvous = Rendezvous()
    text = f"""
        a {RECV % "a"}
        x = Const() value=1.0
        sum = Add(x, a)
        twice = Add(sum, sum)
        c = NoOp(^a, ^x)
    """
    state, outcome = started(text, rendezvous)
    dump = state.dump_state()
    assert CPU in dump
    assert "running  a (_Recv)" in dump
    assert "waiting  sum (Add) for a:0" in dump
    assert "waiting  c (NoOp) for ^a" in dump
    assert "x (Const)" not in dump
    rendezvous.send("a", np.float32(1))
    assert outcome == [None]


def test_a_dump_says_what_a_merge_waits_for() -> None:
    """A Merge waits for a live input, or, if it has one, for its control inputs."""
    rendezvous = Rendezvous()
    text = f"""
        pred = Const() value=True
        x = Const() value=1.0
        s = Switch(x, pred)
        a {RECV % "a"}
        some = Merge(s:0, a)
        b {RECV % "b"}
        ctrl = Merge(s:1, s:0, ^b)
    """
    state, outcome = started(text, rendezvous)
    dump = state.dump_state()
    assert "waiting  some (Merge) for a live input" in dump
    assert "waiting  ctrl (Merge) for ^b" in dump
    rendezvous.send("a", np.float32(1))
    rendezvous.send("b", np.float32(1))
    assert outcome == [None]


def test_a_dump_names_frame_and_iteration() -> None:
    """In a loop, a dump says which loop and which iteration."""
    held: list[Any] = []

    def hold(_context: OpKernelContext, done: Any, value: Value) -> None:
        if value == 2:
            held.append((done, value))
        else:
            done(value)

    with custom_kernels("ExHold(x: int32) -> (y: int32)") as register:
        register("ExHold", hold, "async")
        text = counting_loop(limit="Const() value=4")
        text = text.replace("sum = Add(body", "bad = ExHold(body)\nsum = Add(bad")
        state, outcome = started(text, Rendezvous())
        dump = state.dump_state()
        assert "running  bad (ExHold) in loop, iteration 2" in dump
        assert "waiting  sum (Add) in loop, iteration 2 for bad:0" in dump
        done, value = held[0]
        done(value)
    assert outcome == [None]


def test_a_dump_is_short() -> None:
    """Of thousands of nodes that wait, a dump lists some and counts the rest."""
    rendezvous = Rendezvous()
    rows = [f"a {RECV % 'a'}", "x = Const() value=1.0"]
    rows += [f"n{i} = Add(a, x)" for i in range(3000)]
    state, outcome = started("\n".join(rows), rendezvous)
    lines = state.dump_state().splitlines()
    assert len(lines) < 60
    assert lines[-1].strip() == "… and 2952 more"
    rendezvous.send("a", np.float32(1))
    assert outcome == [None]


def test_a_dump_can_be_taken_while_the_step_runs() -> None:
    """Dumps of a busy loop, from another thread, are texts and disturb nothing."""
    interrupt = Interrupt()
    executor = executor_of(counting_loop(limit="Const() value=2147483647"))
    outcome: list[Any] = []
    states: list[ExecutorState] = []
    is_there = threading.Event()

    def work() -> None:
        def runner(drive: Any) -> None:
            is_there.set()
            threading.Thread(target=drive).start()

        args = ExecutorArgs(StepState(interrupt=interrupt), runner=runner)
        states.append(executor.run_async(args, outcome.append))

    work()
    assert is_there.wait(5.0)
    dumps = [states[0].dump_state() for _ in range(50)]
    interrupt.reason = errors.DeadlineExceededError("enough")
    for _ in range(500):
        if outcome:
            break
        threading.Event().wait(0.01)
    assert isinstance(outcome[0], errors.DeadlineExceededError)
    assert all(CPU in dump for dump in dumps)
