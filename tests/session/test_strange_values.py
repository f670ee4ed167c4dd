"""Values that lie, raise, contain themselves or never end: each is a value or a sentence.

Whoever feeds one gets an OpError that says which feed is meant, what is wrong and what would be
right; whoever builds with one, the same about the literal.
"""

from __future__ import annotations

import collections
import enum
from collections.abc import Callable, Iterator
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import penstock as ps
from penstock import errors, ops
from support.sketch import sketch

GRAPH = """
    x = Placeholder() dtype=float32
    s = Placeholder() dtype=string
    n = Placeholder() dtype=int32
    r = Placeholder() dtype=resource
    v = Placeholder() dtype=variant
    xo = Identity(x)
    so = Identity(s)
    no = Identity(n)
    ro = Identity(r)
    vo = Identity(v)
"""


class RaisesError(Exception):
    """What strangers raise."""

    def __str__(self) -> str:
        return "\x1b[2J" * 1000


def refuse(*_: Any, **__: Any) -> Any:
    """Raise, whatever is asked."""
    raise RaisesError


#: Methods that conversions, comparisons and messages may call.
SPECIAL = (
    "array array_interface array_struct len iter getitem contains int index float complex bool str "
    "repr format bytes eq ne lt hash reversed"
)
PLAIN = (
    "encode decode astype tolist item view copy dtype shape ndim size flat flags strides nbytes "
    "base name graph"
)


def liar(base: type[Any], *args: Any) -> Any:
    """An object of a subclass all of whose methods raise, and whose attributes do."""
    members: dict[str, Any] = dict.fromkeys((f"__{name}__" for name in SPECIAL.split()), refuse)
    members |= {name: property(refuse) for name in PLAIN.split()}
    kind: Any = type("Liar", (base,), members)
    return base.__new__(kind, *args) if base is not list else _filled(kind, args)


def _filled(kind: type[Any], args: Any) -> Any:
    made = list.__new__(kind)
    list.extend(made, *args)
    return made


def nested(depth: int) -> Any:
    """Lists inside each other."""
    value: Any = [1.0]
    for _ in range(depth):
        value = [value]
    return value


def cyclic() -> Any:
    """A list that contains itself, twice."""
    value: list[Any] = []
    value += [value, value]
    return value


def shared(levels: int) -> Any:
    """Few lists that stand for two to the power of ``levels`` elements."""
    value: Any = [1.0, 2.0]
    for _ in range(levels):
        value = [value, value]
    return value


def in_array(value: Any) -> Any:
    """An array of objects with this one in it."""
    array = np.empty(2, object)
    array[1] = value
    return array


def cyclic_dict() -> Any:
    """A dictionary that contains itself."""
    value: dict[str, Any] = {}
    value["a"] = value
    return value


class Endless:
    """A sequence that goes on for ever."""

    def __len__(self) -> int:
        return 3

    def __getitem__(self, at: int) -> Any:
        return Endless()

    def __iter__(self) -> Iterator[Any]:
        while True:
            yield self


class Array:
    """Something that makes an array of itself, or says so."""

    def __init__(self, make: Callable[[], Any]) -> None:
        self.make = make

    def __array__(self, *_: Any, **__: Any) -> Any:
        return self.make()


class Posing:
    """An object that claims another class."""

    def __init__(self, kind: type[Any]) -> None:
        self.kind = kind

    @property
    def __class__(self) -> type[Any]:
        return self.kind

    @__class__.setter
    def __class__(self, kind: type[Any]) -> None:
        self.kind = kind


