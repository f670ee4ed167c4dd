"""What a kernel raises that is no error: SystemExit, KeyboardInterrupt, GeneratorExit."""

from __future__ import annotations

import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import penstock as ps
from penstock import errors
from penstock.defs.schema import Message
from support.custom import custom_kernels
from support.functions import graph_def_with
from support.graphs import graph_def

KINDS: dict[str, type[BaseException]] = {
    "SystemExit": SystemExit,
    "KeyboardInterrupt": KeyboardInterrupt,
    "GeneratorExit": GeneratorExit,
}
#: What the next call of a kernel raises; None if it is to return its input.
raised: list[BaseException | None] = [None]


def plain(x: Any) -> Any:
    """Fail, or return the input."""
    if raised[0] is not None:
        raise raised[0]
    return x


def context(_context: Any, x: Any) -> Any:
    """The same with a context."""
    return plain(x)


def starting(_context: Any, done: Any, x: Any) -> None:
    """The same as an asynchronous kernel, whose start fails."""
    done(plain(x))


def finishing(_context: Any, done: Any, x: Any) -> None:
    """The same, told by ``done`` on another thread."""
    result = x if raised[0] is None else raised[0]
    threading.Thread(target=done, args=[result]).start()


KERNELS: dict[str, tuple[Callable[..., Any], str]] = {
    "plain": (plain, "plain"),
    "context": (context, "context"),
    "starting": (starting, "async"),
    "finishing": (finishing, "async"),
}
FUNCTIONS = """
    Bad(x: int32) -> (y: int32)
    bad = ExBad(x)
    return y = bad:y

    IsSmall(x: int32) -> (go: bool)
    two = Const[value=2; dtype=int32]
    less = Less[T=int32](x, two:output)
    return go = less:z

    Next(x: int32) -> (y: int32)
    one = Const[value=1; dtype=int32]
    sum = Add[T=int32](x, one:output)
    bad = ExBad(sum:z)
    return y = bad:y

    Deep(x: int32) -> (y: int32)
    limit = Const[value=3; dtype=int32]
    is_deep = GreaterEqual[T=int32](x, limit:output)
    if = If[Tcond=bool; Tin=int32; Tout=int32; then_branch=Bad; else_branch=Deeper](is_deep:z, x)
    return y = if:output

    Deeper(x: int32) -> (y: int32)
    one = Const[value=1; dtype=int32]
    sum = Add[T=int32](x, one:output)
    call = PartitionedCall[Tin=int32; Tout=int32; f=Deep](sum:z)
    return y = call:output
"""
#: Where the kernel is: nodes that come from ``x`` and lead to ``y``.
PLACES = {
    "graph": "y = ExBad(x)",
    "beside": "y = ExBad(x)\nother = ExBad(x)",
    "call": "y = PartitionedCall[Tin=int32; Tout=int32; f=Bad](x)",
    "branch": """
        zero = Const[value=0; dtype=int32]
        is_zero = Equal[T=int32](x, zero)
        y = If[Tcond=bool; Tin=int32; Tout=int32; then_branch=Bad; else_branch=Bad](is_zero, x)
    """,
    "loop": "y = While[T=int32; cond=IsSmall; body=Next](x)",
    "recursion": "y = PartitionedCall[Tin=int32; Tout=int32; f=Deep](x)",
    "dataset": """
        all = TensorDataset[Toutput_types=int32](x)
        each = MapDataset[Targuments=; f=Bad; output_types=int32](all)
        y = DatasetToSingleElement[output_types=int32](each)
    """,
}


def graph_at(place: str) -> Message:
    """A graph with the kernel at some place, in functions that are called if it is in one."""
    proto = graph_def_with(f"x = Placeholder[dtype=int32]\n{PLACES[place]}", FUNCTIONS)
    for function in proto.library.function:
        function.attr["_noinline"].b = True
    return proto


@pytest.fixture(params=KERNELS)
def kernel(request: pytest.FixtureRequest) -> Iterator[None]:
    """Register ExBad's kernel in each shape that kernels have."""
    with custom_kernels("ExBad(x: int32) -> (y: int32)") as register:
        register("ExBad", *KERNELS[request.param])
        yield
    raised[0] = None


