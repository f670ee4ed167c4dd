"""Train with both engines, and see how far apart they get.

    python -m benchmarks.training --tensorflow PYTHON --penstock PYTHON [NAME ...] [--steps 50]

Each graph is run for so many steps from the same variables and with the same feeds, and every
step's results (the loss, or a gradient) are compared.  A difference is relative to TensorFlow's
value, of an array to its largest element.

Where two numbers are nearly equal, rounding decides which of them a window takes, and from then
on two trainings differ; so TensorFlow is also compared with itself, told to use the instructions
of other processors.  Fails if Penstock's difference is above 1e-4 and above TensorFlow's own.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from benchmarks.cases import Case, all_cases, read_arrays
from benchmarks.measure import Client, WorkerError

#: How far apart the engines may get.
LIMIT = 1e-4
#: What makes TensorFlow another processor's.
OTHERS = (
    {"TF_ENABLE_ONEDNN_OPTS": "0"},
    {"ONEDNN_MAX_CPU_ISA": "AVX2"},
    {"ONEDNN_MAX_CPU_ISA": "SSE41"},
)
HEAD = (
    "| graph | steps | first | last | Penstock, last | largest difference | at step "
    "| TensorFlow's own |\n"
    "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |"
)
#: What each step gave.
Steps: TypeAlias = list[list[Any]]


def results_of(
    engine: str, python: str, case: Case, steps: int, settings: Mapping[str, str] | None = None
) -> Steps:
    """What each step gave, from a process of its own."""
    client = Client(engine, python, case, settings)
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


def row(case: Case, theirs: Steps, others: Sequence[Steps], ours: Steps) -> tuple[str, bool]:
    """One line of the table, and whether Penstock is too far away."""
    apart = differences(theirs, ours)
    worst = int(np.argmax(apart))
    own = max(max(differences(theirs, other)) for other in others)
    ends = [f"{_size(step):.6g}" for step in (theirs[0], theirs[-1], ours[-1])]
    found = [f"{apart[worst]:.1e}", str(worst + 1), f"{own:.1e}"]
    cells = " | ".join([case.name, str(len(apart)), *ends, *found])
    return f"| {cells} |", apart[worst] > max(LIMIT, own)


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
    far = []
    print(HEAD, flush=True)
    for case in all_cases(args.names):
        if case.group != "training" and not args.names:
            continue
        try:
            theirs, *others = (
                results_of("tensorflow", args.tensorflow, case, args.steps, settings)
                for settings in ({}, *OTHERS)
            )
            ours = results_of("penstock", args.penstock, case, args.steps)
        except WorkerError as error:
            sys.exit(f"{case.name}: {error}")
        line, is_too_far = row(case, theirs, others, ours)
        print(line, flush=True)
        if is_too_far:
            far.append(case.name)
    if far:
        sys.exit(f"too far away: {', '.join(far)}")


if __name__ == "__main__":
    main()
