"""Graphs that reports are made of."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

import penstock as ps

FEEDS: dict[str, Any] = {"x:0": np.float32([1, 2, 3, 4])}


def looping() -> ps.Graph:
    """A scope with a loop of five iterations, something constant, something that nobody needs."""
    graph = ps.Graph()
    with graph.as_default():
        x = ps.placeholder(ps.dtypes.float32, [4], name="x")
        with ps.name_scope("model"):
            two = ps.constant(np.float32(2.0), name="two")
            nine = ps.ops.mul(*2 * [ps.constant(np.float32(3.0), name="three")], name="nine")
            _, doubled = ps.while_loop(
                lambda i, _: i < 5, lambda i, y: (i + 1, y * two), [ps.constant(0), x], name="loop"
            )
            total = ps.ops.add(doubled, nine, name="total")
        ps.ops.identity(ps.ops.neg(total, name="minus"), name="out")
        ps.ops.sqrt(x, name="unused")
    return graph


def slow_branch(seconds: float = 0.03) -> ps.Graph:
    """Two branches, one of which takes long."""

    def wait(array: Any) -> Any:
        time.sleep(seconds)
        return array

    ps.register_py_func({"report_wait": wait})
    graph = ps.Graph()
    with graph.as_default():
        x = ps.placeholder(ps.dtypes.float32, [4], name="x")
        slow = ps.ops.py_func([x], token="report_wait", Tout=["float32"], name="slow")
        late = ps.ops.neg(slow[0] if isinstance(slow, list) else slow, name="late")
        early = ps.ops.exp(x, name="early")
        ps.ops.add(late, early, name="out")
    return graph


def named_by_a_stranger() -> ps.Graph:
    """Texts that would be markup, in all places where a graph may have any text."""
    markup = "</script><img src=x onerror=alert(1)>"
    graph = ps.Graph()
    with graph.as_default():
        x = ps.placeholder(ps.dtypes.float32, [4], name="x")
        entered = ps.ops.enter(x, frame_name=markup, name="enter")
        left = ps.ops.exit(entered, name="exit")
        ps.ops.queue_size_v2(
            ps.ops.fifo_queue_v2(component_types=["float32"], shared_name=markup, name="queue"),
            name="size",
        )
        ps.ops.neg(left, name="out>img")
    return graph