def on_a_thread(run: Callable[[], Any]) -> Any:
    """What a call raises, or returns, on a thread that must end."""
    outcome: list[Any] = []

    def work() -> None:
        try:
            outcome.append(run())
        except BaseException as error:  # noqa: BLE001
            outcome.append(error)

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    thread.join(20.0)
    assert outcome, "the step hangs"
    return outcome[0]


def ways_of(session: ps.Session, fetches: list[str]) -> dict[str, Callable[[], Any]]:
    """The ways in which a request can be run."""
    feeds, soon = {"x": np.int32(1)}, ps.RunOptions(timeout_in_ms=60_000)
    handle = session.partial_run_setup(fetches, ["x"])
    return {
        "run": lambda: session.run(fetches, feeds),
        "deadline": lambda: session.run(fetches, feeds, soon),
        "run_async": lambda: session.run_async(fetches, feeds).result(20.0),
        "callable": lambda: session.make_callable(fetches, ["x"])(1),
        "partial": lambda: session.partial_run(handle, fetches, feeds),
    }


@pytest.mark.parametrize("tier", ps.Tier)
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("threads", [1, 4])
@pytest.mark.usefixtures("kernel")
def test_off_the_main_thread_it_is_an_error(place: str, threads: int, tier: ps.Tier) -> None:
    """Nothing hangs; the error is the same on each way and names the node; the session goes on."""
    config = ps.Config(tier=tier, inter_op_parallelism_threads=threads, offload_seconds=0.0)
    fetches = ["y:0", "other:0"] if place == "beside" else ["y:0"]
    with ps.Session(graph_at(place), config=config) as session:
        for name, kind in KINDS.items():
            for way, run in ways_of(session, fetches).items():
                raised[0] = kind("3")
                error = on_a_thread(run)
                raised[0] = None
                assert type(error) is errors.UnknownError, (way, error)
                assert name in str(error), way
                assert error.op_type == "ExBad", way
        assert session.run("y:0", {"x": 1}) == {"loop": 2, "recursion": 3}.get(place, 1)


def test_what_a_python_function_raises_is_unknown() -> None:
    """As in TensorFlow: ``SystemExit: 3`` is an UNKNOWN error of the node."""

    def leave(_x: Any) -> Any:
        raise SystemExit(3)

    ps.register_py_func({"leave": leave})
    text = "x = Placeholder\ny = PyFunc[token=leave; Tin=float32; Tout=float32](x)"
    with ps.Session(graph_def(text)) as session:
        error = on_a_thread(lambda: session.run("y:0", {"x": 1.0}))
    assert type(error) is errors.UnknownError
    assert "SystemExit: 3" in str(error)
    assert error.node_name == "y"


MAIN = """
    import os, sys
    import numpy as np
    import penstock as ps
    from session import test_escapes as t
    from support.custom import custom_kernels

    for kernel, (compute, calling) in t.KERNELS.items():
        with custom_kernels("ExBad(x: int32) -> (y: int32)") as register:
            register("ExBad", compute, calling)
            for tier in ps.Tier:
                for place in t.PLACES:
                    session = ps.Session(t.graph_at(place), config=ps.Config(tier=tier))
                    for name, kind in t.KINDS.items():
                        ways = t.ways_of(session, ["y:0"])
                        del ways["deadline"]  # which may be kept on any thread
                        for way, run in ways.items():
                            t.raised[0] = kind("3")
                            where = [kernel, tier.name, place, name, way]
                            try:
                                run()
                                print("nothing is raised", *where)
                            except BaseException as error:
                                is_elsewhere = kernel == "finishing" or way == "run_async"
                                expected = ps.errors.OpError if is_elsewhere else kind
                                if not isinstance(error, expected):
                                    print("wrong", *where, repr(error))
                                told = [str(error), *getattr(error, "__notes__", [])]
                                if "{{node " not in "".join(told):
                                    print("nobody is named", *where, repr(error))
                            t.raised[0] = None
                    session.run("y:0", {"x": np.int32(1)})
                    session.close()
    print("done")
"""


def test_on_the_main_thread_it_reaches_the_program() -> None:
    """It may come from a signal handler: ``run`` raises it when the step has ended."""
    root = Path(__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "-X", "faulthandler", "-c", textwrap.dedent(MAIN)],
        env={"PYTHONPATH": f"{root / 'src'}:{root / 'tests'}", "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.stdout.split() == ["done"], done.stdout + done.stderr
