"""A client of a cluster, as ``benchmarks.cluster`` times it; with TensorFlow or Penstock.

    python cluster_client.py tf|ps TARGET GRAPH

Each line of the input is ``[fetch, feed, steps, want]`` in JSON, answered by the milliseconds that
each of these steps took, least first.  ``feed`` is a number for ``x``, or null; ``want`` is what a
step gives, which is checked before.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np


def session_of(kind: str, target: str, graph: Path) -> Any:
    """A session of either library."""
    if kind == "tf":
        import tensorflow as tf  # noqa: PLC0415

        tf1 = tf.compat.v1
        tf1.disable_eager_execution()
        tf.import_graph_def(tf1.GraphDef.FromString(graph.read_bytes()), name="")
        return tf1.Session(target)
    import penstock as ps  # noqa: PLC0415

    return ps.Session(str(graph), target=target)


def main() -> None:
    """Answer lines until there are no more."""
    kind, target, graph = sys.argv[1:4]
    session = session_of(kind, target, Path(graph))
    session.run(json.loads(sys.stdin.readline()))
    print("null", flush=True)
    for line in sys.stdin:
        fetch, feed, steps, want = json.loads(line)
        feeds = {} if feed is None else {"x:0": np.float32(feed)}
        np.testing.assert_allclose(session.run(fetch, feeds), want, rtol=1e-6)
        times = []
        for _ in range(steps):
            start = time.perf_counter()
            session.run(fetch, feeds)
            times.append((time.perf_counter() - start) * 1e3)
        print(json.dumps(sorted(times)), flush=True)


if __name__ == "__main__":
    main()
