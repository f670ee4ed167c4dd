"""Do the tests notice mistakes?  Make small ones, one at a time, and run the tests that see them.

    python tools/mutate.py cover                    which test runs which line (once, takes long)
    python tools/mutate.py cover tests/new.py       the same of tests that are new
    python tools/mutate.py run --sample 200 --seed 1
    python tools/mutate.py run src/penstock/state   all mutants of a folder or a file
    python tools/mutate.py run --again report.json --budget 120     those that survived

In:   the package's modules, and the tests.
Out:  the share of mutants that some test kills, with its 95 % interval, and those that survive.
Not:  touches no file of the working tree but the folder ``.mutation``.

A mutant runs in a copy of the sources, in a process of its own.  The tests of its line run, by
turns the most specific of the rest and any other, as many as are worth ``--budget`` seconds: a
survivor may be killed by one that did not run; ``--again`` asks, with a larger budget.  A test
that hangs has noticed, too.  Needs the extra
``mutation``.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import random
import re
import resource
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue
from typing import Any, Final, NamedTuple

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from mutants import Mutant, mutants_of

ROOT: Final = Path(__file__).parents[1]
PACKAGES: Final = ("runtime/executor", "runtime/compiler", "passes", "state")
TESTS: Final = (
    *("runtime", "passes", "state", "session", "graph", "builder", "cli"),
    "test_corpus.py",
)
DATA: Final = ROOT / ".mutation"
#: A mutant that allocates without end gets no more than this.
_MEMORY: Final = 8 << 30
#: So many tests are tried before any others: most mutants fall to them, and they are in few files.
_FIRST: Final = 20
#: What a process takes to start, in seconds.
_START: Final = 5.0


class Task(NamedTuple):
    """One mutant of one file, and the tests to run, the most specific ones first."""

    path: str
    mutant: Mutant
    tests: list[str]
    #: How many tests see the mutant, run or not.
    seen_by: int
    seconds: float

    def __str__(self) -> str:
        return f"{self.path}:{self.mutant}"


# -- which test sees which line --------------------------------------------------------------


class Times:
    """A plugin of pytest that notes how long each test takes that passes."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """See pytest."""
        if report.when == "call" and report.passed:
            self.seconds[report.nodeid] = report.duration


def cover(paths: list[str]) -> None:
    """Run tests once, and note which runs which lines; those that fail say nothing later."""
    DATA.mkdir(exist_ok=True)
    (DATA / ".gitignore").write_text("*\n")
    config = DATA / "coverage.cfg"
    included = "".join(f"\n    */penstock/{name}/*" for name in PACKAGES)
    config.write_text(
        f"[run]\ninclude ={included}\ndata_file = {DATA / 'lines.db'}\nparallel = True\n"
    )
    times = Times()
    options = ["-q", "--cov", f"--cov-config={config}", "--cov-context=test", "--cov-report="]
    path = DATA / "seconds.json"
    if paths:
        options.append("--cov-append")
        times.seconds |= json.loads(path.read_text())
    os.chdir(ROOT)
    pytest.main([*options, *(paths or (f"tests/{name}" for name in TESTS))], plugins=[times])
    path.write_text(json.dumps(times.seconds))


class Coverage:
    """Which tests run a line, and how long they take."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = json.loads((DATA / "seconds.json").read_text())
        #: Tests by file and line.
        self._tests: dict[str, dict[int, set[str]]] = {}
        #: How many lines of all files a test runs.
        self._lines_of: Counter[str] = Counter()
        with sqlite3.connect(f"file:{DATA / 'lines.db'}?mode=ro", uri=True) as data:
            contexts = dict(data.execute("select id, context from context"))
            files = dict(data.execute("select id, path from file"))
            rows = data.execute("select file_id, context_id, numbits from line_bits")
            for file_id, context_id, bits in rows:
                test = contexts[context_id].rpartition("|")[0]
                if test in self.seconds:
                    self._add(files[file_id].partition("/src/")[2], test, bits)

    def _add(self, path: str, test: str, bits: bytes) -> None:
        by_line = self._tests.setdefault(f"src/{path}", {})
        numbers = [
            8 * at + bit for at, byte in enumerate(bits) for bit in range(8) if byte >> bit & 1
        ]
        self._lines_of[test] += len(numbers)
        for number in numbers:
            by_line.setdefault(number, set()).add(test)

    def tests_of(self, path: str, lines: Iterable[tuple[str, int]]) -> list[str]:
        """The tests that run one of the lines: those of the module first, and others between."""
        known = self._tests
        found: set[str] = set().union(*(known.get(file, {}).get(n, ()) for file, n in lines))
        folder, _, name = path.removeprefix("src/penstock/").rpartition("/")
        beside, own = f"tests/{folder}/", f"/test_{name.removesuffix('.py')}.py"

        def rank(test: str) -> tuple[float, str]:
            weight = 0.2 if own in test else 1.0 if test.startswith(beside) else 3.0
            return weight * self._lines_of[test], test

        specific = sorted(found, key=rank)
        # Small tests of a line that nearly all tests run have little to do with it.
        others = random.Random(path).sample(specific, len(specific))
        mixed = (test for pair in zip(specific, others, strict=True) for test in pair)
        return list(dict.fromkeys((*specific[:_FIRST], *mixed)))


