"""One law for all who wait: for a value, an element, a turn, or a change of some state."""

from __future__ import annotations

import itertools
import random
import threading
from collections.abc import Callable
from functools import partial
from typing import Any, Protocol

import numpy as np
import pytest

from penstock.core import dtypes
from penstock.core.shapes import SCALAR
from penstock.errors import AbortedError, CancelledError, InternalError
from penstock.kernels.api.turns import Turns
from penstock.kernels.api.wait_queue import NOT_YET, WaitQueue
from penstock.kernels.data_flow.queue_stores import FifoStore
from penstock.kernels.data_flow.queues import Queue, QueueSpec
from penstock.state.cancellation import CancellationManager
from penstock.state.rendezvous import Rendezvous
from penstock.state.waits import Monitor, Notification, Wait, tell_all

#: Told as one argument: what was waited for, or the error.
Told = Callable[[Any], None]


class Place(Protocol):
    """Somewhere to wait, with the same few words for all of them."""

    monitor: Monitor[Any]

    def ask(self, told: Told, manager: CancellationManager) -> None:
        """Wait for the next thing."""

    def serve(self, thing: int) -> None:
        """Bring a thing, for one of those who wait or the next to come."""

    def end(self) -> None:
        """Give the place up."""


class AtRendezvous:
    """Receivers of one key."""

    def __init__(self) -> None:
        self.monitor = self.rendezvous = Rendezvous()

    def ask(self, told: Told, manager: CancellationManager) -> None:
        self.rendezvous.recv_async("x", lambda error, value, _: told(error or value), manager)

    def serve(self, thing: int) -> None:
        self.rendezvous.send("x", thing)

    def end(self) -> None:
        self.rendezvous.start_abort(AbortedError("given up"))


class AtQueue:
    """Those who take single elements."""

    def __init__(self) -> None:
        spec = QueueSpec(kind="FIFOQueue", types=(dtypes.int32,), shapes=(SCALAR,), capacity=100)
        self.monitor = self.queue = Queue("q", spec, FifoStore())

    def ask(self, told: Told, manager: CancellationManager) -> None:
        def done(outcome: Any) -> None:
            told(outcome[0] if isinstance(outcome, tuple) else outcome)

        self.queue.dequeue(manager, done)

    def serve(self, thing: int) -> None:
        assert self.queue.enqueue_at_once((thing,))

    def end(self) -> None:
        self.queue.end_waits()


class AtWaitQueue:
    """Attempts on a list."""

    def __init__(self) -> None:
        self.monitor = self.waits = WaitQueue("was cancelled")
        self.things: list[int] = []

    def ask(self, told: Told, manager: CancellationManager) -> None:
        self.waits.submit(lambda: self.things.pop(0) if self.things else NOT_YET, manager, told)

    def serve(self, thing: int) -> None:
        self.waits.run(partial(self.things.append, thing))

    def end(self) -> None:
        self.waits.end()


PLACES = pytest.mark.parametrize("make", [AtRendezvous, AtQueue, AtWaitQueue])


class Asker:
    """Somebody who waits, and checks what he may rely on when he is told."""

    def __init__(self, place: Place, manager: CancellationManager | None = None) -> None:
        self.place = place
        self.manager = manager or CancellationManager()
        self.answers: list[Any] = []
        #: What was wrong when the callback was called.
        self.breaches: list[str] = []
        place.ask(self._told, self.manager)

    def _told(self, answer: Any) -> None:
        self.answers.append(answer)
        if not _is_free(self.place.monitor._lock):
            self.breaches.append("called under the lock")
        if self.manager._callbacks and not self.manager.is_cancelling:
            self.breaches.append("called while it still listens")

    @property
    def is_told_once(self) -> bool:
        return len(self.answers) == 1 and not self.breaches and not self.manager._callbacks


def _is_free(lock: Any) -> bool:
    """Whether this thread holds the lock not; others may have it for a moment."""
    taken: bool = lock.acquire(timeout=10)
    if taken:
        lock.release()
    return taken


