"""Preparations that take long: a deadline, ``cancel``, ``close`` and Ctrl-C end them like steps."""

from __future__ import annotations

import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import penstock as ps
from penstock import errors
from penstock.core.limits import Limits
from penstock.defs.schema import Message
from penstock.passes import lowerable
from penstock.passes.bodies import Bodies
from penstock.runtime.compiled_step import CompiledStep
from support.functions import graph_def_with
from support.graphs import graph_def

WAYS = ["deadline", "cancel", "close", "reset"]
TIERS = pytest.mark.parametrize("tier", ps.Tier)


def doubling(levels: int, *, noinline: bool = False) -> Message:
    """A graph of one call, of a function that calls another one twice, and so on.

    The innermost adds 1, so all of it adds 2 to the power of ``levels``.
    """
    functions = ["F0(x: float64) -> (y: float64)\n one = Const[value=1.0; dtype=float64]\n"]
    functions[0] += " sum = Add[T=float64](x, one:output)\n return y = sum:z"
    functions += [
        f"F{level}(x: float64) -> (y: float64)\n first = F{level - 1}(x)\n"
        f" second = F{level - 1}(first:y)\n return y = second:y"
        for level in range(1, levels + 1)
    ]
    text = f"x = Placeholder[dtype=float64]\ny = F{levels}(x)\nz = Neg[T=float64](x)"
    proto = graph_def_with(text, "\n\n".join(functions))
    for function in proto.library.function:
        if noinline and function.signature.name == f"F{levels}":
            function.attr["_noinline"].b = True
    return proto


class Blocking:
    """A function that is run while constants are folded, until it is let go."""

    def __init__(self) -> None:
        self.has_begun = threading.Event()
        self.may_end = threading.Event()
        self.calls = 0

    def __call__(self, x: Any) -> Any:
        self.calls += 1
        self.has_begun.set()
        assert self.may_end.wait(20.0)
        return x * np.float32(2)


FOLDED = """
    x = Const[value=3.0]
    y = PyFuncStateless[token=blocking; Tin=float32; Tout=float32](x)
    z = Neg(x)
"""


@pytest.fixture
def blocking() -> Iterator[Blocking]:
    """Yield the function that ``FOLDED`` calls."""
    function = Blocking()
    ps.register_py_func({"blocking": function})
    try:
        yield function
    finally:
        function.may_end.set()
        ps.register_py_func({"blocking": None})


def wait_until(condition: Callable[[], object]) -> None:
    """Wait for something that is about to happen."""
    for _ in range(5000):
        if condition():
            return
        time.sleep(0.002)
    raise AssertionError("it did not happen")


def end(session: ps.Session, run: ps.Run, how: str) -> str:
    """End a run that a deadline ends if nobody else does; returns what its error says."""
    if how == "cancel":
        run.cancel()
    elif how == "close":
        session.close()
    elif how == "reset":
        ps.Session.reset()
    kind = errors.DeadlineExceededError if how == "deadline" else errors.CancelledError
    with pytest.raises(kind) as caught:
        run.result(20.0)
    return str(caught.value)


# -- functions that double ---------------------------------------------------------------------


@TIERS
def test_functions_that_double_are_prepared_at_once(tier: ps.Tier) -> None:
    """2 to the power of 11 calls of one function are read once."""
    with ps.Session(doubling(11), config=ps.Config(tier=tier)) as session:
        assert session.run("y:0", {"x": 5.0}) == 5.0 + 2**11


def test_a_body_without_attributes_is_read_once() -> None:
    """However many nodes call a function, there is one body for them."""
    with ps.Session(doubling(3)) as session:
        graph = session._graph
        bodies = Bodies(graph.library, ("CPU",))
        node = graph.find("y")
        assert node is not None
        body = bodies.opened(*lowerable.functions_of(node))
    assert body is not None
    called = [function for node in body.graph for function in lowerable.functions_of(node)]
    assert len(called) == 2
    assert bodies.opened(called[0]) is bodies.opened(called[1])


@TIERS
@pytest.mark.parametrize("noinline", [False, True], ids=["request", "function"])
@pytest.mark.parametrize("how", WAYS)
def test_what_doubles_sixty_times_can_be_ended(how: str, noinline: bool, tier: ps.Tier) -> None:
    """Whether the nodes are put into a request, or into the body of a function as it is called."""
    session = ps.Session(doubling(60, noinline=noinline), config=ps.Config(tier=tier))
    options = ps.RunOptions(timeout_in_ms=200 if how == "deadline" else 0)
    run = session.run_async("y:0", {"x": 0.0}, options)
    place = "y (F60)" if noinline else "preparing  putting functions where they are called"
    if how != "deadline":
        wait_until(lambda: place in run.dump_state())
    assert place in end(session, run, how)
    if how in ("deadline", "cancel"):
        assert session.run("z:0", {"x": 2.0}) == -2.0
        with pytest.raises(errors.DeadlineExceededError):
            session.run("y:0", {"x": 0.0}, ps.RunOptions(timeout_in_ms=50))
    session.close()


def test_what_doubles_takes_no_more_memory_than_it_may() -> None:
    """A request, or a function's body, grows by so many nodes; then functions are called."""
    config = ps.Config(limits=Limits(new_nodes=300))
    with ps.Session(doubling(11), config=config) as session:
        metadata = ps.RunMetadata()
        options = ps.RunOptions(output_partition_graphs=True)
        assert session.run("y:0", {"x": 1.0}, options, metadata) == 1.0 + 2**11
        [graph] = metadata.partition_graphs
    assert len(graph.node) < 400
    assert any(node.op.startswith("F") and node.op[1:].isdigit() for node in graph.node)


