"""How cost grows with the size of what is run, of Penstock and of TensorFlow.

    python -m benchmarks.growth --tensorflow PYTHON --penstock PYTHON [SERIES ...] [--json OUT]
    python -m benchmarks.growth_pictures OUT docs/pictures

Each point is a graph of its own (``growth_graphs``), measured as ``compare`` measures: a fresh
process of each engine, by turns, and an answer that must be right.  An engine that takes more than
a minute (``--limit``) to load a graph or to make a few steps is given up there, and not asked for
larger ones.

The exponent of a point is the slope, on paper with two logarithmic scales, from the one before: at
1 cost is in proportion to size, above 1 it grows faster.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from benchmarks.cases import Case
from benchmarks.growth_graphs import counting, feeding, mixing
from benchmarks.measure import PATIENCE, Measurement, measure, verdict

#: Steps that a point takes at least: to its first result, to get warm, and to be timed.
_STEPS: Final = 4
#: What an engine says of points that it is not asked for.
SKIPPED: Final = "would take too long"


@dataclass(frozen=True, slots=True)
class Series:
    """Points that differ in one size only."""

    make: Callable[[Path, int], Case]
    unit: str
    sizes: tuple[int, ...]
    #: What is told of each point: ``load``, ``step``, ``bytes``.
    quantities: tuple[str, ...]
    #: Whether the size is how many threads make steps side by side.
    is_of_threads: bool = False


def _sizes(least: int, decades: int) -> tuple[int, ...]:
    """From a power of ten on: 1, 3, 10, 30, …."""
    powers = [least * 10**power for power in range(decades)]
    return (*(size for power in powers for size in (power, 3 * power)), least * 10**decades)


SERIES: Final[Mapping[str, Series]] = {
    "nodes": Series(
        lambda folder, size: mixing(folder, size, 16),
        "nodes",
        _sizes(1_000, 3),
        ("load", "step", "bytes"),
    ),
    "iterations": Series(counting, "iterations", _sizes(100, 5), ("step",)),
    "feeds": Series(feeding, "feeds", _sizes(1, 4), ("load", "step")),
    "threads_small": Series(
        lambda folder, _: mixing(folder, 100, 16),
        "threads",
        (1, 2, 4, 8),
        ("step",),
        is_of_threads=True,
    ),
    "threads_large": Series(
        lambda folder, _: mixing(folder, 100, 100_000),
        "threads",
        (1, 2, 4, 8),
        ("step",),
        is_of_threads=True,
    ),
}


def points(
    series: Series,
    pythons: Mapping[str, str],
    rounds: int,
    seconds: float,
    limit: float = PATIENCE,
) -> Iterator[tuple[int, dict[str, dict[str, Any]]]]:
    """Each size, and what each engine does with it: numbers, or why there are none."""
    given_up: dict[str, str] = {}
    for size in series.sizes:
        asked = {engine: python for engine, python in pythons.items() if engine not in given_up}
        found: dict[str, dict[str, Any]] = {
            engine: {"error": why} for engine, why in given_up.items()
        }
        if asked:
            with tempfile.TemporaryDirectory() as folder:
                case = series.make(Path(folder), size)
                measured = measure(
                    case,
                    asked,
                    rounds,
                    seconds,
                    threads=size if series.is_of_threads else None,
                    limit=limit,
                )
                for engine, one in measured.items():
                    found[engine] = _told(case, one, series)
        yield size, {engine: found[engine] for engine in pythons}
        larger = next((other for other in series.sizes if other > size), size)
        for engine in asked:
            if "error" in found[engine]:
                given_up[engine] = f"not asked after: {found[engine]['error']}"
            elif _foreseen(found[engine], 1 if series.is_of_threads else larger / size) > limit:
                given_up[engine] = SKIPPED


def _told(case: Case, one: Measurement, series: Series) -> dict[str, Any]:
    wrong = verdict(case, [one])
    if wrong:
        return {"error": wrong}
    numbers = {"load": one.load, "step": one.step, "bytes": one.bytes}
    return {name: numbers[name] for name in series.quantities}


def _foreseen(found: Mapping[str, Any], growth: float) -> float:
    """Seconds that something as many times as large takes, if cost is in proportion."""
    return max(found.get("load", 0.0), _STEPS * found["step"]) * growth


def exponents(values: Mapping[int, float]) -> dict[int, float]:
    """The slope at each size, from the one before, if both axes are logarithmic."""
    sizes = sorted(values)
    return {
        size: math.log(values[size] / values[before]) / math.log(size / before)
        for before, size in itertools.pairwise(sizes)
    }


def values_of(
    found: Mapping[int, Mapping[str, Mapping[str, Any]]], engine: str, quantity: str
) -> dict[int, float]:
    """What is known of one engine, by size."""
    return {
        size: engines[engine][quantity]
        for size, engines in found.items()
        if engines.get(engine, {}).get(quantity)
    }


_SCALES: Final = {"load": (1e3, "load, ms"), "step": (1e3, "step, ms"), "bytes": (1e-6, "MB")}


def tables(name: str, found: Mapping[int, Mapping[str, Mapping[str, Any]]]) -> str:
    """A table for each quantity of a series; ``—`` is what was not measured."""
    series = SERIES[name]
    return "\n\n".join(_table(series, quantity, found) for quantity in series.quantities)


def _table(
    series: Series, quantity: str, found: Mapping[int, Mapping[str, Mapping[str, Any]]]
) -> str:
    scale, title = _SCALES[quantity]
    theirs = values_of(found, "tensorflow", quantity)
    ours = values_of(found, "penstock", quantity)
    slopes = exponents(theirs), exponents(ours)
    lines = [
        f"| {series.unit} | TensorFlow, {title} | exponent "
        f"| Penstock, {title} | exponent | ratio |",
        "| ---: " * 6 + "|",
    ]
    for size in found:
        cells = [f"{size:,}"]
        for values, slope in zip((theirs, ours), slopes, strict=True):
            cells += [_number(values.get(size), scale), _number(slope.get(size), 1)]
        both = size in theirs and size in ours
        cells.append(_number(theirs[size] / ours[size] if both else None, 1))
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _number(value: float | None, scale: float) -> str:
    """With three digits, or all that stand before the point."""
    if value is None:
        return "—"
    size = abs(value * scale)
    digits = 0 if size >= 100 else 1 if size >= 10 else 2
    return f"{value * scale:,.{digits}f}"


def main() -> None:
    """Measure and print, point by point, and then the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("series", nargs="*", help=f"of {', '.join(SERIES)}; all, if there are none")
    parser.add_argument("--tensorflow", metavar="PYTHON")
    parser.add_argument("--penstock", required=True, metavar="PYTHON")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=0.5, help="steps per round, in seconds")
    parser.add_argument(
        "--limit", type=float, default=PATIENCE, help="seconds of a load or of steps"
    )
    parser.add_argument("--json", type=Path, help="where to write the numbers, or to add to them")
    args = parser.parse_args()
    pythons = {"penstock": args.penstock}
    if args.tensorflow:
        pythons["tensorflow"] = args.tensorflow
    report: dict[str, Any] = {}
    if args.json and args.json.is_file():
        report = json.loads(args.json.read_text("utf-8"))
    for name in args.series or SERIES:
        found: dict[int, dict[str, dict[str, Any]]] = {}
        for size, engines in points(SERIES[name], pythons, args.rounds, args.seconds, args.limit):
            found[size] = engines
            print(name, f"{size:,}", json.dumps(engines), flush=True)
            report[name] = found
            if args.json:
                args.json.write_text(json.dumps(report, indent=1), "utf-8")
        print(f"\n{name}\n\n{tables(name, found)}\n", flush=True)


if __name__ == "__main__":
    main()
