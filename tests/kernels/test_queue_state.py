"""The life of a queue, without threads: who is served when."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock import errors
from penstock.kernels.data_flow.queue_state import Close, Put, QueueRequest, QueueState, Take
from penstock.kernels.data_flow.queue_stores import FifoStore, PriorityStore, ShuffleStore
from penstock.state.waits import Wait


class Driver:
    """Carries requests out and notes what became of them."""

    def __init__(self, capacity: int = 100, store: Any = None) -> None:
        self.state = QueueState("FIFOQueue 'q'", capacity, FifoStore() if store is None else store)
        #: Outcomes by request: None, or the error.
        self.outcomes: dict[Wait, errors.OpError | None] = {}

    def put(self, *items: int) -> Put:
        return self._add(Put(_ignore, [(item,) for item in items]))

    def take(self, count: int = 1, *, may_be_fewer: bool = False) -> Take:
        return self._add(Take(_ignore, count, may_be_fewer=may_be_fewer))

    def close(self) -> Close:
        return self._add(Close(_ignore))

    def close_now(self) -> None:
        self._note(self.state.close())

    def cancel(self, request: QueueRequest) -> None:
        self._note(self.state.cancel(request))

    def _add(self, request: Any) -> Any:
        self._note(self.state.add(request))
        return request

    def _note(self, settled: list[Wait]) -> None:
        for request in settled:
            (self.outcomes[request],) = request.outcome

    def content(self) -> list[int]:
        """What is in the queue, in order."""
        store: Any = self.state.store
        return [element[0] for element in getattr(store, "_elements", store)]

    def got(self, take: Take) -> list[int]:
        assert self.outcomes[take] is None
        return [element[0] for element in take.taken]


def _ignore(_error: errors.OpError | None) -> None:
    """Reports go nowhere: these tests look at what the state returns."""


def test_those_who_wait_are_served_in_order() -> None:
    """The first to ask is the first to get, even if the second one wants less."""
    queue = Driver()
    many, one = queue.take(3), queue.take()
    queue.put(1, 2)
    assert one not in queue.outcomes

    queue.put(3, 4)

    assert queue.got(many) == [1, 2, 3]
    assert queue.got(one) == [4]


def test_requests_may_be_larger_than_the_queue() -> None:
    """More than fits goes through the queue piece by piece."""
    queue = Driver(capacity=2)
    put = queue.put(1, 2, 3, 4, 5)
    assert put not in queue.outcomes

    take = queue.take(4)

    assert queue.got(take) == [1, 2, 3, 4]
    assert queue.outcomes[put] is None
    assert queue.content() == [5]


def test_cancelled_take_gives_everything_back_in_order() -> None:
    """What a cancelled request had taken is there for the next one, in front."""
    queue = Driver()
    queue.put(1, 2)
    take = queue.take(3)
    assert len(queue.state.store) == 0

    queue.cancel(take)

    assert isinstance(queue.outcomes[take], errors.CancelledError)
    queue.put(3)
    assert queue.got(queue.take(3)) == [1, 2, 3]


def test_cancelling_the_first_lets_the_second_on() -> None:
    """Who stood behind a cancelled request gets what it gave back."""
    queue = Driver()
    queue.put(1)
    many, one = queue.take(3), queue.take()

    queue.cancel(many)

    assert queue.got(one) == [1]


def test_cancelled_put_leaves_what_is_in() -> None:
    """Elements that already found room stay."""
    queue = Driver(capacity=2)
    put = queue.put(1, 2, 3)

    queue.cancel(put)

    assert queue.content() == [1, 2]
    assert str(queue.outcomes[put]) == "Enqueue operation was cancelled"


def test_cancelled_before_it_came() -> None:
    """A request that was cancelled on its way is not let in."""
    queue = Driver()
    request = Put(_ignore, [(1,)])
    queue.cancel(request)

    assert queue.state.add(request) == []
    assert len(queue.state.store) == 0


def test_settled_request_cannot_be_cancelled() -> None:
    """Cancelling too late changes nothing."""
    queue = Driver()
    put = queue.put(1)
    queue.cancel(put)

    assert queue.outcomes[put] is None
    assert queue.content() == [1]


def test_closing_waits_for_those_who_put() -> None:
    """What was put before the close gets in; what is put after it does not."""
    queue = Driver(capacity=1)
    first, close = queue.put(1, 2), queue.close()
    late = queue.put(3)
    assert close not in queue.outcomes
    assert not queue.state.is_closed

    queue.take(2)

    assert queue.outcomes[first] is None
    assert queue.outcomes[close] is None
    assert str(queue.outcomes[late]) == "FIFOQueue 'q' is closed."


def test_closing_now_cancels_those_who_put() -> None:
    """What waits to get in is turned away; what is in stays."""
    queue = Driver(capacity=1)
    put, close = queue.put(1, 2), queue.close()
    queue.close_now()

    assert isinstance(queue.outcomes[put], errors.CancelledError)
    assert queue.outcomes[close] is None
    assert queue.got(queue.take()) == [1]


def test_second_close_is_refused() -> None:
    """A closed queue cannot be closed again, except with cancellation."""
    queue = Driver()
    queue.close()
    again = queue.close()
    queue.close_now()

    assert str(queue.outcomes[again]) == "Queue 'q' is already closed."


def test_closed_queue_gives_what_it_has() -> None:
    """A closed queue serves as long as it can, then says what is missing."""
    queue = Driver()
    queue.put(1)
    queue.close()
    take = queue.take(3)

    assert isinstance(queue.outcomes[take], errors.OutOfRangeError)
    assert "is closed and has insufficient elements (requested 3, current size 1)" in str(
        queue.outcomes[take]
    )
    assert queue.got(queue.take()) == [1]


def test_fewer_will_do_when_the_queue_is_closed() -> None:
    """UpTo takes what is left, and fails when nothing is."""
    queue = Driver()
    waiting = queue.take(3, may_be_fewer=True)
    queue.put(1)
    assert waiting not in queue.outcomes

    queue.close()

    assert queue.got(waiting) == [1]
    assert isinstance(queue.outcomes[queue.take(3, may_be_fewer=True)], errors.OutOfRangeError)


def test_insufficient_elements_go_to_the_next() -> None:
    """What a request for too many had taken serves the one behind it."""
    queue = Driver()
    many, few = queue.take(3), queue.take(3, may_be_fewer=True)
    queue.put(1, 2)

    queue.close()

    assert isinstance(queue.outcomes[many], errors.OutOfRangeError)
    assert queue.got(few) == [1, 2]


def test_priorities_come_in_order() -> None:
    """The smallest priority is first."""
    store = PriorityStore()
    queue = Driver(store=store)
    queue._add(Put(_ignore, [(3, "a"), (1, "b"), (2, "c"), (1, "d")]))

    take = queue.take(4)

    assert [element[1] for element in take.taken] == ["b", "d", "c", "a"]


def test_shuffling_keeps_a_minimum_until_the_end() -> None:
    """Enough elements stay to choose from, unless nothing more can come."""
    queue = Driver(store=ShuffleStore(2, itertools.count()))
    queue.put(*range(5))
    assert sorted(queue.got(queue.take(3)))
    waiting = queue.take(2)
    assert waiting not in queue.outcomes

    queue.close()

    assert len(queue.got(waiting)) == 2


@pytest.mark.parametrize(
    "store", [FifoStore, lambda: ShuffleStore(0, itertools.count(7))], ids=["fifo", "shuffle"]
)
@given(
    steps=st.lists(
        st.tuples(
            st.sampled_from(["put", "take", "up_to", "cancel", "close", "close_now"]),
            st.integers(1, 5),
        ),
        max_size=30,
    ),
    capacity=st.integers(1, 6),
)
def test_nothing_is_lost_or_doubled(
    store: Callable[[], Any], steps: list[tuple[str, int]], capacity: int
) -> None:
    """Each element is in the queue, with one taker, or still with who puts it: once."""
    queue = Driver(capacity, store())
    requests: list[Any] = []
    made = 0
    for what, number in steps:
        if what == "put":
            requests.append(queue.put(*range(made, made + number)))
            made += number
        elif what in ("take", "up_to"):
            requests.append(queue.take(number, may_be_fewer=what == "up_to"))
        elif what == "close":
            requests.append(queue.close())
        elif what == "close_now":
            queue.close_now()
        elif requests:
            queue.cancel(requests[number % len(requests)])
    held = queue.content()
    for request in requests:
        elements = getattr(request, "left", ()) or getattr(request, "taken", ())
        held += [element[0] for element in elements]
        assert request.is_settled == (request in queue.outcomes)

    assert sorted(held) == list(range(made))
    if queue.state.is_closed:
        assert all(request.is_settled for request in requests)


@given(st.lists(st.integers(1, 4), max_size=12), st.lists(st.integers(1, 4), max_size=12))
def test_fifo_order_survives_any_mix_of_sizes(puts: list[int], takes: list[int]) -> None:
    """However elements go in and come out, they come out in the order they went in."""
    queue = Driver(capacity=3)
    made, taken = 0, []
    waiting = [queue.take(count) for count in takes]
    for count in puts:
        queue.put(*range(made, made + count))
        made += count
    for take in waiting:
        taken += [element[0] for element in take.taken]

    assert taken == list(range(len(taken)))


def test_nobody_overtakes_those_who_wait() -> None:
    """What could be done at once is not, as long as an older request waits."""
    full, empty = Driver(capacity=1), Driver()
    full.put(1, 2)
    many = empty.take(2)

    assert full.state.put_at_once((3,)) is None
    assert full.state.take_at_once(1) is None
    assert empty.state.take_at_once(1) is None
    assert empty.state.put_at_once((1,)) == []
    assert many not in empty.outcomes
    settled = empty.state.put_at_once((2,))
    assert settled is not None
    assert [request.taken for request in settled] == [[(1,), (2,)]]  # type: ignore[attr-defined]


def test_at_once_is_only_what_can_be_done_at_once() -> None:
    """No element goes into a full queue or a closed one, and none comes that is not there."""
    queue = Driver(capacity=2)

    assert queue.state.take_at_once(1) is None
    assert [queue.state.put_at_once((i,)) for i in range(3)] == [[], [], None]
    assert queue.state.take_at_once(3) is None
    assert queue.state.take_at_once(1) == [(0,)]
    queue.state.close()
    assert queue.state.put_at_once((4,)) is None
    assert queue.state.take_at_once(1) == [(1,)]
