"""What is fed stands in for what the graph would compute."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import penstock as ps
from penstock import builder, errors
from support.sketch import sketch

GRAPH = """
    f = Placeholder() dtype=float32
    i = Placeholder() dtype=int32
    u = Placeholder() dtype=uint8
    b = Placeholder() dtype=bool
    s = Placeholder() dtype=string
    h = Placeholder() dtype=bfloat16
    c = Placeholder() dtype=complex64
    row = Placeholder() dtype=float32 shape=[-1,2]
    r = Placeholder() dtype=resource
    two = Const() value=2.0
    twice = Mul(f, two)
    more = Add(twice, two)
    io = Identity(i)
    so = Identity(s)
    nothing = NoOp()
"""


@pytest.fixture
def session() -> Iterator[ps.Session]:
    """Yield a session with placeholders of several types."""
    with ps.Session(sketch(GRAPH)) as opened:
        yield opened


def fed(session: ps.Session, name: str, value: Any) -> Any:
    """What an Identity of a placeholder gives."""
    return session.run(f"{name}:0", {name: value})


@pytest.mark.parametrize("key", ["f", "f:0"])
def test_feeds_by_name(session: ps.Session, key: str) -> None:
    """A placeholder is named with or without its slot."""
    assert session.run("twice:0", {key: 3.0}) == 6.0


def test_feeds_by_object() -> None:
    """A tensor of the builder, or anything that has a name, can be the key."""
    graph = builder.Graph()
    with graph.as_default():
        x = builder.placeholder("float32", name="x")
        y = x + 1.0
    with ps.Session(graph) as session:
        assert session.run(y, {x: 1.0}) == 2.0
        assert session.run(y, {graph.node("x"): 1.0}) == 2.0


@pytest.mark.parametrize(
    ("value", "want"),
    [
        (3, 3.0),
        (3.5, 3.5),
        (True, 1.0),
        (np.float64(3), 3.0),
        (np.int64(3), 3.0),
        ([1, 2], [1.0, 2.0]),
        ((1.5, 2), [1.5, 2.0]),
        ([[1.0], [2.0]], [[1.0], [2.0]]),
        ([], []),
        (np.zeros((0, 3)), np.zeros((0, 3)).tolist()),
        (np.arange(6).reshape(2, 3).T, [[0, 3], [1, 4], [2, 5]]),
        (range(3), [0, 1, 2]),
        (np.array(2.5), 2.5),
        (np.array([1.5], ">f4"), [1.5]),
    ],
)
def test_numbers_and_lists_are_fed(session: ps.Session, value: Any, want: Any) -> None:
    """Python numbers, lists, ranges and arrays of other types become the tensor's type."""
    got = fed(session, "f", value)
    assert got.dtype == np.float32
    assert got.dtype.isnative
    assert got.tolist() == want


@pytest.mark.parametrize(
    ("value", "want"),
    [
        ("text", b"text"),
        (b"\xff\x00", b"\xff\x00"),
        ("", b""),
        ("\u00e4", "\u00e4".encode()),
        (["a", b"b"], [b"a", b"b"]),
        ([["a"], ["bc"]], [[b"a"], [b"bc"]]),
        (np.array(["a", "bc"]), [b"a", b"bc"]),
        (np.array([b"a", b"bc"]), [b"a", b"bc"]),
        (np.array([b"a", "b"], object), [b"a", b"b"]),
        (np.array("x"), b"x"),
        (np.str_("x"), b"x"),
        (np.bytes_(b"x"), b"x"),
        ([], []),
    ],
)
def test_strings_are_fed(session: ps.Session, value: Any, want: Any) -> None:
    """Text and bytes, in any nesting, become strings."""
    got = session.run("so:0", {"s": value})
    assert (got if isinstance(got, bytes) else got.tolist()) == want


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("i", 2**40),
        ("i", -(2**31) - 1),
        ("i", [2**40]),
        ("u", 300),
        ("u", -1),
        ("u", [300]),
        ("i", "7"),
        ("f", "1.5"),
        ("f", ["1.5"]),
        ("f", b"x"),
        ("f", np.array(["1"])),
        ("f", object()),
        ("f", [object()]),
        ("f", {}),
        ("f", [[1], [1, 2]]),
        ("f", {"a": 1}),
        ("f", lambda: 1),
        ("s", 5),
        ("s", [1, 2]),
        ("s", [None]),
        ("s", None),
        ("s", 1.5),
        ("s", [["a"], ["b", "c"]]),
        ("s", np.array([1.5])),
        ("s", {"a": 1}),
        ("r", "text"),
        ("r", 3),
        ("c", "x"),
        ("h", "x"),
        ("b", []),
    ],
)
def test_values_of_another_kind_are_refused(session: ps.Session, name: str, value: Any) -> None:
    """What cannot become the tensor's type without loss or guessing is refused."""
    if name == "b":
        assert session.run("b:0", {"b": value}).tolist() == []
        return
    target = {"f": "twice:0", "i": "io:0", "s": "so:0"}.get(name, "nothing")
    with pytest.raises(errors.InvalidArgumentError) as caught:
        session.run(target, {name: value})
    assert f"{name}:0" in str(caught.value) or "arg[" in str(caught.value)


