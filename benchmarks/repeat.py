"""Check that each benchmark graph repeats bit for bit.

    python -m benchmarks.repeat [NAME ...] [--steps 20] [--graphs FOLDER] [--idle]

Each graph is run in processes of its own: with one and with two threads, with and without what is
learnt in the first steps (as one step each of many sessions), with and without the optimiser and
the compiled tier.  Meanwhile other processes burn all cores, unless the machine is to be idle.
All steps of a setting must give the same bits; and so must all settings that do not say otherwise.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import numpy as np

from benchmarks.burning import burning
from benchmarks.cases import FOLDERS, ROOT, Case

#: Options of a session, by the name of a setting.
SETTINGS: Final[dict[str, dict[str, Any]]] = {
    "1 thread": {"inter_op_parallelism_threads": 1},
    "2 threads": {"inter_op_parallelism_threads": 2},
    "again": {"inter_op_parallelism_threads": 2},
    "dataflow": {"inter_op_parallelism_threads": 2, "tier": "DATAFLOW"},
    "untuned": {"inter_op_parallelism_threads": 2, "sessions": True},
    "unoptimised": {"inter_op_parallelism_threads": 2, "optimise": False},
}
#: The optimiser changes how things are computed, so its absence may change bits, too.
OWN_BITS: Final = frozenset({"unoptimised"})


def digests(case: Case, options: dict[str, Any], steps: int) -> list[str]:
    """What each of some steps gave; variables are set anew before each."""
    import penstock as ps  # noqa: PLC0415  (the parent process needs none)

    options = dict(options)
    in_sessions, optimise = options.pop("sessions", False), options.pop("optimise", True)
    if "tier" in options:
        options["tier"] = ps.Tier[options["tier"]]
    graph_options = ps.GraphOptions() if optimise else ps.GraphOptions.nothing()
    config = ps.Config(device_count={"CPU": case.devices}, graph_options=graph_options, **options)
    data, feeds, found = case.graph_bytes, case.fed(), list[str]()
    while len(found) < steps:
        with ps.Session(data, config=config) as session:
            call = session.make_callable(case.fetches, list(case.feeds))
            for _ in range(1 if in_sessions else steps):
                if case.init_op:
                    session.run(case.init_op)
                found.append(_digest(call(*feeds)))
    return found


def _digest(results: Any) -> str:
    arrays = [np.ascontiguousarray(result) for result in results]
    told = [
        (str(a.dtype), a.shape, a.tolist() if a.dtype.hasobject else a.tobytes()) for a in arrays
    ]
    return hashlib.sha256(repr(told).encode()).hexdigest()[:16]


def in_process(folder: Path, options: dict[str, Any], steps: int) -> list[str]:
    """``digests`` in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.repeat", "--worker", str(folder)]
    command += ["--options", json.dumps(options), "--steps", str(steps)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(done.stderr.strip().splitlines()[-1])
    found: list[str] = json.loads(done.stdout.splitlines()[-1])
    return found


def verdict(found: dict[str, list[str]]) -> str:
    """Empty if all is the same; or what is not."""
    for setting, steps in found.items():
        if len(set(steps)) > 1:
            return f"{len(set(steps))} answers in {len(steps)} steps, {setting}"
    shared = {setting: steps[0] for setting, steps in found.items() if setting not in OWN_BITS}
    if len(set(shared.values())) > 1:
        return "differs between " + ", ".join(f"{s}: {d[:4]}" for s, d in shared.items())
    return ""


def _folders(args: argparse.Namespace) -> list[Path]:
    roots = args.graphs or FOLDERS
    found = sorted(path.parent for root in roots for path in Path(root).glob("*/case.json"))
    return [folder for folder in found if not args.names or folder.name in args.names]


def main() -> None:
    """Check and print, graph by graph; the exit status says whether all repeat."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("names", nargs="*", help="graphs to check; all, if there are none")
    parser.add_argument("--graphs", action="append", help="folders of graphs, if not the usual")
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--idle", action="store_true", help="burn no cores meanwhile")
    parser.add_argument("--worker", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--options", type=json.loads, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.worker:
        print(json.dumps(digests(Case.read(args.worker), args.options, args.steps)))
        return
    failed = 0
    with burning(0 if args.idle else os.cpu_count() or 1):
        for folder in _folders(args):
            try:
                found = {
                    name: in_process(folder, options, args.steps)
                    for name, options in SETTINGS.items()
                }
                wrong = verdict(found)
            except RuntimeError as error:
                wrong = str(error)
            failed += bool(wrong)
            print(f"{folder.name:24} {wrong or 'repeats'}", flush=True)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
