"""Time one engine on the benchmark graphs.

    python -m benchmarks.run [NAME ...] [--engine penstock] [--json OUT]

Prints for each graph the median step, the load time (from the GraphDef's bytes to the first
result, in a fresh session) and what both add to the process's memory at its peak.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from benchmarks.cases import all_cases
from benchmarks.measure import measure, verdict


def main() -> None:
    """Measure and print, case by case."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("names", nargs="*", help="graphs to time; all, if there are none")
    parser.add_argument("--engine", choices=["penstock", "tensorflow"], default="penstock")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=0.5, help="steps per round, in seconds")
    parser.add_argument("--json", type=Path, help="where to write the numbers")
    args = parser.parse_args()
    report = {}
    print(f"{'graph':18} {'group':12} {'step us':>11} {'per unit us':>12} {'load ms':>9} {'MB':>7}")
    for case in all_cases(args.names):
        found = measure(case, {args.engine: sys.executable}, args.rounds, args.seconds)
        one = found[args.engine]
        wrong = verdict(case, [one])
        report[case.name] = one.as_json(case) | {"wrong": wrong}
        if wrong:
            print(f"{case.name:18} {case.group:12} {wrong}", flush=True)
            continue
        print(
            f"{case.name:18} {case.group:12} {one.step * 1e6:11.1f} "
            f"{one.step / case.units * 1e6:12.3f} {one.load * 1e3:9.1f} {one.bytes / 1e6:7.1f}",
            flush=True,
        )
    if args.json:
        args.json.write_text(json.dumps(report, indent=1), "utf-8")


if __name__ == "__main__":
    main()