#: Values that no tensor can be made of.
HOPELESS: dict[str, Callable[[], Any]] = {
    "raises": lambda: liar(object),
    "raises in lists": lambda: [liar(object)],
    "raises in an array": lambda: in_array(liar(object)),
    "array raises": lambda: Array(refuse),
    "array is no array": lambda: Array(lambda: "abc"),
    "array is itself": lambda: Array(lambda: Array(lambda: 1)),
    "array is cyclic": lambda: Array(cyclic),
    "array raises in a list": lambda: [Array(refuse), 1.0],
    "array has no memory": lambda: Array(lambda: bytearray(1 << 62)),
    "deep": lambda: nested(100_000),
    "deep, in a tuple": lambda: (nested(100_000),),
    "cyclic": cyclic,
    "cyclic beside": lambda: [1.0, cyclic()],
    "shared": lambda: shared(50),
    "shared and deep": lambda: shared(200),
    "long": lambda: range(10**15),
    "long in a list": lambda: [range(10**15), range(10**15)],
    "endless": Endless,
    "endless in a list": lambda: [Endless()],
    "uneven": lambda: [[1.0], [1.0, 2.0]],
    "uneven, shared": lambda: [shared(60), 1.0],
    "uneven after an empty one": lambda: [[], [[]]],
    "poses as an array": lambda: Posing(np.ndarray),
    "poses as a number": lambda: Posing(float),
    "poses as a list": lambda: Posing(list),
    "poses as text": lambda: Posing(str),
    "poses as a handle": lambda: Posing(ps.Session),
    "cyclic dict": cyclic_dict,
    "many digits": lambda: 10**5000,
    "a class": lambda: liar,
}


@pytest.fixture(scope="module")
def session() -> Iterator[ps.Session]:
    """A session with placeholders of several types."""
    with ps.Session(sketch(GRAPH)) as opened:
        yield opened


def run(session: ps.Session, name: str, value: Any) -> Any:
    """Feed to one run."""
    return session.run(f"{name}o:0", {f"{name}:0": value})


def call(session: ps.Session, name: str, value: Any) -> Any:
    """Feed to a callable."""
    return session.make_callable(f"{name}o:0", [f"{name}:0"])(value)


def go_on(session: ps.Session, name: str, value: Any) -> Any:
    """Feed to a partial run."""
    handle = session.partial_run_setup([f"{name}o:0"], [f"{name}:0"])
    try:
        return session.partial_run(handle, f"{name}o:0", {f"{name}:0": value})
    finally:
        with pytest.MonkeyPatch.context():
            session._under_way.partial_runs.take_all()


@pytest.mark.parametrize("feed", [run, call, go_on])
@pytest.mark.parametrize("name", ["x", "s", "n", "r"])
@pytest.mark.parametrize("make", HOPELESS.values(), ids=HOPELESS.keys())
def test_hopeless_feeds(make: Any, name: str, feed: Any, session: ps.Session) -> None:
    """However it is fed, the error names the feed, fits a few lines, and the session goes on."""
    with pytest.raises(errors.OpError) as caught:
        feed(session, name, make())

    assert type(caught.value) in (errors.InvalidArgumentError, errors.ResourceExhaustedError)
    assert f"{name}:0" in caught.value.reason
    assert len(caught.value.message) < 600
    assert "\x1b" not in caught.value.message
    assert run(session, "x", 1.0) == 1.0


BUILDING: dict[str, Callable[[Any], Any]] = {
    "constant": ps.constant,
    "constant of a type": lambda value: ps.constant(value, "float32"),
    "op": ops.neg,
    "op with two": lambda value: ops.add(ps.constant(1.0), value),
    "op with a list": lambda value: ops.add_n([value, value]),
    "variable": ps.Variable,
    "operator": lambda value: ps.constant(1.0) + value,
}


@pytest.mark.parametrize("build", BUILDING.values(), ids=BUILDING.keys())
@pytest.mark.parametrize("make", HOPELESS.values(), ids=HOPELESS.keys())
def test_hopeless_literals(make: Any, build: Any) -> None:
    """A literal that no tensor can hold is an OpError, or, as ever, a TypeError with a sentence."""
    with ps.Graph().as_default(), pytest.raises((errors.OpError, TypeError)) as caught:
        build(make())

    text = str(caught.value)
    assert 10 < len(text) < 600
    assert "\x1b" not in text


@pytest.mark.parametrize(
    "kind", ["raises in lists", "array raises", "deep", "cyclic", "shared", "uneven", "long"]
)
def test_hopeless_literals_are_op_errors(kind: str) -> None:
    """What raises, or cannot be looked through, is an OpError."""
    with ps.Graph().as_default():
        for build in BUILDING.values():
            with pytest.raises(errors.OpError):
                build(HOPELESS[kind]())


