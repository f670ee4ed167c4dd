"""Change known graphs at random, and see whether all ways of running them agree.

Prints each finding as it comes, with what was done to the graph, and in the end how many graphs
gave answers, how many errors, by kind, and on how many the ways differed and why they may. The exit
status is 1 if there was a finding. One line of --out, or a number, is enough to --replay it.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from fuzzing.recipe import Recipe, recipe
from fuzzing.verdict import Kind
from fuzzing.workers import BYTES, SECONDS, Report, judged

#: A line is printed after so many graphs.
_OFTEN = 500


def main(arguments: Sequence[str] | None = None) -> int:
    """Do what is asked for; 1 if there are findings."""
    asked = _parser().parse_args(arguments)
    if asked.replay:
        recipes = [_recipe(asked.seed, text) for text in asked.replay]
    else:
        recipes = [recipe(asked.seed, n) for n in range(asked.start, asked.start + asked.count)]
    start = time.monotonic()
    reports = list(_shown(judged(recipes, asked.jobs), asked.out))
    print(summary(reports))
    print(f"{(time.monotonic() - start) / 60:.1f} minutes, {asked.jobs} at a time")
    return int(any(report.kind == Kind.FINDING.name for report in reports))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m fuzzing",
        description=__doc__,
        epilog=f"No run of a graph may take more than {SECONDS:g} seconds of processors, nor more "
        f"than {BYTES >> 30} GB. To be run in tests/.",
    )
    parser.add_argument("--seed", type=int, default=1, help="of all that is chosen by chance")
    parser.add_argument("--count", type=int, default=1000, help="how many graphs")
    parser.add_argument("--start", type=int, default=0, help="the number of the first one")
    parser.add_argument("--jobs", type=int, default=1, help="how many processes")
    parser.add_argument("--out", type=Path, help="a file to which findings are added, one per line")
    parser.add_argument("--replay", nargs="+", help="instead: numbers, or lines of such a file")
    return parser


def _recipe(seed: int, text: str) -> Recipe:
    return Recipe.of(json.loads(text)) if text.startswith("{") else recipe(seed, int(text))


def _shown(reports: Iterator[Report], out: Path | None) -> Iterator[Report]:
    """Hand reports on; findings are shown, and written."""
    for number, report in enumerate(reports, 1):
        if report.kind == Kind.FINDING.name:
            lines = [f"## {report.recipe.number}: {report.recipe.subject}: {report.reason[:2000]}"]
            print(*lines, *report.trail, sep="\n     ", flush=True)
            if out is not None:
                with out.open("a", encoding="utf-8") as file:
                    print(json.dumps(report.as_json()), file=file)
        if number % _OFTEN == 0:
            print(f"{number} graphs", flush=True)
        yield report


def summary(reports: Sequence[Report]) -> str:
    """How many of what there were."""
    kinds = Counter(report.kind for report in reports)
    endings = Counter(report.ending for report in reports)
    findings, answers = kinds.pop(Kind.FINDING.name, 0), endings.pop("OK", 0)
    return (
        f"{len(reports)} graphs: {answers} gave answers, {endings.total()} errors; "
        f"{findings} findings\n"
        f"  errors: {_counted(endings)}\n"
        f"  otherwise: {_counted(kinds)}\n"
        f"  the longest took {max((r.seconds for r in reports), default=0):.1f} seconds in all ways"
    )


def _counted(counter: Counter[str]) -> str:
    return ", ".join(f"{count} {name}" for name, count in counter.most_common()) or "none"


if __name__ == "__main__":
    sys.exit(main())
