"""A function of feeds, made once and called often."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import penstock as ps
from penstock import errors
from support.sketch import sketch

GRAPH = """
    x = Placeholder() dtype=float32
    y = Placeholder() dtype=float32
    p = Placeholder() dtype=bool
    sum = Add(x, y)
    diff = Sub(x, y)
    s = Switch(x, p)
    dead = Neg(s:1)
    name = Const() value="text"
    words = Switch(name, p)
    nothing = NoOp()
"""


@pytest.fixture
def session() -> Iterator[ps.Session]:
    """Yield a session on the graph above."""
    with ps.Session(sketch(GRAPH)) as opened:
        yield opened


def test_feeds_are_positional(session: ps.Session) -> None:
    """Values go to the feeds in the order of the list, not of the names."""
    assert session.make_callable("diff:0", ["x", "y"])(5, 3) == 2.0
    assert session.make_callable("diff:0", ["y", "x"])(5, 3) == -2.0


def test_results_are_nested_like_the_fetches(session: ps.Session) -> None:
    """Whatever nesting ``run`` understands, a callable does too."""
    call = session.make_callable({"s": ["sum:0", "nothing"], "x": ("x:0",)}, ["x:0", "y"])
    assert call(1, 2) == {"s": [3.0, None], "x": (1.0,)}


def test_a_callable_without_feeds(session: ps.Session) -> None:
    """A callable of nothing runs what needs no feeds."""
    assert session.make_callable("name:0")() == b"text"
    assert session.make_callable("nothing")() is None
    assert session.make_callable([])() == []


@pytest.mark.parametrize("values", [(), (1,), (1, 2, 3)])
def test_a_wrong_number_of_values(session: ps.Session, values: Any) -> None:
    """A call with too few or too many values says how many it expects."""
    call = session.make_callable("sum:0", ["x", "y"])
    with pytest.raises(errors.InvalidArgumentError, match="Expected 2 feed tensors, but got"):
        call(*values)


def test_a_dead_fetch_is_an_empty_array(session: ps.Session) -> None:
    """Where ``run`` would raise, a callable gives an empty array of the right type."""
    call = session.make_callable(["dead:0", "sum:0", "words:1"], ["x", "y", "p"])
    dead, total, words = call(1, 2, False)
    assert (dead.shape, dead.dtype, total) == ((0,), np.float32, 3.0)
    assert (words.shape, words.dtype) == ((0,), object)
    assert call(1, 2, True)[0] == -1.0


def test_values_are_checked(session: ps.Session) -> None:
    """A callable refuses what ``run`` would refuse."""
    with pytest.raises(errors.InvalidArgumentError, match="not compatible"):
        session.make_callable("sum:0", ["x", "y"])("a", 2)


@pytest.mark.parametrize(
    ("fetches", "feeds"),
    [
        ("nobody:0", []),
        ("sum:0", ["nobody"]),
        ("sum:0", ["x:3"]),
        ("sum:0", ["x", "x"]),
        ("sum:0", ["x", "x:0"]),
        (None, []),
        ("sum:0", [3]),
    ],
)
def test_mistakes_are_found_when_it_is_made(
    session: ps.Session, fetches: Any, feeds: list[Any]
) -> None:
    """What names nothing is refused before the first call."""
    with pytest.raises(errors.OpError):
        session.make_callable(fetches, feeds)


def test_a_callable_and_run_share_what_is_prepared(session: ps.Session) -> None:
    """The same request is prepared once, in whichever order its feeds are named."""
    session.run("sum:0", {"y": 1, "x": 2})
    before = len(session._requests._prepared)
    session.make_callable("sum:0", ["y", "x"])(1, 2)
    session.run("sum:0", {"x": 1, "y": 2})
    assert len(session._requests._prepared) == before


def test_options_of_a_callable_are_kept(session: ps.Session) -> None:
    """The run options are those it was made with."""
    with pytest.raises(errors.InvalidArgumentError, match="Invalid inter_op_thread_pool: 7"):
        session.make_callable("sum:0", ["x", "y"], ps.RunOptions(inter_op_thread_pool=7))(1, 2)
    assert session.make_callable("sum:0", ["x", "y"], ps.RunOptions(timeout_in_ms=9999))(1, 2) == 3
