"""The first node that made a NaN is named, and can be run again by itself."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import penstock as ps
from support.functions import graph_def_with


def logarithms() -> ps.Graph:
    """A logarithm, and what comes of it."""
    graph = ps.Graph()
    with graph.as_default():
        x = ps.placeholder(ps.dtypes.float32, [3], name="x")
        less = ps.ops.sub(x, ps.constant(np.float32(1)), name="less")
        ps.ops.sum(ps.ops.exp(ps.ops.log(less, name="log"), name="power"), 0, name="out")
    return graph


def test_the_first_node_is_named() -> None:
    """With how many elements are no numbers, and with what it read."""
    found = ps.find_nan(logarithms(), "out:0", {"x": [3, 1, 0]})
    assert found is not None
    assert (found.key, found.op, found.nan_count, found.inf_count) == ("log:0", "Log", 1, 1)
    np.testing.assert_array_equal(found.inputs[0], np.float32([2, 0, -1]))
    assert str(found) == "log:0 (Log) made 1 NaN and 1 infinite of 3 elements"
    assert ps.find_nan(logarithms(), "out:0", {"x": [3, 2, 2]}) is None
    assert ps.find_nan(logarithms(), "out:0", {"x": [3, 1, 2]}, allows_infinite=True) is None
    infinite = ps.find_nan(logarithms(), "out:0", {"x": [3, 1, 2]})
    assert infinite is not None
    assert infinite.inf_count == 1


def test_what_is_fed_is_an_input(tmp_path: Path) -> None:
    """A node that reads what is fed can be run again, too."""
    graph = ps.Graph()
    with graph.as_default():
        x = ps.placeholder(ps.dtypes.float32, [2], name="x")
        ps.ops.log(x, name="log")
    found = ps.find_nan(graph, "log:0", {"x": [1, -1]}, folder=tmp_path)
    assert found is not None
    assert found.inputs[0].tolist() == [1, -1]
    with np.load(tmp_path / "inputs.npz") as inputs:
        assert inputs["input_0"].tolist() == [1, -1]


def test_a_node_of_a_function(tmp_path: Path) -> None:
    """It is named as it is inlined, and can be run again like any other."""
    proto = graph_def_with(
        "x = Placeholder[dtype=float32]()\nc = Lower[T=float32](x)\ny = Exp(c)",
        """
        Lower(x: T) -> (y: T) [T: type]
        less = Sub[T=$T](x, x)
        log = Log[T=$T](less:z)
        return y = log:y
        """,
    )
    found = ps.find_nan(proto, "y:0", {"x": [1.0, 2.0]}, folder=tmp_path)
    assert found is not None
    assert (found.key, found.inf_count) == ("c/log:0", 2)
    assert found.inputs[0].tolist() == [0, 0]
    with ps.Session(tmp_path / "node.pb") as session:
        assert session.run("node:0", {"input_0:0": [0.0]}).tolist() == [-np.inf]


def test_in_a_loop_the_iteration_is_said() -> None:
    """The value that the node read there is that of the iteration."""
    graph = ps.Graph()
    with graph.as_default():
        start = ps.placeholder(ps.dtypes.float32, [], name="start")
        out = ps.while_loop(
            lambda i, _: i < 5,
            lambda i, v: (i + 1, ps.ops.sqrt(v - 1.0, name="root")),
            [ps.constant(np.int32(0)), start],
            name="loop",
        )
        ps.ops.identity(out[1], name="out")
    found = ps.find_nan(graph, "out:0", {"start": 2.5})
    assert found is not None
    assert found.key.startswith("loop/root:0@loop")
    values, at = np.float32(2.5), 0
    while values - 1 >= 0:
        values, at = np.sqrt(values - np.float32(1)), at + 1
    assert found.key.endswith(f"[{at}]")
    assert found.inputs[0] == values - np.float32(1)


def test_it_can_be_run_again(tmp_path: Path) -> None:
    """By the program in the folder, which has no text of the model in it."""
    graph = logarithms()
    found = ps.find_nan(graph, "out:0", {"x": [3, 1, 0]}, folder=tmp_path / "nan")
    assert found is not None
    program = tmp_path / "nan" / "reproduce.py"
    assert "log" not in program.read_text("utf-8").replace("program", "")
    done = subprocess.run(
        [sys.executable, program], capture_output=True, text=True, check=True, timeout=60
    )
    assert "input_0:0 float32 (3,) finite" in done.stdout
    assert "nan" in done.stdout


def test_what_is_fed_may_be_none(tmp_path: Path) -> None:
    """Then the feed is what is named; it is no node that could be run again."""
    feeds = {"x": [np.nan, 1, 1]}
    found = ps.find_nan(logarithms(), "out:0", feeds)
    assert found is not None
    assert (found.key, found.op) == ("x:0", "_Arg")
    with pytest.raises(ps.errors.FailedPreconditionError, match="cannot be run by itself"):
        ps.find_nan(logarithms(), "out:0", feeds, folder=tmp_path)