# -- constants that are folded -----------------------------------------------------------------


@TIERS
@pytest.mark.parametrize("how", WAYS)
def test_a_kernel_that_is_folded_is_left(blocking: Blocking, how: str, tier: ps.Tier) -> None:
    """Who called goes, though the kernel goes on; nothing of it is kept for the next run."""
    session = ps.Session(graph_def(FOLDED), config=ps.Config(tier=tier))
    options = ps.RunOptions(timeout_in_ms=100 if how == "deadline" else 0)
    run = session.run_async("y:0", options=options)
    assert blocking.has_begun.wait(10.0)
    text = end(session, run, how)
    assert "preparing  folding constants: y (PyFuncStateless)" in text
    assert not blocking.may_end.is_set()
    assert not session._requests._prepared
    blocking.may_end.set()
    if how in ("deadline", "cancel"):
        assert session.run("z:0") == -3.0
        calls = blocking.calls
        assert session.run("y:0") == 6.0
        assert blocking.calls == calls + 1
        session.close()


def test_a_run_can_be_cancelled_before_anything_goes_on(blocking: Blocking) -> None:
    """``cancel`` is heeded whenever it comes: at once, while it prepares, or in its step."""
    text = FOLDED + "q = FIFOQueueV2[component_types=float32]\n"
    text += "get = QueueDequeueV2[component_types=float32](q)\nboth = Add(get, y)"
    blocking.may_end.set()
    for number in range(30):
        with ps.Session(graph_def(text)) as session:
            run = session.run_async("both:0")
            time.sleep(0.0002 * number)
            run.cancel()
            with pytest.raises(errors.CancelledError, match="Run call was cancelled"):
                run.result(20.0)


def test_who_waits_for_another_preparation_can_be_ended(blocking: Blocking) -> None:
    """While one thread prepares for long, the deadlines of others hold; what is known runs."""
    with ps.Session(graph_def(FOLDED)) as session:
        assert session.run("z:0") == -3.0
        first = session.run_async("y:0")
        assert blocking.has_begun.wait(10.0)
        with pytest.raises(errors.DeadlineExceededError, match="waiting for the graph"):
            session.run(["x:0", "z:0"], options=ps.RunOptions(timeout_in_ms=50))
        assert session.run("z:0") == -3.0
        blocking.may_end.set()
        assert first.result(10.0) == 6.0


def test_a_deadline_counts_from_the_call(
    blocking: Blocking, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What preparing takes is not given once more to the step."""
    given: list[int] = []
    run = CompiledStep.run

    def noted(self: CompiledStep, feeds: Any, timeout_in_ms: int) -> Any:
        given.append(timeout_in_ms)
        return run(self, feeds, 0)

    monkeypatch.setattr(CompiledStep, "run", noted)
    with ps.Session(graph_def(FOLDED)) as session:
        threading.Timer(0.3, blocking.may_end.set).start()
        assert session.run("y:0", options=ps.RunOptions(timeout_in_ms=60_000)) == 6.0
    [left] = given
    assert 0 < left <= 60_000 - 250


# -- Ctrl-C ------------------------------------------------------------------------------------

CTRL_C = """
    import os, signal, threading, time
    import penstock as ps
    from session.test_preparation import FOLDED, doubling
    from support.graphs import graph_def

    def press():
        os.kill(os.getpid(), signal.SIGINT)

    def blocked(x):
        threading.Timer(0.05, press).start()
        threading.Event().wait(20.0)
        return x

    ps.register_py_func({"blocking": blocked})
    for graph, begin in ((doubling(60), press), (graph_def(FOLDED), None)):
        with ps.Session(graph) as session:
            for options in (None, ps.RunOptions(timeout_in_ms=20_000)):
                for call in (session.run, session.make_callable):
                    if call == session.make_callable and options:
                        continue
                    if begin is not None:
                        threading.Timer(0.1, begin).start()
                    feeds = {"x": 1.0} if begin is not None else {}
                    try:
                        call("y:0", feeds, options)
                    except KeyboardInterrupt:
                        print("interrupted")
                    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
            print(session.run("z:0", {"x": 2.0}))
"""


def test_ctrl_c_ends_a_preparation() -> None:
    """In a program of its own: the session stays usable, and what is pressed is never lost."""
    root = Path(__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(CTRL_C)],
        env={"PYTHONPATH": f"{root / 'src'}:{root / 'tests'}", "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == [*(["interrupted"] * 3), "-2.0"] * 2, done.stdout


# -- endless loops -----------------------------------------------------------------------------


@TIERS
@pytest.mark.parametrize("marks", ["", "_lower_using_switch_merge=True; "], ids=["kernel", "loop"])
def test_an_endless_loop_of_constants_is_not_folded(marks: str, tier: ps.Tier) -> None:
    """It is a step's matter, and says so."""
    functions = """
        Always(x: int32) -> (go: bool)
        yes = Const[value=True; dtype=bool]
        return go = yes:output

        Same(x: int32) -> (y: int32)
        one = Const[value=1; dtype=int32]
        sum = Mul[T=int32](x, one:output)
        return y = sum:z
    """
    text = f"x = Const[value=3; dtype=int32]\ny = While[{marks}T=int32; cond=Always; body=Same](x)"
    with ps.Session(graph_def_with(text, functions), config=ps.Config(tier=tier)) as session:
        session.make_callable("y:0")
        with pytest.raises(errors.DeadlineExceededError) as caught:
            session.run("y:0", options=ps.RunOptions(timeout_in_ms=50))
    assert "preparing" not in str(caught.value)
