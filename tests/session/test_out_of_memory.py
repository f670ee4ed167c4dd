"""Arrays for which there is no memory: RESOURCE_EXHAUSTED, which says whose, and how large.

A quarter of 2**64 bytes is more than any machine can address, so nothing is ever allocated.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import penstock as ps
from penstock import errors
from support.graphs import graph_def

N = 1 << 30
SHAPE = f"shape[{N},{N}] and type float32, which takes {4 * N * N:,} bytes"
GRAPH = f"""
    n = Placeholder[dtype=int64]
    x = Placeholder
    v = Placeholder

    fill = Fill[index_type=int64](n, x)
    w = Placeholder
    swap = Const[value=1|0; dtype=int32]
    wide = Transpose[Tperm=int32](w, swap)
    exp = Exp(wide)
    tile = Tile[Tmultiples=int64](v, n)
    row = Placeholder
    column = Placeholder
    product = Mul(row, column)

    sizes = Const[value={N}|{N}; dtype=int64]
    one = Const[value=1.0]
    constant = Fill[index_type=int64](sizes, one)
    many = BroadcastTo[Tidx=int64](one, sizes)
    y = Neg(x)
"""
HUGE = np.broadcast_to(np.float32(1), N)
#: Takes four bytes; so does what only looks at it in another way.
WIDE = np.broadcast_to(np.float32(1), (N, N))
CASES: list[tuple[str, dict[str, Any], str]] = [
    ("fill", {"n": [N, N], "x": 1.0}, "Fill"),
    ("exp", {"w": WIDE}, "Exp"),
    ("tile", {"n": [N, N], "v": [[1.0]]}, "Tile"),
    ("product", {"row": HUGE, "column": HUGE[:, None]}, "Mul"),
    ("constant", {}, "Fill"),
    ("many", {}, "BroadcastTo"),
]


@pytest.fixture(params=ps.Tier)
def session(request: pytest.FixtureRequest) -> Any:
    """Yield a session on each tier."""
    with ps.Session(graph_def(GRAPH), config=ps.Config(tier=request.param)) as session:
        yield session


@pytest.mark.parametrize(("node", "feeds", "op"), CASES, ids=[case[0] for case in CASES])
def test_a_result_that_is_too_large(
    session: ps.Session, node: str, feeds: dict[str, Any], op: str
) -> None:
    """Node, op, shape, type and bytes are told, also where constants are folded."""
    with pytest.raises(errors.ResourceExhaustedError) as caught:
        session.run(f"{node}:0", feeds)
    assert f"OOM when allocating tensor with {SHAPE}\n" in str(caught.value)
    assert f"[[{{{{node {node}}}}}]] ({op}) on" in str(caught.value)
    assert session.run("y:0", {"x": 1.0}) == -1.0


@pytest.mark.parametrize("how", ["run", "callable"])
def test_a_copy_for_the_caller_that_is_too_large(session: ps.Session, how: str) -> None:
    """What needs no memory in a step may need it when it is handed out: the fetch is named."""
    fetches, feeds = ["y:0", "wide:0"], {"w": WIDE, "x": 1.0}
    calls: dict[str, Callable[[], Any]] = {
        "run": lambda: session.run(fetches, feeds),
        "callable": lambda: session.make_callable(fetches, list(feeds))(*feeds.values()),
    }
    with pytest.raises(errors.ResourceExhaustedError) as caught:
        calls[how]()
    assert f"OOM when allocating tensor with {SHAPE}\n" in str(caught.value)
    assert "a copy of wide:0" in str(caught.value)


def test_a_copy_of_a_feed_that_is_too_large(session: ps.Session) -> None:
    """What is fed to a run of its own thread is copied at once, and named."""
    with pytest.raises(errors.ResourceExhaustedError) as caught:
        session.run_async("y:0", {"x": WIDE})
    assert f"OOM when allocating tensor with {SHAPE}\n" in str(caught.value)
    assert "a copy of x:0" in str(caught.value)


@pytest.mark.parametrize("tier", ps.Tier)
@pytest.mark.parametrize("text", ["", "no room left"])
def test_a_memory_error_of_a_python_function(text: str, tier: ps.Tier) -> None:
    """What does not say how large it was is told in its own words, though it was folded first."""

    def fail(_x: Any) -> None:
        raise MemoryError(text)

    graph = "x = Const[value=1.0]\ny = PyFuncStateless[token=greedy; Tin=float32; Tout=float32](x)"
    ps.register_py_func({"greedy": fail})
    try:
        with ps.Session(graph_def(graph), config=ps.Config(tier=tier)) as session:
            with pytest.raises(errors.ResourceExhaustedError) as caught:
                session.run("y:0")
            assert text in str(caught.value)
            assert "{{node y}}" in str(caught.value)
    finally:
        ps.register_py_func({"greedy": None})


def test_a_preparation_that_runs_out_of_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """It says so, and what it was doing; the next run prepares anew."""

    def fail(*_args: Any, **_kwargs: Any) -> None:
        raise MemoryError

    with ps.Session(graph_def(GRAPH)) as session:
        with monkeypatch.context() as patch:
            patch.setattr("penstock.runtime.prepare.split", fail)
            with pytest.raises(errors.ResourceExhaustedError) as caught:
                session.run("y:0", {"x": 1.0})
        assert str(caught.value).startswith("Out of memory\n  preparing  splitting the graph")
        assert session.run("y:0", {"x": 1.0}) == -1.0
