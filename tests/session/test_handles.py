"""Handles as the caller gets them, and feeds them again; quantised results."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import penstock as ps
from penstock import errors
from penstock.core.values import ResourceHandle
from penstock.defs.schema import ResourceHandleProto
from support.sketch import CPU, sketch

GRAPH = """
    c = Const() value=[1.0,2.0]
    keep = GetSessionHandle(c)
    keep_resource = GetSessionHandleV2(c)
    x = Placeholder() dtype=float32 shape=[3]
    y = Neg(x)
    i = Placeholder() dtype=int32
    s = Placeholder() dtype=string
    same_text = Identity(s)
    keep_text = GetSessionHandle(s)
    tensor = GetSessionTensor(s) dtype=float32
    forget = DeleteSessionTensor(s)
    q = Placeholder() dtype=qint8
    same = Identity(q)
    var = VarHandleOp() dtype=float32 shape=[] shared_name="v"
    seven = Const() value=7.0
    set = AssignVariableOp(var, seven) dtype=float32
    r = Placeholder() dtype=resource
    read = ReadVariableOp(r) dtype=float32
    both = Pack(var, var) N=2 T=resource axis=0
"""


class TensorHandle:
    """What TensorFlow's front end makes of a kept tensor's handle, as far as feeding goes."""

    def __init__(self, text: str) -> None:
        self._text = text

    def to_numpy_array(self) -> Any:
        device = self._text.split(";")[-1]
        message = ResourceHandleProto(device=device, container="TensorHandle", name=self._text)
        return np.asarray(bytearray(message.SerializeToString()), [("resource", np.ubyte)])


@pytest.fixture
def session() -> Iterator[ps.Session]:
    """Yield a session that has a variable of 7."""
    with ps.Session(sketch(GRAPH)) as opened:
        opened.run("set")
        yield opened


#: Forms of the handle of [1, 2], each as a function of the session.
FORMS: dict[str, Any] = {
    "as it was fetched": lambda session: session.run("keep:0"),
    "a resource": lambda session: session.run("keep_resource:0"),
    "a message": lambda session: ResourceHandleProto.FromString(
        session.run("keep_resource:0").tobytes()
    ),
    "of TensorFlow": lambda session: TensorHandle(session.run("keep:0").handle),
    "vectors of one byte": lambda session: session.run("keep_resource:0").view(
        [("resource", np.ubyte, (1,))]
    ),
}


def run(session: ps.Session, fetch: str, name: str, value: Any) -> Any:
    return session.run(fetch, {name: value})


def call(session: ps.Session, fetch: str, name: str, value: Any) -> Any:
    return session.make_callable(fetch, [name])(value)


def go_on(session: ps.Session, fetch: str, name: str, value: Any) -> Any:
    handle = session.partial_run_setup([fetch], [name])
    return session.partial_run(handle, fetch, {name: value})


@pytest.mark.parametrize("feed", [run, call, go_on])
@pytest.mark.parametrize("make", FORMS.values(), ids=FORMS.keys())
def test_a_handle_stands_for_its_tensor(make: Any, feed: Any, session: ps.Session) -> None:
    """Fed in place of any tensor of its type, also one of a computed kind or of another shape."""
    handle = make(session)
    assert feed(session, "y:0", "x", handle).tolist() == [-1, -2]
    assert feed(session, "y:0", "x:0", handle).tolist() == [-1, -2]
    assert session.run("x:0", {"x": handle}).tolist() == [1, 2]
    assert session.run("y:0", {"y": handle}).tolist() == [1, 2]


def test_what_a_handle_stands_for_stays_as_it_is(session: ps.Session) -> None:
    """What was fetched by a handle is the caller's own; the session's tensor does not change."""
    handle = session.run("keep:0")
    for _ in range(2):
        found = session.run("x:0", {"x": handle})
        assert found.tolist() == [1, 2]
        found[:] = 9


@pytest.mark.parametrize("make", FORMS.values(), ids=FORMS.keys())
def test_the_kept_type_must_be_the_fed_one(make: Any, session: ps.Session) -> None:
    """A kept tensor is not converted."""
    handle = make(session)
    with pytest.raises(
        errors.InvalidArgumentError, match="Expects i:0 to be int32 but float is provided"
    ):
        session.run("i:0", {"i": handle})
    with pytest.raises(
        errors.InvalidArgumentError, match="Expects r:0 to be resource but float is provided"
    ):
        session.run("read:0", {"r": handle})


def test_strings_are_the_text_or_the_tensor(session: ps.Session) -> None:
    """Fetched as a text, a handle is a text for strings; as any other form it is the tensor."""
    handle = session.run("keep_text:0", {"s": ["a", "bc"]})
    assert handle == f"keep_text;0;{CPU}".encode()
    assert session.run("same_text:0", {"s": handle}) == handle
    assert session.run("same_text:0", {"s": TensorHandle(handle.handle)}).tolist() == [b"a", b"bc"]
    with pytest.raises(errors.InvalidArgumentError, match="to be string but float is provided"):
        session.run("tensor:0", {"s": TensorHandle(session.run("keep:0").handle)})


def test_strange_handles(session: ps.Session) -> None:
    """Handles of other sessions, of what was deleted, and damaged ones are refused."""
    handle = session.run("keep:0")
    with (
        ps.Session(sketch(GRAPH)) as other,
        pytest.raises(
            errors.InvalidArgumentError, match=f"x:0.*'keep;0;{CPU}' is not in the session store"
        ),
    ):
        other.run("y:0", {"x": handle})
    session.run("forget", {"s": handle})
    with pytest.raises(errors.InvalidArgumentError, match="is not in the session store"):
        session.run("y:0", {"x": handle})
    damaged = np.frombuffer(b"\x0a\xff\xff\xff", [("resource", np.ubyte)])
    for name in "xr":
        with pytest.raises(errors.InvalidArgumentError, match=f"{name}:0.*cannot be read"):
            session.run(f"{name}:0", {name: damaged})


def test_a_resource_handle_is_bytes(session: ps.Session) -> None:
    """It comes as an array of the bytes of its message, in TensorFlow's words, and may be fed."""
    handle = session.run("var:0")
    assert handle.dtype == np.dtype([("resource", np.ubyte)])
    message = ResourceHandleProto.FromString(handle.tobytes())
    assert (message.device, message.container, message.name) == (CPU, "localhost", "v")
    assert message.maybe_type_name == "N10tensorflow3VarE"
    for form in (handle, message, ResourceHandle(CPU, "localhost", "v", "Var")):
        assert session.run("read:0", {"r": form}) == 7
        assert session.make_callable("read:0", ["r"])(form) == 7
    assert session.run("r:0", {"r": handle}).tobytes() == handle.tobytes()


