"""Train with both engines, and see how far apart they get.

    python -m benchmarks.training --tensorflow PYTHON --penstock PYTHON [NAME ...] [--steps 50]

Each graph is run for so many steps from the same variables and with the same feeds, and every
step's results (the loss, or a gradient) are compared.  A difference is relative to TensorFlow's
value, of an array to its largest element.  Fails if one is above 1e-4.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.cases import Case, all_cases, read_arrays
from benchmarks.measure import Client, WorkerError

#: How far apart the engines may get.
LIMIT = 1e-4
HEAD = (
    "| graph | steps | TensorFlow, first | last | Penstock, last | largest difference | at step |\n"
    "| --- | ---: | ---: | ---: | ---: | ---: | ---: |"
)


def results_of(engine: str, python: str, case: Case, steps: int) -> list[list[Any]]:
    """What each step gave, from a process of its own."""
    client = Client(engine, python, case)
    try:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "results.npz"
            client.ask("follow", str(path), steps)
            flat = read_arrays(path)
    finally:
        client.close()
    width = len(case.fetches)
    return [flat[first : first + width] for first in range(0, len(flat), width)]


def differences(theirs: Sequence[Sequence[Any]], ours: Sequence[Sequence[Any]]) -> list[float]:
    """How far apart the engines are, by step; infinite where only one has numbers."""
    return [
        max(_difference(one, other) for one, other in zip(step, other_step, strict=True))
        for step, other_step in zip(theirs, ours, strict=True)
    ]


def _difference(wanted: Any, got: Any) -> float:
    if wanted.shape != got.shape or wanted.dtype != got.dtype:
        return float("inf")
    scale = float(np.max(np.abs(wanted), initial=0.0))
    apart = float(np.max(np.abs(wanted.astype(np.float64) - got), initial=0.0))
    if apart == 0:
        return 0.0
    return apart / scale if np.isfinite(apart) and scale else float("inf")


def row(case: Case, theirs: list[list[Any]], ours: list[list[Any]]) -> tuple[str, float]:
    """One line of the table, and the largest difference in it."""
    apart = differences(theirs, ours)
    worst = int(np.argmax(apart))
    ends = [f"{_size(step):.6g}" for step in (theirs[0], theirs[-1], ours[-1])]
    cells = [case.name, str(len(apart)), *ends, f"{apart[worst]:.1e}", str(worst + 1)]
    return f"| {' | '.join(cells)} |", apart[worst]


def _size(step: list[Any]) -> float:
    """The loss; of a gradient, its length."""
    return float(step[0]) if step[0].ndim == 0 else float(np.linalg.norm(step[0]))


def main() -> None:
    """Train and print, graph by graph."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("names", nargs="*", help="graphs to train; the group, if there are none")
    parser.add_argument("--tensorflow", required=True, metavar="PYTHON")
    parser.add_argument("--penstock", required=True, metavar="PYTHON")
    parser.add_argument("--steps", type=int, default=50)
    args = parser.parse_args()
    largest = 0.0
    print(HEAD, flush=True)
    for case in all_cases(args.names):
        if case.group != "training" and not args.names:
            continue
        try:
            theirs = results_of("tensorflow", args.tensorflow, case, args.steps)
            ours = results_of("penstock", args.penstock, case, args.steps)
        except WorkerError as error:
            sys.exit(f"{case.name}: {error}")
        line, apart = row(case, theirs, ours)
        largest = max(largest, apart)
        print(line, flush=True)
    if largest > LIMIT:
        sys.exit(f"{largest:.1e} is more than {LIMIT:g}")


if __name__ == "__main__":
    main()
