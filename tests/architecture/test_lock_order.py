"""Locks are taken in the order that docs/architecture.md gives, and in no other."""

from __future__ import annotations

import re
import subprocess
import sys
from functools import cache
from pathlib import Path

from penstock.state.cancellation import CancellationManager
from penstock.state.rendezvous import Rendezvous

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
    rendezvous = "state/rendezvous.py Rendezvous._lock"
    manager = "state/cancellation.py CancellationManager._lock"
    graph = "graph/graph.py Graph.lock"

    assert disorder([(rendezvous, manager)]) == []
    assert disorder([(manager, rendezvous)]) == [(manager, rendezvous)]
    assert disorder([(rendezvous, graph)]) == [(rendezvous, graph)]
    assert disorder([(graph, graph)]) == [(graph, graph)]


def test_a_rendezvous_takes_the_managers_lock_under_its_own() -> None:
    """A receiver that waits is registered before anybody else can see it."""
    rendezvous, manager = Rendezvous(), CancellationManager()
    seen: list[bool] = []
    register = manager.register_callback

    def watched(token: int, callback: object) -> bool:
        seen.append(rendezvous._lock.locked())
        return register(token, callback)  # type: ignore[arg-type]

    manager.register_callback = watched  # type: ignore[method-assign]
    rendezvous.recv_async("x", lambda *_: None, manager)

    assert seen == [True]
