"""Graphs, and what belongs to them, are pickled and copied as wholes."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import penstock as ps
from penstock.core import dtypes
from support.custom import custom_kernels

EXAMPLES = Path(__file__).parents[2] / "examples"
COPIES: list[Callable[[Any], Any]] = [
    lambda thing: pickle.loads(pickle.dumps(thing)),
    copy.deepcopy,
]


@pytest.fixture(params=COPIES, ids=["pickle", "deepcopy"])
def copied(request: pytest.FixtureRequest) -> Callable[[Any], Any]:
    """A way to copy."""
    way: Callable[[Any], Any] = request.param
    return way


def built() -> tuple[ps.Graph, ps.Tensor, ps.Variable]:
    """A graph with a loop, a choice, a variable and a constant that is an array."""
    graph = ps.Graph()
    with graph.as_default():
        x = ps.placeholder("float32", [2], name="x")
        w = ps.Variable(np.float32([1, 2]), name="w")
        _, total = ps.while_loop(
            lambda i, _total: i < 3, lambda i, total: (i + 1, total + w), [ps.constant(0), x]
        )
        positive = ps.ops.sum(x, [0]) > 0
        y = ps.cond(positive, lambda: total * 2, lambda: total)
    return graph, y, w


def test_a_copy_computes_the_same(copied: Callable[[Any], Any]) -> None:
    """Graph, tensor, operation and variable come back together, and can be built upon."""
    graph, y, w = built()
    twin, y_twin, op, w_twin = copied((graph, y, y.op, w))
    with twin.as_default():
        init = ps.global_variables_initializer()
        more = y_twin + w_twin
        named = ps.constant(1, name="x")

    assert ps.graph_to_def(graph) == ps.graph_to_def(copied(graph))
    assert twin is not graph
    assert y_twin.graph is op.graph is w_twin.graph is twin
    assert (y_twin.name, op, twin.variables) == (y.name, y_twin.op, [w_twin])
    assert named.name == "x_1:0"
    with ps.Session(twin) as session:
        session.run(init)
        values = session.run([y_twin, more, w_twin], {"x:0": [1, 1]})
    assert [value.tolist() for value in values] == [[8, 14], [9, 16], [1, 2]]


def test_equal_things_stay_equal(copied: Callable[[Any], Any]) -> None:
    """What is a key stays one: copies of one tensor are the same key."""
    _, y, _ = built()
    first, second, table = copied((y, y, {y: "value"}))

    assert first == second
    assert first != y
    assert table[first] == "value"


@pytest.mark.parametrize("kind", ["digits_rnn", "digits_cnn"])
def test_the_graph_of_a_session(copied: Callable[[Any], Any], kind: str) -> None:
    """A graph that was read can be sent to a session in another process."""
    images = np.linspace(0, 1, 128, dtype=np.float32).reshape(2, 8, 8)
    with ps.Session(EXAMPLES / f"{kind}.pb") as session:
        want = session.run("probabilities:0", {"images:0": images})
        sent = copied(session.graph)
    with ps.Session(sent) as session:
        assert np.array_equal(session.run("probabilities:0", {"images:0": images}), want)


def test_graphs_with_long_chains_need_no_stack(copied: Callable[[Any], Any]) -> None:
    """Three thousand nodes in a row are as good as ten."""
    graph = ps.Graph()
    with graph.as_default():
        x = ps.placeholder("float32", [], name="x")
        for _ in range(3000):
            x = ps.ops.neg(x)

    assert len(copied(x).graph) == 3001


def test_ops_of_ones_own(copied: Callable[[Any], Any]) -> None:
    """They are registered, not pickled."""
    with custom_kernels("ExTwice(x: float32) -> (y: float32)") as register:
        register("ExTwice", lambda x: x * 2)
        graph = ps.Graph()
        with graph.as_default():
            ps.ops.ex_twice(ps.constant(4.0), name="y")
        with ps.Session(copied(graph)) as session:
            assert session.run("y:0") == 8


def test_sessions_stay_where_they_are() -> None:
    """A session is refused, with what to send instead."""
    with ps.Session(built()[0]) as session:
        for way in (*COPIES, copy.copy):
            with pytest.raises(TypeError, match="send its graph"):
                way(session)


@pytest.mark.parametrize("dtype", [t for base in dtypes.ALL for t in (base, base.ref)], ids=str)
def test_types_are_the_same_object(copied: Callable[[Any], Any], dtype: ps.DType) -> None:
    """Types are compared with ``is``, so a copy is the type itself."""
    assert copied(dtype) is dtype
    assert copy.copy(dtype) is dtype
    assert copied(ps.placeholder(dtype.base).dtype) is dtype.base


def test_options(copied: Callable[[Any], Any]) -> None:
    """Options are what they were."""
    config = ps.Config(
        tier=ps.Tier.DATAFLOW, device_count={"CPU": 2}, graph_options=ps.GraphOptions.nothing()
    )

    assert copied(config) == config
    assert copied(config).tier is ps.Tier.DATAFLOW
    assert copied(ps.TensorShape.of([None, 3])) == ps.TensorShape.of([None, 3])
