"""Time single ops, by TensorFlow and by Penstock in turn.

    python -m benchmarks.kernels --tensorflow PYTHON [--penstock PYTHON] [WORD ...]

A line is a step of a graph that has only this op: its inputs are fed, its outputs fetched.
Words choose lines by parts of their names.  A ratio is TensorFlow's time divided by
Penstock's: above 1, Penstock is faster.  A line counts only if the results agree.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks.cases import Case, agree, read_arrays
from benchmarks.compare import geometric_mean
from benchmarks.kernel_cases import FAMILIES, KernelCase, chosen, write_case
from benchmarks.kernel_shapes import FAMILIES as MORE_FAMILIES
from benchmarks.measure import Client, WorkerError

HEAD = """\
| family | kernel | TensorFlow, µs | Penstock, µs | ratio |
| --- | --- | ---: | ---: | ---: |"""


def times_of(
    case: KernelCase, clients: Mapping[str, Client], rounds: int, seconds: float
) -> dict[str, float]:
    """Seconds of a step of each engine; raises WorkerError if one cannot, or if they differ."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_case(case, folder)
        for client in clients.values():
            client.ask("turn_to", str(folder))
            client.ask("load")
        _check(clients, folder)
        times: dict[str, list[float]] = {engine: [] for engine in clients}
        for _ in range(rounds):
            for engine, client in clients.items():
                times[engine].append(client.ask("steps", seconds)["seconds"])
    return {engine: statistics.median(listed) for engine, listed in times.items()}


def _check(clients: Mapping[str, Client], folder: Path) -> None:
    """Raise WorkerError unless the first results of all engines agree."""
    found = []
    for engine, client in clients.items():
        path = folder / f"{engine}.npz"
        client.ask("results", str(path))
        found.append(read_arrays(path))
    if not all(agree(one, found[0]) for one in found):
        raise WorkerError("WRONG RESULT")


def start(pythons: Mapping[str, str], case: KernelCase) -> dict[str, Client]:
    """A process of each engine; the case is only what they start with."""
    with tempfile.TemporaryDirectory() as name:
        write_case(case, Path(name))
        first = Case.read(Path(name))
        return {engine: Client(engine, python, first) for engine, python in pythons.items()}


def run(
    cases: Sequence[KernelCase], clients: Mapping[str, Client], rounds: int, seconds: float
) -> dict[str, dict[str, float]]:
    """Measure and print, line by line; seconds by name and engine."""
    found: dict[str, dict[str, float]] = {}
    for case in cases:
        try:
            times = times_of(case, clients, rounds, seconds)
        except WorkerError as error:
            print(f"| {case.family} | {case.name} | {str(error).splitlines()[0]} |", flush=True)
            continue
        found[case.name] = times
        theirs, ours = times["tensorflow"], times["penstock"]
        print(
            f"| {case.family} | {case.name} | {theirs * 1e6:,.0f} | {ours * 1e6:,.0f} "
            f"| {theirs / ours:.2f} |",
            flush=True,
        )
    return found


def main() -> None:
    """Measure and print, and then the mean and the slowest."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("words", nargs="*", help="parts of names; all lines, if there are none")
    parser.add_argument("--tensorflow", required=True, metavar="PYTHON")
    parser.add_argument("--penstock", default=sys.executable, metavar="PYTHON")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=0.1, help="steps per round, in seconds")
    parser.add_argument("--json", type=Path, help="where to write the numbers")
    args = parser.parse_args()
    cases = chosen(args.words, (*FAMILIES, *MORE_FAMILIES))
    clients = start({"tensorflow": args.tensorflow, "penstock": args.penstock}, cases[0])
    print(HEAD, flush=True)
    try:
        found = run(cases, clients, args.rounds, args.seconds)
    finally:
        for client in clients.values():
            client.close()
    ratios = {name: times["tensorflow"] / times["penstock"] for name, times in found.items()}
    slowest = sorted(ratios, key=ratios.__getitem__)[:20]
    print(f"\n{len(ratios)} kernels, geometric mean {geometric_mean(ratios.values()):.2f}")
    print("slowest: " + ", ".join(f"{name} {ratios[name]:.2f}" for name in slowest))
    if args.json:
        args.json.write_text(json.dumps(found, indent=1), "utf-8")


if __name__ == "__main__":
    main()
