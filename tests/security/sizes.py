"""Absurd numbers for every op: each number that a recorded case tells an op becomes another one.

    cd tests && python -m security.sizes                      all; an hour
    cd tests && python -m security.sizes --every 20           a twentieth of the numbers
    cd tests && python -m security.sizes --case '*Pool*'

Prints each finding as it comes, and in the end how many there were.  The exit status is 1 if there
was a finding.  What counts as one: an exception that is no OpError, an error that calls itself our
own mistake or that nobody worded, more than 5 seconds of work, more than 4 GiB, a process that dies
or never ends.

Each case is attacked in a process of its own, which may take 4 GiB more than it has at first.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import linecache
import multiprocessing
import os
import resource
import sys
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from fnmatch import fnmatchcase
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Final, NamedTuple

import penstock as ps
from penstock.defs.schema import GraphDef
from penstock.errors import OpError
from security.attack import Finding, look_at_text
from security.places import places_of
from security.sweep import SPECIAL
from support.corpus import Case, all_cases
from support.op_cases import OpCase, all_op_cases

#: Each process is a copy of one that has all it needs.
_PROCESSES: Final = multiprocessing.get_context("forkserver")
_PROCESSES.set_forkserver_preload(["security.attack", "support.op_cases"])
#: Bytes that an attack may take, and seconds that it may work.
_ROOM: Final = 4 << 30
_MOST_WORK: Final = 5.0
#: Milliseconds after which nobody waits any more: for what never comes, for loops without an end.
_PATIENCE: Final = 700
#: Seconds after which nobody believes that an attack will end.
_ENDLESS: Final = 60
#: What Python or numpy says as TensorFlow does.
_WORDED: Final = ("Integers to negative integer powers are not allowed",)
#: Ops that are told how often to try, and do so, in TensorFlow as well.
_TRIES: Final = ("num_retries_per_sample",)
#: Steps of a case that are run.
_STEPS: Final = 2


class Report(NamedTuple):
    """What came of the attacks on one case."""

    #: How often each outcome came.
    outcomes: Counter[str]
    findings: list[str]


def cases() -> list[Case | OpCase]:
    """All that was ever recorded, but for what is long by intent or no graph at all."""
    return [*all_op_cases(), *(case for case in all_cases() if case.name not in SPECIAL)]


# -- one process -----------------------------------------------------------------------


def _attack_all(case: Case | OpCase, every: int, start: int, pipe: Connection) -> None:
    """Make the attacks from number ``start`` on; says before each one what it is."""
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for number, (what, attack) in enumerate(_attacks(case, folder.encode())):
            if number < start or number % every:
                continue
            pipe.send((number, what))
            try:
                pipe.send(attack())
            except Finding as finding:
                pipe.send(finding)
        os.chdir("/")
    pipe.send(None)


def _attacks(case: Case | OpCase, folder: bytes) -> Iterator[tuple[str, Any]]:
    """What each attack is, and a function that makes it and returns what came of it."""
    graph = GraphDef()
    graph.ParseFromString(case.graph_bytes)
    steps = case.steps[:_STEPS]
    feeds = [case.feeds(step, folder) for step in steps]
    run = functools.partial(_run, graph, steps, feeds)
    with contextlib.suppress(Finding):
        run(ps.Tier.DATAFLOW)  # imports what is needed
    soft = _used() + _ROOM
    resource.setrlimit(resource.RLIMIT_AS, (soft, resource.RLIM_INFINITY))
    for at in range(len(steps)):
        for place in places_of(graph, feeds[at]) if at == 0 else _fed_places(feeds[at]):
            if any(name in place.what for name in _TRIES):
                continue
            for number in place.numbers:
                for tier in ps.Tier:

                    def attack(place: Any = place, number: int = number, tier: Any = tier) -> str:
                        place.put(number)
                        try:
                            return _judged(run, tier)
                        finally:
                            place.restore()

                    yield f"{place.what} = {number} ({tier.name})", attack


def _fed_places(feeds: dict[str, Any]) -> Iterator[Any]:
    return places_of(GraphDef(), feeds)


def _used() -> int:
    """Bytes of address space that this process has."""
    pages = int(Path("/proc/self/statm").read_text("ascii").split()[0])
    return pages * os.sysconf("SC_PAGE_SIZE")


def _judged(run: Any, tier: ps.Tier) -> str:
    """What came of a run that should not take long."""
    before = time.process_time()
    outcome: str = run(tier)
    while time.process_time() - before < _MOST_WORK:
        if outcome != "DEADLINE_EXCEEDED" or not _works():
            return outcome
    raise Finding(f"{_MOST_WORK} s of work, and {outcome}")


def _works() -> bool:
    """Whether something goes on working although nobody waits for it any more."""
    before = time.process_time()
    time.sleep(0.1)
    return time.process_time() - before > 0.01


def _run(graph: Any, steps: Any, feeds: Any, tier: ps.Tier) -> str:
    """Run the steps; returns ``answered`` or the code of an error."""
    config = ps.Config(tier=tier, accelerate=False, check_outputs=tier is ps.Tier.DATAFLOW)
    options = ps.RunOptions(timeout_in_ms=_PATIENCE)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with ps.Session(graph, config=config) as session:
                for step, fed in zip(steps, feeds, strict=True):
                    names = [*step.get("fetches", ()), *step.get("targets", ())]
                    session.run(names, fed, options)
    except OpError as error:
        _look_at_error(error)
        return error.code.name
    except Exception as error:
        raise Finding(f"no OpError: {type(error).__name__}: {error}") from error
    return "answered"


def _look_at_error(error: OpError) -> None:
    text = str(error)
    look_at_text(text)
    if "please report" in text:
        raise Finding(f"an error that is our own mistake: {text:.300}")
    while isinstance(error.__cause__, OpError):
        error = error.__cause__
    cause = error.__cause__
    if cause is None or isinstance(cause, MemoryError) or str(cause) != error.reason:
        return
    if not (_is_worded(cause) or str(cause).startswith(_WORDED)):
        raise Finding(f"nobody worded this: {type(cause).__name__}: {text:.300}")


def _is_worded(cause: BaseException) -> bool:
    """Whether somebody raised it by intent, rather than Python or numpy."""
    trace = cause.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    if trace is None:
        return True
    line = linecache.getline(trace.tb_frame.f_code.co_filename, trace.tb_lineno)
    return line.lstrip().startswith("raise ")


# -- all processes ---------------------------------------------------------------------


def attacked(case: Case | OpCase, every: int = 1) -> Report:
    """Make each ``every``-th attack on a case."""
    report = Report(Counter(), [])
    start: int | None = 0
    while start is not None:
        start = _attacked_from(case, every, start, report)
    return report


def _attacked_from(case: Case | OpCase, every: int, start: int, report: Report) -> int | None:
    """Make attacks until all are made, or a process dies; returns where to go on."""
    ours, theirs = _PROCESSES.Pipe(duplex=False)
    process = _PROCESSES.Process(target=_attack_all, args=(case, every, start, theirs))
    process.start()
    theirs.close()
    number, what = start - 1, "the case itself"
    try:
        while ours.poll(_ENDLESS):
            message = ours.recv()
            if message is None:
                return None
            if isinstance(message, tuple):
                number, what = message
            elif isinstance(message, Finding):
                report.findings.append(f"{case} {what}: {message}")
                report.outcomes["finding"] += 1
            else:
                report.outcomes[message] += 1
        fate = f"no end after {_ENDLESS} s"
    except EOFError:
        process.join()
        fate = f"the process ended with {process.exitcode}"
    finally:
        process.kill()
        process.join()
        ours.close()
    report.findings.append(f"{case} {what}: {fate}")
    report.outcomes["finding"] += 1
    return number + 1 if number >= start else None


def main() -> None:
    """Make the attacks that the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--every", type=int, default=1, help="make each N-th attack only")
    parser.add_argument("--case", default="*", help="only cases of such names")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    args = parser.parse_args()
    chosen = [case for case in cases() if fnmatchcase(str(case), args.case)]
    outcomes: Counter[str] = Counter()
    begin = time.monotonic()
    with ThreadPoolExecutor(args.jobs) as pool:
        for done in as_completed(pool.submit(attacked, case, args.every) for case in chosen):
            report = done.result()
            outcomes += report.outcomes
            for finding in report.findings:
                print(finding, flush=True)
    seconds = time.monotonic() - begin
    print(f"{len(chosen)} cases, {outcomes.total()} attacks in {seconds:.0f} s")
    print(", ".join(f"{name} {count}" for name, count in outcomes.most_common()))
    sys.exit(1 if outcomes["finding"] else 0)


if __name__ == "__main__":
    main()
