"""Steps that do not move are told of, with what they wait for; and all of them, at a signal."""

from __future__ import annotations

import logging
import os
import queue
import signal
import threading
from typing import Any

import pytest

import penstock as ps

TIMEOUT = 30


def waits_for(name: str) -> ps.Graph:
    """A graph with a queue of that name that nobody fills but ``put``."""
    graph = ps.Graph()
    with graph.as_default():
        made = ps.ops.fifo_queue_v2(component_types=["float"], shapes=[[]], shared_name=name)
        taken = ps.ops.queue_dequeue_v2(made, component_types=["float"], name="take")
        ps.ops.neg(taken[0] if isinstance(taken, list) else taken, name="out")
        ps.ops.queue_enqueue_v2(made, [ps.constant(1.0)], name="put")
    return graph


def test_a_step_that_waits_is_told_of_once() -> None:
    """The report names the queue, and who could fill it; and comes once as long as it waits."""
    told: queue.Queue[str] = queue.Queue()
    with ps.Session(waits_for("basket")) as session, ps.watch_stalls(0.05, told.put):
        run = session.run_async("out:0")
        text = told.get(timeout=TIMEOUT)
        assert "FIFOQueue 'basket'" in text
        assert "what could end that: put (QueueEnqueueV2)" in text
        threading.Event().wait(0.3)
        assert told.empty()
        session.run("put")
        assert run.result(TIMEOUT) == -1


def test_steps_of_all_sessions_are_told_of_at_a_signal() -> None:
    """Without waiting for any time; what had the signal before has it again afterwards."""
    told: queue.Queue[str] = queue.Queue()
    before = signal.getsignal(signal.SIGUSR1)
    with (
        ps.Session(waits_for("one")) as first,
        ps.Session(waits_for("other")) as second,
        ps.watch_stalls(3600, told.put, signal_number=signal.SIGUSR1),
    ):
        runs = [session.run_async("out:0") for session in (first, second)]
        text = ""
        while "'one'" not in text or "'other'" not in text:
            os.kill(os.getpid(), signal.SIGUSR1)
            text = told.get(timeout=TIMEOUT)
        assert text.startswith("2 steps under way")
        for session, run in zip((first, second), runs, strict=True):
            session.run("put")
            run.result(TIMEOUT)
    assert signal.getsignal(signal.SIGUSR1) is before


def test_without_a_report_it_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    """As a warning."""
    seen = threading.Event()

    class Handler(logging.Handler):
        def emit(self, _record: logging.LogRecord) -> None:
            seen.set()

    handler = Handler()
    log = logging.getLogger("penstock.stalls")
    log.addHandler(handler)
    try:
        with ps.Session(waits_for("basket")) as session, ps.watch_stalls(0.05):
            run = session.run_async("out:0")
            assert seen.wait(TIMEOUT)
            session.run("put")
            run.result(TIMEOUT)
    finally:
        log.removeHandler(handler)
    assert "has not moved for" in caplog.text


@pytest.mark.parametrize("seconds", [0, -1.0])
def test_no_time_is_none(seconds: Any) -> None:
    """It is refused."""
    with pytest.raises(ps.errors.InvalidArgumentError):
        ps.watch_stalls(seconds)
