"""Graphs call Python functions that this process has registered, and no others."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import penstock as ps
from penstock import Session, errors
from support.graphs import graph_def

GRAPH = """
    x = Placeholder
    text = Placeholder[dtype=string]
    one = PyFunc[token=one; Tin=float32; Tout=float32](x)
    pure = PyFuncStateless[token=one; Tin=float32; Tout=float32](x)
    eager = EagerPyFunc[token=one; Tin=float32; Tout=float32](x)
    two = PyFunc[token=two; Tin=float32; Tout=float32|int64](x)
    none = PyFunc[token=none; Tin=float32; Tout=](x)
    words = PyFunc[token=words; Tin=string; Tout=string](text)
    stranger = PyFunc[token=os.system; Tin=float32; Tout=float32](x)
"""


@pytest.fixture
def session() -> Iterator[Session]:
    """A session over a graph that calls functions; they are forgotten afterwards."""
    with Session(graph_def(GRAPH)) as made:
        yield made
    ps.register_py_func(dict.fromkeys(("one", "two", "none", "words")))


def call(session: Session, fetch: Any, function: Callable[..., Any], x: Any = 2.0) -> Any:
    """What a node gives when its function is ``function``."""
    name = fetch if isinstance(fetch, str) else fetch[0]
    token = name.partition(":")[0]
    ps.register_py_func({token if token in ("two", "none", "words") else "one": function})
    feeds = {"x:0": np.float32(x)} if token != "words" else {"text:0": x}
    return session.run(fetch, feeds)


@pytest.mark.parametrize("fetch", ["one:0", "pure:0", "eager:0"])
def test_function_computes(session: Session, fetch: str) -> None:
    """The function gets arrays and gives arrays."""
    assert call(session, fetch, lambda x: x * np.float32(3)) == 6
    assert call(session, fetch, lambda x: x + x, [1, 2]).tolist() == [2, 4]


def test_several_results_come_in_order(session: Session) -> None:
    """A tuple or list gives one output each."""
    results = call(session, ["two:0", "two:1"], lambda x: (x, np.int64(7)))

    assert results == [2, 7]


def test_text_is_bytes(session: Session) -> None:
    """Strings come as bytes; text that comes back is encoded."""
    assert call(session, "words:0", lambda text: text + b"!", b"a") == b"a!"
    assert call(session, "words:0", lambda _: "ä", b"a") == "ä".encode()
    assert call(session, "words:0", lambda t: t[::-1], [b"a", b"b"]).tolist() == [b"b", b"a"]


def test_unknown_token_names_the_way_out(session: Session) -> None:
    """Nothing but what is registered can be called, whatever the graph says."""
    with pytest.raises(errors.InvalidArgumentError, match="Could not find callback with key=os"):
        session.run("stranger:0", {"x:0": 1})
    with pytest.raises(errors.InvalidArgumentError, match=r"penstock\.register_py_func"):
        session.run("stranger:0", {"x:0": 1})


def test_function_can_be_taken_away(session: Session) -> None:
    """None forgets a function."""
    assert call(session, "one:0", lambda x: x) == 2
    ps.register_py_func({"one": None})

    with pytest.raises(errors.InvalidArgumentError, match="Could not find callback"):
        session.run("one:0", {"x:0": 1})


def test_what_cannot_be_called_is_refused() -> None:
    """Nothing is registered if a part is wrong."""
    with pytest.raises(errors.InvalidArgumentError, match="cannot be called"):
        ps.register_py_func({"one": lambda x: x, "two": 3})  # type: ignore[dict-item]


@pytest.mark.parametrize(
    ("fetch", "result", "message"),
    [
        ("one:0", (1.0, 2.0), "returns 2 values, but expects to see 1 values"),
        ("one:0", None, "returns 0 values, but expects to see 1 values"),
        ("one:0", 2.0, "0-th value returned by one is double, but expects float"),
        ("one:0", np.int32(3), "0-th value returned by one is int32, but expects float"),
        ("none", 5, "returns 1 values, but expects to see 0 values"),
    ],
)
def test_results_must_be_the_declared_ones(
    session: Session, fetch: str, result: Any, message: str
) -> None:
    """Number and types are TensorFlow's to say, in its words."""
    with pytest.raises(errors.InvalidArgumentError, match=message):
        call(session, fetch, lambda _: result)


def test_eager_results_are_converted(session: Session) -> None:
    """An EagerPyFunc takes what can become the declared type."""
    assert call(session, "eager:0", lambda _: 2.5).dtype == np.float32


@pytest.mark.parametrize(
    ("raised", "code"),
    [
        (ValueError, "INVALID_ARGUMENT"),
        (TypeError, "INVALID_ARGUMENT"),
        (StopIteration, "OUT_OF_RANGE"),
        (MemoryError, "RESOURCE_EXHAUSTED"),
        (NotImplementedError, "UNIMPLEMENTED"),
        (KeyError, "UNKNOWN"),
        (RuntimeError, "UNKNOWN"),
    ],
)
def test_exceptions_get_tensorflows_codes(
    session: Session, raised: type[Exception], code: str
) -> None:
    """What a function raises ends the run, with its text and the code TensorFlow gives it."""

    def fail(_: Any) -> Any:
        raise raised("oh")

    with pytest.raises(errors.OpError, match=f"{raised.__name__}: '?oh") as caught:
        call(session, "one:0", fail)
    assert caught.value.code.name == code


def test_inputs_cannot_be_changed(session: Session) -> None:
    """An array that others may read is read-only."""

    def change(x: Any) -> Any:
        x[0] = 9
        return x

    with pytest.raises(errors.InvalidArgumentError, match="read-only"):
        call(session, "one:0", change, [1, 2])


def test_results_are_copies(session: Session) -> None:
    """What the function keeps and changes later does not change what the run gave."""
    kept = np.zeros(2, np.float32)
    got = call(session, "one:0", lambda _: kept)
    kept[0] = 9

    assert got.tolist() == [0, 0]
