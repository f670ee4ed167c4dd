"""Time TensorFlow and Penstock while other processes want the cores.

    python -m benchmarks.busy --tensorflow PYTHON --penstock PYTHON [NAME ...] [--json OUT]

Each graph is timed as ``benchmarks.compare`` does it: on the idle machine, while one process keeps
a core busy, and while as many as there are cores do.  A column says how many times as fast as
TensorFlow's a step of Penstock's is there; the last one, what is left of the idle machine's ratio
where least is left.  Engines whose threads spin while they wait lose most.
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from benchmarks.burning import burning
from benchmarks.cases import Case, all_cases
from benchmarks.measure import Measurement, measure, verdict

#: What is left of a ratio at least, if threads do not fight.
KEPT: Final = 0.75


def busy_cores(cores: int) -> list[int]:
    """How many cores are kept busy: none, one, and all."""
    return sorted({0, 1, cores})


def worst_kept(ratios: Sequence[float]) -> float:
    """What is left of the first ratio, the idle machine's, where it is worst."""
    idle, *busy = ratios
    return min(busy) / idle


def head(busy: Sequence[int]) -> str:
    """The table's first two lines."""
    columns = [f"{cores} busy" if cores else "idle" for cores in busy]
    names = ["graph", "group", *columns, "kept"]
    rule = ["---", "---"] + ["---:"] * (len(names) - 2)
    return f"| {' | '.join(names)} |\n| {' | '.join(rule)} |"


def row(case: Case, ratios: Sequence[float]) -> str:
    """One line of the table."""
    kept = worst_kept(ratios)
    numbers = [f"{ratio:.2f}" for ratio in (*ratios, kept)]
    mark = "" if kept >= KEPT else " ←"
    return f"| {case.name} | {case.group} | {' | '.join(numbers)}{mark} |"


def measured(
    case: Case, pythons: Mapping[str, str], busy: int, rounds: int, seconds: float
) -> dict[str, Measurement]:
    """Both engines, while so many cores are kept busy."""
    with burning(busy):
        return measure(case, pythons, rounds, seconds)


def main() -> None:
    """Measure and print, graph by graph."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("names", nargs="*", help="graphs to time; all, if there are none")
    parser.add_argument("--tensorflow", required=True, metavar="PYTHON")
    parser.add_argument("--penstock", required=True, metavar="PYTHON")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=0.5, help="steps per round, in seconds")
    parser.add_argument("--json", type=Path, help="where to write the numbers")
    args = parser.parse_args()
    pythons = {"tensorflow": args.tensorflow, "penstock": args.penstock}
    busy = busy_cores(os.cpu_count() or 1)
    report: dict[str, Any] = {}
    print(head(busy), flush=True)
    for case in all_cases(args.names):
        ratios, wrong = list[float](), ""
        for cores in busy:
            found = measured(case, pythons, cores, args.rounds, args.seconds)
            wrong = wrong or verdict(case, list(found.values()))
            if wrong:
                break
            ratios.append(found["tensorflow"].step / found["penstock"].step)
        report[case.name] = {"wrong": wrong, "busy": busy, "ratios": ratios}
        print(
            f"| {case.name} | {case.group} | {wrong} |" if wrong else row(case, ratios), flush=True
        )
    if args.json:
        args.json.write_text(json.dumps(report, indent=1), "utf-8")


if __name__ == "__main__":
    main()
