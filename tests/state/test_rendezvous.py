"""The hand-over keeps its promises whichever side comes first."""

from __future__ import annotations

import contextlib
import random
import threading
from collections import deque
from collections.abc import Callable, Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    invariant,
    multiple,
    rule,
)

from penstock.core.values import DEAD, Value
from penstock.errors import (
    AbortedError,
    CancelledError,
    DeadlineExceededError,
    InternalError,
    InvalidArgumentError,
    OpError,
)
from penstock.state.cancellation import CancellationManager
from penstock.state.frame_and_iter import FrameAndIter, frame_id
from penstock.state.rendezvous import (
    Rendezvous,
    RendezvousKey,
    key_prefix,
    parse_key,
)
from penstock.state.waits import Wait

CPU = "/job:localhost/replica:0/task:0/device:CPU:0"
GPU = "/job:localhost/replica:0/task:0/device:GPU:7"
X = str(RendezvousKey(CPU, 1, GPU, "x"))
Y = str(RendezvousKey(CPU, 1, GPU, "y"))

Answer = tuple[OpError | None, Value, bool]


class Asker:
    """Asks for one key, and keeps what it is told."""

    def __init__(
        self, meeting: Rendezvous, key: str, manager: CancellationManager | None = None
    ) -> None:
        self.answers: list[Answer] = []
        meeting.recv_async(key, lambda *answer: self.answers.append(answer), manager)

    @property
    def values(self) -> list[Value]:
        return [value for _, value, _ in self.answers]

    @property
    def errors(self) -> list[OpError | None]:
        return [error for error, _, _ in self.answers]


def in_threads(*jobs: Callable[[], None]) -> None:
    """Run all jobs at once, and wait for them; a job that hangs fails the test."""
    threads = [threading.Thread(target=job, daemon=True) for job in jobs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
        assert not thread.is_alive()


@pytest.fixture
def meeting() -> Iterator[Rendezvous]:
    """Yield a rendezvous, and check its laws once more when the test ends."""
    rendezvous = Rendezvous()
    yield rendezvous
    rendezvous.check()


# -- keys ----------------------------------------------------------------------------------


def test_key_is_spelled_as_in_tensorflow() -> None:
    """Five parts: source, incarnation in 16 hex digits, destination, name, frame and turn."""
    key = RendezvousKey(CPU, 7890, GPU, "var0", 3, 10)

    assert str(key) == f"{CPU};0000000000001ed2;{GPU};var0;3:10"
    assert parse_key(str(key)) == key


def test_signed_incarnation_is_its_64_bits() -> None:
    """An attribute holds the number signed; both spellings make the same key."""
    assert key_prefix(CPU, -1, GPU, "v") == key_prefix(CPU, (1 << 64) - 1, GPU, "v")
    assert ";ffffffffffffffff;" in key_prefix(CPU, -1, GPU, "v")


@given(
    st.integers(0, (1 << 64) - 1),
    st.integers(0, (1 << 64) - 1),
    st.integers(0, 1 << 62),
    st.text("ab/_:0", min_size=1),
)
def test_every_key_can_be_read_back(life: int, frame: int, turn: int, name: str) -> None:
    """Writing and reading a key loses nothing, and the prefix is how every key begins."""
    key = RendezvousKey(CPU, life, GPU, name, frame, turn)

    assert parse_key(str(key)) == key
    assert str(key) == f"{key_prefix(CPU, life, GPU, name)}{frame}:{turn}"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "x",
        f"{CPU};1;{GPU};var0",
        f"{CPU};1;{GPU};var0;0:0;more",
        f"{CPU};xyz;{GPU};var0;0:0",
        f"{CPU};{17 * '1'};{GPU};var0;0:0",
        f"{CPU};1;{GPU};;0:0",
        f"{CPU};1;{GPU};var0;0",
        f"{CPU};1;{GPU};var0;0:-1",
        f"{CPU};1;{GPU};var0;0:1_0",
        f";1;{GPU};var0;0:0",
        f"/job:localhost/device:CPU:0;1;{GPU};var0;0:0",
        f"{CPU};1;/nowhere;var0;0:0",
    ],
)
def test_malformed_keys_are_refused(text: str) -> None:
    """A key lacks a part, or a part is not what it should be: the text is shown."""
    with pytest.raises(InvalidArgumentError) as caught:
        parse_key(text)

    assert caught.value.reason == f"Invalid  rendezvous key: {text}"


