"""A cluster of three tasks, some of them TensorFlow's, and a client of either kind.

    python play.py --tensorflow PYTHON --tasks tf,ps,tf --client tf|ps

TensorFlow's servers listen at every address, whatever they are told: run it where there is nothing
but the loopback interface (``unshare -rn``, then ``ip link set lo up``).
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).parent
TF_SERVER = """
import json, sys, tensorflow as tf
cluster, index = json.loads(sys.argv[1]), int(sys.argv[2])
tf.distribute.Server(tf.train.ClusterSpec(cluster), job_name="worker", task_index=index).join()
"""
PS_SERVER = """
import json, sys
from penstock.cluster import Server
Server(json.loads(sys.argv[1]), "worker", int(sys.argv[2])).join()
"""


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


def main() -> None:
    """Start the servers, run the client, and print what it prints."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--tensorflow", required=True)
    parser.add_argument("--tasks", required=True)
    parser.add_argument("--client", required=True)
    args = parser.parse_args()
    kinds = args.tasks.split(",")
    ports = free_ports(len(kinds))
    cluster = json.dumps({"worker": [f"127.0.0.1:{port}" for port in ports]})
    environ = os.environ | {"TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": ""}
    pythons = {"tf": args.tensorflow, "ps": sys.executable}
    servers = [
        subprocess.Popen(
            [pythons[kind], "-c", {"tf": TF_SERVER, "ps": PS_SERVER}[kind], cluster, str(index)],
            env=environ, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )
        for index, kind in enumerate(kinds)
    ]  # fmt: skip
    try:
        for port in ports:
            wait_for(port)
        command = [
            pythons[args.client],
            str(HERE / "client.py"),
            args.client,
            f"grpc://127.0.0.1:{ports[0]}",
        ]
        done = subprocess.run(command, env=environ, timeout=40, capture_output=True, text=True)
        sys.stdout.write(done.stdout)
        sys.stderr.write(done.stderr[-20_000:])
        if done.returncode:
            sys.exit(done.returncode)
    finally:
        for server in servers:
            server.kill()
            server.wait()


if __name__ == "__main__":
    main()
