"""Locks are taken in the order that docs/architecture.md gives, and in no other."""

from __future__ import annotations

from functools import partial

from support.lock_order import disorder, nestings, outer_locks

#: Locks under which others are taken, the outermost first.
OUTER = outer_locks("architecture.md")
#: What several threads have taken.
taken = partial(nestings, "support.lock_workload")


def test_locks_are_taken_in_the_order_of_the_page() -> None:
    """No lock is taken under one that the page puts further in, or calls innermost."""
    assert disorder(taken(), OUTER) == []


def test_every_lock_of_the_page_has_others_under_it() -> None:
    """What the page lists is there, and is met by the workload as an outer lock."""
    assert len(OUTER) > 10
    assert set(OUTER) == {outer for outer, _ in taken()}


def test_what_contradicts_the_page_is_found() -> None:
    """A reversed pair, and one under a lock that is not on the page, are both reported."""
    barrier = "kernels/data_flow/barrier_ops.py Barrier._lock"
    monitor = "state/waits.py Monitor._lock"
    graph = "graph/graph.py Graph.lock"

    assert disorder([(barrier, monitor)], OUTER) == []
    assert disorder([(monitor, barrier)], OUTER) == [(monitor, barrier)]
    assert disorder([(barrier, graph)], OUTER) == [(barrier, graph)]
    assert disorder([(graph, graph)], OUTER) == [(graph, graph)]


def test_nothing_is_locked_under_the_lock_of_those_who_wait() -> None:
    """Where one waits, no lock is taken under the monitor's, a cancellation manager's included."""
    monitor = "state/waits.py Monitor._lock"

    assert monitor in {inner for _, inner in taken()}
    assert [inner for outer, inner in taken() if outer == monitor] == []
