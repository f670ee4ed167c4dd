"""Locks are taken in the order that docs/architecture.md gives, and in no other."""

from __future__ import annotations

import re
import subprocess
import sys
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "architecture.md").read_text("utf-8")
TABLE = PAGE.partition("<!-- locks -->")[2].partition("<!-- end of locks -->")[0]
#: Locks under which others are taken, the outermost first.
OUTER = re.findall(r"^\| `(\S+ \S+)` \|", TABLE, re.MULTILINE)


@cache
def nestings() -> list[tuple[str, str]]:
    """(outer, inner) for all that the workload has taken, by several threads."""
    done = subprocess.run(
        [sys.executable, "-m", "support.lock_workload"],
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
    """The pairs that contradict the page: an outer lock that it calls innermost, or the reverse."""
    level = {name: number for number, name in enumerate(OUTER)}
    return [
        (outer, inner)
        for outer, inner in pairs
        if outer not in level or level.get(inner, len(OUTER)) <= level[outer]
    ]


def test_locks_are_taken_in_the_order_of_the_page() -> None:
    """No lock is taken under one that the page puts further in, or calls innermost."""
    assert disorder(nestings()) == []


def test_every_lock_of_the_page_has_others_under_it() -> None:
    """What the page lists is there, and is met by the workload as an outer lock."""
    assert len(OUTER) > 10
    assert set(OUTER) == {outer for outer, _ in nestings()}


def test_what_contradicts_the_page_is_found() -> None:
    """A reversed pair, and one under a lock that is not on the page, are both reported."""
    barrier = "kernels/data_flow/barrier_ops.py Barrier._lock"
    monitor = "state/waits.py Monitor._lock"
    graph = "graph/graph.py Graph.lock"

    assert disorder([(barrier, monitor)]) == []
    assert disorder([(monitor, barrier)]) == [(monitor, barrier)]
    assert disorder([(barrier, graph)]) == [(barrier, graph)]
    assert disorder([(graph, graph)]) == [(graph, graph)]


def test_nothing_is_locked_under_the_lock_of_those_who_wait() -> None:
    """Where one waits, no lock is taken under the monitor's, a cancellation manager's included."""
    monitor = "state/waits.py Monitor._lock"

    assert monitor in {inner for _, inner in nestings()}
    assert [inner for outer, inner in nestings() if outer == monitor] == []
