"""How long steps of a cluster take, with Penstock's tasks and with TensorFlow's.

    unshare -rn sh -c 'ip link set lo up && exec "$0" "$@"' \
        python -m benchmarks.cluster --tensorflow PYTHON [--rounds 5] [--json FILE]

Four processes are two clusters of two tasks; TensorFlow's listen at every address, whatever they
are told, hence the network of its own.  A client of either kind asks either cluster in turns, so
that all meet the same machine.  A row is the time of one step in milliseconds: the least of the
rounds' medians.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import penstock as ps

CLIENT = Path(__file__).with_name("cluster_client.py")
SERVERS = {
    "tf": """
import json, sys, tensorflow as tf
cluster, index = json.loads(sys.argv[1]), int(sys.argv[2])
tf.distribute.Server(tf.train.ClusterSpec(cluster), job_name="worker", task_index=index).join()
""",
    "ps": """
import json, sys
from penstock.cluster import Server
Server(json.loads(sys.argv[1]), "worker", int(sys.argv[2])).join()
""",
}
NAMES = {"tf": "TensorFlow", "ps": "Penstock"}
#: What a step is, its fetch and feed, how many of them are a round, and what comes out.
STEPS: dict[str, tuple[str, float | None, int, float]] = {
    "one op": ("one_op:0", 3.0, 200, 4.0),
    "1 KB from the other task": ("small_last:0", None, 100, 1.0),
    "1 KB there and back": ("there_and_back:0", 3.0, 100, 9.0 + 3.0),
    "64 MB from the other task": ("large_last:0", None, 3, 1.0),
}
KB, MB = 2**10, 2**20


def graph_def() -> bytes:
    """All steps of the table, as a GraphDef."""
    graph = ps.Graph()
    with graph.as_default():
        x = ps.placeholder(ps.dtypes.float32, [], name="x")
        one = ps.constant(1.0)
        ps.ops.Add(x=x, y=one, name="one_op")
        inits = []
        for name, size in (("small", KB // 4), ("large", 64 * MB // 4)):
            with ps.device("/job:worker/task:1"):
                variable = ps.ops.VariableV2(
                    shape=[size], dtype=ps.dtypes.float32, shared_name=name
                )
                filled = ps.ops.Fill(dims=ps.constant([size]), value=one)
                inits.append(ps.ops.Assign(ref=variable, value=filled).op)
                # An op that runs again in each step.
                read = ps.ops.Identity(input=variable)
            with ps.device("/job:worker/task:0"):
                begin, length = ps.constant([size - 1]), ps.constant([1])
                last = ps.ops.Slice(input=read, begin=begin, size=length)
                ps.ops.Reshape(
                    tensor=last, shape=ps.constant([], ps.dtypes.int32), name=f"{name}_last"
                )
        with ps.device("/job:worker/task:1"):
            square = ps.ops.Mul(x=x, y=x)
        with ps.device("/job:worker/task:0"):
            ps.ops.Add(x=square, y=x, name="there_and_back")
        ps.group(*inits, name="init")
    return bytes(ps.graph_to_def(graph).SerializeToString())


def free_ports(count: int) -> list[int]:
    """Ports that nothing listens at."""
    sockets = [socket.socket() for _ in range(count)]
    for one in sockets:
        one.bind(("127.0.0.1", 0))
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


def wait_for(port: int) -> None:
    """Until something listens."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            time.sleep(0.1)
        else:
            return
    raise TimeoutError(f"nothing listens at port {port}")


class Client:
    """A process that asks one cluster."""

    def __init__(self, python: str, kind: str, port: int, graph: Path) -> None:
        command = [python, str(CLIENT), kind, f"grpc://127.0.0.1:{port}", str(graph)]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment()
        )
        self.ask("init")

    def ask(self, question: Any) -> Any:
        """What it answers; raises EOFError if it died."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(question) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise EOFError("a client died")
        return json.loads(line)

    def close(self) -> None:
        """End it."""
        self._process.kill()
        self._process.wait()


def environment() -> dict[str, str]:
    """Without TensorFlow's chatter."""
    return os.environ | {"TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": ""}


def start(python: str, kind: str, ports: list[int]) -> list[subprocess.Popen[bytes]]:
    """A cluster's tasks, which listen."""
    cluster = json.dumps({"worker": [f"127.0.0.1:{port}" for port in ports]})
    servers = [
        subprocess.Popen(
            [python, "-c", SERVERS[kind], cluster, str(index)],
            env=environment(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )
        for index in range(len(ports))
    ]  # fmt: skip
    for port in ports:
        wait_for(port)
    return servers


def measure(pythons: dict[str, str], rounds: int, graph: Path) -> dict[str, dict[str, float]]:
    """By step: milliseconds by ``client at cluster``."""
    ports = {kind: free_ports(2) for kind in pythons}
    servers, clients = [], {}
    least: dict[str, dict[str, float]] = {step: {} for step in STEPS}
    try:
        for kind, python in pythons.items():
            servers += start(python, kind, ports[kind])
        for asking, python in pythons.items():
            for asked in pythons:
                clients[asking, asked] = Client(python, asking, ports[asked][0], graph)
        for _ in range(rounds):
            for step, question in STEPS.items():
                for (asking, asked), client in clients.items():
                    column = f"{NAMES[asking]}'s client at {NAMES[asked]}"
                    found = statistics.median(client.ask(question))
                    least[step][column] = min(least[step].get(column, found), found)
    finally:
        for client in clients.values():
            client.close()
        for server in servers:
            server.kill()
            server.wait()
    return least


def table(least: dict[str, dict[str, float]]) -> str:
    """The rows, and what the same client's time at our cluster is of that at TensorFlow's."""
    columns = list(next(iter(least.values())))
    lines = [f"| step | {' | '.join(columns)} | ratio |", "| --- " * (len(columns) + 2) + "|"]
    ours, theirs = (f"TensorFlow's client at {NAMES[kind]}" for kind in ("ps", "tf"))
    for step, times in least.items():
        cells = " | ".join(f"{times[column]:.2f}" for column in columns)
        ratio = f"{times[ours] / times[theirs]:.2f}" if theirs in times else "-"
        lines.append(f"| {step} | {cells} | {ratio} |")
    return "\n".join(lines)


def main() -> None:
    """Measure, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else "")
    parser.add_argument("--tensorflow", help="a Python that has TensorFlow")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", type=Path, help="also write the figures here")
    args = parser.parse_args()
    pythons = {"ps": sys.executable}
    if args.tensorflow:
        pythons = {"tf": args.tensorflow, **pythons}
    with tempfile.TemporaryDirectory() as folder:
        graph = Path(folder) / "graph.pb"
        graph.write_bytes(graph_def())
        least = measure(pythons, args.rounds, graph)
    print(table(least))
    if args.json:
        args.json.write_text(json.dumps(least, indent=1) + "\n")


if __name__ == "__main__":
    main()