# -- meeting -------------------------------------------------------------------------------


def test_value_sent_first_waits_for_its_receiver(meeting: Rendezvous) -> None:
    """A value nobody wants yet is kept until someone asks."""
    meeting.send(X, 7)

    assert meeting.recv(X) == 7


def test_receiver_first_is_called_when_the_value_comes(meeting: Rendezvous) -> None:
    """Asking early costs nothing: the value is delivered on arrival."""
    asker = Asker(meeting, X)
    assert meeting.waiting() == [X]
    meeting.send(X, 7)

    assert asker.answers == [(None, 7, False)]
    assert meeting.waiting() == []


def test_dead_value_is_delivered_as_dead(meeting: Rendezvous) -> None:
    """Deadness travels with the value, by either way of receiving."""
    asker = Asker(meeting, X)
    meeting.send(X, DEAD, is_dead=True)
    meeting.send(X, 5, is_dead=True)

    assert asker.answers == [(None, DEAD, True)]
    assert meeting.recv(X) is DEAD


def test_several_values_of_one_key_keep_their_order(meeting: Rendezvous) -> None:
    """Sending twice under one key is no error: first in, first out, on both sides."""
    early = [Asker(meeting, X) for _ in range(2)]
    for value in range(4):
        meeting.send(X, value)

    assert [asker.values for asker in early] == [[0], [1]]
    assert [meeting.recv(X), meeting.recv(X)] == [2, 3]


def test_turns_of_a_loop_do_not_mix(meeting: Rendezvous) -> None:
    """The same edge in two iterations is two hand-overs."""
    prefix = key_prefix(CPU, 1, GPU, "x")
    meeting.send(f"{prefix}5:1", "second")
    meeting.send(f"{prefix}5:0", "first")

    assert meeting.recv(f"{prefix}5:0") == "first"


def test_keys_meet_in_any_order(meeting: Rendezvous) -> None:
    """A hundred keys, sent in one order and received in another, at the same time."""
    keys = [str(RendezvousKey(CPU, 1, GPU, f"x{i}")) for i in range(100)]
    sent, received = list(keys), list(keys)
    random.Random(1).shuffle(sent)
    random.Random(2).shuffle(received)
    got: dict[str, Value] = {}

    def send() -> None:
        for key in sent:
            meeting.send(key, key)

    def receive() -> None:
        for key in received:
            got[key] = meeting.recv(key, timeout=10)

    in_threads(send, receive)

    assert got == {key: key for key in keys}


def test_two_threads_play_ping_pong(meeting: Rendezvous) -> None:
    """Each side waits for the other's value, in both directions, many times."""
    scores: list[int] = []

    def ping() -> None:
        for turn in range(50):
            meeting.send(X, turn)
            scores.append(meeting.recv(Y, timeout=10))

    def pong() -> None:
        for _ in range(50):
            meeting.send(Y, meeting.recv(X, timeout=10) + 100)

    in_threads(ping, pong)

    assert scores == list(range(100, 150))


def test_callback_may_send_and_receive_again(meeting: Rendezvous) -> None:
    """Callbacks run outside the lock, so that a hand-over may set off the next one."""
    got: list[Value] = []

    def relay(_error: OpError | None, value: Value, _is_dead: bool) -> None:
        meeting.send(Y, value + 1)
        meeting.recv_async(Y, lambda _e, v, _d: got.append(v))

    meeting.recv_async(X, relay)
    meeting.send(X, 1)

    assert got == [2]


def test_recv_gives_up_in_time(meeting: Rendezvous) -> None:
    """Waiting in vain ends with the deadline, and names what was waited for."""
    with pytest.raises(DeadlineExceededError, match=r"Timed out waiting for notification.*'x'"):
        meeting.recv("x", timeout=0.001)


def test_receiver_out_of_time_still_takes_its_iteration(meeting: Rendezvous) -> None:
    """As in TensorFlow, whoever gave up keeps its place, and the value for it is lost."""
    with pytest.raises(DeadlineExceededError):
        meeting.recv(X, timeout=0.001)
    meeting.send(X, "lost")
    meeting.send(X, "found")

    assert meeting.recv(X) == "found"


# -- clients -------------------------------------------------------------------------------


