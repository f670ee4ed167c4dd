"""A callable of a request that is one compiled function: short, and no less careful."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import penstock as ps
from penstock import errors
from penstock.session.compiled_callable import CompiledCallable
from support.sketch import sketch

GRAPH = """
    x = Placeholder() dtype=float32 shape=[2]
    y = Placeholder() dtype=float32
    p = Placeholder() dtype=bool
    diff = Sub(x, y)
    same = Identity(x)
    c = Const() value=[5.0, 6.0]
    s = Switch(y, p)
    dead = Neg(s:1)
    text = Placeholder() dtype=string
    words = Identity(text)
    queue = FIFOQueueV2() component_types=["float32"]
    put = QueueEnqueueV2(queue, y)
"""
X, Y = np.float32([1, 2]), np.float32([10, 20])


@pytest.fixture(params=ps.Tier)
def session(request: pytest.FixtureRequest) -> Iterator[ps.Session]:
    """Yield a session on the graph above, on each tier."""
    with ps.Session(sketch(GRAPH), config=ps.Config(tier=request.param)) as opened:
        yield opened


def is_whole(call: Any) -> bool:
    """Whether a callable goes the short way."""
    return any(isinstance(cell.cell_contents, CompiledCallable) for cell in call.__closure__)


def test_what_is_one_function_goes_the_short_way() -> None:
    """A request without queues is called directly; one with them is a step like any other."""
    with ps.Session(sketch(GRAPH)) as session:
        assert is_whole(session.make_callable("diff:0", ["x", "y"]))
        assert not is_whole(session.make_callable("put", ["y"]))
    with ps.Session(sketch(GRAPH), config=ps.Config(tier=ps.Tier.DATAFLOW)) as session:
        assert not is_whole(session.make_callable("diff:0", ["x", "y"]))


def test_feeds_come_in_the_callers_order(session: ps.Session) -> None:
    """Whatever the order in which the request sorts them."""
    np.testing.assert_array_equal(session.make_callable("diff:0", ["x", "y"])(X, Y), X - Y)
    np.testing.assert_array_equal(session.make_callable("diff:0", ["y", "x"])(Y, X), X - Y)


def test_fetches_come_in_the_callers_nesting(session: ps.Session) -> None:
    """Fed, computed, constant and repeated fetches, in any nesting."""
    fetches = {"d": ["diff:0", ("y:0", "c:0")], "again": "diff:0", "op": "diff"}
    got = session.make_callable(fetches, ["y", "x"])(Y, X)
    np.testing.assert_array_equal(got["d"][0], X - Y)
    np.testing.assert_array_equal(got["d"][1][0], Y)
    np.testing.assert_array_equal(got["d"][1][1], [5, 6])
    np.testing.assert_array_equal(got["again"], X - Y)
    assert got["op"] is None


def test_what_is_fed_may_be_fetched(session: ps.Session) -> None:
    """A fed tensor that is fetched is what was fed, converted to its type."""
    got = session.make_callable(["x:0", "diff:0"], ["x:0", "y:0"])([3, 4], 1)
    np.testing.assert_array_equal(got[0], np.float32([3, 4]))
    assert got[0].dtype == np.float32
    np.testing.assert_array_equal(got[1], [2, 3])


def test_what_would_be_computed_may_be_fed(session: ps.Session) -> None:
    """Any tensor may be fed, also one in the middle."""
    assert session.make_callable("dead:0", ["s:1"])(4.0) == -4.0


@pytest.mark.parametrize("live", [True, False])
def test_a_dead_fetch_is_an_empty_array(session: ps.Session, live: bool) -> None:
    """Of its type; the others are not affected."""
    dead, c = session.make_callable(["dead:0", "c:0"], ["p", "y"])(live, 2)
    np.testing.assert_array_equal(c, [5, 6])
    if live:
        assert dead == -2.0
    else:
        assert (dead.shape, dead.dtype) == ((0,), np.float32)


@pytest.mark.parametrize("values", [(), (X,), (X, Y, Y)])
def test_a_wrong_number_of_values(session: ps.Session, values: Any) -> None:
    """Too few or too many are refused before anything runs."""
    with pytest.raises(errors.InvalidArgumentError, match="Expected 2 feed tensors, but got"):
        session.make_callable("diff:0", ["x", "y"])(*values)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (np.float64([1, 2]), None),
        (["a", "b"], "not compatible|does not match|dtype"),
        (np.float32([1, 2, 3]), "shape"),
        (np.float32(1), "shape"),
        (None, ""),
    ],
)
def test_feeds_are_checked_as_in_run(session: ps.Session, value: Any, message: str | None) -> None:
    """A callable takes and refuses exactly what ``run`` does, with the same words."""
    call = session.make_callable("diff:0", ["x", "y"])
    outcomes: list[Any] = []
    for use in (lambda: call(value, Y), lambda: session.run("diff:0", {"x": value, "y": Y})):
        try:
            outcomes.append(use().tolist())
        except errors.OpError as error:
            outcomes.append((type(error), error.message))
    assert outcomes[0] == outcomes[1]
    if message is not None:
        assert isinstance(outcomes[0], tuple)


def test_a_closed_session_refuses(session: ps.Session) -> None:
    """A callable outlives its session in name only."""
    call = session.make_callable("diff:0", ["x", "y"])
    session.close()
    with pytest.raises(errors.CancelledError, match="Session has been closed"):
        call(X, Y)


def test_errors_are_those_of_run(session: ps.Session) -> None:
    """An error in a callable names the node, and the callable can be used again."""
    call = session.make_callable("diff:0", ["x", "y"])
    for _ in range(2):
        with pytest.raises(errors.InvalidArgumentError, match="Incompatible shapes") as caught:
            call(X, np.float32([1, 2, 3]))
        assert caught.value.node_name == "diff"
        np.testing.assert_array_equal(call(X, Y), X - Y)
    assert session._under_way.steps == set()


def test_feeds_are_not_changed(session: ps.Session) -> None:
    """Feeds may be read-only, and stay as they are; results are the caller's own."""
    x, y = X.copy(), Y.copy()
    x.flags.writeable = y.flags.writeable = False
    call = session.make_callable(["diff:0", "same:0", "c:0", "x:0"], ["x", "y"])
    for _ in range(2):
        results = call(x, y)
        for result in results:
            result[...] = -1
    np.testing.assert_array_equal(x, X)
    np.testing.assert_array_equal(y, Y)
    np.testing.assert_array_equal(call(x, y)[2], [5, 6])


def test_results_do_not_follow_the_feeds(session: ps.Session) -> None:
    """What the caller does to a fed array afterwards is of no consequence."""
    x = X.copy()
    same, fed = session.make_callable(["same:0", "x:0"], ["x"])(x)
    x[...] = 99
    np.testing.assert_array_equal(same, X)
    np.testing.assert_array_equal(fed, X)


def test_strings(session: ps.Session) -> None:
    """Strings go in and out as in ``run``."""
    call = session.make_callable("words:0", ["text"])
    assert call("one") == b"one"
    assert call([b"a", "b"]).tolist() == [b"a", b"b"]


def test_calls_from_eight_threads(session: ps.Session) -> None:
    """One callable may be called by many threads at a time; none sees another's values."""
    call = session.make_callable(["diff:0", "x:0"], ["y", "x"])
    wrong: list[Any] = []

    def work(number: int) -> None:
        for turn in range(200):
            x = np.float32([number, turn])
            diff, fed = call(np.float32(number), x)
            if diff.tolist() != [0, turn - number] or fed.tolist() != [number, turn]:
                wrong.append((number, turn, diff))

    threads = [threading.Thread(target=work, args=[number]) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30.0)
    assert wrong == []
    assert session._under_way.steps == set()
