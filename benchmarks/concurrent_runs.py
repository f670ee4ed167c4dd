"""Does memory grow?  10,000 runs from 8 threads on one session.

    python benchmarks/concurrent_runs.py

Prints the resident memory after 1,000 runs, when everything is warm, and after 10,000.
"""

from __future__ import annotations

import gc
import threading
import time
from pathlib import Path

import numpy as np

import penstock as ps
from penstock import builder

THREADS = 8
MARKS = (1_000, 10_000)


def resident_bytes() -> int:
    """Memory that this process holds now."""
    pages = int(Path("/proc/self/statm").read_text("ascii").split()[1])
    return pages * 4096


def model() -> tuple[builder.Graph, str, str]:
    """A loop over a small matrix product; the names of its input and its result."""
    graph = builder.Graph()
    with graph.as_default():
        x = builder.placeholder("float32", [None, 64], name="x")
        weights = builder.constant(np.eye(64, dtype=np.float32) * 0.5)
        _, y = builder.while_loop(
            lambda i, _y: i < 10,
            lambda i, y: (i + 1, builder.ops.mat_mul(y, weights)),
            (0, x),
        )
    return graph, x.name, y.name


def run_many(session: ps.Session, x: str, y: str, count: int) -> None:
    """Share ``count`` runs among the threads."""
    feed = np.ones((32, 64), np.float32)

    def work() -> None:
        for _ in range(count // THREADS):
            result = session.run(y, {x: feed})
            assert result[0, 0] == np.float32(0.5**10)

    threads = [threading.Thread(target=work) for _ in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def main() -> None:
    """Run, and report at each mark."""
    graph, x, y = model()
    done, start, before = 0, time.perf_counter(), 0
    with ps.Session(graph) as session:
        for mark in MARKS:
            run_many(session, x, y, mark - done)
            done = mark
            gc.collect()
            now = resident_bytes()
            growth = f", {(now - before) / 1e6:+.1f} MB" if before else ""
            seconds = time.perf_counter() - start
            print(f"{done:6} runs, {seconds:6.1f} s: {now / 1e6:.1f} MB resident{growth}")
            before = now


if __name__ == "__main__":
    main()
