"""What the interactive prompt shows of an object says what it is."""

from __future__ import annotations

import numpy as np
import pytest

import penstock as ps
from penstock.errors import InvalidArgumentError
from support.graphs import graph
from support.loops import counting_loop
from support.sketch import sketch


def test_graphs_and_their_parts() -> None:
    """Names, types and, where they are known, shapes."""
    built = ps.Graph()
    assert repr(built) == "<Graph: 0 nodes>"
    with built.as_default():
        x = ps.placeholder("float32", [None, 2], name="x")
        assert repr(built) == "<Graph: 1 node>"
        w = ps.Variable(np.zeros((2, 3), np.float32), name="w")
        y = ps.ops.mat_mul(x, w, name="y")
        array = ps.TensorArray("int32", 3)

    assert repr(x) == "<Tensor x:0 float32[?,2]>"
    assert repr(y) == "<Tensor y:0 float32[?,3]>"
    assert repr(y.op) == "<Operation y (MatMul)>"
    assert repr(w) == "<Variable w float32[2,3]>"
    assert repr(array).startswith("<TensorArray of int32")
    assert repr(x.dtype) == str(x.dtype) == "float32"
    assert repr(x.shape) == "TensorShape([?,2])"
    assert repr(graph("x = Const")) == "<Graph: 1 node>"


def test_sessions_and_runs() -> None:
    """Whether they are open, under way, done or failed."""
    with ps.Session(sketch(counting_loop())) as session:
        assert repr(session) == f"<Session on {session.graph!r}, open>"
        endless = session.run_async("exit:0", {"limit": 2**31 - 1})
        assert repr(endless) == "<Run: under way>"
        endless.cancel()
        with pytest.raises(ps.errors.CancelledError):
            endless.result(30.0)
        assert repr(endless) == "<Run: failed with CancelledError>"
        done = session.run_async("exit:0", {"limit": 1})
        done.result(30.0)
        assert repr(done) == "<Run: done>"
        metadata = ps.RunMetadata()
        options = ps.RunOptions(trace_level=ps.TraceLevel.FULL_TRACE, output_partition_graphs=True)
        session.run("exit:0", {"limit": 1}, options, metadata)
    assert repr(session).endswith(", closed>")
    count = sum(len(device.node_stats) for device in metadata.step_stats.dev_stats)
    assert count > 0
    assert repr(metadata) == f"<RunMetadata: {count} records of nodes, 1 partition graphs>"


def test_options_show_what_was_chosen() -> None:
    """Defaults are left out."""
    assert repr(ps.Config()) == "Config()"
    assert repr(ps.RunOptions(trace_level=ps.RunOptions.FULL_TRACE, timeout_in_ms=5)) == (
        "RunOptions(trace_level=TraceLevel.FULL_TRACE, timeout_in_ms=5)"
    )
    assert repr(ps.Config(device_count={"CPU": 2}, tier=ps.Tier.DATAFLOW)) == (
        "Config(device_count={'CPU': 2}, tier=Tier.DATAFLOW)"
    )
    assert repr(ps.Config(graph_options=ps.GraphOptions.nothing())) == (
        "Config(graph_options=GraphOptions(optimizer_options=OptimizerOptions(opt_level=Level.L0), "
        "rewrite_options=RewriterConfig(disable_meta_optimizer=True)))"
    )


def test_errors() -> None:
    """Their class and reason."""
    assert repr(InvalidArgumentError("no such thing")) == "InvalidArgumentError('no such thing')"