class Colour(enum.IntEnum):
    """Numbers with names."""

    RED = 3


Pair = collections.namedtuple("Pair", "a b")

#: Values that are more than they look, or less, with what they are.
HONEST: dict[str, tuple[Callable[[], Any], Any]] = {
    "lying list": (lambda: liar(list, [1.0, 2.0]), [1, 2]),
    "lying tuple": (lambda: liar(tuple, [1.0, 2.0]), [1, 2]),
    "lying lists in a list": (lambda: [liar(list, [1.0]), [2.0]], [[1], [2]]),
    "lying int": (lambda: liar(int, 7), 7),
    "lying ints": (lambda: [liar(int, 7), 8], [7, 8]),
    "lying array": (lambda: np.arange(3.0).view(type("A", (np.ndarray,), {})), [0, 1, 2]),
    "matrix": (lambda: np.ma.array([1.0, 2.0]), [1, 2]),
    "named tuple": (lambda: Pair(1.0, 2.0), [1, 2]),
    "deque": (lambda: collections.deque([1, 2]), [1, 2]),
    "ranges": (lambda: [range(2), range(2)], [[0, 1], [0, 1]]),
    "memory": (lambda: memoryview(np.arange(2.0)), [0, 1]),
    "enum": (lambda: Colour.RED, 3),
    "decimal": (lambda: Decimal("1.5"), 1.5),
    "fraction": (lambda: [Fraction(1, 2)], [0.5]),
    "array-like": (lambda: Array(lambda: np.arange(2)), [0, 1]),
    "arrays in a list": (lambda: [np.arange(2.0), np.arange(2.0)], [[0, 1], [0, 1]]),
    "sixteen levels": (lambda: nested(15), np.ones((1,) * 16).tolist()),
    "shared": (lambda: shared(3), np.broadcast_to([1.0, 2.0], (2, 2, 2, 2)).tolist()),
    "empty": (lambda: [[], []], [[], []]),
}


@pytest.mark.parametrize("feed", [run, call, go_on])
@pytest.mark.parametrize(("make", "want"), HONEST.values(), ids=HONEST.keys())
def test_what_they_are_counts(make: Any, want: Any, feed: Any, session: ps.Session) -> None:
    """What an object really holds is fed, whatever its methods say."""
    assert feed(session, "x", make()).tolist() == want


def test_lying_arrays(session: ps.Session) -> None:
    """An array's memory counts, and not what its class makes of its attributes."""
    members: dict[str, Any] = {name: property(refuse) for name in PLAIN.split()}
    members |= dict.fromkeys(("__len__", "__iter__", "__array__"), refuse)
    array = np.arange(3, dtype=np.float32).view(type("A", (np.ndarray,), members))
    for feed in (run, call, go_on):
        assert feed(session, "x", array).tolist() == [0, 1, 2]
        with pytest.raises(errors.InvalidArgumentError, match="s:0"):
            feed(session, "s", array)


@pytest.mark.parametrize("make", [lambda: liar(str, "abc"), lambda: liar(bytes, b"abc")])
def test_lying_text(make: Any, session: ps.Session) -> None:
    """Text is what it is, alone, in lists and in arrays; what comes out is plain bytes."""
    for feed in (run, call, go_on):
        assert type(feed(session, "s", make())) is bytes
        assert feed(session, "s", make()) == b"abc"
        got = feed(session, "s", [make(), "d"])
        assert [type(item) for item in got] == [bytes, bytes]
        assert got.tolist() == [b"abc", b"d"]
        with pytest.raises(errors.InvalidArgumentError, match="x:0"):
            feed(session, "x", make())
    with ps.Graph().as_default():
        made = ps.constant([make()])
        with ps.Session(made.graph) as other:
            assert other.run(made).tolist() == [b"abc"]


def test_interrupts_go_through(session: ps.Session) -> None:
    """Ctrl-C is none of a value's errors."""

    def interrupted() -> Any:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(session, "x", Array(interrupted))
