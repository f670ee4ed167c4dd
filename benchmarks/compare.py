"""Time TensorFlow and Penstock in turn on the benchmark graphs.

    python -m benchmarks.compare --tensorflow PYTHON --penstock PYTHON [--jit] [NAME ...]
                                 [--onnxruntime PYTHON] [--openvino PYTHON] [--images N]
                                 [--limit SECONDS] [--json OUT]

Each graph gets a fresh process of each engine, and the two are timed alternately, so that a
machine that slows down slows both.  A ratio is TensorFlow's number divided by Penstock's:
above 1, Penstock is better.  A case counts only if the results agree.  Peers are further columns:
milliseconds of a step, and how many times as long as Penstock's that is.  An engine that takes
longer than the limit to load a graph, or for a round of its steps, says so in its row: there are
graphs that a peer never gets done with.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import tempfile
import textwrap
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from benchmarks.cases import Case, all_cases
from benchmarks.measure import PATIENCE, Measurement, measure, verdict
from benchmarks.more_images import with_images

#: What else runs graphs, by engine: who wants it names a Python that has it.
PEERS: Final = {"onnxruntime": "ONNX Runtime", "openvino": "OpenVINO"}


def head(peers: Sequence[str]) -> str:
    """The first two lines of the table."""
    columns = ["TensorFlow, µs", "Penstock, µs", "step", "load", "memory"]
    for peer in peers:
        columns += [f"{PEERS[peer]}, µs", "step", "load"]
    return f"| graph | group | {' | '.join(columns)} |\n| --- | --- {'| ---: ' * len(columns)}|"


def row(case: Case, found: Mapping[str, Measurement]) -> str:
    """One line of the table; a peer that cannot run a graph, or runs it wrongly, says so."""
    theirs, ours = found["tensorflow"], found["penstock"]
    cells = [case.name, case.group, _micro(theirs), _micro(ours), _ratio(theirs.step, ours.step)]
    cells += [_ratio(theirs.load, ours.load), _memory_ratio(theirs, ours)]
    for peer in PEERS:
        if peer in found:
            cells += _peer_cells(case, found[peer], ours)
    return f"| {' | '.join(cells)} |"


def _peer_cells(case: Case, peer: Measurement, ours: Measurement) -> list[str]:
    wrong = verdict(case, [peer])
    if wrong:
        return [textwrap.shorten(wrong.replace("|", "/"), 100), "—", "—"]
    return [_micro(peer), _ratio(peer.step, ours.step), _ratio(peer.load, ours.load)]


def _micro(one: Measurement) -> str:
    return f"{one.step * 1e6:,.0f}"


def _ratio(theirs: float, ours: float) -> str:
    return f"{theirs / ours:.2f}"


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


def _cases(names: Sequence[str], images: int) -> Iterator[Case]:
    """The cases of some names, with so many images at once if that is a number."""
    with tempfile.TemporaryDirectory() as folder:
        for case in all_cases(names):
            yield with_images(case, images, Path(folder)) if images else case


def main() -> None:
    """Measure and print, case by case, and then the groups."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("names", nargs="*", help="graphs to time; all, if there are none")
    parser.add_argument("--tensorflow", required=True, metavar="PYTHON")
    parser.add_argument("--penstock", required=True, metavar="PYTHON")
    for peer, name in PEERS.items():
        parser.add_argument(f"--{peer}", metavar="PYTHON", help=f"measure {name}, too")
    parser.add_argument(
        "--jit", action="store_true", help="have regions without loops be programs, too"
    )
    parser.add_argument(
        "--images",
        type=int,
        default=0,
        help="feed so many images at once, not as many as there are",
    )
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=0.5, help="steps per round, in seconds")
    parser.add_argument(
        "--limit", type=float, default=PATIENCE, help="seconds of a load, or of a round of steps"
    )
    parser.add_argument("--json", type=Path, help="where to write the numbers")
    args = parser.parse_args()
    own = "penstock-jit" if args.jit else "penstock"
    pythons = {"tensorflow": args.tensorflow, own: args.penstock}
    peers = [peer for peer in PEERS if getattr(args, peer)]
    pythons |= {peer: getattr(args, peer) for peer in peers}
    ratios: dict[str, list[tuple[float, float]]] = defaultdict(list)
    report: dict[str, Any] = {}
    print(head(peers), flush=True)
    for case in _cases(args.names, args.images):
        found = measure(case, pythons, args.rounds, args.seconds, limit=args.limit)
        found["penstock"] = found.pop(own)
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
        print(row(case, found), flush=True)
    print("\n" + summary(ratios))
    if args.json:
        args.json.write_text(json.dumps(report, indent=1), "utf-8")


if __name__ == "__main__":
    main()