def test_a_node_is_no_value(session: ps.Session) -> None:
    """Feeding a tensor's own object as a value is refused with advice."""
    graph = builder.Graph()
    with graph.as_default():
        x = builder.placeholder("float32")
    with ps.Session(graph) as other, pytest.raises(errors.InvalidArgumentError, match="cannot be"):
        other.run("Placeholder:0", {x: x})
    with pytest.raises(errors.InvalidArgumentError, match="cannot be"):
        session.run("twice:0", {"f": session.graph.node("two")})


def test_other_types(session: ps.Session) -> None:
    """bfloat16 and complex values are fed from numbers of other types."""
    assert fed(session, "h", [1.5]).dtype == ml_dtypes.bfloat16
    assert fed(session, "c", [1 + 2j]).tolist() == [1 + 2j]
    assert fed(session, "c", 2) == 2


@pytest.mark.parametrize("value", [[1.0, 2.0], [[1.0]], [[[1.0, 2.0]]], 1.0])
def test_a_wrong_shape_is_refused(session: ps.Session, value: Any) -> None:
    """A placeholder's shape is a promise; the message tells both shapes."""
    with pytest.raises(errors.InvalidArgumentError, match="Cannot feed value of shape") as caught:
        session.run("row:0", {"row": value})
    assert "row:0" in str(caught.value)


def test_a_right_shape_is_taken(session: ps.Session) -> None:
    """An unknown size accepts any size."""
    for rows in (0, 1, 5):
        assert session.run("row:0", {"row": np.zeros((rows, 2))}).shape == (rows, 2)


def test_intermediate_tensors_can_be_fed(session: ps.Session) -> None:
    """Any tensor can be fed; what it would be computed from is not needed then."""
    assert session.run("more:0", {"twice": 10.0}) == 12.0
    assert session.run("more:0", {"twice": 10.0, "two": 1.0}) == 11.0


def test_a_feed_that_nobody_needs_does_no_harm(session: ps.Session) -> None:
    """A superfluous feed is checked and then ignored."""
    assert session.run("two:0", {"f": 1.0, "i": 3}) == 2.0
    with pytest.raises(errors.InvalidArgumentError):
        session.run("two:0", {"i": "x"})


def test_fed_and_fetched(session: ps.Session) -> None:
    """A tensor that is fed and fetched comes back as it was fed, in its own type."""
    feed = np.array([1, 2])
    got, twice = session.run(["f:0", "twice:0"], {"f": feed})
    assert got.dtype == np.float32
    assert got.tolist() == [1.0, 2.0]
    assert twice.tolist() == [2.0, 4.0]
    assert session.run("f:0", {"f:0": 2}) == 2.0


def test_feeding_twice_is_refused(session: ps.Session) -> None:
    """One tensor under two spellings is fed more than once."""
    with pytest.raises(errors.InvalidArgumentError, match='Endpoint "f:0" fed more than once'):
        session.run("twice:0", {"f": 1.0, "f:0": 2.0})


@pytest.mark.parametrize("key", ["nobody", "f:1", "nothing:0", "nothing", "", "^f", 3, None, "f:x"])
def test_strange_keys_are_refused(session: ps.Session, key: Any) -> None:
    """A key that names no tensor of the graph is refused."""
    with pytest.raises(errors.InvalidArgumentError):
        session.run("two:0", {key: 1.0})


