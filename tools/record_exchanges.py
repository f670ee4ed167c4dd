"""Record what TensorFlow's clients and masters ask Penstock's servers, and the reverse.

    unshare -rn sh -c 'ip link set lo up && exec "$0" "$@"' \\
        python tools/record_exchanges.py --tensorflow PYTHON

Writes ``tests/cluster/recorded``: a graph, what is asked of it, and one file for each direction;
``tests/cluster/test_recorded.py`` plays them without TensorFlow.  TensorFlow's servers listen at
every address, so this runs where there is nothing but the loopback interface.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import penstock as ps

ROOT = Path(__file__).parents[1]
HERE = ROOT / "tests" / "cluster" / "recorded"
sys.path.insert(0, str(ROOT / "tests"))

from cluster.recorded.client import ask  # noqa: E402
from support.clusters import free_ports  # noqa: E402
from support.exchanges import Recording, RecordingRelay  # noqa: E402

TF_SERVER = """
import json, sys, tensorflow as tf
cluster, index = json.loads(sys.argv[1]), int(sys.argv[2])
tf.distribute.Server(tf.train.ClusterSpec(cluster), job_name="worker", task_index=index).join()
"""


def build() -> ps.Graph:
    """What is asked for, on two tasks."""
    graph = ps.Graph()
    with graph.as_default():
        x = ps.placeholder(ps.dtypes.float32, [], name="x")
        with ps.device("/job:worker/task:1"):
            y = ps.ops.Mul(x=x, y=x, name="y")
            v = ps.Variable(np.float32(1), name="v")
            ps.identity(ps.constant(np.array([b"ab", b"\x00c\xff", b""], object)), name="words")
        with ps.device("/job:worker/task:0"):
            z = ps.ops.Add(x=y, y=x, name="z")
            ps.ops.CheckNumerics(tensor=y, message="not finite", name="checked")
        with ps.device("/job:worker/task:1"):
            ps.identity(v.assign_add(z), name="add_v")
            ps.identity(v, name="read_v")
        ps.identity(_loop(x), name="loop")
        ps.group(ps.global_variables_initializer(), name="init")
    return graph


def _loop(x: Any) -> Any:
    def body(i: Any, total: Any) -> list[Any]:
        with ps.device("/job:worker/task:1"):
            return [i + 1, total * 2.0]

    return ps.ops.while_loop(lambda i, _: i < 3, body, [ps.constant(np.int32(0)), x])[1]


STEPS = [
    {"run": ["init"]},
    {"feed": 3.0, "fetch": ["z:0"]},
    {"feed": 4.0, "fetch": ["z:0"]},
    {"feed": 2.0, "fetch": ["add_v:0"]},
    {"fetch": ["read_v:0", "words:0"]},
    {"feed": 5.0, "fetch": ["loop:0"]},
    {"feed": "nan", "fetch": ["checked:0"]},
    {"feed": 1.0, "fetch": ["z:0", "y:0"]},
]


@contextlib.contextmanager
def two_tasks(kinds: str, tensorflow: str, recording: Recording) -> Iterator[list[int]]:
    """Two tasks, each behind a relay that others see; the relays' ports."""
    own, seen = free_ports(4)[:2], free_ports(2)
    with contextlib.ExitStack() as stack:
        for task in range(2):
            cluster = [f"127.0.0.1:{(own if i == task else seen)[i]}" for i in range(2)]
            _start(stack, kinds[task], {"worker": cluster}, task, tensorflow)
        for task in range(2):
            _wait_for(own[task])
            relay = RecordingRelay(seen[task], own[task], task, recording)
            stack.callback(relay.close)
        yield seen


def _start(
    stack: contextlib.ExitStack, kind: str, cluster: Any, task: int, tensorflow: str
) -> None:
    if kind == "p":
        stack.enter_context(ps.cluster.Server(cluster, "worker", task, grace_seconds=0))
        return
    environ = os.environ | {"TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": ""}
    environ.pop("PYTHONPATH", None)
    server = subprocess.Popen(
        [tensorflow, "-c", TF_SERVER, json.dumps(cluster), str(task)],
        env=environ, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    stack.callback(server.wait)
    stack.callback(server.kill)


def _wait_for(port: int) -> None:
    deadline = time.monotonic() + 60
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            break
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.1)


def by_tensorflow(tensorflow: str, target: str) -> None:
    """Ask as TensorFlow's client."""
    environ = os.environ | {"TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": ""}
    environ.pop("PYTHONPATH", None)
    command = [tensorflow, str(HERE / "client.py"), target]
    subprocess.run(command, env=environ, check=True, timeout=120)


def by_penstock(target: str) -> None:
    """Ask as Penstock's."""
    with ps.Session(str(HERE / "graph.pb"), target=target) as session:
        ask(session, ps.errors.OpError)


#: By name of the file: which tasks are whose, who is the client, and which task's requests count.
DIRECTIONS = {
    "tensorflows_client": ("pp", "t", {0}),
    "tensorflows_master": ("tp", "p", {0, 1}),
    "our_client": ("tt", "p", {0}),
    "our_master": ("pt", "p", {1}),
}


def main() -> None:
    """Write the graph, the steps, and each direction."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tensorflow", required=True, help="a Python that has it")
    args = parser.parse_args()
    graph = ps.graph_to_def(build())
    (HERE / "graph.pb").write_bytes(graph.SerializeToString())
    (HERE / "steps.json").write_text(json.dumps(STEPS, indent=1) + "\n")
    for name, (kinds, client, tasks) in DIRECTIONS.items():
        recording = Recording()
        with two_tasks(kinds, args.tensorflow, recording) as ports:
            target = f"grpc://127.0.0.1:{ports[0]}"
            if client == "t":
                by_tensorflow(args.tensorflow, target)
            else:
                by_penstock(target)
            time.sleep(1.0)  # what nobody waits for
        master = "/tensorflow.MasterService/"
        if name.endswith("_master"):
            recording.events = [e for e in recording.events if not e.path.startswith(master)]
        recording.events = [e for e in recording.events if e.task in tasks]
        if name.endswith("_client"):
            recording.events = [e for e in recording.events if e.path.startswith(master)]
        recording.write(HERE / f"{name}.jsonl")
        print(name, len(recording.events), "events")


if __name__ == "__main__":
    main()
