"""A cluster's locks are taken in the order that docs/cluster.md gives, and before all others."""

from __future__ import annotations

from functools import partial

import pytest

from support.lock_order import disorder, nestings, outer_locks

pytest.importorskip("grpc")

OWN = outer_locks("cluster.md")
#: A part of a partial run is begun under its lock, and meets others in the cluster's places.
OUTER = [*OWN, *outer_locks("architecture.md")]
#: What three tasks and their clients have taken.
taken = partial(nestings, "support.cluster_lock_workload")


@pytest.mark.slow
def test_locks_are_taken_in_the_order_of_the_pages() -> None:
    """No lock is taken under one that a page puts further in, or calls innermost."""
    assert disorder(taken(), OUTER) == []


@pytest.mark.slow
def test_every_lock_of_the_page_has_others_under_it() -> None:
    """The page lists those of the cluster's locks that are taken as outer ones, and no others."""
    assert set(OWN) == {outer for outer, _ in taken() if outer.startswith("cluster/")}


def test_what_contradicts_the_pages_is_found() -> None:
    """A reversed pair, and one under a lock that no page lists."""
    client, graph = "cluster/grpc_session.py GrpcSession._lock", "graph/graph.py Graph.lock"
    steps = "cluster/rendezvous.py StepTable._lock"

    assert disorder([(client, graph)], OUTER) == []
    assert disorder([(graph, client)], OUTER) == [(graph, client)]
    assert disorder([(steps, graph)], OUTER) == [(steps, graph)]
