"""Faults during a training run over three processes, and what must be true afterwards.

    cd tests && python -m cluster.faults --times 50

Each update adds a gradient of ones, which a worker computes, to variables on a parameter task, and
counts.  Whatever is killed, stopped, cut or slow meanwhile: the run ends in time, and the variables
are what the count says, no update lost or doubled.
"""

from __future__ import annotations

import argparse
import random
import signal
import tempfile
import threading
import time
from collections.abc import Callable
from typing import Final

import numpy as np

import penstock as ps
from penstock.training import StopAtStepHook
from support.cluster_processes import Processes

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


FAULTS: Final[dict[str, Callable[[Processes], None]]] = {
    "worker killed": kill(WORKER),
    "parameters killed": kill(PARAMETERS),
    "master killed": kill(MASTER),
    "worker stopped": stop,
    "connections cut": cut,
    "slow link": slow,
}


def train(tasks: Processes, fault: Callable[[Processes], None], draw: random.Random) -> float:
    """One training run with one fault; returns its seconds."""
    made, op = graph()
    start = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
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


def main() -> None:
    """Inject each fault a number of times."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--times", type=int, default=50)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("kinds", nargs="*", default=list(FAULTS))
    args = parser.parse_args()
    draw = random.Random(args.seed)
    for kind in args.kinds:
        with Processes({"ps": 1, "worker": 2}) as tasks:
            took = []
            for _ in range(args.times):
                tasks.wait()
                took.append(train(tasks, FAULTS[kind], draw))
            print(f"{kind}: {args.times} runs, longest {max(took):.1f} s", flush=True)


if __name__ == "__main__":
    main()
