"""What an asynchronous kernel reports is heard once, whenever it comes."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.errors import InternalError, OpError
from penstock.runtime.executor.completion import Completion
from penstock.runtime.executor.inbox import Inbox


class Step:
    """A step that waits for one kernel, and notes what it is told."""

    def __init__(self) -> None:
        self.inbox: Inbox[Any] = Inbox()
        self.told: list[object] = []

    def failure(self, _tagged: Any, cause: BaseException) -> OpError:
        assert not self.inbox.lock.locked()
        return InternalError(str(cause))

    def finished(self, _tagged: Any, _start: float, result: object) -> None:
        assert not self.inbox.lock.locked()
        self.told.append(result)


@pytest.fixture
def step() -> Step:
    return Step()


@pytest.fixture
def done(step: Step) -> Completion:
    nobody: Any = None
    return Completion(step, nobody, 0.0)


def test_what_comes_during_the_start_is_taken_along(step: Step, done: Completion) -> None:
    """The driver that started the kernel finds the outputs, and nobody else is told."""
    done((1,))
    assert done.is_called
    assert done.result == (1,)
    assert done.leave()
    assert step.told == []


def test_what_comes_after_the_start_is_told(step: Step, done: Completion) -> None:
    """Whoever comes later finds the step waiting."""
    assert not done.leave()
    done((1,))
    assert step.told == [(1,)]
    assert not done.is_called


@pytest.mark.parametrize("first", [(1,), ValueError("first")], ids=["outputs", "error"])
@pytest.mark.parametrize("second", [(2,), ValueError("second")], ids=["outputs", "error"])
@pytest.mark.parametrize("leaves", ["before", "between", "after"])
def test_a_second_report_is_not_heard(
    step: Step, done: Completion, first: object, second: object, leaves: str
) -> None:
    """The first one counts, be it outputs or an error, and wherever the start returned."""
    if leaves == "before":
        done.leave()
    done(first)
    if leaves == "between":
        done.leave()
    done(second)
    if leaves == "after":
        done.leave()

    heard = step.told if leaves == "before" else [done.result]
    assert len(heard) == 1
    if isinstance(first, Exception):
        assert isinstance(heard[0], InternalError)
        assert heard[0].reason == "first"
    else:
        assert heard == [first]
    assert leaves == "before" or step.told == []


def test_an_error_during_the_start_is_taken_along(step: Step, done: Completion) -> None:
    """As the error of the node."""
    done(ValueError("wrong"))
    assert done.leave()
    assert isinstance(done.result, InternalError)
    assert step.told == []


def test_nobody_hears_what_comes_when_the_step_is_left(step: Step, done: Completion) -> None:
    """A kernel that answers too late tells nobody."""
    done.leave()
    step.inbox.close()
    done((1,))
    assert step.told == []
    assert not done.is_called