def test_short_keys_mean_transfers_with_the_client(meeting: Rendezvous) -> None:
    """A plain name meets a node's key from and to the client's device in the root frame."""
    meeting.send("input", 3)
    meeting.send(str(RendezvousKey(CPU, 1, CPU, "output:0")), 4)

    assert meeting.recv(str(RendezvousKey(CPU, 1, CPU, "input"))) == 3
    assert meeting.recv("output:0") == 4


def test_client_may_be_elsewhere() -> None:
    """The client's device and its incarnation are the constructor's."""
    meeting = Rendezvous(GPU, 99)
    meeting.send("input", 3)

    assert meeting.recv(str(RendezvousKey(GPU, 99, GPU, "input"))) == 3


# -- abort ---------------------------------------------------------------------------------


def test_abort_fails_early_and_late_receivers_alike(meeting: Rendezvous) -> None:
    """Nobody is left waiting after an abort, and the first reason wins."""
    first = AbortedError("node a failed")
    early = Asker(meeting, X)
    meeting.start_abort(first)
    meeting.start_abort(InternalError("an echo of the first"))
    late = Asker(meeting, X)

    assert early.errors == [first]
    assert late.errors == [first]
    with pytest.raises(AbortedError, match="node a failed") as caught:
        meeting.recv(X)
    assert caught.value is not first  # each thread that raises it has its own traceback


def test_abort_drops_values_and_refuses_new_ones(meeting: Rendezvous) -> None:
    """Values nobody asked for are gone, and sending raises the reason."""
    meeting.send(X, 7)
    meeting.start_abort(AbortedError("too late"))

    with pytest.raises(AbortedError, match="too late"):
        meeting.send(X, 8)
    assert isinstance(Asker(meeting, X).errors[0], AbortedError)


def test_abort_wakes_a_blocked_thread(meeting: Rendezvous) -> None:
    """A thread that waits for ever is woken by the abort and raises its reason."""
    caught: list[OpError] = []

    def wait() -> None:
        try:
            meeting.recv(X)
        except OpError as error:
            caught.append(error)

    def abort() -> None:
        while not meeting.waiting():
            pass
        meeting.start_abort(AbortedError("stop"))

    in_threads(wait, abort)

    assert [error.reason for error in caught] == ["stop"]


def test_abort_reaches_everyone_though_one_fails(meeting: Rendezvous) -> None:
    """A receiver whose callback raises does not leave the others waiting."""

    def fail(_error: OpError | None, _value: Value, _is_dead: bool) -> None:
        raise RuntimeError("careless")

    meeting.recv_async(X, fail)
    asker = Asker(meeting, Y)

    with pytest.raises(RuntimeError, match="careless"):
        meeting.start_abort(AbortedError("stop"))
    assert len(asker.errors) == 1


def test_close_tells_whoever_waits(meeting: Rendezvous) -> None:
    """A meeting place that is given up says so, as a consequence and not as a cause."""
    asker = Asker(meeting, X)
    meeting.close()

    (error,) = asker.errors
    assert isinstance(error, CancelledError)
    assert error.reason == "LocalRendezvous deleted"
    assert error.derived


# -- cancellation --------------------------------------------------------------------------


def test_cancelled_manager_fails_a_receiver_at_once(meeting: Rendezvous) -> None:
    """Whoever asks on behalf of something cancelled is told without being queued."""
    manager = CancellationManager()
    manager.start_cancel()
    asker = Asker(meeting, X, manager)

    (error,) = asker.errors
    assert isinstance(error, CancelledError)
    assert error.reason == "RecvAsync is cancelled."
    assert error.derived
    assert meeting.waiting() == []


def test_value_that_is_there_beats_cancellation(meeting: Rendezvous) -> None:
    """Cancellation is asked only when there is nothing to receive."""
    manager = CancellationManager()
    manager.start_cancel()
    meeting.send(X, 7)

    assert Asker(meeting, X, manager).answers == [(None, 7, False)]


def test_cancellation_wakes_a_receiver(meeting: Rendezvous) -> None:
    """Cancelling after asking ends the waiting, and the key can be used again."""
    manager = CancellationManager()
    asker = Asker(meeting, X, manager)
    manager.start_cancel()
    meeting.send(X, 7)

    assert isinstance(asker.errors[0], CancelledError)
    assert len(asker.answers) == 1
    assert meeting.recv(X) == 7