def in_threads(jobs: list[Callable[[], None]]) -> None:
    """Run all jobs at once, and wait for them; a job that hangs or raises fails the test."""
    start, raised = threading.Barrier(len(jobs)), []

    def run(job: Callable[[], None]) -> None:
        start.wait(30)
        try:
            job()
        except BaseException as error:  # noqa: BLE001  (raised by the test's own thread)
            raised.append(error)

    threads = [threading.Thread(target=run, args=(job,), daemon=True) for job in jobs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
        assert not thread.is_alive()
    assert raised == []


# -- each ending ---------------------------------------------------------------------------


@PLACES
def test_who_need_not_wait_never_listens(make: Callable[[], Place]) -> None:
    """What is there is given at once, even to somebody who is cancelled already."""
    place, manager = make(), CancellationManager()
    place.serve(7)
    manager.start_cancel()
    asker = Asker(place, manager)

    assert asker.answers == [7]
    assert manager.get_cancellation_token() == 0
    assert asker.is_told_once


@PLACES
def test_who_waits_is_served(make: Callable[[], Place]) -> None:
    """The callback comes with the thing, outside of the lock, and nothing stays registered."""
    place = make()
    asker = Asker(place)
    assert asker.answers == []
    assert len(asker.manager._callbacks) == 1

    place.serve(7)

    assert asker.answers == [7]
    assert asker.is_told_once


@PLACES
@pytest.mark.parametrize("is_early", [False, True])
def test_who_waits_is_cancelled(make: Callable[[], Place], is_early: bool) -> None:
    """Before it asks or after: it learns so, and what comes later is for the next one."""
    place, manager = make(), CancellationManager()
    if is_early:
        manager.start_cancel()
    asker = Asker(place, manager)
    manager.start_cancel()
    place.serve(7)

    assert [type(answer) for answer in asker.answers] == [CancelledError]
    assert asker.is_told_once
    assert Asker(place).answers == [7]


@PLACES
def test_who_waits_is_told_that_the_place_is_given_up(make: Callable[[], Place]) -> None:
    """Those who wait, and those who come later."""
    place = make()
    early = Asker(place)
    place.end()
    late = Asker(place)

    for asker in (early, late):
        assert isinstance(asker.answers[0], CancelledError | AbortedError)
        assert asker.is_told_once


@PLACES
@pytest.mark.parametrize("order", [*itertools.permutations(["serve", "cancel", "end"])])
def test_the_first_ending_counts(make: Callable[[], Place], order: tuple[str, ...]) -> None:
    """In every order of a thing, a cancellation and the end, the later ones are not heard."""
    place = make()
    asker = Asker(place)
    endings = {"serve": partial(place.serve, 7), "cancel": asker.manager.start_cancel}
    for name in order:
        is_over = order.index("end") < order.index("serve")
        if name == "serve" and is_over and isinstance(place, AtRendezvous):
            continue  # nothing can be sent to a step that was aborted
        endings.get(name, place.end)()

    wanted = {"serve": int, "cancel": CancelledError, "end": CancelledError | AbortedError}
    assert isinstance(asker.answers[0], wanted[order[0]])
    assert asker.is_told_once


# -- faults at the worst moment ------------------------------------------------------------


class Meddling(CancellationManager):
    """Does something at one moment of somebody's registration."""

    def __init__(self, moment: str, act: Callable[[], object]) -> None:
        super().__init__()
        self.moment = moment
        self.act = act

    def get_cancellation_token(self) -> int:
        self._meddle("before the token")
        token = super().get_cancellation_token()
        self._meddle("after the token")
        return token

    def register_callback(self, token: int, callback: Callable[[], None]) -> bool:
        registered = super().register_callback(token, callback)
        self._meddle("after registering")
        return registered

    def _meddle(self, moment: str) -> None:
        if moment == self.moment:
            self.act()


MOMENTS = pytest.mark.parametrize(
    "moment", ["before the token", "after the token", "after registering"]
)


@PLACES
@MOMENTS
def test_served_while_it_registers(make: Callable[[], Place], moment: str) -> None:
    """A thing that comes between standing in line and listening is given, and nothing stays."""
    place = make()
    asker = Asker(place, Meddling(moment, lambda: place.serve(7)))

    assert asker.answers == [7]
    assert not asker.manager._callbacks


@PLACES
@MOMENTS
def test_cancelled_while_it_registers(make: Callable[[], Place], moment: str) -> None:
    """A cancellation in the middle of registering is not missed."""
    place = make()
    manager: Meddling = Meddling(moment, lambda: manager.start_cancel())  # noqa: PLW0108  (not yet)
    asker = Asker(place, manager)

    assert [type(answer) for answer in asker.answers] == [CancelledError]
    place.serve(7)
    assert asker.is_told_once


@PLACES
@MOMENTS
def test_served_and_cancelled_while_it_registers(make: Callable[[], Place], moment: str) -> None:
    """Both at once: it has what it was served, and is not told again."""
    place = make()

    def both() -> None:
        place.serve(7)
        manager.start_cancel()

    manager = Meddling(moment, both)
    asker = Asker(place, manager)

    assert asker.answers == [7]
    assert asker.is_told_once


@PLACES
def test_cancelled_at_the_moment_it_is_served(make: Callable[[], Place]) -> None:
    """A cancellation between serving and telling comes too late, and takes nothing away."""
    place = make()
    asker, following = Asker(place), Asker(place)
    tell = Wait.tell

    def cancel_first(wait: Wait) -> None:
        asker.manager.start_cancel()
        tell(wait)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Wait, "tell", cancel_first)
        place.serve(7)

    assert asker.answers == [7]
    assert following.answers == []
    place.serve(8)
    assert following.answers == [8]


