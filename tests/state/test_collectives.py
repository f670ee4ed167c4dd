"""Collective operations: what members exchange, and how that ends."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.core import dtypes
from penstock.errors import CancelledError, DeadlineExceededError, InternalError, OpError
from penstock.state.cancellation import CancellationManager
from penstock.state.collective_groups import Collective, CollectiveGroups, CollectiveKind
from penstock.state.collectives import CollectiveExecutor, Member
from penstock.state.rendezvous import Rendezvous


def device(number: int, task: int = 0) -> str:
    return f"/job:worker/replica:0/task:{task}/device:CPU:{number}"


def member(number: int, size: int, shape: tuple[int, ...] = (), **facts: Any) -> Collective:
    facts = {
        "group_key": 1,
        "instance_key": 1,
        "kind": CollectiveKind.REDUCE,
        "dtype": dtypes.float64,
        "device": device(number),
        **facts,
    }
    return Collective(group_size=size, shape=shape, **facts)


def all_together(
    values: list[Any],
    exchange: Callable[[Member, Any], Any],
    *,
    seed: int | None = None,
    **options: int,
) -> list[Any]:
    """What each member gets; they come in turn or, with a seed, in threads of their own."""
    executor, cancellation = CollectiveExecutor(**options), CancellationManager()
    results: list[Any] = [None] * len(values)
    all_done = threading.Semaphore(0)

    def come(number: int) -> None:
        def done(result: Any) -> None:
            results[number] = result
            all_done.release()

        executor.run(
            member(number, len(values), np.shape(values[number])),
            lambda place: exchange(place, values[number]),
            done,
            cancellation=cancellation,
        )

    numbers = list(range(len(values)))
    if seed is None:
        for number in numbers:
            come(number)
    else:
        random.Random(seed).shuffle(numbers)
        threads = [threading.Thread(target=come, args=(number,)) for number in numbers]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    for _ in numbers:
        assert all_done.acquire(timeout=30)
    return results


def added(place: Member, value: Any) -> Any:
    return place.reduce(value, np.add, lambda total: total)


@given(st.integers(1, 7), st.integers(0, 200), st.integers(0, 1000), st.sampled_from([16, 64, 999]))
def test_everybody_has_the_sum(members: int, size: int, seed: int, piece: int) -> None:
    """Of whole numbers, which add up to the same in any order; in pieces of any size."""
    values = list(np.random.default_rng(seed).integers(-99, 99, (members, size)).astype(float))
    found = all_together(values, added, piece_bytes=piece)
    for one in found:
        np.testing.assert_array_equal(one, np.sum(values, axis=0))


@pytest.mark.parametrize("seed", range(5))
def test_members_may_come_on_threads_of_their_own(seed: int) -> None:
    """Whoever is last, all have the same bits, and the values that were brought are as before."""
    values = list(np.random.default_rng(seed).normal(size=(5, 1000)))
    before = [value.copy() for value in values]
    found = all_together(values, added, seed=seed)
    np.testing.assert_allclose(found[0], np.sum(values, axis=0), rtol=1e-12)
    for one in found:
        np.testing.assert_array_equal(one, found[0])
    for value, old in zip(values, before, strict=True):
        np.testing.assert_array_equal(value, old)


@given(st.integers(1, 9))
def test_gathering_and_exchanging_are_a_concatenation_and_a_transposition(members: int) -> None:
    """By rank, for any number of members."""
    values = list(np.arange(members * members * 2.0).reshape(members, members, 2))
    gathered = all_together(values, Member.gather)
    exchanged = all_together(values, Member.exchange)
    for one in gathered:
        np.testing.assert_array_equal(one, np.concatenate(values))
    np.testing.assert_array_equal(exchanged, np.swapaxes(values, 0, 1))


def test_ranks_are_in_the_order_of_numbers() -> None:
    """Task 2 comes before task 10, and its devices before those of task 10."""
    executor, found = CollectiveExecutor(), {}
    devices = [device(0, 10), device(10, 2), device(2, 2)]
    for one in devices:
        executor.run(
            member(0, 3, (1,), device=one, kind=CollectiveKind.GATHER),
            lambda place: place.gather(np.array([place.place.rank])),
            lambda result, one=one: found.update({one: result.tolist()}),
            cancellation=CancellationManager(),
        )
    assert found == {one: [0, 1, 2] for one in devices}

    ranks: dict[str, int] = {}
    for one in devices:

        def exchange(place: Member, one: str = one) -> Any:
            ranks[one] = place.place.rank
            return place.gather(np.zeros(1))

        executor.run(
            member(0, 3, device=one, instance_key=2),
            exchange,
            lambda _result: None,
            cancellation=CancellationManager(),
        )
    assert ranks == {device(2, 2): 0, device(10, 2): 1, device(0, 10): 2}


def test_processes_share_groups_and_send_by_peers_of_their_own() -> None:
    """Two executors, one way between them: what each sends goes by nothing but keys."""
    sent: list[str] = []

    class Wire(Rendezvous):
        def send(self, key: str, value: Any, *, is_dead: bool = False) -> None:
            sent.append(key)
            super().send(key, value, is_dead=is_dead)

    groups, wire, found = CollectiveGroups(), Wire(), []
    for task in range(2):
        CollectiveExecutor(lambda _: wire, groups).run(
            member(0, 2, (3,), device=device(0, task)),
            lambda place: added(place, np.float64([1, 2, 3])),
            found.append,
            cancellation=CancellationManager(),
        )
    assert [one.tolist() for one in found] == [[2, 4, 6]] * 2
    sources = {Rendezvous.parse_key(key).src_device for key in sent}
    assert sources == {device(0, 0), device(0, 1)}


# -- how it ends -------------------------------------------------------------------------------


def waiting(executor: CollectiveExecutor, one: Collective, **options: Any) -> list[Any]:
    """What becomes of a member, as soon as that is known."""
    found: list[Any] = []
    options = {"cancellation": CancellationManager(), **options}
    executor.run(one, lambda place: place.gather(np.zeros(1)), found.append, **options)
    return found


def test_a_mistake_of_one_member_ends_the_waits_of_all() -> None:
    """And nobody can take part in anything of this step any more."""
    executor = CollectiveExecutor()
    first = waiting(executor, member(0, 2, (1,)))
    other = waiting(executor, member(3, 2, (1,), group_key=9))
    wrong = waiting(executor, member(1, 3, (1,)))
    late = waiting(executor, member(5, 1, (1,), group_key=10))
    for [error] in (first, other, wrong, late):
        assert isinstance(error, InternalError)
        assert "aborted by: Device" in error.reason
        assert "but that group has size 2" in error.reason


def test_who_is_cancelled_takes_the_others_along() -> None:
    """They would wait for ever."""
    executor, cancellation = CollectiveExecutor(), CancellationManager()
    other = waiting(executor, member(0, 3))
    own = waiting(executor, member(1, 3), cancellation=cancellation)
    cancellation.start_cancel()
    assert isinstance(own[0], CancelledError)
    assert isinstance(other[0], CancelledError)
    assert own[0].derived
    executor.end_waits()
    assert len(own) == len(other) == 1


def test_a_cancelled_member_ends_in_the_middle_of_its_exchange() -> None:
    """The others have come, but one of them sends nothing."""
    executor, cancellation = CollectiveExecutor(), CancellationManager()
    executor.run(
        member(1, 2, (1,)),
        lambda _place: (_ for _ in ()),
        lambda _r: None,
        cancellation=cancellation,
    )
    own = waiting(executor, member(0, 2, (1,)), cancellation=cancellation)
    assert own == []
    cancellation.start_cancel()
    assert isinstance(own[0], OpError)
    assert own[0].derived


def test_time_is_up_for_members_that_wait_in_vain() -> None:
    """All of them, once for each."""
    executor, is_over = CollectiveExecutor(), threading.Event()
    other = waiting(executor, member(0, 3))
    executor.run(
        member(1, 3),
        lambda place: place.gather(np.zeros(1)),
        lambda result: (other.append(result), is_over.set()),
        cancellation=CancellationManager(),
        timeout_seconds=0.01,
    )
    assert is_over.wait(30)
    assert [type(error) for error in other] == [DeadlineExceededError] * 2


def test_what_an_exchange_raises_is_the_members_result() -> None:
    """Nobody else is there to be told."""

    def broken(_place: Member) -> Any:
        raise ValueError("no")
        yield ""

    found: list[Any] = []
    CollectiveExecutor().run(member(0, 1), broken, found.append, cancellation=CancellationManager())
    assert isinstance(found[0], ValueError)
