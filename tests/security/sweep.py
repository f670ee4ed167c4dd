"""All attacks: every payload in every kind of place of every graph of the corpus.

    cd tests && python -m security.sweep                     all; hours
    cd tests && python -m security.sweep --every 50          a fiftieth of them
    cd tests && python -m security.sweep --case 'cond_*' --kind '*frame_name*'

Prints each finding as it comes, and in the end how many graphs, kinds of places, payloads and
attacks there were.  The exit status is 1 if there was a finding.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path
from typing import NamedTuple

from penstock.errors import OpError
from security.attack import Attacker, Finding, Way, can_rename, watch
from security.payloads import PAYLOADS
from support.corpus import Case, all_cases

#: Left out: long by intent, or no graph to begin with.
SPECIAL = frozenset({"long_loop_20000", "diamond_ladder", "not_a_graphdef", "deep_cond_nest_25"})


class Plan(NamedTuple):
    """One attack to be made."""

    kind: str
    payload: str
    way: Way


class Report(NamedTuple):
    """What came of the attacks on one graph."""

    case: str
    kinds: frozenset[str]
    #: How often each outcome came.
    outcomes: Counter[str]
    findings: list[str]


def cases() -> list[Case]:
    """The graphs that are attacked."""
    return [case for case in all_cases() if case.name not in SPECIAL]


def plans(kinds: tuple[str, ...]) -> Iterator[Plan]:
    """All attacks on a graph that has such places."""
    for kind in kinds:
        ways = [Way.FIRST, Way.LAST, *([Way.EVERYWHERE] if can_rename(kind) else [])]
        for payload in PAYLOADS:
            for way in ways:
                yield Plan(kind, payload, way)


def attacked(case: Case, every: int = 1, kind: str = "*", offset: int = 0) -> Report:
    """Make each ``every``-th attack on a graph, in a folder of its own."""
    watch()
    outcomes: Counter[str] = Counter()
    findings: list[str] = []
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            attacker = Attacker(case, Path(folder))
            chosen = [plan for plan in plans(attacker.kinds) if fnmatchcase(plan.kind, kind)]
            for plan in chosen[offset % every :: every]:
                try:
                    outcomes[attacker.attack(*plan)] += 1
                except Finding as finding:
                    shown = ascii(plan.payload[:80])
                    findings.append(f"{case} {plan.kind} {plan.way.name} {shown}: {finding}")
        finally:
            os.chdir(before)
    return Report(str(case), frozenset(attacker.kinds), outcomes, findings)


def _job(work: tuple[Case, int, str, int]) -> Report:
    try:
        return attacked(*work)
    except (OpError, OSError) as error:
        return Report(str(work[0]), frozenset(), Counter(), [f"{work[0]}: {error}"])


def main() -> None:
    """Make the attacks that the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--every", type=int, default=1, help="make each N-th attack only")
    parser.add_argument("--case", default="*", help="only graphs of such names")
    parser.add_argument("--kind", default="*", help="only such kinds of places")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    args = parser.parse_args()
    chosen = [case for case in cases() if fnmatchcase(case.name, args.case)]
    work = [(case, args.every, args.kind, offset) for offset, case in enumerate(chosen)]
    start = time.monotonic()
    outcomes: Counter[str] = Counter()
    kinds: set[str] = set()
    findings = 0
    with multiprocessing.get_context("spawn").Pool(args.jobs) as pool:
        for report in pool.imap_unordered(_job, work):
            outcomes += report.outcomes
            kinds |= report.kinds
            findings += len(report.findings)
            for finding in report.findings:
                print(finding, flush=True)
    seconds = time.monotonic() - start
    print(
        f"{len(chosen)} graphs, {len(kinds)} kinds of places, {len(PAYLOADS)} payloads, "
        f"{outcomes.total()} attacks in {seconds:.0f} s: {findings} findings"
    )
    print(", ".join(f"{name} {count}" for name, count in outcomes.most_common()))
    sys.exit(1 if findings else 0)


if __name__ == "__main__":
    main()
