"""How long an import takes, and how much is installed for it.

    python -m benchmarks.import_size --tensorflow PYTHON --penstock PYTHON

Imports run alternately, each in a fresh process, after one that does not count: installed packages
have their bytecode, and so must those that are measured.  The size is that of the files of the
distribution and of all it requires, extras left out.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys

from benchmarks.measure import plain_environment

#: Runs in the other interpreter: the size of a package's distribution, and of all that this
#: requires.
SIZE = """
import importlib.metadata as metadata, json, re, sys
sizes, todo = {}, metadata.packages_distributions().get(sys.argv[1], [])[:1]
while todo:
    name = re.sub(r"[-_.]+", "-", todo.pop()).lower()
    if name in sizes:
        continue
    try:
        found = metadata.distribution(name)
    except metadata.PackageNotFoundError:
        continue
    paths = [found.locate_file(file) for file in found.files or ()]
    sizes[name] = sum(p.stat().st_size for p in paths if p.is_file() and p.suffix != ".pyc")
    todo += [re.match(r"[\\w.-]+", text)[0] for text in found.requires or ()
             if "extra ==" not in text]
print(json.dumps(sizes))
"""


def import_seconds(python: str, module: str) -> float:
    """The time that an import takes in a fresh process, beyond the interpreter's own start."""
    code = f"import time; t = time.perf_counter(); import {module}; print(time.perf_counter() - t)"
    done = subprocess.run(
        [python, "-c", code], capture_output=True, text=True, check=True, env=plain_environment()
    )
    return float(done.stdout)


def installed_bytes(python: str, name: str) -> dict[str, int]:
    """Bytes of a distribution and of each that it requires; empty if it is not installed."""
    done = subprocess.run([python, "-c", SIZE, name], capture_output=True, text=True, check=True)
    sizes: dict[str, int] = json.loads(done.stdout)
    return sizes


def main() -> None:
    """Measure both and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--tensorflow", metavar="PYTHON")
    parser.add_argument("--penstock", default=sys.executable, metavar="PYTHON")
    parser.add_argument("--rounds", type=int, default=5)
    args = parser.parse_args()
    pythons = {"tensorflow": args.tensorflow, "penstock": args.penstock}
    asked = {name: python for name, python in pythons.items() if python}
    times: dict[str, list[float]] = {name: [] for name in asked}
    for name, python in asked.items():
        import_seconds(python, name)
    for _ in range(args.rounds):
        for name, python in asked.items():
            times[name].append(import_seconds(python, name))
    for name, python in asked.items():
        sizes = installed_bytes(python, name)
        total = sum(sizes.values()) / 1e6
        largest = ", ".join(sorted(sizes, key=lambda key: -sizes[key])[:4])
        print(
            f"{name:11} import {statistics.median(times[name]):6.2f} s, "
            f"installed {total:7.1f} MB in {len(sizes)} packages (largest: {largest})"
        )


if __name__ == "__main__":
    main()
