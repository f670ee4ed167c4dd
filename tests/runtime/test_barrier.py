"""Several executors of one step: when they are done, and whose error is reported."""

from __future__ import annotations

import threading

import pytest

from penstock.errors import (
    AbortedError,
    CancelledError,
    InternalError,
    InvalidArgumentError,
    NotFoundError,
    OpError,
    Where,
)
from penstock.runtime.executor.barrier import ExecutorBarrier, summarize
from penstock.state.rendezvous import Rendezvous


def derived(text: str) -> OpError:
    return CancelledError(text, derived=True)


def test_done_is_called_when_the_last_one_arrives() -> None:
    """The barrier waits for all executors, and then reports once."""
    outcome: list[OpError | None] = []
    barrier = ExecutorBarrier(3, None, outcome.append)
    barrier.arrive(None)
    barrier.arrive(None)
    assert outcome == []
    barrier.arrive(None)
    assert outcome == [None]


def test_the_first_error_aborts_the_rendezvous() -> None:
    """The others are told by the rendezvous as soon as one has failed."""
    outcome: list[OpError | None] = []
    rendezvous = Rendezvous()
    barrier = ExecutorBarrier(2, rendezvous, outcome.append)
    root = InvalidArgumentError("root")
    barrier.arrive(root)
    with pytest.raises(AbortedError, match="Stopping remaining executors") as caught:
        rendezvous.send("x", 1)
    assert caught.value.derived
    assert outcome == []
    barrier.arrive(caught.value)
    assert outcome == [root]


def test_arrivals_from_many_threads() -> None:
    """Thirty-two threads arrive at once; one report comes, with the one root error."""
    outcome: list[OpError | None] = []
    barrier = ExecutorBarrier(32, Rendezvous(), outcome.append)
    start = threading.Barrier(32)

    def arrive(number: int) -> None:
        start.wait(5.0)
        barrier.arrive(NotFoundError("root") if number == 7 else derived("d"))

    threads = [threading.Thread(target=arrive, args=(number,)) for number in range(32)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [str(error) for error in outcome] == ["root"]


def test_no_error_is_none() -> None:
    """Executors without errors sum up to no error."""
    assert summarize([]) is None


def test_a_single_root_error_is_reported_as_it_is() -> None:
    """Consequences are left out when their cause is known."""
    root = InvalidArgumentError("root", where=Where("n", "Op"))
    assert summarize([derived("a"), root, derived("b")]) is root


def test_without_a_root_the_first_consequence_is_reported() -> None:
    """If all errors are consequences, the first to arrive stands for them."""
    first = derived("a")
    assert summarize([first, derived("b")]) is first


def test_equal_errors_count_once() -> None:
    """The same error from several executors is one root error."""
    errors = [NotFoundError("x"), NotFoundError("x"), NotFoundError("x")]
    assert summarize(errors) is errors[0]


def test_several_root_errors_are_listed() -> None:
    """Different root errors are listed; the first that is no cancellation gives the kind."""
    errors = [
        CancelledError("stop"),
        derived("d"),
        InternalError("broken", where=Where("n", "Op")),
        NotFoundError("gone"),
    ]
    summary = summarize(errors)
    assert type(summary) is InternalError
    assert summary.node_name == "n"
    text = str(summary)
    assert "3 root error(s) found." in text
    assert "(0) CANCELLED: stop" in text
    assert "(1) INTERNAL: broken" in text
    assert "(2) NOT_FOUND: gone" in text
    assert "1 derived errors ignored." in text


def test_all_cancelled_is_cancelled() -> None:
    """If all root errors are cancellations, so is the sum."""
    assert type(summarize([CancelledError("a"), CancelledError("b")])) is CancelledError


def test_long_messages_are_cut() -> None:
    """However long and however many errors there are, the text stays readable."""
    errors: list[OpError] = [InternalError(f"{i} " + "x" * 10_000) for i in range(20)]
    summary = summarize(errors)
    assert summary is not None
    assert len(str(summary)) < 10_000
