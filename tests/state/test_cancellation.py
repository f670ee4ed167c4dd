"""Cancellation reaches everyone exactly once, and deregistering tells the truth."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterator

import pytest
from hypothesis.stateful import Bundle, RuleBasedStateMachine, invariant, rule

from penstock.errors import InternalError
from penstock.state.cancellation import CancellationManager


def never() -> None:
    """Stand in for a callback that must not be called."""
    pytest.fail("called")


def register(manager: CancellationManager, callback: Callable[[], None]) -> int:
    """Register a callback that is not too late, and return its token."""
    token = manager.get_cancellation_token()
    assert manager.register_callback(token, callback)
    return token


@pytest.fixture
def manager() -> Iterator[CancellationManager]:
    """Yield a manager, and check its laws once more when the test ends."""
    made = CancellationManager()
    yield made
    made.check()


class Pause:
    """A callback that waits, so that a test can look at a cancellation under way."""

    def __init__(self) -> None:
        self.reached = threading.Event()
        self.go_on = threading.Event()

    def __call__(self) -> None:
        self.reached.set()
        assert self.go_on.wait(10)


@pytest.fixture
def paused(manager: CancellationManager) -> Iterator[Pause]:
    """Yield while another thread is inside a callback of ``manager``."""
    pause = Pause()
    register(manager, pause)
    thread = threading.Thread(target=manager.start_cancel, daemon=True)
    thread.start()
    assert pause.reached.wait(10)
    yield pause
    pause.go_on.set()
    thread.join(10)
    assert not thread.is_alive()


def test_without_cancellation_nothing_is_called(manager: CancellationManager) -> None:
    """Whoever takes its callback back in time is never called."""
    token = register(manager, never)

    assert manager.try_deregister_callback(token)
    assert not manager.is_cancelled
    assert not manager.is_cancelling


def test_cancellation_calls_back(manager: CancellationManager) -> None:
    """A registered callback runs, before the manager says that it is cancelled."""
    seen: list[tuple[bool, bool]] = []
    register(manager, lambda: seen.append((manager.is_cancelling, manager.is_cancelled)))
    manager.start_cancel()

    assert seen == [(True, False)]
    assert (manager.is_cancelling, manager.is_cancelled) == (False, True)


def test_registering_too_late_is_refused(manager: CancellationManager) -> None:
    """After a cancellation nothing is registered, and nothing is called."""
    manager.start_cancel()

    assert not manager.register_callback(manager.get_cancellation_token(), never)


def test_deregistering_too_late_is_told(manager: CancellationManager) -> None:
    """False says that the callback has run."""
    calls: list[int] = []
    token = register(manager, lambda: calls.append(1))
    manager.start_cancel()

    assert not manager.try_deregister_callback(token)
    assert calls == [1]


def test_cancelling_twice_calls_once(manager: CancellationManager) -> None:
    """Only the first cancellation does anything, and it calls every callback."""
    calls: list[int] = []
    for number in range(3):
        register(manager, lambda number=number: calls.append(number))  # type: ignore[misc]
    manager.start_cancel()
    manager.start_cancel()

    assert sorted(calls) == [0, 1, 2]


def test_tokens_are_unique(manager: CancellationManager) -> None:
    """Tokens count from 0."""
    assert [manager.get_cancellation_token() for _ in range(3)] == [0, 1, 2]


def test_try_deregister_without_cancellation(manager: CancellationManager) -> None:
    """It takes the callback back, once."""
    token = register(manager, never)

    assert manager.try_deregister_callback(token)
    assert not manager.try_deregister_callback(token)


def test_cancelling_is_seen_by_other_threads(manager: CancellationManager, paused: Pause) -> None:
    """While a callback runs, the manager is cancelling and not cancelled; nothing registers."""
    assert manager.is_cancelling
    assert not manager.is_cancelled
    assert not manager.register_callback(manager.get_cancellation_token(), never)
    assert not paused.go_on.is_set()


def test_second_cancellation_does_not_wait(manager: CancellationManager, paused: Pause) -> None:
    """Whoever cancels second returns at once, though the first is still calling."""
    manager.start_cancel()

    assert not manager.is_cancelled
    assert not paused.go_on.is_set()


def test_try_deregister_does_not_wait(manager: CancellationManager, paused: Pause) -> None:
    """During a cancellation it says no at once."""
    assert not manager.try_deregister_callback(0)
    assert not paused.go_on.is_set()


def test_callback_may_deregister(manager: CancellationManager) -> None:
    """On the cancelling thread, too, it is told at once that it is too late."""
    outcome: list[bool] = []
    token = manager.get_cancellation_token()
    manager.register_callback(token, lambda: outcome.append(manager.try_deregister_callback(token)))
    manager.start_cancel()

    assert outcome == [False]


def test_failing_callback_does_not_starve_the_others(manager: CancellationManager) -> None:
    """All callbacks and children are told, then the first failure is raised."""
    calls: list[str] = []

    def fail() -> None:
        raise ValueError("careless")

    register(manager, fail)
    register(manager, lambda: calls.append("callback"))
    register(CancellationManager(manager), lambda: calls.append("child"))

    with pytest.raises(ValueError, match="careless"):
        manager.start_cancel()
    assert calls == ["callback", "child"]
    assert manager.is_cancelled


# -- children ------------------------------------------------------------------------------


def test_parent_cancels_its_children(manager: CancellationManager) -> None:
    """All children are cancelled, after the parent's own callbacks."""
    order: list[str] = []
    children = [CancellationManager(manager) for _ in range(5)]
    register(children[0], lambda: order.append("child"))
    register(manager, lambda: order.append("parent"))
    manager.start_cancel()

    assert all(child.is_cancelled for child in children)
    assert order == ["parent", "child"]


