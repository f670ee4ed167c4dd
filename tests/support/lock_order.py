"""The order of locks: as a page says, and as a workload takes them."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Sequence
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]


def outer_locks(page: str) -> list[str]:
    """Locks under which others are taken, the outermost first, as a page says."""
    text = (ROOT / "docs" / page).read_text("utf-8")
    table = text.partition("<!-- locks -->")[2].partition("<!-- end of locks -->")[0]
    return re.findall(r"^\| `(\S+ \S+)` \|", table, re.MULTILINE)


@cache
def nestings(workload: str) -> list[tuple[str, str]]:
    """(outer, inner) for all that a workload has taken, a module that prints them."""
    done = subprocess.run(
        [sys.executable, "-m", workload],
        cwd=ROOT / "tests",
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    pairs = [line.split("\t") for line in done.stdout.splitlines()]
    return [(outer, inner) for outer, inner in pairs]


def disorder(pairs: list[tuple[str, str]], order: Sequence[str]) -> list[tuple[str, str]]:
    """The pairs that contradict an order: an outer lock that it calls innermost, or the reverse."""
    level = {name: number for number, name in enumerate(order)}
    return [
        (outer, inner)
        for outer, inner in pairs
        if outer not in level or level.get(inner, len(order)) <= level[outer]
    ]
