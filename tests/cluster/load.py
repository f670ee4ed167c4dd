"""Mixed work for a cluster of three processes, and what they hold while it goes on.

    cd tests && python -m cluster.load --minutes 20

Threads open and close sessions, run steps, large ones and failing ones, cancel them, let their
time run out, wait at queues, and take part in collective operations.  Now and then each process's
memory, threads and descriptors are printed.  An unexpected error, or a wrong value, ends it.
"""

from __future__ import annotations

import argparse
import random
import threading
import time
import traceback
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import numpy as np

import penstock as ps
from support.cluster_processes import Processes

TASKS: Final = 3
#: Elements of a large value: 8 MB, which go in pieces.
LARGE: Final = 2_000_000
#: In milliseconds: for what should never take so long.
PATIENCE: Final = ps.RunOptions(timeout_in_ms=120_000)


def graph(task: int) -> ps.Graph:
    """What is asked for; some of it at each task."""
    made = ps.Graph()
    with made.as_default():
        x = ps.placeholder(ps.dtypes.float32, None, name="x")
        with ps.device(f"/job:worker/task:{(task + 1) % TASKS}"):
            y = ps.identity(x * 2.0, name="y")
            ps.ops.CheckNumerics(tensor=x, message="not finite", name="checked")
            types = [ps.dtypes.float32]
            queue = ps.ops.FIFOQueueV2(component_types=types, shapes=[[]], capacity=2, name="q")
            ps.ops.QueueEnqueueV2(handle=queue, components=[x], name="put")
            ps.ops.QueueDequeueV2(handle=queue, component_types=types, name="take")
        with ps.device(f"/job:worker/task:{(task + 2) % TASKS}"):
            ps.identity(y + 1.0, name="z")
        with ps.device(f"/job:worker/task:{task}"):
            ps.ops.CollectiveReduce(
                input=x, group_size=TASKS, group_key=1, instance_key=1, merge_op="Add",
                final_op="Id", subdiv_offsets=[0], name="sum",
            )  # fmt: skip
    return made