def task_of(
    path: str, texts: Mapping[str, str], mutant: Mutant, coverage: Coverage, budget: float
) -> Task:
    """A mutant with the tests that see it."""
    first, last = mutant.lines
    lines = {(path, number) for number in range(first, last + 1)}
    for name in mutant.defines:  # what stands outside of functions is seen by those who read it
        lines |= _lines_with(name, {path: texts[path]}) or _lines_with(name, texts)
    seen = coverage.tests_of(path, lines)
    tests, seconds = [], 0.0
    for test in seen:
        seconds += coverage.seconds[test]
        if tests and seconds > budget:
            break
        tests.append(test)
    return Task(path, mutant, tests, len(seen), seconds)


def _lines_with(name: str, texts: Mapping[str, str]) -> set[tuple[str, int]]:
    """The indented lines of some files in which a name stands."""
    word = re.compile(rf"\s.*\b{re.escape(name)}\b")
    return {
        (path, number)
        for path, text in texts.items()
        for number, line in enumerate(text.splitlines(), 1)
        if word.match(line)
    }


# -- running -----------------------------------------------------------------------------------


class Workshop:
    """Copies of the sources, one for each mutant that is tried at a time."""

    def __init__(self, jobs: int) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="mutation-"))
        self._free: SimpleQueue[Path] = SimpleQueue()
        for number in range(jobs):
            copy = self._folder / str(number)
            shutil.copytree(
                ROOT / "src", copy / "src", ignore=shutil.ignore_patterns("__pycache__")
            )
            self._free.put(copy)

    def close(self) -> None:
        """Take the copies away."""
        shutil.rmtree(self._folder)

    def try_out(self, task: Task) -> str:
        """What kills a mutant: ``test``, ``time``; ``alive``, or ``unseen`` if no test runs it."""
        if not task.tests:
            return "unseen"
        home = self._free.get()
        module = home / task.path
        before = module.read_text("utf-8")
        try:
            module.write_text(task.mutant.applied(before), "utf-8")
            return self._run(home, task)
        finally:
            module.write_text(before, "utf-8")
            self._free.put(home)

    def _run(self, home: Path, task: Task) -> str:
        outcome = self._run_tests(home, task.tests[:_FIRST], task.seconds)
        if outcome == "alive" and len(task.tests) > _FIRST:
            outcome = self._run_tests(home, task.tests[_FIRST:], task.seconds)
        return outcome

    @staticmethod
    def _run_tests(home: Path, tests: list[str], seconds: float) -> str:
        names = home / "tests.txt"
        names.write_text("\n".join(tests), "utf-8")
        environment = {
            **os.environ,
            "PYTHONPATH": str(home / "src"),
            "PYTHONDONTWRITEBYTECODE": "1",  # two versions of a file may be of the same second
        }
        options = ["-x", "-q", "-n", "0", "-p", "no:cacheprovider", f"@{names}"]
        process = subprocess.Popen(
            [sys.executable, "-m", "pytest", *options],
            cwd=ROOT,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        resource.prlimit(process.pid, resource.RLIMIT_AS, (_MEMORY, _MEMORY))
        try:
            code = process.wait(30 + 6 * (_START + seconds))
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            return "time"
        return "alive" if code == 0 else "test"


def run(tasks: list[Task], jobs: int, report: Path) -> None:
    """Try all tasks; print what survives, and the score."""
    workshop, lock, outcomes = Workshop(jobs), threading.Lock(), Counter[str]()
    survivors: list[dict[str, Any]] = []
    start = time.monotonic()

    def one(task: Task) -> None:
        outcome = workshop.try_out(task)
        with lock:
            outcomes[outcome] += 1
            if outcome in ("alive", "unseen"):
                print(f"{outcome}: {task}  ({len(task.tests)} of {task.seen_by} tests)", flush=True)
                survivors.append({"path": task.path, "mutant": str(task.mutant)})
                report.write_text(json.dumps(survivors, indent=1))
            if outcomes.total() % 20 == 0:
                print(f"{outcomes.total()} of {len(tasks)}, {score(outcomes)}", flush=True)

    try:
        with ThreadPoolExecutor(jobs) as pool:
            list(pool.map(one, tasks))
    finally:
        workshop.close()
    print(f"{score(outcomes)}; {dict(outcomes)}; {time.monotonic() - start:.0f} s")


def score(outcomes: Counter[str]) -> str:
    """The share of mutants that were killed, and its 95 % interval after Wilson (1927)."""
    total = outcomes.total()
    share, z = (outcomes["test"] + outcomes["time"]) / total, 1.96
    middle = (share + z * z / (2 * total)) / (1 + z * z / total)
    width = z / (1 + z * z / total) * math.sqrt(share * (1 - share) / total + (z / total / 2) ** 2)
    return f"{share:.1%} killed ({middle - width:.1%} to {middle + width:.1%})"


# -- the command line --------------------------------------------------------------------------


def chosen(options: argparse.Namespace) -> list[Task]:
    """The mutants that are asked for, with their tests."""
    every = [file for name in PACKAGES for file in Path("src/penstock", name).rglob("*.py")]
    places = options.paths or [f"src/penstock/{name}" for name in PACKAGES]
    texts = {
        str(file): file.read_text("utf-8")
        for file in sorted({*every, *(file for place in places for file in _files(Path(place)))})
    }
    wanted = {str(file) for place in places for file in _files(Path(place))}
    again = options.again and {
        (s["path"], s["mutant"]) for s in json.loads(options.again.read_text())
    }
    found = [(path, m) for path, text in texts.items() if path in wanted for m in mutants_of(text)]
    if again:
        found = [(path, mutant) for path, mutant in found if (path, str(mutant)) in again]
    elif options.sample and options.sample < len(found):
        found = random.Random(options.seed).sample(found, options.sample)
    coverage = Coverage()
    return [task_of(path, texts, mutant, coverage, options.budget) for path, mutant in found]


def _files(place: Path) -> list[Path]:
    return [place] if place.suffix == ".py" else list(place.rglob("*.py"))


def main() -> None:
    """See the module."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    commands = parser.add_subparsers(dest="command", required=True)
    covers = commands.add_parser("cover", help="note which test runs which line")
    covers.add_argument("paths", nargs="*", help="tests; by default all that are of use")
    runs = commands.add_parser("run", help="try mutants")
    runs.add_argument("paths", nargs="*", help="files or folders; the four packages by default")
    runs.add_argument("--sample", type=int, help="so many mutants by chance instead of all")
    runs.add_argument("--seed", type=int, default=0)
    runs.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)))
    runs.add_argument("--budget", type=float, default=20.0, help="seconds of tests per mutant")
    runs.add_argument("--again", type=Path, help="only the survivors of this report, all tests")
    runs.add_argument("--report", type=Path, default=DATA / "report.json")
    options = parser.parse_args()
    if options.command == "cover":
        cover(options.paths)
    else:
        os.chdir(ROOT)
        run(chosen(options), options.jobs, options.report)


if __name__ == "__main__":
    main()
