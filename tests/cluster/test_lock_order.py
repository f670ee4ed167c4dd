"""A cluster's locks are taken in the order that docs/cluster.md gives, and before all others."""

from __future__ import annotations

import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

pytest.importorskip("grpc")

ROOT = Path(__file__).parents[2]


def outer_locks(page: str) -> list[str]:
    """Locks under which others are taken, the outermost first, as a page says."""
    text = (ROOT / "docs" / page).read_text("utf-8")
    table = text.partition("<!-- locks -->")[2].partition("<!-- end of locks -->")[0]
    return re.findall(r"^\| `(\S+ \S+)` \|", table, re.MULTILINE)


OWN = outer_locks("cluster.md")
#: A part of a partial run is begun under its lock, and meets others in the cluster's places.
OUTER = [*OWN, *outer_locks("architecture.md")]


@cache
def nestings() -> list[tuple[str, str]]:
    """(outer, inner) for all that the workload has taken, by three tasks and their clients."""
    done = subprocess.run(
        [sys.executable, "-m", "support.cluster_lock_workload"],
        cwd=ROOT / "tests",
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    pairs = [line.split("\t") for line in done.stdout.splitlines()]
    return [(outer, inner) for outer, inner in pairs]


def disorder(pairs: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """The pairs that contradict the pages."""
    level = {name: number for number, name in enumerate(OUTER)}
    return [
        (outer, inner)
        for outer, inner in pairs
        if outer not in level or level.get(inner, len(OUTER)) <= level[outer]
    ]


@pytest.mark.slow
def test_locks_are_taken_in_the_order_of_the_pages() -> None:
    """No lock is taken under one that a page puts further in, or calls innermost."""
    assert disorder(nestings()) == []


@pytest.mark.slow
def test_every_lock_of_the_page_has_others_under_it() -> None:
    """The page lists those of the cluster's locks that are taken as outer ones, and no others."""
    assert set(OWN) == {outer for outer, _ in nestings() if outer.startswith("cluster/")}


def test_what_contradicts_the_pages_is_found() -> None:
    """A reversed pair, and one under a lock that no page lists."""
    client, graph = "cluster/grpc_session.py GrpcSession._lock", "graph/graph.py Graph.lock"
    steps = "cluster/rendezvous.py StepTable._lock"

    assert disorder([(client, graph)]) == []
    assert disorder([(graph, client)]) == [(graph, client)]
    assert disorder([(steps, graph)]) == [(steps, graph)]
