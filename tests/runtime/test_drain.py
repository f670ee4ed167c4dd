"""How a step ends: the first error counts, and nothing is left running."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

import penstock as ps
from penstock import errors
from penstock.kernels.api.context import Interrupt, OpKernelContext
from penstock.runtime import Executor, ExecutorArgs
from penstock.state.cancellation import CancellationManager
from penstock.state.rendezvous import Rendezvous
from penstock.state.step_state import StepState
from support.custom import custom_kernels
from support.loops import counting_loop
from support.sketch import executor_of, sketch


def outcome_of(
    executor: Executor, step: StepState | None = None, **args: Any
) -> errors.OpError | None:
    """The error of one run, which must end within seconds."""
    outcome: list[errors.OpError | None] = []
    finished = threading.Event()

    def done(error: errors.OpError | None) -> None:
        outcome.append(error)
        finished.set()

    executor.run_async(ExecutorArgs(step or StepState(), **args), done)
    assert finished.wait(10.0), "the step hangs"
    return outcome[0]


def fail(*_inputs: Any) -> None:
    raise ValueError("no good")


def test_the_first_error_counts() -> None:
    """An error names its node; later errors do not replace it."""
    with custom_kernels("ExFail(x: float32) -> (y: float32)") as register:
        register("ExFail", fail)
        executor = executor_of("x = Const() value=1.0\na = ExFail(x)\nb = ExFail(x)\nc = ExFail(a)")
        error = outcome_of(executor)
    assert isinstance(error, errors.InvalidArgumentError)
    assert error.node_name == "a"
    assert error.op_type == "ExFail"
    assert error.device is not None
    assert error.device.endswith("CPU:0")
    assert "[[{{node a}}]]" in str(error)
    assert isinstance(error.__cause__, ValueError)


def test_independent_branches_go_on_after_an_error() -> None:
    """An error stops what depends on it, and nothing else; the rendezvous is aborted."""
    seen: list[str] = []
    rows = ("ExFail(x: float32) -> (y: float32)", "ExSee(x: float32) -> (y: float32)")
    with custom_kernels(*rows) as register:
        register("ExFail", fail)
        register(
            "ExSee",
            lambda context, x: (seen.append(context.node_name), x)[1],
            "context",
        )
        rendezvous, manager = Rendezvous(), CancellationManager()
        executor = executor_of("""
            x = Const() value=1.0
            bad = ExFail(x)
            after = ExSee(bad)
            one = ExSee(x)
            two = ExSee(one)
            three = ExSee(two)
        """)
        error = outcome_of(executor, StepState(rendezvous=rendezvous, cancellation_manager=manager))
    assert error is not None
    assert error.node_name == "bad"
    assert seen == ["one", "two", "three"]
    assert manager.is_cancelled
    with pytest.raises(errors.InvalidArgumentError):
        rendezvous.recv("anything")


def test_an_error_in_a_loop_says_where() -> None:
    """An error inside a loop names the frame and the iteration."""
    with custom_kernels("ExAtTwo(x: int32) -> (y: int32)") as register:
        register("ExAtTwo", lambda x: x if x < 2 else fail())
        text = counting_loop(limit="Const() value=5")
        error = outcome_of(
            executor_of(text.replace("sum = Add(body", "bad = ExAtTwo(body)\nsum = Add(bad"))
        )
    assert error is not None
    assert error.where is not None
    assert (error.where.frame, error.where.iteration) == ("loop", 2)
    assert "frame loop, iteration 2" in str(error)


def test_an_error_of_a_cancelled_step_is_derived() -> None:
    """What is cancelled with its step is a mere consequence."""

    def give_up(_x: Any) -> None:
        raise errors.CancelledError("woken")

    with custom_kernels("ExFail(x: float32) -> (y: float32)") as register:
        register("ExFail", give_up)
        manager = CancellationManager()
        manager.start_cancel()
        executor = executor_of("x = Const() value=1.0\na = ExFail(x)")
        error = outcome_of(executor, StepState(cancellation_manager=manager))
    assert error is not None
    assert error.derived


def test_a_cancelled_loop_ends() -> None:
    """The condition of a loop fails when the step is cancelled, so that endless loops end."""
    manager = CancellationManager()
    manager.start_cancel()
    executor = executor_of(counting_loop(limit="Const() value=2147483647"))
    error = outcome_of(executor, StepState(cancellation_manager=manager))
    assert isinstance(error, errors.CancelledError)
    assert "Loop execution was cancelled." in error.message
    assert error.derived


def test_an_interrupt_drops_what_is_ready() -> None:
    """A step that is interrupted before it starts runs nothing, and fails with the reason."""
    seen: list[str] = []
    with custom_kernels("ExSee(x: float32) -> (y: float32)") as register:
        register("ExSee", lambda x: (seen.append("seen"), x)[1])
        interrupt = Interrupt()
        interrupt.reason = errors.DeadlineExceededError("too late")
        error = outcome_of(
            executor_of("x = Const() value=1.0\na = ExSee(x)"), StepState(interrupt=interrupt)
        )
    assert isinstance(error, errors.DeadlineExceededError)
    assert seen == []


@pytest.mark.parametrize("cause", [SystemExit(3), KeyboardInterrupt(), GeneratorExit()])
@pytest.mark.parametrize("calling", ["plain", "context", "async"])
def test_nothing_that_a_kernel_raises_hangs_the_step(cause: BaseException, calling: str) -> None:
    """Even what is no Exception ends the step with an OpError, whoever raises it."""

    def crash(*_args: Any) -> None:
        raise cause

    with custom_kernels("ExCrash(x: float32) -> (y: float32)") as register:
        register("ExCrash", crash, calling)
        executor = executor_of("x = Const() value=1.0\na = ExCrash(x)\nb = Neg(a)")
        assert isinstance(outcome_of(executor), errors.OpError)


def test_a_failing_stranger_does_not_hang_the_step() -> None:
    """A cancellation callback that raises keeps neither the step nor its error back."""
    with custom_kernels(
        "ExFail(x: float32) -> (y: float32)", "ExWait(x: float32) -> (y: float32)"
    ) as register:
        register("ExFail", fail)

        def wait(context: OpKernelContext, done: Any, _x: Any) -> None:
            manager = context.cancellation_manager
            token = manager.get_cancellation_token()
            manager.register_callback(token, lambda: done(errors.CancelledError("woken")))

        register("ExWait", wait, "async")
        manager = CancellationManager()
        manager.register_callback(manager.get_cancellation_token(), fail)
        executor = executor_of("x = Const() value=1.0\nw = ExWait(x)\na = ExFail(x)")
        error = outcome_of(executor, StepState(cancellation_manager=manager))
    assert error is not None
    assert error.node_name == "a"


def test_an_error_behind_an_asynchronous_kernel_does_not_hang_either() -> None:
    """The same holds when the failing kernel reports from another thread."""

    def later(_context: OpKernelContext, done: Any, _x: Any) -> None:
        threading.Thread(target=done, args=(ValueError("late"),)).start()

    with custom_kernels("ExLater(x: float32) -> (y: float32)") as register:
        register("ExLater", later, "async")
        manager = CancellationManager()
        manager.register_callback(manager.get_cancellation_token(), fail)
        executor = executor_of("x = Const() value=1.0\na = ExLater(x)")
        error = outcome_of(executor, StepState(cancellation_manager=manager))
    assert error is not None
    assert error.node_name == "a"


def test_a_node_that_never_becomes_ready_is_no_error() -> None:
    """A Merge whose values never come is left out; the step is done without an error."""
    executor = executor_of("""
        pred = Const() value=True
        x = Const() value=1.0
        s = Switch(x, pred)
        never = Merge(n, s:0)
        n = NextIteration(never)
        other = Neg(x)
    """)
    assert outcome_of(executor) is None


def test_an_error_of_a_device_is_the_steps() -> None:
    """With sync_on_finish, what the device still finds wrong is the step's error."""

    def sync() -> None:
        raise OSError("the device fell off")

    executor = executor_of("x = Const() value=1.0", sync_device=sync)
    assert outcome_of(executor) is None
    assert isinstance(outcome_of(executor, sync_on_finish=True), errors.UnknownError)


