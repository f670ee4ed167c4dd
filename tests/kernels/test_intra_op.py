"""Work on several cores: every piece once, errors, nesting."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from penstock.kernels.parallel import intra_op
from penstock.kernels.parallel.contention import Contention
from penstock.kernels.parallel.intra_op import parallel_for


@pytest.fixture(params=[0, 1, 3])
def helpers(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    """A number of threads beside the caller's, none included."""
    count: int = request.param
    monkeypatch.setattr(intra_op, "HELPERS", count)
    monkeypatch.setattr(intra_op, "_threads", [])
    return count


@pytest.mark.usefixtures("helpers")
@pytest.mark.parametrize("count", [0, 1, 2, 100])
def test_every_piece_is_done_once(count: int) -> None:
    """When it returns, each number below the count has been there once."""
    seen: list[int] = []
    parallel_for(count, seen.append)
    assert sorted(seen) == list(range(count))


def test_pieces_meet(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two pieces that wait for each other do not wait forever where there are two threads."""
    monkeypatch.setattr(intra_op, "HELPERS", 1)
    monkeypatch.setattr(intra_op, "_threads", [])
    both = threading.Barrier(2)
    parallel_for(2, lambda _: both.wait(timeout=60) and None)


@pytest.mark.usefixtures("helpers")
def test_pieces_may_have_pieces() -> None:
    """A piece may share its own work, though all threads may be taken."""
    seen: list[int] = []
    parallel_for(6, lambda i: parallel_for(5, lambda j: seen.append(5 * i + j)))
    assert sorted(seen) == list(range(30))


@pytest.mark.usefixtures("helpers")
def test_callers_do_not_meet() -> None:
    """Several threads share work at a time, and each gets its own."""
    sums: list[int] = []

    def add_up() -> None:
        seen: list[int] = []
        parallel_for(50, seen.append)
        sums.append(sum(seen))

    threads = [threading.Thread(target=add_up) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sums == [sum(range(50))] * 8


@pytest.mark.usefixtures("helpers")
def test_an_error_reaches_the_caller() -> None:
    """What a piece raises is raised; the threads are there for the next call."""

    def fail(number: int) -> None:
        if number == 3:
            raise ValueError("the third")

    with pytest.raises(ValueError, match="the third"):
        parallel_for(10, fail)
    seen: list[int] = []
    parallel_for(4, seen.append)
    assert sorted(seen) == [0, 1, 2, 3]


@pytest.mark.usefixtures("helpers")
def test_numpy_is_silent_everywhere() -> None:
    """A division by zero warns in no thread, if it does not in the caller's."""
    found: list[np.float32] = []
    with np.errstate(all="ignore"):
        parallel_for(20, lambda _: found.append(np.float32(1) / np.float32(0)))
    assert found == [np.inf] * 20


def test_whole_kernels_side_by_side_share_the_cores() -> None:
    """One that works alone has all helpers; each of several has its share until they end."""
    machine, seen = Contention(), []
    for more in (0, 1, 1, 1, -1, -1, -1):
        machine.count(more)
        seen.append(machine.helpers(7))
    assert seen == [7, 7, 3, 1, 3, 7, 7]


def test_uneven_times_of_equal_pieces_end_the_sharing(monkeypatch: pytest.MonkeyPatch) -> None:
    """If others hold the cores, one thread does all pieces; it is tried again after a while."""
    now = [100.0]
    machine = Contention()
    shared: list[int] = []
    monkeypatch.setattr("penstock.kernels.parallel.contention.perf_counter", lambda: now[0])
    monkeypatch.setattr(intra_op, "contention", machine)
    monkeypatch.setattr(intra_op, "parallel_for", lambda count, _body: shared.append(count))

    def is_shared() -> bool:
        done, before = list[int](), len(shared)
        with monkeypatch.context() as patch:
            patch.setattr(Contention, "note", lambda *_: None)
            intra_op.parallel_equal(4, done.append)
        assert (done == [0, 1, 2, 3]) == (len(shared) == before)
        return len(shared) > before

    machine.note([0.001, 0.0012])
    assert is_shared()
    machine.note([0.001, 0.009])
    assert is_shared()  # once may be memory that a helper had lost
    machine.note([0.001, 0.009])
    assert not is_shared()
    now[0] += 10
    assert is_shared()