def test_cancellation_takes_out_only_its_own_receiver(meeting: Rendezvous) -> None:
    """Others that wait for the same key keep their turns."""
    managers = [CancellationManager() for _ in range(3)]
    askers = [Asker(meeting, X, manager) for manager in managers]
    managers[1].start_cancel()
    meeting.send(X, "a")
    meeting.send(X, "b")

    assert askers[0].values == ["a"]
    assert isinstance(askers[1].errors[0], CancelledError)
    assert askers[2].values == ["b"]


def test_cancellation_that_comes_too_late_takes_out_nobody(meeting: Rendezvous) -> None:
    """A receiver that is served while its manager cancels leaves the next one in its place."""
    manager = CancellationManager()
    manager.register_callback(manager.get_cancellation_token(), lambda: meeting.send(X, "a"))
    served, waiting = Asker(meeting, X, manager), Asker(meeting, X)
    manager.start_cancel()
    meeting.send(X, "b")

    assert served.answers == [(None, "a", False)]
    assert waiting.answers == [(None, "b", False)]


@pytest.mark.parametrize("ending", ["value", "abort"])
def test_served_receiver_leaves_its_manager(meeting: Rendezvous, ending: str) -> None:
    """Nothing stays registered for whoever has its answer; a later cancellation is silent."""
    manager = CancellationManager()
    asker = Asker(meeting, X, manager)
    if ending == "value":
        meeting.send(X, 7)
    else:
        meeting.start_abort(AbortedError("stop"))

    assert not manager._callbacks
    manager.start_cancel()
    assert len(asker.answers) == 1


def test_racing_ends_answer_once() -> None:
    """A value, a cancellation and an abort at the same time: exactly one answer."""
    for _ in range(50):
        meeting = Rendezvous()
        manager = CancellationManager()
        asker = Asker(meeting, X, manager)
        barrier = threading.Barrier(3)

        def send(meeting: Rendezvous = meeting, barrier: threading.Barrier = barrier) -> None:
            barrier.wait(10)
            with contextlib.suppress(AbortedError):
                meeting.send(X, 7)

        def cancel(
            manager: CancellationManager = manager, barrier: threading.Barrier = barrier
        ) -> None:
            barrier.wait(10)
            manager.start_cancel()

        def abort(meeting: Rendezvous = meeting, barrier: threading.Barrier = barrier) -> None:
            barrier.wait(10)
            meeting.start_abort(AbortedError("stop"))

        in_threads(send, cancel, abort)

        assert len(asker.answers) == 1
        meeting.check()


# -- laws ----------------------------------------------------------------------------------


def never(_error: OpError | None, _value: Value, _is_dead: bool) -> None:
    """Stand in for a callback that must not be called."""
    pytest.fail("called")


def test_check_notices_both_sides_waiting() -> None:
    """A value and a receiver waiting together is reported as our own mistake."""
    broken = Rendezvous()
    broken._values[X] = deque([(7, False)])
    broken._receivers[X] = deque([Wait(never, X)])

    with pytest.raises(InternalError, match="both a value and a receiver wait for"):
        broken.check()


def test_check_notices_life_after_abort() -> None:
    """Nothing waits in a meeting place that was aborted."""
    broken = Rendezvous()
    broken.start_abort(AbortedError("stop"))
    broken._values[X] = deque([(7, False)])

    with pytest.raises(InternalError, match="aborted"):
        broken.check()


def test_check_notices_an_empty_queue() -> None:
    """A key without anyone waiting is not kept."""
    broken = Rendezvous()
    broken._receivers[X] = deque()

    with pytest.raises(InternalError, match="empty queue"):
        broken.check()