@PLACES
def test_a_callback_may_cancel_and_ask_again(make: Callable[[], Place]) -> None:
    """Callbacks are called under no lock, so that they may do what they like with the place."""
    place, manager = make(), CancellationManager()
    other = Asker(place, manager)
    got: list[Any] = []

    def told(answer: Any) -> None:
        got.append(answer)
        place.serve(8)
        place.ask(got.append, CancellationManager())

    second = make()
    second.ask(lambda _: manager.start_cancel(), CancellationManager())
    place.ask(told, CancellationManager())
    second.serve(1)  # cancels the one in front
    place.serve(7)

    assert isinstance(other.answers[0], CancelledError)
    assert got == [7, 8]


@PLACES
def test_a_careless_callback_keeps_nobody_waiting(make: Callable[[], Place]) -> None:
    """When the place is given up everybody is told, though the first of them raises."""
    place = make()

    def careless(_answer: Any) -> None:
        raise RuntimeError("careless")

    place.ask(careless, CancellationManager())
    askers = [Asker(place) for _ in range(3)]
    with pytest.raises(RuntimeError, match="careless"):
        place.end()

    assert all(asker.is_told_once for asker in askers)


def test_who_stands_in_line_listens_though_a_callback_raises() -> None:
    """Somebody whose coming settles another listens before that other is told, who may raise."""
    spec = QueueSpec(kind="FIFOQueue", types=(dtypes.int32,), shapes=(SCALAR,), capacity=1)
    queue, manager = Queue("q", spec, FifoStore()), CancellationManager()
    told: list[Any] = []

    def careless(_answer: Any) -> None:
        raise RuntimeError("careless")

    queue.dequeue(CancellationManager(), careless)
    with pytest.raises(RuntimeError, match="careless"):
        queue.enqueue_many((np.arange(3, dtype=np.int32),), manager, told.append)
    manager.start_cancel()

    assert [type(answer) for answer in told] == [CancelledError]


def test_nobody_is_settled_twice() -> None:
    """To settle a wait again is a mistake of ours, and leaves the first outcome."""
    wait = Wait(lambda *_: None)
    wait.settle(1)

    with pytest.raises(InternalError, match="settled twice"):
        wait.settle(2)
    assert wait.outcome == (1,)


def test_everyone_is_told_in_order() -> None:
    """Waits are told in the order in which they were settled."""
    told: list[int] = []
    waits = [Wait(told.append) for _ in range(5)]
    for number, wait in enumerate(waits):
        wait.settle(number)
    tell_all(waits)

    assert told == [0, 1, 2, 3, 4]


# -- races ---------------------------------------------------------------------------------


@PLACES
@pytest.mark.parametrize("seed", range(5))
def test_whatever_races_everyone_is_told_once(make: Callable[[], Place], seed: int) -> None:
    """Many ask, some are cancelled, things come, from many threads in any order: none is lost."""
    place, dice = make(), random.Random(seed)
    things, askers = list(range(60)), [_Racer(place) for _ in range(90)]
    jobs: list[Callable[[], None]] = [asker.start for asker in askers]
    jobs += [asker.manager.start_cancel for asker in dice.sample(askers, 45)]
    jobs += [partial(place.serve, thing) for thing in things]
    dice.shuffle(jobs)
    in_threads([partial(_all, jobs[number::8]) for number in range(8)])
    left = [_Racer(place) for _ in range(len(askers) + len(things))]
    for racer in left:
        racer.start()
    for racer in (*askers, *left):
        racer.manager.start_cancel()

    answers = [racer.answers for racer in (*askers, *left)]
    assert {len(answer) for answer in answers} == {1}
    assert sorted(a for (a,) in answers if isinstance(a, int)) == things
    assert not any(racer.manager._callbacks for racer in (*askers, *left))


