"""Kernels that do not answer: the step ends all the same, and says who they were."""

from __future__ import annotations

import gc
import signal
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import penstock as ps
from penstock import errors
from penstock.core.limits import Limits
from penstock.defs.schema import Message
from support.custom import custom_kernels
from support.functions import graph_def_with

#: Steps have little patience with silent kernels.
LITTLE = Limits(patience=0.1)
FUNCTIONS = """
    Asks(x: int32) -> (y: int32)
    silent = ExSilent(x)
    return y = silent:y

    IsSmall(x: int32) -> (go: bool)
    most = Const[value=5; dtype=int32]
    less = Less[T=int32](x, most:output)
    return go = less:z
"""
#: Where the kernel is that does not answer: nodes that come from ``x`` and lead to ``y``.
PLACES = {
    "graph": "y = ExSilent(x)",
    "call": "y = StatefulPartitionedCall[Tin=int32; Tout=int32; f=Asks](x)",
    "loop": "y = While[T=int32; cond=IsSmall; body=Asks](x)",
    "dataset": """
        all = TensorDataset[Toutput_types=int32](x)
        each = MapDataset[Targuments=; f=Asks; output_types=int32](all)
        y = DatasetToSingleElement[output_types=int32](each)
    """,
    "two devices": """
        here = ExSilent(x) @/cpu:0
        there = ExSilent(x) @/cpu:1
        y = Add[T=int32](here, there) @/cpu:1
    """,
}


def graph_at(place: str) -> Message:
    """A graph with the silent kernel at some place, in a function that is called if in one."""
    proto = graph_def_with(f"x = Placeholder[dtype=int32]\n{PLACES[place]}", FUNCTIONS)
    for function in proto.library.function:
        function.attr["_noinline"].b = True
    return proto


class Silent:
    """An asynchronous kernel that keeps what it should call."""

    def __init__(self) -> None:
        self.kept: list[Any] = []
        self.is_silent = True
        #: What is called with the kernel's context when it is started.
        self.start: Callable[[Any, Any], object] = lambda _context, _done: None

    def __call__(self, context: Any, done: Any, x: Any) -> None:
        self.start(context, done)
        if self.is_silent:
            self.kept.append(done)
        else:
            done(x)


@pytest.fixture
def silent() -> Iterator[Silent]:
    """Yield the kernel of ExSilent."""
    with custom_kernels("ExSilent(x: int32) -> (y: int32) stateful") as register:
        kernel = Silent()
        register("ExSilent", kernel, "async")
        yield kernel


def wait_until(condition: Callable[[], object]) -> None:
    """Wait for something that is about to happen."""
    for _ in range(5000):
        if condition():
            return
        time.sleep(0.002)
    raise AssertionError("it did not happen")


def ended(session: ps.Session, silent: Silent, how: str) -> BaseException:
    """The error of a run that is ended while the kernel is silent."""
    session.make_callable("y:0", ["x"])
    for milliseconds in (50, 500, 5000):  # on a busy machine it may end before the kernel begins
        options = ps.RunOptions(timeout_in_ms=milliseconds if how == "deadline" else 0)
        run = session.run_async("y:0", {"x": 1}, options)
        wait_until(lambda run=run: silent.kept or run.is_done())
        if silent.kept:
            break
    if how == "cancel":
        run.cancel()
    if how == "close":
        session.close()
    with pytest.raises(errors.OpError) as caught:
        run.result(10.0)
    return caught.value


KIND = {
    "deadline": errors.DeadlineExceededError,
    "cancel": errors.CancelledError,
    "close": errors.CancelledError,
}


@pytest.mark.parametrize("tier", ps.Tier)
@pytest.mark.parametrize("how", KIND)
@pytest.mark.parametrize("place", PLACES)
def test_a_step_ends_without_an_answer(silent: Silent, place: str, how: str, tier: ps.Tier) -> None:
    """The error has the reason, and names the node that did not answer."""
    config = ps.Config(limits=LITTLE, tier=tier, device_count={"CPU": 2})
    session = ps.Session(graph_at(place), config=config)
    error = ended(session, silent, how)
    assert type(error) is KIND[how]
    name = {"graph": "y", "two devices": "here"}.get(place, "silent")
    assert f"{name} (ExSilent) has not called done" in str(error)
    assert "docs/add-an-op.md" in str(error)
    assert "Call) has not" not in str(error)  # the caller is not to blame
    for done in silent.kept:
        done(np.int32(7))  # nobody hears it
    if how != "close":
        silent.is_silent = False
        assert session.run("y:0", {"x": 5}) == (10 if place == "two devices" else 5)
        session.close()