def test_kernels_that_cannot_be_made_name_their_node() -> None:
    """A node without a kernel is refused when the executor is made."""
    with custom_kernels("ExNothing() -> (y: float32)"):
        graph = sketch("strange = ExNothing()")
        with pytest.raises(errors.InvalidArgumentError, match="strange") as caught:
            executor_of(graph)
    assert caught.value.node_name == "strange"


def test_observers_see_every_live_output() -> None:
    """The callback for outputs is told of each output, dead sides of a Switch included."""
    seen: list[tuple[str, int, bool]] = []
    executor = executor_of("""
        pred = Const() value=True
        x = Const() value=1.0
        s = Switch(x, pred)
        a = Neg(s:1)
        b = Neg(s:0)
    """)

    def note(name: str, slot: int, _value: Any, is_dead: bool) -> None:
        seen.append((name, slot, is_dead))

    assert outcome_of(executor, node_outputs_callback=note) is None
    assert sorted(seen) == [
        ("a", 0, False),
        ("pred", 0, False),
        ("s", 0, True),
        ("s", 1, False),
        ("x", 0, False),
    ]


def test_kernels_see_no_numpy_warnings() -> None:
    """Division by zero and overflow are values, not warnings."""
    executor = executor_of("x = Const() value=1.0\nz = Const() value=0.0\na = Div(x, z)")
    with np.errstate(all="raise"):
        assert outcome_of(executor) is None


def test_a_kernel_that_refuses_its_attributes_names_its_node() -> None:
    """Makers raise plain Python errors too; who made the graph learns which node it was."""
    with custom_kernels("ExOdd() -> (y: float32) [n: int]"):

        @ps.kernel("ExOdd")
        def make(attrs: Any) -> Any:
            raise ValueError(f"{attrs.int('n')} is odd")

        with pytest.raises(errors.InvalidArgumentError, match="3 is odd") as caught:
            executor_of("strange = ExOdd() n=3")
    assert caught.value.node_name == "strange"
    assert isinstance(caught.value.__cause__, ValueError)
