"""Make ``graph.pb`` and ``steps.json``: what a cluster of three tasks is asked, by TensorFlow.

    python tests/cluster/mixed/make_graph.py        with TensorFlow installed

The expected answers come from a cluster of TensorFlow's own servers; see ``play.py``.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import tensorflow as tf

tf1 = tf.compat.v1
HERE = Path(__file__).parent
A, B, C = (f"/job:worker/task:{index}" for index in range(3))
TYPES = ["float16", "bfloat16", "float64", "int8", "uint16", "int64", "bool", "complex64"]


def build() -> None:
    """All that the steps ask for, scattered over three tasks."""
    x = tf1.placeholder(tf.float32, [], name="x")
    with tf.device(B):
        y = tf.multiply(x, x, name="y")
        v = tf1.get_variable("v", initializer=1.0, use_resource=True)
        r = tf1.get_variable("r", initializer=1.0, use_resource=False)
        words = tf.constant([b"ab", b"\x00c\xff", b""], name="words")
        empty = tf.zeros([0, 3], name="empty")
        queue = tf1.FIFOQueue(3, [tf.float32, tf.string], [[], []], name="queue")
    with tf.device(C):
        z = tf.add(y, x, name="z")
        tf1.assign_add(v, z, name="add_v")
        tf1.assign_add(r, z, name="add_r")
        tf.identity(words, name="words_there")
        tf.identity(empty, name="empty_there")
    with tf.device(A):
        tf.identity(z * 2.0, name="back")
        with tf.control_dependencies([z]):
            tf.identity(x, name="after_z")
        tf.debugging.check_numerics(y, "not finite", name="checked")
    for name in TYPES:
        with tf.device(B):
            made = tf.cast(tf.range(4), name)
        with tf.device(C):
            tf.identity(made, name=f"there_{name}")
    loops(x)
    queue.enqueue([x, "w"], name="put")
    tf.identity_n(queue.dequeue(), name="take")
    tf1.assign(r, r * 0.0 + 5.0, name="set_r")
    tf1.global_variables_initializer()
    tf.identity(v, name="read_v")
    tf.identity(r, name="read_r")


def loops(x: tf.Tensor) -> None:
    """Loops and branches whose bodies lie on other tasks; as dataflow and as functions."""

    def body(i: tf.Tensor, total: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        with tf.device(B):
            doubled = total * 2.0
        with tf.device(C):
            return i + 1, doubled + 1.0

    def nested(i: tf.Tensor, total: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        inner = tf.while_loop(lambda j, _: j < i, body, [tf.constant(0), total])
        return i + 1, inner[1]

    tf1.disable_control_flow_v2()
    tf.identity(tf.while_loop(lambda i, _: i < 7, body, [tf.constant(0), x])[1], name="loop")
    tf.identity(tf.while_loop(lambda i, _: i < 4, nested, [tf.constant(0), x])[1], name="nested")
    with tf.device(C):
        tf.identity(tf1.cond(x > 3.0, lambda: x * 10.0, lambda: x - 1.0), name="branch")
    with tf.device(B):
        off, on = tf.raw_ops.Switch(data=x, pred=x > 3.0)
    with tf.device(C):
        tf.identity(on, name="only_if_large")
        tf.identity(off, name="only_if_small")
    tf1.enable_control_flow_v2()
    tf.identity(tf.while_loop(lambda i, _: i < 5, body, [tf.constant(0), x])[1], name="loop_v2")
    with tf.device(B):
        tf.identity(tf1.cond(x > 3.0, lambda: x * 10.0, lambda: x - 1.0), name="branch_v2")

    @tf.function
    def square(value: tf.Tensor) -> tf.Tensor:
        return value * value

    with tf.device(C):
        tf.identity(square(x), name="called")


def steps() -> list[dict[str, object]]:
    """What is asked, in order."""
    asked: list[dict[str, object]] = [{"run": ["init"]}]
    for value in (3.0, 5.0):
        fetches = ["z:0", "back:0", "after_z:0", "checked:0", "loop:0", "nested:0", "branch:0"]
        fetches += ["loop_v2:0", "branch_v2:0", "called:0"]
        asked += [{"feed": value, "fetch": [name]} for name in fetches]
        asked.append({"feed": value, "fetch": fetches})
    asked += [{"feed": 0.0, "fetch": [f"there_{name}:0" for name in TYPES]}]
    asked += [{"feed": 0.0, "fetch": ["words_there:0", "empty_there:0"]}]
    asked += [{"feed": 2.0, "fetch": ["add_v:0", "add_r:0"]}, {"fetch": ["read_v:0", "read_r:0"]}]
    asked += [{"run": ["set_r"]}, {"fetch": ["read_r:0"]}]
    asked += [{"feed": 9.0, "run": ["put"]}, {"fetch": ["take:0", "take:1"]}]
    asked += [{"feed": "nan", "fetch": ["checked:0"]}, {"feed": 1.0, "fetch": ["nothing:0"]}]
    asked += [
        {"feed": 1.0, "fetch": ["only_if_large:0"]},
        {"feed": 1.0, "fetch": ["only_if_small:0"]},
    ]
    asked += [{"fetch": ["take:0"], "timeout": 300}, {"feed": 4.0, "fetch": ["z:0"]}]
    return asked


def main() -> None:
    """Write both files."""
    tf1.disable_eager_execution()
    np.random.seed(0)
    build()
    graph_def = tf1.get_default_graph().as_graph_def()
    (HERE / "graph.pb").write_bytes(graph_def.SerializeToString())
    (HERE / "steps.json").write_text(json.dumps(steps(), indent=1) + "\n")


if __name__ == "__main__":
    main()