def test_a_late_answer_changes_nothing(silent: Silent) -> None:
    """However often, with whatever, and from whichever thread it comes."""
    with ps.Session(graph_at("graph"), config=ps.Config(limits=LITTLE)) as session:
        ended(session, silent, "deadline")
        [late] = silent.kept
        silent.kept.clear()
        run = session.run_async("y:0", {"x": 1})
        wait_until(lambda: silent.kept)
        threads = [
            threading.Thread(target=late, args=[result])
            for result in (np.int32(7), errors.InternalError("late"), SystemExit(1), None)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not run.is_done()
        silent.kept[0](np.int32(3))
        assert run.result(10.0) == 3


def test_a_late_answer_keeps_nothing_alive(silent: Silent) -> None:
    """Who keeps ``done`` for ever does not keep what the answer held."""

    class Held(np.ndarray):
        """An array that can be referred to weakly."""

    with ps.Session(graph_at("graph"), config=ps.Config(limits=LITTLE)) as session:
        ended(session, silent, "deadline")
        answer = np.zeros(3, np.int32).view(Held)
        held = weakref.ref(answer)
        silent.kept[0](answer)
        del answer
        gc.collect()
        assert held() is None


def test_whoever_answers_in_time_is_not_blamed(silent: Silent) -> None:
    """A kernel that is done when it is told to end is what ``run`` waits for."""
    told: list[str] = []

    def obey(context: Any, done: Any) -> None:
        manager = context.cancellation_manager
        token = manager.get_cancellation_token()

        def stop() -> None:
            told.append("told")
            threading.Timer(0.02, done, [errors.CancelledError("stopped")]).start()

        assert manager.register_callback(token, stop)

    silent.start = obey
    with ps.Session(graph_at("call"), config=ps.Config(limits=LITTLE)) as session:
        error = ended(session, silent, "cancel")
    assert told == ["told"]
    assert "has not called" not in str(error)


@pytest.mark.parametrize("how", ["deadline", "cancel", "close"])
def test_a_partial_run_ends_without_an_answer(silent: Silent, how: str) -> None:
    """Its fetch fails, and closing the session does not wait for ever."""
    config = ps.Config(limits=LITTLE, operation_timeout_in_ms=50 if how == "deadline" else 0)
    session = ps.Session(graph_at("graph"), config=config)
    handle = session.partial_run_setup(["y:0"], ["x"])
    raised: list[errors.OpError] = []

    def fetch() -> None:
        try:
            session.partial_run(handle, ["y:0"], {"x": 1})
        except errors.OpError as error:
            raised.append(error)

    thread = threading.Thread(target=fetch)
    thread.start()
    wait_until(lambda: silent.kept)
    if how == "cancel":
        session._under_way.partial_runs.get(handle).cancel(errors.CancelledError("enough"))
    if how == "close":
        session.close()
    thread.join(10.0)
    assert not thread.is_alive()
    assert type(raised[0]) is KIND[how]
    assert "y (ExSilent) has not called done" in str(raised[0])
    silent.kept[0](np.int32(7))
    session.close()


@pytest.mark.parametrize("place", ["graph", "call"])
def test_ctrl_c_ends_a_step_without_an_answer(silent: Silent, place: str) -> None:
    """KeyboardInterrupt comes out, with a note about the node."""
    with ps.Session(graph_at(place), config=ps.Config(limits=LITTLE)) as session:
        for _ in range(2):
            timer = threading.Timer(0.05, signal.raise_signal, [signal.SIGINT])
            silent.start = lambda _context, _done, timer=timer: timer.start()
            with pytest.raises(KeyboardInterrupt) as caught:
                session.run("y:0", {"x": 1})
            timer.join()
            assert "(ExSilent) has not called done" in "".join(caught.value.__notes__)
            assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
        silent.is_silent, silent.start = False, lambda _context, _done: None
        assert session.run("y:0", {"x": 1}) == 1


def test_an_error_is_told_when_another_kernel_is_silent(silent: Silent) -> None:
    """What failed first is the error; the one that kept the step waiting is named beside it."""

    def fail(_x: Any) -> Any:
        raise ValueError("no good")

    with custom_kernels("ExFail(x: int32) -> (y: int32)") as register:
        register("ExFail", fail)
        text = (
            "x = Placeholder[dtype=int32]\na = ExSilent(x)\nb = ExFail(x)\ny = Add[T=int32](a, b)"
        )
        with ps.Session(graph_def_with(text, ""), config=ps.Config(limits=LITTLE)) as session:
            error = ended(session, silent, "deadline")
    assert isinstance(error, errors.InvalidArgumentError)
    assert "no good" in str(error)
    assert "a (ExSilent) has not called done" in str(error)
