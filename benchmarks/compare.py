"""Time TensorFlow and Penstock in turn on the benchmark graphs.

    python -m benchmarks.compare --tensorflow PYTHON --penstock PYTHON [NAME ...] [--json OUT]

Each graph gets a fresh process of each engine, and the two are timed alternately, so that a
machine that slows down slows both.  A ratio is TensorFlow's number divided by Penstock's:
above 1, Penstock is better.  A case counts only if the results agree.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from benchmarks.cases import Case, all_cases
from benchmarks.measure import Measurement, measure, verdict

HEAD = (
    "| graph | group | TensorFlow, µs | Penstock, µs | step | load | memory |\n"
    "| --- | --- | ---: | ---: | ---: | ---: | ---: |"
)


def row(case: Case, theirs: Measurement, ours: Measurement) -> str:
    """One line of the table."""
    return (
        f"| {case.name} | {case.group} | {theirs.step * 1e6:,.0f} | {ours.step * 1e6:,.0f} "
        f"| {theirs.step / ours.step:.2f} | {theirs.load / ours.load:.2f} "
        f"| {_memory_ratio(theirs, ours)} |"
    )


def _memory_ratio(theirs: Measurement, ours: Measurement) -> str:
    if not theirs.bytes or not ours.bytes:
        return "—"
    return f"{theirs.bytes / ours.bytes:.1f}"


def geometric_mean(values: Iterable[float]) -> float:
    """The mean that ratios have."""
    return math.exp(statistics.fmean(map(math.log, values)))


def summary(ratios: dict[str, list[tuple[float, float]]]) -> str:
    """One line for each group of (step, load) ratios."""
    lines = ["| group | graphs | step | slowest | load |", "| --- | ---: | ---: | ---: | ---: |"]
    for group, pairs in sorted(ratios.items()):
        steps, loads = zip(*pairs, strict=True)
        lines.append(
            f"| {group} | {len(pairs)} | {geometric_mean(steps):.2f} | {min(steps):.2f} "
            f"| {geometric_mean(loads):.2f} |"
        )
    return "\n".join(lines)


def main() -> None:
    """Measure and print, case by case, and then the groups."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("names", nargs="*", help="graphs to time; all, if there are none")
    parser.add_argument("--tensorflow", required=True, metavar="PYTHON")
    parser.add_argument("--penstock", required=True, metavar="PYTHON")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=0.5, help="steps per round, in seconds")
    parser.add_argument("--json", type=Path, help="where to write the numbers")
    args = parser.parse_args()
    pythons = {"tensorflow": args.tensorflow, "penstock": args.penstock}
    ratios: dict[str, list[tuple[float, float]]] = defaultdict(list)
    report: dict[str, Any] = {}
    print(HEAD, flush=True)
    for case in all_cases(args.names):
        found = measure(case, pythons, args.rounds, args.seconds)
        theirs, ours = found["tensorflow"], found["penstock"]
        wrong = verdict(case, [theirs, ours])
        report[case.name] = {
            "wrong": wrong,
            **{engine: one.as_json(case) for engine, one in found.items()},
        }
        if wrong:
            print(f"| {case.name} | {case.group} | {wrong} |", flush=True)
            continue
        ratios[case.group].append((theirs.step / ours.step, theirs.load / ours.load))
        print(row(case, theirs, ours), flush=True)
    print("\n" + summary(ratios))
    if args.json:
        args.json.write_text(json.dumps(report, indent=1), "utf-8")


if __name__ == "__main__":
    main()
