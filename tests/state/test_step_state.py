"""What belongs to one step, and its end."""

from __future__ import annotations

import threading
from collections.abc import Sequence

import pytest

from penstock import errors
from penstock.state.rendezvous import Rendezvous
from penstock.state.session_state import SessionState
from penstock.state.step_state import StepState

LATE = errors.DeadlineExceededError("too late")


class Kernel:
    """Something that goes on in a step."""

    def __init__(self, name: str, *, answers: bool = False) -> None:
        self.name = name
        self.answers = answers
        self.is_forked = False

    def dump_state(self) -> str:
        return f"{self.name} waits"

    def forget_threads(self) -> None:
        self.is_forked = True

    def leave(self, seconds: float) -> Sequence[str]:
        assert seconds >= 0
        return () if self.answers else (f"{self.name} still computes",)


def with_kernels(*kernels: Kernel) -> StepState:
    step = StepState()
    for kernel in kernels:
        step.interrupt.activities[id(kernel)] = kernel
    return step


def test_no_two_steps_of_a_process_have_one_number() -> None:
    """Whichever threads make them."""
    numbers: list[int] = []

    def make() -> None:
        numbers.extend([StepState().id for _ in range(500)])

    threads = [threading.Thread(target=make) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(numbers)) == 8 * 500


def test_the_first_reason_counts_and_says_what_went_on() -> None:
    """Whatever waits is told it: who receives, who is to be cancelled, and loops."""
    step = with_kernels(Kernel("a"))
    step.rendezvous = Rendezvous()
    woken: list[str] = []
    manager = step.cancellation_manager
    manager.register_callback(manager.get_cancellation_token(), lambda: woken.append("cancelled"))
    step.rendezvous.recv_async("x", lambda error, *_: woken.append(type(error).__name__))
    step.end(LATE)
    step.end(errors.CancelledError("and later still"))
    assert step.interrupt.reason is not None
    assert str(step.interrupt.reason) == "too late\na waits"
    assert step.interrupt.loops_end
    assert sorted(woken) == ["DeadlineExceededError", "cancelled"]


def test_a_callback_that_fails_keeps_nobody_from_being_told() -> None:
    """The others are woken all the same."""
    step = StepState(rendezvous=Rendezvous())
    assert step.rendezvous is not None
    manager = step.cancellation_manager

    def fail(*_: object) -> None:
        raise ValueError("no")

    step.rendezvous.recv_async("x", fail)
    manager.register_callback(manager.get_cancellation_token(), fail)
    step.end(LATE)
    assert manager.is_cancelled


def test_only_what_does_not_answer_is_left_behind() -> None:
    """It is named in the step's error; before the end, nobody is left."""
    step = with_kernels(Kernel("slow"), Kernel("quick", answers=True))
    step.look_up()
    assert step.told(LATE) is LATE
    step.end(LATE)
    step.look_up()
    told = str(step.told(errors.InternalError("bad")))
    assert "slow still computes: whatever it gives will be dropped" in told
    assert "quick" not in told


def test_what_is_no_error_is_raised_in_the_end() -> None:
    """It wakes what waits, when the driver looks up; and it says what was left behind."""
    step = with_kernels(Kernel("slow"))
    step.raise_escaping()
    step.interrupt.escape(SystemExit(3), LATE)
    assert not step.cancellation_manager.is_cancelled
    step.look_up()
    assert step.cancellation_manager.is_cancelled
    with pytest.raises(SystemExit) as caught:
        step.raise_escaping()
    assert "slow still computes" in caught.value.__notes__[0]


def test_long_reports_are_cut() -> None:
    """Ten activities are told of, the others counted."""
    step = with_kernels(*[Kernel(f"k{i}") for i in range(14)])
    lines = step.report().split("\n")
    assert lines[0] == "k0 waits"
    assert lines[10:] == ["… and 4 more functions"]


def test_closing_gives_up_what_is_the_steps_own() -> None:
    """Resources of the step are gone, and nothing goes on any more."""
    step = with_kernels(Kernel("a"))
    step.container.create("stack", "Stack", object())
    step.close()
    assert not step.interrupt.activities
    with pytest.raises(errors.NotFoundError):
        step.container.lookup("stack", "Stack")


def test_a_part_of_a_step_meets_elsewhere_and_shares_the_rest() -> None:
    """A function on several devices has a rendezvous of its own, and is part of the step."""
    step, rendezvous = StepState(session_state=SessionState(), flush=True), Rendezvous()
    part = step.within(rendezvous)
    assert part.rendezvous is rendezvous
    assert step.rendezvous is None
    for name in ("id", "interrupt", "container", "tensor_store", "session_state", "flush"):
        assert getattr(part, name) is getattr(step, name), name
    assert part.cancellation_manager is step.cancellation_manager


def test_tensors_are_kept_whose_handles_are_fetched() -> None:
    """The others go with the step; without a session all do."""
    step = StepState(session_state=SessionState())
    assert step.session_state is not None
    step.tensor_store.add("a", "a;0;cpu", b"kept")
    step.tensor_store.add("b", "b;1;cpu", b"lost")
    step.keep_fetched(["a:0", "c:0"])
    assert step.session_state.get("a;0;cpu") == b"kept"
    with pytest.raises(errors.InvalidArgumentError):
        step.session_state.get("b;1;cpu")
    StepState().keep_fetched(["a:0"])


def test_a_fork_reaches_whatever_goes_on() -> None:
    """In the child no other thread holds a lock."""
    kernels = [Kernel("a"), Kernel("b")]
    with_kernels(*kernels).forget_threads()
    assert all(kernel.is_forked for kernel in kernels)