def test_child_does_not_touch_its_parent(manager: CancellationManager) -> None:
    """Cancelling a child leaves parent and siblings alone."""
    child, sibling = CancellationManager(manager), CancellationManager(manager)
    child.start_cancel()

    assert child.is_cancelled
    assert not manager.is_cancelled
    assert not sibling.is_cancelled


def test_child_of_the_cancelled_is_born_cancelled(manager: CancellationManager) -> None:
    """A manager made too late is cancelled from the start."""
    manager.start_cancel()

    assert CancellationManager(manager).is_cancelled


def test_child_of_the_cancelling_is_born_cancelled(
    manager: CancellationManager, paused: Pause
) -> None:
    """So is one that is made while its parent calls back."""
    assert CancellationManager(manager).is_cancelled
    assert not paused.go_on.is_set()


def test_closed_child_is_forgotten(manager: CancellationManager) -> None:
    """A child that closes is neither kept nor told; closing twice does no harm."""
    child = CancellationManager(manager)
    child.close()
    child.close()
    assert not manager._children
    manager.start_cancel()

    assert not child.is_cancelled


def test_children_close_in_any_order(manager: CancellationManager) -> None:
    """Those that are left when the parent is cancelled are the ones that are told."""
    children = [CancellationManager(manager) for _ in range(20)]
    random.Random(0).shuffle(children)
    for child in children[:10]:
        child.close()
    manager.start_cancel()

    assert [child.is_cancelled for child in children] == [False] * 10 + [True] * 10


def test_child_may_close_while_its_parent_cancels(manager: CancellationManager) -> None:
    """Closing never waits, so that a callback which ends a step may close its manager."""
    child = CancellationManager(manager)
    register(child, child.close)
    manager.start_cancel()

    assert child.is_cancelled


def test_grandchildren_are_told(manager: CancellationManager) -> None:
    """Cancellation goes all the way down."""
    grandchild = CancellationManager(CancellationManager(manager))
    manager.start_cancel()

    assert grandchild.is_cancelled


# -- laws ----------------------------------------------------------------------------------


def test_check_notices_a_forgotten_callback() -> None:
    """Nothing is registered with a manager that is cancelled."""
    broken = CancellationManager()
    broken.start_cancel()
    broken._callbacks[0] = never

    with pytest.raises(InternalError, match="still there"):
        broken.check()


def test_check_notices_a_stray_token() -> None:
    """Every registration has a token that was given out."""
    broken = CancellationManager()
    broken.register_callback(7, never)

    with pytest.raises(InternalError, match="never given out"):
        broken.check()


def test_check_notices_cancelling_after_its_end() -> None:
    """A manager that is cancelled is not being cancelled any more."""
    broken = CancellationManager()
    broken.is_cancelling = broken.is_cancelled = True

    with pytest.raises(InternalError, match="at the same time"):
        broken.check()


class Family(RuleBasedStateMachine):
    """Whatever is made, registered, taken back, closed and cancelled: each is called once."""

    managers = Bundle("managers")
    tokens = Bundle("tokens")

    def __init__(self) -> None:
        super().__init__()
        # The model: who is told by whom, who is cancelled, and how often each was called.
        self.parents: dict[CancellationManager, CancellationManager | None] = {}
        self.cancelled: set[CancellationManager] = set()
        self.calls: dict[tuple[CancellationManager, int], int] = {}
        self.taken_back: set[tuple[CancellationManager, int]] = set()

    @rule(target=managers)
    def make(self) -> CancellationManager:
        """A manager on its own."""
        made = CancellationManager()
        self.parents[made] = None
        return made

    @rule(target=managers, parent=managers)
    def make_child(self, parent: CancellationManager) -> CancellationManager:
        """A manager below another one."""
        made = CancellationManager(parent)
        self.parents[made] = parent
        if parent in self.cancelled:
            self.cancelled.add(made)
        return made

    @rule(target=tokens, manager=managers)
    def register(self, manager: CancellationManager) -> tuple[CancellationManager, int]:
        """Somebody wants to be told."""
        key = manager, manager.get_cancellation_token()

        def count() -> None:
            self.calls[key] += 1

        accepted = manager.register_callback(key[1], count)
        assert accepted == (manager not in self.cancelled)
        self.calls[key] = 0
        if not accepted:
            self.taken_back.add(key)
        return key

    @rule(key=tokens)
    def deregister(self, key: tuple[CancellationManager, int]) -> None:
        """Somebody does not want to be told any more."""
        manager, token = key
        is_idle = manager not in self.cancelled
        is_there = is_idle and key not in self.taken_back
        assert manager.try_deregister_callback(token) == is_there
        if is_idle:
            self.taken_back.add(key)

    @rule(manager=managers)
    def close(self, manager: CancellationManager) -> None:
        """A manager leaves its parent."""
        manager.close()
        self.parents[manager] = None

    @rule(manager=managers)
    def cancel(self, manager: CancellationManager) -> None:
        """One is cancelled, and all below it."""
        manager.start_cancel()
        told = [manager]
        while told:
            one = told.pop()
            if one in self.cancelled:
                continue
            self.cancelled.add(one)
            told += [child for child, parent in self.parents.items() if parent is one]

    @invariant()
    def laws_hold(self) -> None:
        """Those are cancelled that should be, and each callback ran once or not at all."""
        for manager in self.parents:
            manager.check()
            assert manager.is_cancelled == (manager in self.cancelled)
        for key, count in self.calls.items():
            assert count == (key[0] in self.cancelled and key not in self.taken_back)


TestFamily = Family.TestCase
