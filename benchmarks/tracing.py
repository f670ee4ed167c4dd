"""What it costs to record a step, and what it costs that one could.

    python -m benchmarks.tracing [--rounds 30] [NAME ...]

In:   the benchmark graphs, or those of some names.
Out:  two tables.  How long a step takes on each tier, plain and recorded: the least of many
      rounds, in which all ways take turns.  And how many of the instructions of Python that a step
      executes, when nobody records it, are in lines about recorders.
Not:  compares nothing with other engines.
"""

from __future__ import annotations

import argparse
import functools
import linecache
import re
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType
from typing import Any, Final

import penstock as ps
from benchmarks.cases import Case, all_cases
from penstock.runtime.compiler.source import place_of_thread
from penstock.tracing.recorder import Detail, Recording
from penstock.tracing.sampler import Sampler

#: Graphs of which a step takes from microseconds to some tens of milliseconds.
DEFAULT: Final = (
    "single_add", "twenty_feeds", "function_calls", "queue_pump", "two_devices", "cond_chain",
    "while_nested", "while_rnn", "greedy_decode", "lstm_infer", "lstm_grad", "mlp_adam_step",
    "cnn_sgd_step", "ssd_postprocess", "big_graph",
)  # fmt: skip
#: A step is not counted, instruction by instruction, if it takes longer than that: it would take
#: minutes.
_COUNTABLE: Final = 0.02
#: Lines about recorders, hooks and orders.
_HOOK: Final = re.compile(
    r"\b(_?record(er|ing)|watch(ing|er)|watcher_here|run_noted|_ran_elsewhere|_?is_close|_?is_traced"
    r"|hook|_?node_outputs|node_outputs_callback|told|order|_?is_watched)\b"
)
_SOURCES: Final = "/penstock/"
_FULL: Final = ps.RunOptions(trace_level=ps.TraceLevel.FULL_TRACE)

#: A full trace whose message is read as well, which takes long; so few rounds have it.
_READ: Final = "full trace, read"
_READINGS: Final = 3

Step = Callable[[], object]
#: Makes a step, before the clock starts.
Prepare = Callable[[], Step]


@dataclass(frozen=True, slots=True)
class Ways:
    """One graph, and the ways to run a step of it."""

    plain: Step
    #: By name.
    recorded: Mapping[str, Prepare]


def _least(ways: Mapping[str, Prepare], rounds: int) -> dict[str, float]:
    """The fewest seconds of each; they take turns, so that all meet the same machine."""
    least = dict.fromkeys(ways, float("inf"))
    for turn in range(rounds):
        for name, prepare in ways.items():
            if name == _READ and turn >= _READINGS:
                continue
            run = prepare()
            start = time.perf_counter()
            run()
            least[name] = min(least[name], time.perf_counter() - start)
    return least


@contextmanager
def _opened(case: Case, tier: ps.Tier) -> Iterator[Ways]:
    """A session of a graph, and how its step is run."""
    # One thread: what runs beside what would be chance.
    config = ps.Config(
        device_count={"CPU": case.devices}, tier=tier, inter_op_parallelism_threads=1
    )
    feeds = dict(zip(case.feeds, case.fed(), strict=True))
    # It looks at nothing as long as nothing is recorded line by line.
    with ps.Session(case.graph_bytes, config=config) as session, Sampler(_place_now) as sampler:
        if case.init_op:
            session.run(case.init_op)

        def run(options: ps.RunOptions | None = None, metadata: Any = None) -> object:
            return session.run(case.fetches, feeds, options, metadata)

        def recorded(detail: Detail, sampler: Sampler | None = None) -> Step:
            return functools.partial(run, ps.RunOptions(recorder=Recording(detail, sampler)))

        def full(*, is_read: bool) -> Step:
            metadata = ps.RunMetadata()

            def step() -> object:
                run(_FULL, metadata)
                return metadata.step_stats if is_read else None

            return step

        if tier is ps.Tier.DATAFLOW:
            ways = {
                "full trace": functools.partial(full, is_read=False),
                _READ: functools.partial(full, is_read=True),
            }
        else:
            ways = {
                "regions": functools.partial(recorded, Detail.REGIONS),
                "lines": functools.partial(recorded, Detail.LINES, sampler),
            }
        for _ in range(5):  # what adapts has done so
            run()
        yield Ways(run, ways)


def _same(step: Step) -> Step:
    return step


def _place_now(thread: int) -> tuple[str, str, str, int] | None:
    place = place_of_thread(thread)
    return None if place is None else (place.node.name, place.node.op.name, "", 0)


def counted(run: Step) -> tuple[int, int]:
    """The instructions of Penstock's own code that a step executes, and those in hooks."""
    total = hooks = 0

    def local(frame: FrameType, event: str, _: object) -> object:
        nonlocal total, hooks
        if event == "opcode":
            total += 1
            hooks += _is_hook(frame.f_code.co_filename, frame.f_lineno)
        return local

    def begin(frame: FrameType, _event: str, _: object) -> object:
        name = frame.f_code.co_filename
        if _SOURCES not in name and not name.startswith("<penstock"):
            return None
        frame.f_trace_opcodes = True
        frame.f_trace_lines = False
        return local

    before = sys.gettrace()
    sys.settrace(begin)
    try:
        run()
    finally:
        sys.settrace(before)
    return total, hooks


@functools.cache
def _is_hook(path: str, line: int | None) -> bool:
    if line is None or path.startswith("<"):
        return False  # no line's own, or generated code, which knows no recorders
    return bool(_HOOK.search(linecache.getline(path, line).partition("#")[0]))


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("names", nargs="*")
    asked = parser.parse_args()
    cases = list(all_cases(asked.names or DEFAULT))
    counts: list[str] = []
    print("| graph | tier | plain, us | recorded | us | ratio |")
    print("| --- | --- | ---: | --- | ---: | ---: |")
    for case in cases:
        for tier in ps.Tier:
            with _opened(case, tier) as ways:
                plainly: Prepare = functools.partial(_same, ways.plain)
                least = _least({"plain": plainly, **ways.recorded}, asked.rounds)
                plain = least.pop("plain")
                for name, seconds in least.items():
                    print(
                        f"| `{case.name}` | {tier.name.lower()} | {plain * 1e6:,.0f} | {name} | "
                        f"{seconds * 1e6:,.0f} | {seconds / plain:.2f} |",
                        flush=True,
                    )
                if plain < _COUNTABLE:
                    total, hooks = counted(ways.plain)
                    counts.append(
                        f"| `{case.name}` | {tier.name.lower()} | {total:,} | {hooks:,} | "
                        f"{hooks / max(total, 1):.2%} |"
                    )
    print("\n| graph | tier | instructions | in hooks | part |")
    print("| --- | --- | ---: | ---: | ---: |")
    print("\n".join(counts))


if __name__ == "__main__":
    main()
