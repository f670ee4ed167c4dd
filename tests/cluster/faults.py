"""Faults during a training run over three processes, and what must be true afterwards.

    cd tests && python -m cluster.faults --times 50

Each update adds a gradient of ones, which a worker computes, to variables on a parameter task, and
counts.  Whatever is killed, stopped, cut or slow meanwhile: the run ends in time, and the variables
are what the count says, no update lost or doubled.
"""

from __future__ import annotations

import argparse
import contextlib
import logging
import random
import re
import signal
import statistics
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from typing import Final

import numpy as np

import penstock as ps
from penstock.training import StopAtStepHook
from support.cluster_processes import Processes
from support.relay import Fate, all_pass

MASTER: Final = "worker:0"
WORKER: Final = "worker:1"
PARAMETERS: Final = "ps:0"
#: Between two checkpoints, and in all.
EVERY, STEPS = 5, 40
#: Seconds in which a run must be over, whatever happened.
PATIENCE: Final = 60.0


def graph() -> tuple[ps.Graph, ps.Operation]:
    """The graph and its training op."""
    made = ps.Graph()
    with made.as_default():
        with ps.device("/job:ps/task:0"):
            count = ps.Variable(np.int64(0), name="global_step")
            w = ps.Variable(np.zeros(1000, np.float32), name="w")
        with ps.device("/job:worker/task:1"):
            gradient = w.value() * 0.0 + 1.0
        with ps.device("/job:ps/task:0"):
            train = ps.group(w.assign_add(gradient), count.assign_add(np.int64(1)))
    return made, train


def kill(name: str) -> Callable[[Processes], None]:
    """The process is gone, and comes back empty."""
    return lambda tasks: tasks.signal(name, signal.SIGKILL)


def stop(tasks: Processes) -> None:
    """A process answers nobody for longer than others wait for it."""
    tasks.signal(WORKER, signal.SIGSTOP)
    time.sleep(2.5)
    tasks.signal(WORKER, signal.SIGCONT)


def cut(tasks: Processes) -> None:
    """Connections to all tasks break, and can be made anew."""
    for wire in tasks.wires.values():
        wire.cut()


def slow(tasks: Processes) -> None:
    """What goes to a task takes its time for a while."""
    tasks.wires[PARAMETERS].delay = 0.05
    time.sleep(1.0)
    tasks.wires[PARAMETERS].delay = 0.0


def freeze(tasks: Processes) -> None:
    """So does the one that has the variables."""
    tasks.signal(PARAMETERS, signal.SIGSTOP)
    time.sleep(2.5)
    tasks.signal(PARAMETERS, signal.SIGCONT)


def now_and_then(fate: Fate, share: float) -> Callable[[Processes], None]:
    """For a while, something becomes of a share of the requests to all tasks."""

    def inject(tasks: Processes) -> None:
        draw = random.Random(share)
        for relay in tasks.relays.values():
            relay.rule = lambda _method: fate if draw.random() < share else Fate.PASS
        time.sleep(1.0)
        for relay in tasks.relays.values():
            relay.rule = all_pass

    return inject


FAULTS: Final[dict[str, Callable[[Processes], None]]] = {
    "worker killed": kill(WORKER),
    "parameters killed": kill(PARAMETERS),
    "master killed": kill(MASTER),
    "worker stopped": stop,
    "connections cut": cut,
    "slow link": slow,
    "parameters stopped": freeze,
    "requests doubled": now_and_then(Fate.TWICE, 0.5),
    "requests again": now_and_then(Fate.AGAIN, 0.5),
    "requests reordered": now_and_then(Fate.LATE, 0.3),
    "requests lost": now_and_then(Fate.LOST, 0.05),
    "answers lost": now_and_then(Fate.UNANSWERED, 0.05),
}
#: For these there are relays between the tasks.
RELAYED: Final = {kind for kind in FAULTS if kind.startswith(("requests", "answers"))}


class _Told(logging.Handler):
    """What was said of sessions that were lost; each must say whose fault it was."""

    def __init__(self) -> None:
        super().__init__()
        self.vague: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        text = record.getMessage()
        if not re.search(r"/job:\w+/|The server at 127\.0\.0\.1:", text):
            self.vague.append(text)


@contextlib.contextmanager
def errors_name_tasks() -> Iterator[None]:
    """Fail unless all that is said of lost sessions names a task, or an address."""
    told, log = _Told(), logging.getLogger("penstock.training")
    log.addHandler(told)
    try:
        yield
    finally:
        log.removeHandler(told)
    assert not told.vague, told.vague


def train(tasks: Processes, fault: Callable[[Processes], None], draw: random.Random) -> float:
    """One training run with one fault; returns its seconds."""
    made, op = graph()
    start = time.monotonic()
    with tempfile.TemporaryDirectory() as folder, errors_name_tasks():
        injected = threading.Timer(draw.uniform(0.1, 0.8), fault, (tasks,))
        injected.start()
        with ps.MonitoredSession(
            made,
            target=tasks.target(MASTER),
            checkpoint_dir=folder,
            save_checkpoint_steps=EVERY,
            hooks=[StopAtStepHook(last_step=STEPS)],
            config=ps.Config(operation_timeout_in_ms=int(PATIENCE * 1000)),
            max_wait_secs=PATIENCE,
        ) as session:
            while not session.should_stop():
                session.run(op)
                time.sleep(0.02)
        injected.join()
        store = ps.checkpoint.load(f"{folder}/model.ckpt-{STEPS}")
        steps, values = store["global_step"], store["w"]
    assert steps == STEPS, steps
    assert (np.asarray(values) == STEPS).all(), (steps, np.unique(values))
    seconds = time.monotonic() - start
    assert seconds < PATIENCE, seconds
    return seconds


def processes(kind: str) -> Processes:
    """The three processes, for a fault of some kind."""
    return Processes({"ps": 1, "worker": 2}, relayed=kind in RELAYED)


def main() -> None:
    """Inject each fault a number of times."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--times", type=int, default=50)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("kinds", nargs="*", default=list(FAULTS))
    args = parser.parse_args()
    draw = random.Random(args.seed)
    for kind in args.kinds:
        with processes(kind) as tasks:
            took = []
            for _ in range(args.times):
                tasks.wait()
                took.append(train(tasks, FAULTS[kind], draw))
            print(
                f"{kind}: {args.times} runs, median {statistics.median(took):.1f} s, "
                f"longest {max(took):.1f} s",
                flush=True,
            )


if __name__ == "__main__":
    main()