class _Racer:
    """Somebody who asks when it is time."""

    def __init__(self, place: Place) -> None:
        self.place = place
        self.manager = CancellationManager()
        self.answers: list[Any] = []

    def start(self) -> None:
        self.place.ask(self.answers.append, self.manager)


def _all(jobs: list[Callable[[], None]]) -> None:
    for job in jobs:
        job()


# -- turns ---------------------------------------------------------------------------------


def test_turns_come_in_order() -> None:
    """Who has the turn keeps it till it is given back; then the next in line begins."""
    turns, log = Turns(), []
    for number in range(3):
        turns.take(CancellationManager(), lambda error, number=number: log.append((number, error)))
    assert log == [(0, None)]
    turns.give_back()
    turns.give_back()

    assert log == [(0, None), (1, None), (2, None)]


def test_who_is_cancelled_in_line_never_has_the_turn() -> None:
    """The turn goes to the one behind; a cancellation of whoever has it changes nothing."""
    turns, log = Turns(), []
    managers = [CancellationManager() for _ in range(3)]
    for number, manager in enumerate(managers):
        turns.take(manager, lambda error, number=number: log.append((number, type(error))))
    managers[0].start_cancel()
    managers[1].start_cancel()
    turns.give_back()

    assert log == [(0, type(None)), (1, CancelledError), (2, type(None))]


def test_a_long_line_needs_no_deep_stack() -> None:
    """Thousands who are done at once have their turns on one thread."""
    turns, log = Turns(), []

    def begin(error: object, number: int) -> None:
        log.append((number, error))
        turns.give_back()

    turns.take(CancellationManager(), lambda _: None)
    for number in range(5000):
        turns.take(CancellationManager(), partial(begin, number=number))
    turns.give_back()

    assert log == [(number, None) for number in range(5000)]


def test_the_line_goes_on_though_somebody_raises() -> None:
    """Whoever raises after it has given the turn back keeps nobody waiting."""
    turns, log = Turns(), []

    def careless(_error: object) -> None:
        turns.give_back()
        raise RuntimeError("careless")

    turns.take(CancellationManager(), lambda _: None)
    turns.take(CancellationManager(), careless)
    turns.take(CancellationManager(), log.append)
    with pytest.raises(RuntimeError, match="careless"):
        turns.give_back()

    assert log == [None]


@pytest.mark.parametrize("seed", range(5))
def test_one_has_the_turn_at_a_time(seed: int) -> None:
    """Many threads take turns, finish here or elsewhere, and some are cancelled: none is lost."""
    turns, dice = Turns(), random.Random(seed)
    inside, most, told, later = [0], [0], [0] * 200, []

    def begin(error: object, number: int, is_late: bool) -> None:
        told[number] += 1
        if error is not None:
            return
        inside[0] += 1
        most[0] = max(most[0], inside[0])
        if is_late:
            later.append(end)
        else:
            end()

    def end() -> None:
        inside[0] -= 1
        turns.give_back()

    def give() -> None:
        while not all(told):
            if later:
                later.pop()()

    managers = [CancellationManager() for _ in told]
    jobs: list[Callable[[], None]] = [
        partial(turns.take, manager, partial(begin, number=number, is_late=dice.random() < 0.3))
        for number, manager in enumerate(managers)
    ]
    jobs += [manager.start_cancel for manager in dice.sample(managers, 60)]
    dice.shuffle(jobs)
    in_threads([give, *(partial(_all, jobs[number::6]) for number in range(6))])

    assert told == [1] * len(told)
    assert most == [1]


# -- threads -------------------------------------------------------------------------------


def test_a_thread_waits_for_a_notification() -> None:
    """It is woken by the call, and has what was told; before, the time may be up."""
    arrival = Notification()
    assert not arrival.wait(0.001)
    threading.Timer(0.01, arrival, [1, 2]).start()

    assert arrival.wait(30)
    assert arrival.outcome == (1, 2)
