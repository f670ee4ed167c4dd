"""Queues by priority and barriers, while many threads put into them and take out of them."""

from __future__ import annotations

import random
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from penstock import Session, errors
from penstock.core import dtypes
from penstock.core.shapes import SCALAR
from penstock.kernels.data_flow.barrier_ops import Barrier
from penstock.kernels.data_flow.queues import Queue
from support.sketch import sketch

THREADS, EACH = 6, 40
#: Against a hang: nothing here waits for long.
DEADLINE = 120.0

PRIORITIES = """
    p = Placeholder() dtype=int64
    v = Placeholder() dtype=int32
    n = Placeholder() dtype=int32
    q = PriorityQueueV2() component_types=['int32'] shapes=[[]] capacity=16
    put = QueueEnqueueV2(q, p, v)
    take = QueueDequeueV2(q) component_types=['int64','int32']
    take_many = QueueDequeueUpToV2(q, n) component_types=['int64','int32']
    close = QueueCloseV2(q)
"""

BARRIER = """
    k = Placeholder() dtype=string
    v = Placeholder() dtype=int32
    n = Placeholder() dtype=int32
    b = Barrier() component_types=['int32','int32'] shapes=[[],[]]
    put_0 = BarrierInsertMany(b, k, v) component_index=0
    put_1 = BarrierInsertMany(b, k, v) component_index=1
    take = BarrierTakeMany(b, n) component_types=['int32','int32'] allow_small_batch=True
    close = BarrierClose(b)
    incomplete = BarrierIncompleteSize(b)
"""


def together(works: Sequence[Callable[[], None]]) -> None:
    """Do all of it at the same time; the first failure of any thread is this one's."""
    failures: list[BaseException] = []

    def guarded(work: Callable[[], None]) -> None:
        try:
            work()
        except BaseException as failure:  # noqa: BLE001 - raised below
            failures.append(failure)

    threads = [threading.Thread(target=guarded, args=(work,), daemon=True) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(DEADLINE)
        assert not thread.is_alive()
    if failures:
        raise failures[0]


def test_elements_put_by_many_threads_come_out_once() -> None:
    """What several threads put into a small queue by priority, several others get, each once."""
    taken: list[list[tuple[int, int]]] = [[] for _ in range(THREADS)]
    with Session(sketch(PRIORITIES)) as session:

        def put(first: int) -> None:
            for number in range(first, THREADS * EACH, THREADS):
                session.run("put", {"p:0": np.int64(number % 7), "v:0": np.int32(number)})

        def take(mine: list[tuple[int, int]]) -> None:
            fetches = ["take:0", "take:1"]
            mine += [tuple(map(int, session.run(fetches))) for _ in range(EACH)]

        together(
            [lambda first=first: put(first) for first in range(THREADS)]
            + [lambda mine=mine: take(mine) for mine in taken]
        )

    every = [element for mine in taken for element in mine]
    assert sorted(number for _, number in every) == list(range(THREADS * EACH))
    assert all(priority == number % 7 for priority, number in every)


def test_what_many_threads_put_comes_out_by_priority() -> None:
    """Once all is in, the smallest priorities come out first, also in pieces."""
    graph = PRIORITIES.replace("capacity=16", "capacity=-1")
    with Session(sketch(graph)) as session:
        numbers = list(range(THREADS * EACH))
        random.Random(0).shuffle(numbers)

        def put(mine: Sequence[int]) -> None:
            for number in mine:
                session.run("put", {"p:0": np.int64(-number), "v:0": np.int32(number)})

        together([lambda at=at: put(numbers[at::THREADS]) for at in range(THREADS)])
        session.run("close")
        pieces = [session.run("take_many:0", {"n:0": np.int32(count)}) for count in (7, 100, 10**6)]

    assert np.concatenate(pieces).tolist() == sorted(-number for number in numbers)


@pytest.mark.parametrize("closes_early", [False, True])
def test_takers_of_a_barrier_get_each_tuple_once(*, closes_early: bool) -> None:
    """Components that different threads bring meet under their key, and one taker gets them.

    A barrier that is closed before its tuples are complete ends when the last one is.
    """
    total = THREADS * EACH
    got: Counter[tuple[bytes, int, int]] = Counter()
    lock = threading.Lock()
    with Session(sketch(BARRIER)) as session:

        def put(component: int, at: int) -> None:
            numbers = list(range(at, total, THREADS))
            random.Random(component * THREADS + at).shuffle(numbers)
            for first in range(0, len(numbers), 5):
                some = numbers[first : first + 5]
                keys = np.array([b"%d" % number for number in some], object)
                values = np.array(some, np.int32) * (component + 1)
                session.run(f"put_{component}", {"k:0": keys, "v:0": values})

        def take() -> None:
            fetches = ["take:1", "take:2", "take:3"]
            try:
                while True:
                    parts = session.run(fetches, {"n:0": np.int32(3)})
                    with lock:
                        got.update(zip(*(part.tolist() for part in parts), strict=True))
            except errors.OutOfRangeError:
                return

        both = [[lambda c=c, at=at: put(c, at) for at in range(THREADS)] for c in (0, 1)]
        if closes_early:
            together(both[0])
            session.run("close")
            together([*both[1], take, take, take])
        else:
            together([*both[0], *both[1]])
            session.run("close")
            together([take, take, take])
        assert session.run("incomplete:0") == 0

    assert got == Counter((b"%d" % number, number, 2 * number) for number in range(total))


def test_a_barrier_ends_behind_tuples_that_are_on_the_way(monkeypatch: pytest.MonkeyPatch) -> None:
    """The call that completes the last tuple does not end it under one that is slower."""
    barrier = Barrier("b", (dtypes.int32,) * 2, (SCALAR,) * 2)
    barrier.insert([b"x", b"y"], [np.int32(1), np.int32(2)], 0)
    barrier.close(cancels=False)
    enqueue, has_begun, may_go_on = Queue.enqueue_at_once, threading.Event(), threading.Event()

    def slow(queue: Queue, components: Sequence[Any]) -> bool:
        if components[1] == b"x":
            has_begun.set()
            assert may_go_on.wait(DEADLINE)
        return enqueue(queue, components)

    def second() -> None:
        assert has_begun.wait(DEADLINE)
        barrier.insert([b"y"], [np.int32(4)], 1)
        may_go_on.set()

    monkeypatch.setattr(Queue, "enqueue_at_once", slow)
    together([lambda: barrier.insert([b"x"], [np.int32(3)], 1), second])

    assert barrier.ready_size == 2
