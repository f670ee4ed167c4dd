"""What is asked for comes back, in the form in which it was asked for."""

from __future__ import annotations

import collections
from collections.abc import Iterator
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import pytest

import penstock as ps
from penstock import builder, errors
from penstock.session.fetches import handed_out
from support.sketch import sketch

GRAPH = """
    a = Const() value=1.0
    b = Const() value=[1.0, 2.0]
    s = Const() value="text"
    zero = Const() value=0
    split = Split(zero, b) num_split=2
    nothing = NoOp()
"""


class Pair(NamedTuple):
    """A named tuple of fetches."""

    first: Any
    second: Any


class Named:
    """Anything that has a name."""

    def __init__(self, name: str) -> None:
        self.name = name


@pytest.fixture
def session() -> Iterator[ps.Session]:
    """Yield a session on a few constants."""
    with ps.Session(sketch(GRAPH)) as opened:
        yield opened


def test_a_tensor_comes_as_an_array_or_scalar(session: ps.Session) -> None:
    """Rank 0 comes as a numpy scalar or bytes, anything else as an array."""
    scalar, array, text = session.run(["a:0", "b:0", "s:0"])
    assert type(scalar) is np.float32
    assert scalar == 1.0
    assert array.dtype == np.float32
    assert array.tolist() == [1.0, 2.0]
    assert text == b"text"


def test_an_operation_gives_none(session: ps.Session) -> None:
    """A name without a slot is an operation, which is run and gives None."""
    assert session.run("nothing") is None
    assert session.run("a") is None
    assert session.run(["a", "a:0"]) == [None, 1.0]


@pytest.mark.parametrize(
    ("fetches", "want"),
    [
        ([], []),
        ((), ()),
        ({}, {}),
        (["a:0"], [1.0]),
        (("a:0", "a:0"), (1.0, 1.0)),
        ({"x": "a:0", 3: ["a:0", "nothing"]}, {"x": 1.0, 3: [1.0, None]}),
        ([[["a:0"]], ("a:0",), {}], [[[1.0]], (1.0,), {}]),
        (Pair("a:0", ("nothing", "a:0")), Pair(1.0, (None, 1.0))),
        (collections.OrderedDict(z="a:0", y="nothing"), collections.OrderedDict(z=1.0, y=None)),
        (collections.deque(["a:0"]), None),
        (MappingProxyType({"x": "a:0"}), {"x": 1.0}),
        (["split:0", "split:1"], [1.0, 2.0]),
        (["nothing", "nothing"], [None, None]),
    ],
)
def test_nestings_keep_their_form(session: ps.Session, fetches: Any, want: Any) -> None:
    """Lists, tuples, named tuples and dictionaries come back as what they were."""
    if want is None:
        with pytest.raises(errors.InvalidArgumentError, match="invalid type"):
            session.run(fetches)
        return
    got = session.run(fetches)
    assert type(got) is (dict if isinstance(fetches, MappingProxyType) else type(fetches))
    assert got == want
    if isinstance(fetches, dict):
        assert list(got) == list(fetches)


@pytest.mark.parametrize(
    ("fetches", "want"),
    [
        (["zero:0", "a:0"], [0, 1.0]),
        (["a:0", "a:0"], [1.0, 1.0]),
        ([["a:0", "zero:0"], []], [[1.0, 0], []]),
        ([("a:0",), {"zero": "zero:0"}], [(1.0,), {"zero": 0}]),
        ([["a:0", "zero:0"], "nothing"], [[1.0, 0], None]),
        (["a:0", "nothing"], [1.0, None]),
        (["nothing", "a:0", "nothing"], [None, 1.0, None]),
        (["nothing"], [None]),
        ([], []),
    ],
)
def test_lists_of_one_thing_and_another(session: ps.Session, fetches: Any, want: Any) -> None:
    """As many values may be fetched as a list has items without being those items."""
    assert session.run(fetches) == want
    call = session.make_callable(fetches)
    first = call()
    assert first == want
    first.clear()
    assert call() == want


def test_a_default_dictionary_comes_back_as_one(session: ps.Session) -> None:
    """A defaultdict keeps its factory."""
    fetches: Any = collections.defaultdict(list, x="a:0")
    got = session.run(fetches)
    assert type(got) is collections.defaultdict
    assert got.default_factory is list
    assert got == {"x": 1.0}


