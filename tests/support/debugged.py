"""Graphs whose values are known beforehand, for tests of the debugger."""

from __future__ import annotations

import numpy as np

import penstock as ps


def doubling(times: int = 20) -> ps.Graph:
    """``z`` is minus ``x``, doubled so often: ``loop/mul`` in iteration i is x * 2 ** (i + 1)."""
    graph = ps.Graph()
    with graph.as_default():
        x = ps.placeholder(ps.dtypes.float32, [], name="x")
        _, y = ps.while_loop(
            lambda i, _: i < times,
            lambda i, y: (i + 1, y * 2.0),
            [ps.constant(0), x],
            name="loop",
        )
        ps.ops.neg(y, name="z")
    return graph


#: The name of the loop in ``doubling``.
LOOP = "loop/while_context"


def logarithm() -> ps.Graph:
    """``y`` is exp(log(x - 1)), so a number as long as x is above 1."""
    graph = ps.Graph()
    with graph.as_default():
        x = ps.placeholder(ps.dtypes.float32, [2], name="x")
        less = ps.ops.sub(x, ps.constant(np.float32(1)), name="less")
        ps.ops.exp(ps.ops.log(less, name="log"), name="y")
    return graph


def branches() -> ps.Graph:
    """``out`` is -x if ``flag``, otherwise x * x: one of ``minus`` and ``square`` is dead."""
    graph = ps.Graph()
    with graph.as_default():
        x = ps.placeholder(ps.dtypes.float32, [], name="x")
        flag = ps.placeholder(ps.dtypes.bool_, [], name="flag")
        no, yes = ps.ops.Switch(data=x, pred=flag)
        minus, square = ps.ops.neg(yes, name="minus"), ps.ops.square(no, name="square")
        ps.ops.Merge(inputs=[minus, square], name="out")
    return graph