def test_a_missing_feed_names_the_placeholder(session: ps.Session) -> None:
    """A placeholder that is not fed says its name, type and shape."""
    with pytest.raises(errors.InvalidArgumentError) as caught:
        session.run("twice:0")
    text = "You must feed a value for placeholder tensor 'f' with dtype float"
    assert text in str(caught.value)
    assert caught.value.node_name == "f"
    with pytest.raises(errors.InvalidArgumentError, match=r"and shape \[\?,2\]"):
        session.run("row:0")


def test_control_successors_of_a_fed_node_still_wait_for_it() -> None:
    """Feeding an output does not keep its node from running when something waits for it."""
    graph = sketch("x = Placeholder() dtype=float32\nbad = Log(x)\nn = Const(^bad) value=1.0")
    with ps.Session(graph) as session:
        assert session.run("n:0", {"x": 1.0, "bad": 2.0}) == 1.0
        with pytest.raises(errors.InvalidArgumentError, match="You must feed"):
            session.run("n:0", {"bad": 2.0})


def test_an_array_that_is_fed_stays_writable(session: ps.Session) -> None:
    """The caller's array is neither frozen nor changed."""
    feed = np.ones(3, np.float32)
    session.run("twice:0", {"f": feed})
    assert feed.flags.writeable
    feed[0] = 5.0
    assert session.run("twice:0", {"f": feed}).tolist() == [10.0, 2.0, 2.0]


def test_a_read_only_array_can_be_fed(session: ps.Session) -> None:
    """Read-only arrays and strange layouts are fed like any other."""
    feed = np.broadcast_to(np.float32(2), (2, 3))
    assert session.run("twice:0", {"f": feed}).tolist() == [[4.0] * 3] * 2


def test_subclasses_of_arrays_are_fed_as_arrays(session: ps.Session) -> None:
    """A matrix or a masked array is fed by its elements, as an ordinary array."""
    with np.errstate(all="ignore"):
        got = session.run("twice:0", {"f": np.ma.array([1.0, 2.0], mask=[False, True])})
    assert type(got) is np.ndarray
    assert got.tolist() == [2.0, 4.0]


def test_inner_tensors_are_fed_what_fits_them() -> None:
    """What feeds a tensor that the graph computes must fit its inferred shape, as in TensorFlow."""
    with ps.Graph().as_default() as graph:
        x = ps.placeholder("float32", [2, None])
        y = ps.ops.neg(x)
        z = y * 2.0
    with ps.Session(graph) as session:
        assert session.run(z, {y: np.ones((2, 5))}).shape == (2, 5)
        call = session.make_callable(z, feed_list=[y])
        for run in (lambda: session.run(z, {y: np.ones((3, 5))}), lambda: call(np.ones((3, 5)))):
            with pytest.raises(ps.errors.InvalidArgumentError) as caught:
                run()
            assert "Cannot feed value of shape (3, 5) for Tensor Neg:0" in caught.value.message
            assert "which has shape [2,?]" in caught.value.message


def test_a_callable_takes_arrays_without_dimensions() -> None:
    """As numbers, where they fit, which do not change when the caller's array does."""
    with ps.Graph().as_default() as graph:
        number = ps.placeholder("float32", [], name="number")
        pair = ps.placeholder("float32", [2], name="pair")
        kept = ps.Variable(0.0, name="kept")
        stored, doubled = kept.assign(number), pair * 2.0
        read = kept.read_value()
    given = np.array(3.0, np.float32)
    with ps.Session(graph) as session:
        twice = session.make_callable(doubled, [pair])
        store = session.make_callable(stored, [number])
        for expected in (3.0, 4.0, 5.0):  # by the short way at last
            assert store(given) == expected
            given += 1
            assert session.run(read) == expected
        with pytest.raises(errors.InvalidArgumentError, match=r"shape \(\) for Tensor pair:0"):
            twice(given)
        with pytest.raises(errors.InvalidArgumentError, match=r"shape \(2,\) for Tensor number:0"):
            store(np.zeros(2, np.float32))