def test_subclasses_of_dict_come_back_as_mappings(session: ps.Session) -> None:
    """A dictionary of a class whose constructor wants something else still comes back."""

    class Strange(dict):  # type: ignore[type-arg]
        def __init__(self, number: int, **items: Any) -> None:
            super().__init__(**items)
            self.number = number

    got = session.run(Strange(3, x="a:0"))
    assert dict(got) == {"x": 1.0}


def test_a_tensor_that_is_fetched_twice_is_one_array(session: ps.Session) -> None:
    """The same name gives the same array; the next run gives another one."""
    first, second = session.run(["b:0", "b:0"])
    assert first is second
    assert session.run("b:0") is not first


NAMES = ("one", "other")


def test_an_array_that_nobody_else_knows_is_not_copied() -> None:
    """Neither is another form of it; parts of it are, and twins."""
    array, alone = np.arange(6.0), np.arange(6.0).reshape(2, 3)
    memory = alone.ctypes.data
    whole, form = handed_out([array, alone], NAMES)
    assert whole is array
    assert form.ctypes.data == memory
    part, twin = handed_out([array[1:], array.reshape(3, 2)], NAMES)
    assert not np.shares_memory(part, array)
    assert not np.shares_memory(twin, array)
    first, second = handed_out([array, array], NAMES)
    assert not np.shares_memory(first, second)


def test_names_can_be_objects(session: ps.Session) -> None:
    """Whatever has a name can be fetched: a tensor, an operation, a node."""
    assert session.run(Named("a:0")) == 1.0
    assert session.run([Named("a"), session.graph.node("nothing")]) == [None, None]


def test_tensors_of_the_builder_can_be_fetched() -> None:
    """Tensors and operations that the builder made stand for their names."""
    graph = builder.Graph()
    with graph.as_default():
        x = builder.placeholder("float32")
        y = x * 2.0
        done = builder.group(y)
    with ps.Session(graph) as session:
        assert session.run({"y": y, "done": done}, {x: 3.0}) == {"y": 6.0, "done": None}


@pytest.mark.parametrize("bad", [None, 3, 1.5, b"a:0", object(), [None], ["a:0", 3], {"x": None}])
def test_what_has_no_name_cannot_be_fetched(session: ps.Session, bad: Any) -> None:
    """A fetch without a name is refused, and the message says of which type it is."""
    with pytest.raises(errors.InvalidArgumentError, match="invalid type"):
        session.run(bad)


@pytest.mark.parametrize(
    ("name", "kind", "text"),
    [
        ("nobody:0", errors.NotFoundError, "FetchOutputs node nobody:0: not found"),
        ("nobody", errors.NotFoundError, "not found: nobody"),
        ("a:1", errors.InvalidArgumentError, "output index too large, must be < 1"),
        ("a:99999999999999999999", errors.InvalidArgumentError, "output index too large"),
        ("nothing:0", errors.InvalidArgumentError, "produces no output"),
        ("", errors.OpError, ""),
        (":0", errors.OpError, ""),
        ("a:-1", errors.OpError, ""),
        ("a:x", errors.OpError, ""),
        ("a:0:0", errors.OpError, ""),
        ("^a:0", errors.OpError, ""),
        ("a\x00:0", errors.OpError, ""),
        ("\udce4:0", errors.OpError, ""),
    ],
)
def test_strange_names_are_refused(
    session: ps.Session, name: str, kind: type[errors.OpError], text: str
) -> None:
    """A name that the graph does not have is refused, and named."""
    with pytest.raises(kind) as caught:
        session.run(name)
    assert text in str(caught.value)


def test_a_control_name_is_an_operation(session: ps.Session) -> None:
    """The control form of a name runs the operation."""
    assert session.run("^a") is None


def test_fetches_share_what_they_need(session: ps.Session) -> None:
    """The same request, in another nesting, is prepared once."""
    session.run(["a:0", "b:0"])
    before = len(session._requests._prepared)
    session.run({"x": "a:0", "y": ("b:0", "a:0")})
    session.run(["a:0", "b:0"])
    assert len(session._requests._prepared) == before
