"""The counts by which a node becomes ready."""

from __future__ import annotations

import pytest

from penstock.errors import ResourceExhaustedError
from penstock.runtime.executor.pending_counts import (
    MERGE_WAITS_FOR_DATA,
    ONE_DEAD,
    PENDING,
    PENDING_BITS,
    PendingCounts,
)


def pending(count: int) -> int:
    """The pending part of an entry."""
    return count & PENDING


def dead(count: int) -> int:
    """The dead part of an entry."""
    return count >> PENDING_BITS


def test_an_ordinary_node_waits_for_every_edge() -> None:
    """An ordinary node starts with its number of in-edges, none of them dead."""
    counts = PendingCounts()
    for edges in (0, 1, 7, 8, 5000):
        index = counts.add_ordinary(edges)
        assert pending(counts.initial[index]) == edges
        assert dead(counts.initial[index]) == 0


def test_a_merge_waits_for_one_value_and_all_control_inputs() -> None:
    """A Merge starts with one for its first live value, and two per control input."""
    counts = PendingCounts()
    assert counts.initial[counts.add_merge(0)] == MERGE_WAITS_FOR_DATA
    assert counts.initial[counts.add_merge(3)] == 7


def test_copies_are_independent() -> None:
    """What happens in one iteration is not seen in another."""
    counts = PendingCounts()
    index = counts.add_ordinary(2)
    first, second = counts.initial[:], counts.initial[:]
    first[index] -= 1
    assert (first[index], second[index], counts.initial[index]) == (1, 2, 2)


def test_dead_and_pending_do_not_mix() -> None:
    """One addition counts a dead arrival: pending falls by one, dead grows by one."""
    counts = PendingCounts()
    count = counts.initial[counts.add_ordinary(3)]
    for arrived in range(1, 4):
        count += ONE_DEAD - 1
        assert (pending(count), dead(count)) == (3 - arrived, arrived)


def test_live_mark_clears_the_low_bit_once() -> None:
    """The first live value of a Merge clears the low bit; the control part stays."""
    counts = PendingCounts()
    count = counts.initial[counts.add_merge(2)]
    count -= 1
    assert count & 1 == 0
    assert pending(count) == 4


def test_too_many_inputs_are_refused() -> None:
    """More inputs than the pending part can count are refused rather than miscounted."""
    counts = PendingCounts()
    counts.add_ordinary(PENDING)
    with pytest.raises(ResourceExhaustedError):
        counts.add_ordinary(PENDING + 1)