class Load:
    """The threads, and what they have done."""

    def __init__(self, tasks: Processes) -> None:
        self._tasks = tasks
        self._end = threading.Event()
        #: Guards what follows.
        self._lock = threading.Lock()
        self.done: Counter[str] = Counter()
        #: What should not have happened.
        self.mistakes: list[str] = []

    def start(self) -> list[threading.Thread]:
        """Begin."""
        work: list[tuple[Callable[..., None], int]] = [
            (kind, number)
            for kind in (self.runs, self.sessions, self.ends, self.queues)
            for number in range(TASKS)
        ]
        work += [(self.large, 0), *((self.collective, task) for task in range(TASKS))]
        threads = [threading.Thread(target=self._repeat, args=item, daemon=True) for item in work]
        for thread in threads:
            thread.start()
        return threads

    def stop(self) -> None:
        """Let all come to an end."""
        self._end.set()

    def _repeat(self, kind: Callable[..., None], task: int) -> None:
        draw = random.Random(task)
        try:
            kind(task, draw)
        except Exception:  # noqa: BLE001  (whatever it is, it is shown)
            with self._lock:
                self.mistakes.append(traceback.format_exc())
            self._end.set()

    def _session(self, task: int) -> ps.Session:
        return ps.Session(graph(task), target=self._tasks.target(f"worker:{task}"))

    def _goes_on(self, what: str) -> bool:
        with self._lock:
            self.done[what] += 1
        return not self._end.wait(0.01)

    # -- kinds of work -------------------------------------------------------------------

    def runs(self, task: int, draw: random.Random) -> None:
        """Steps of one session."""
        with self._session(task) as session:
            while self._goes_on("runs"):
                value = draw.random()
                found = session.run("z:0", {"x:0": np.float32(value)}, PATIENCE)
                assert found == np.float32(value) * 2 + 1

    def sessions(self, task: int, draw: random.Random) -> None:
        """A session for each step; its graph grows."""
        while self._goes_on("sessions"):
            made = graph(task)
            with ps.Session(made, target=self._tasks.target(f"worker:{task}")) as session:
                assert session.run("z:0", {"x:0": 1.0}, PATIENCE) == 3.0
                with made.as_default():
                    more = ps.constant(float(draw.randrange(9))) + 1.0
                session.run(more, None, PATIENCE)
            self._end.wait(0.2)

    def ends(self, task: int, draw: random.Random) -> None:
        """Steps that are cancelled, that take too long, and that fail."""
        with self._session(task) as session:
            while self._goes_on("ends"):
                kind = draw.choice([self._cancelled, self._late, self._wrong])
                kind(session)

    def _cancelled(self, session: Any) -> None:
        run = session.run_async("take:0")
        self._end.wait(0.05)
        run.cancel()
        _fails(ps.errors.CancelledError, lambda: run.result(60))

    def _late(self, session: Any) -> None:
        options = ps.RunOptions(timeout_in_ms=50)
        _fails(ps.errors.DeadlineExceededError, lambda: session.run("take:0", None, options))

    def _wrong(self, session: Any) -> None:
        _fails(
            ps.errors.InvalidArgumentError,
            lambda: session.run("checked:0", {"x:0": np.float32("nan")}, PATIENCE),
        )

    def queues(self, task: int, draw: random.Random) -> None:
        """One waits for what another one puts."""
        with self._session(task) as session:
            while self._goes_on("queues"):
                value = draw.randrange(1000)
                taken = session.run_async("take:0", options=PATIENCE)
                session.run("put", {"x:0": np.float32(value)}, PATIENCE)
                assert taken.result(60) == value

    def large(self, task: int, _draw: random.Random) -> None:
        """Values that go in pieces."""
        with self._session(task) as session:
            while self._goes_on("large"):
                found = session.run("z:0", {"x:0": np.ones(LARGE, np.float32)}, PATIENCE)
                assert found.shape == (LARGE,)
                assert found[-1] == 3
                self._end.wait(0.5)

    def collective(self, task: int, _draw: random.Random) -> None:
        """The tasks' sums; when one of them ends, so do the others."""
        with self._session(task) as session:
            while self._goes_on("collectives"):
                try:
                    found = session.run("sum:0", {"x:0": np.full(9, task, np.float32)}, PATIENCE)
                except ps.errors.OpError:
                    if self._end.wait(2):
                        return
                    raise
                assert found[0] == 3


def _fails(kind: type[Exception], work: Callable[[], object]) -> None:
    try:
        work()
    except kind:
        return
    raise AssertionError(f"no {kind.__name__}")


def held(pid: int) -> tuple[float, int, int]:
    """A process's resident memory in MB, its threads and its descriptors."""
    lines = Path(f"/proc/{pid}/status").read_text("ascii").splitlines()
    status = dict(line.split(":", 1) for line in lines)
    memory = int(status["VmRSS"].split()[0]) / 1024
    return memory, int(status["Threads"]), len(list(Path(f"/proc/{pid}/fd").iterdir()))


def main() -> None:
    """Work for some minutes, and tell what is held."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=20)
    parser.add_argument("--every", type=float, default=60, help="seconds between two lines")
    args = parser.parse_args()
    with Processes({"worker": TASKS}, heartbeat=10) as tasks:
        load = Load(tasks)
        threads, begin = load.start(), time.monotonic()
        while time.monotonic() - begin < args.minutes * 60 and not load.mistakes:
            time.sleep(min(args.every, args.minutes * 60))
            _tell(tasks, time.monotonic() - begin)
        load.stop()
        for thread in threads:
            thread.join(150)
        time.sleep(5)
        print("at rest:")
        _tell(tasks, time.monotonic() - begin)
    print(dict(load.done))
    if load.mistakes:
        raise SystemExit("\n".join(load.mistakes))


def _tell(tasks: Processes, seconds: float) -> None:
    parts = []
    for task in range(TASKS):
        memory, threads, descriptors = held(tasks.pid(f"worker:{task}"))
        parts.append(f"{memory:.0f} MB, {threads} threads, {descriptors} descriptors")
    print(f"{seconds / 60:5.1f} min: " + " | ".join(parts), flush=True)


if __name__ == "__main__":
    main()