class AnyOrder(RuleBasedStateMachine):
    """Whatever the order of sends, asks and cancellations, a key behaves as one queue."""

    askers = Bundle("askers")

    def __init__(self) -> None:
        super().__init__()
        self.meeting = Rendezvous()
        # The model: values and askers that wait, by key, and what each asker must have got.
        self.values: dict[str, deque[int]] = {X: deque(), Y: deque()}
        self.waiting: dict[str, deque[tuple[Asker, CancellationManager]]] = {
            X: deque(),
            Y: deque(),
        }
        self.expected: list[tuple[Asker, list[Value]]] = []
        self.reason: OpError | None = None

    @rule(key=st.sampled_from([X, Y]), value=st.integers())
    def send(self, key: str, value: int) -> None:
        """A value comes."""
        if self.reason is not None:
            with pytest.raises(AbortedError):
                self.meeting.send(key, value)
            return
        self.meeting.send(key, value)
        if self.waiting[key]:
            asker, _ = self.waiting[key].popleft()
            self.expected.append((asker, [value]))
        else:
            self.values[key].append(value)

    @rule(target=askers, key=st.sampled_from([X, Y]))
    def ask(self, key: str) -> object:
        """Somebody asks, and may wait."""
        manager = CancellationManager()
        asker = Asker(self.meeting, key, manager)
        if self.reason is not None:
            assert asker.errors == [self.reason]
        elif self.values[key]:
            self.expected.append((asker, [self.values[key].popleft()]))
        else:
            self.waiting[key].append((asker, manager))
            return key, asker, manager
        return multiple()

    @rule(waiting=consumes(askers))
    def cancel(self, waiting: tuple[str, Asker, CancellationManager]) -> None:
        """One of those who waited is cancelled, perhaps after it was served."""
        key, asker, manager = waiting
        manager.start_cancel()
        if (asker, manager) in self.waiting[key]:
            self.waiting[key].remove((asker, manager))
            assert isinstance(asker.errors[0], CancelledError)

    @rule()
    def abort(self) -> None:
        """The step ends early."""
        reason = AbortedError("stop")
        self.meeting.start_abort(reason)
        self.reason = self.reason or reason
        for key, queue in self.waiting.items():
            for asker, _ in queue:
                assert asker.errors == [self.reason]
            queue.clear()
            self.values[key].clear()

    @invariant()
    def laws_hold(self) -> None:
        """Each asker got its value, those that wait got nothing, and the laws hold."""
        self.meeting.check()
        assert set(self.meeting.waiting()) == {k for k, queue in self.waiting.items() if queue}
        assert all(asker.values == values for asker, values in self.expected)
        assert all(not a.answers for queue in self.waiting.values() for a, _ in queue)


TestAnyOrder = AnyOrder.TestCase


def test_keys_are_made_from_their_parts() -> None:
    """The five parts stand in the order of TensorFlow's keys, incarnations as 16 hex digits."""
    key = Rendezvous.create_key(CPU, 255, GPU, "edge_3_x", FrameAndIter(7, 2))

    assert key == f"{CPU};00000000000000ff;{GPU};edge_3_x;7:2"
    assert Rendezvous.parse_key(key) == RendezvousKey(CPU, 255, GPU, "edge_3_x", 7, 2)
    assert Rendezvous.create_key(CPU, 1, GPU, "x") == X
    assert Rendezvous.create_key(CPU, -1, GPU, "x").split(";")[1] == "f" * 16


@pytest.mark.parametrize(
    "parts", [("CPU:0", 1, GPU, "x"), (CPU, 1, "/device:GPU:0", "x"), (CPU, 1, GPU, "x;y")]
)
def test_keys_that_nobody_could_read_are_not_made(parts: tuple[str, int, str, str]) -> None:
    """Devices are named in full, and no part has what separates them."""
    with pytest.raises(InvalidArgumentError, match="Invalid  rendezvous key"):
        Rendezvous.create_key(*parts)


def test_iterations_are_numbered_by_the_loops_around_them() -> None:
    """A frame's number depends on its name and all that is around it, but for its iteration."""
    assert FrameAndIter.of() == FrameAndIter() == (0, 0)
    outer = frame_id(0, 0, "a")
    assert FrameAndIter.of(("a", 3)) == (outer, 3)
    assert FrameAndIter.of(("a", 3), ("b", 1)) == (frame_id(outer, 3, "b"), 1)
    ids = {FrameAndIter.of(*loops).frame_id for loops in ([("a", 0)], [("b", 0)])}
    ids |= {FrameAndIter.of(("a", turn), ("b", 0)).frame_id for turn in range(3)}
    assert len(ids) == 5


def test_frames_have_the_numbers_that_tensorflow_gives_them() -> None:
    """Both numbers were seen in the keys that TensorFlow's tasks ask each other for."""
    assert frame_id(0, 0, "while/while_context") == 18186195969791715286
    assert frame_id(0, 0, "while") == 6315961604705615773