def test_handles_in_an_array_cannot_be_fetched(session: ps.Session) -> None:
    """TensorFlow has no form for them."""
    with pytest.raises(errors.InvalidArgumentError, match="Fetching of non-scalar resource tensor"):
        session.run("both:0")


#: The integers of each quantised type.
QUANTISED = {
    "qint8": np.int8, "quint8": np.uint8, "qint16": np.int16, "quint16": np.uint16,
    "qint32": np.int32,
}  # fmt: skip


@pytest.mark.parametrize(("name", "kind"), QUANTISED.items())
@pytest.mark.parametrize("shape", [(), (0,), (2, 3)])
def test_quantised_results_are_integers(name: str, kind: Any, shape: tuple[int, ...]) -> None:
    """As arrays and as scalars, fetched or called, and in memory that the caller may change."""
    text = f"q = Placeholder() dtype={name}\nsame = Identity(q)"
    given = np.arange(6).astype(kind)[: np.prod(shape, dtype=int)].reshape(shape)
    with ps.Session(sketch(text)) as session:
        for value in (given, given.tolist()):
            for got in (
                session.run("same:0", {"q": value}),
                session.make_callable("same:0", ["q"])(value),
                go_on(session, "same:0", "q", value),
                session.run("q:0", {"q": value}),
            ):
                assert got.dtype == kind
                assert got.shape == shape
                assert got.tolist() == given.tolist()
                if shape:
                    got[...] = 0
        assert given.tolist() == np.arange(given.size).reshape(shape).tolist()
