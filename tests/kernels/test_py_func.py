"""Graphs call Python functions that this process has registered, and no others."""

from __future__ import annotations

import copy
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


def said(error: pytest.ExceptionInfo[errors.OpError]) -> str:
    """What an error says before it says where."""
    return "\n".join([error.value.reason, *error.value.details])


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


class _SilentError(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no text")


class _Outer:
    class InnerError(ValueError):
        """An exception of a class that has a place."""


@pytest.mark.parametrize("fetch", ["one:0", "pure:0", "eager:0"])
@pytest.mark.parametrize(
    ("raised", "code", "text"),
    [
        (ValueError("a b"), "INVALID_ARGUMENT", "ValueError: a b"),
        (ValueError(), "INVALID_ARGUMENT", "ValueError: "),
        (ValueError("one\ntwo"), "INVALID_ARGUMENT", "ValueError: one\ntwo"),
        (ValueError(1, 2), "INVALID_ARGUMENT", "ValueError: (1, 2)"),
        (_Outer.InnerError("x"), "INVALID_ARGUMENT", "InnerError: x"),
        (
            UnicodeDecodeError("utf8", b"\xff", 0, 1, "bad"),
            "INVALID_ARGUMENT",
            "UnicodeDecodeError: 'utf8' codec can't decode byte 0xff in position 0: bad",
        ),
        (StopIteration(), "OUT_OF_RANGE", "StopIteration: "),
        (KeyError("k"), "UNKNOWN", "KeyError: 'k'"),
        (OSError(2, "no such"), "UNKNOWN", "FileNotFoundError: [Errno 2] no such"),
        (ZeroDivisionError("z"), "UNKNOWN", "ZeroDivisionError: z"),
        (errors.NotFoundError("lost"), "UNKNOWN", "NotFoundError: lost"),
        (_SilentError(), "UNKNOWN", "_SilentError(unknown error message)"),
        (SystemExit(3), "UNKNOWN", "SystemExit: 3"),
        (GeneratorExit("ge"), "UNKNOWN", "GeneratorExit: ge"),
    ],
)
@pytest.mark.parametrize("tier", ps.Tier)
def test_exceptions_are_told_with_their_place(
    fetch: str, raised: BaseException, code: str, text: str, tier: ps.Tier
) -> None:
    """TensorFlow's code and first line, and then where in the function it was raised.

    An exception that would end a thread or the program ends the run, and nothing else.
    """

    def fail(_: Any) -> Any:
        raise copy.copy(raised)  # which has no traceback of an earlier case

    with Session(graph_def(GRAPH), config=ps.Config(tier=tier)) as session:
        try:
            with pytest.raises(errors.OpError) as caught:
                call(session, fetch, fail)
        finally:
            ps.register_py_func({"one": None})
    assert caught.value.code.name == code
    assert said(caught).startswith(text)
    if not isinstance(raised, _SilentError):
        rest = said(caught).removeprefix(text)
        assert rest.startswith("\nTraceback (most recent call last):\n")
        assert "in fail" in rest
        assert "py_func_ops" not in rest


def _raw(value: Any) -> Any:
    return lambda _: value


@pytest.mark.parametrize(
    ("result", "code", "text"),
    [
        (1.0, "INVALID_ARGUMENT", "0-th value returned by one is double, but expects float"),
        (1, "INVALID_ARGUMENT", "0-th value returned by one is int64, but expects float"),
        ("abc", "INVALID_ARGUMENT", "0-th value returned by one is string, but expects float"),
        (1j, "INVALID_ARGUMENT", "0-th value returned by one is complex128, but expects float"),
        (True, "INVALID_ARGUMENT", "0-th value returned by one is bool, but expects float"),
        (object(), "INTERNAL", "Unsupported object type object"),
        ({"a": 1}, "INTERNAL", "Unsupported object type dict"),
        (2**70, "INTERNAL", "Unsupported object type int"),
        ([None], "INTERNAL", "Unsupported object type NoneType"),
        ((x for x in [1.0]), "INTERNAL", "Unsupported object type generator"),
        (np.datetime64("2020-01-01"), "INTERNAL", "Unsupported numpy type: NPY_DATETIME"),
        (np.longdouble(1), "INTERNAL", "Unsupported numpy type: NPY_LONGDOUBLE"),
        ([[1.0], [2.0, 3.0]], "INVALID_ARGUMENT", "one returns 2 values, but expects to see 1"),
        (np.array([1, "x"], object), "INTERNAL", "Unsupported object type int"),
    ],
)
def test_wrong_results_are_named(session: Session, result: Any, code: str, text: str) -> None:
    """The types that were returned and declared, in TensorFlow's words."""
    with pytest.raises(errors.OpError) as caught:
        call(session, "one:0", _raw(result))
    assert (caught.value.code.name, said(caught)[: len(text)]) == (code, text)


#: What TensorFlow makes of what an EagerPyFunc's function returns, by declared type; None is
#: INVALID_ARGUMENT.
_TYPES = ("bool", "int8", "uint8", "int32", "int64", "float16", "float32", "complex64", "string")
_CONVERTED: list[tuple[Any, list[Any]]] = [
    (2.75, [None, None, None, None, None, 2.75, 2.75, 2.75, None]),
    (np.float64(2.75), [True, 2, 2, 2, 2, 2.75, 2.75, 2.75, None]),
    (np.array([2.0]), [True, 2, 2, 2, 2, 2, 2, 2, None]),
    (True, [True, None, None, 1, 1, 1, 1, None, None]),
    (np.True_, [True, 1, 1, 1, 1, 1, 1, 1, None]),
    (3, [None, 3, 3, 3, 3, 3, 3, 3, None]),
    (300, [None, 44, 44, 300, 300, 300, 300, 300, None]),
    (-1, [None, -1, 255, -1, -1, -1, -1, -1, None]),
    (2**70, [None] * 9),
    (np.int64(2**40), [True, 0, 0, 0, 2**40, np.inf, 2.0**40, 2.0**40, None]),
    (1j, [None, None, None, None, None, None, None, 1j, None]),
    (np.array([1j]), [True, 0, 0, 0, 0, 0, 0, 1j, None]),
    ("a", [None] * 8 + [b"a"]),
    (b"a", [None] * 8 + [b"a"]),
    (np.array(["ä"]), [None] * 8 + ["ä".encode()]),
    (object(), [None] * 9),
    (np.array([1, "x"], object), [None] * 9),
    (np.array([1.5], ">f4"), [True, 1, 1, 1, 1, 1.5, 1.5, 1.5, None]),
]


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize(("result", "expected"), _CONVERTED)
def test_eager_results_become_what_tensorflow_makes_of_them(
    result: Any, expected: list[Any]
) -> None:
    """Arrays are cast whatever they hold; Python's own values only to what can hold them."""
    nodes = [f"{t} = EagerPyFunc[token=one; Tin=; Tout={t}]" for t in _TYPES]
    got: list[Any] = []
    ps.register_py_func({"one": lambda: result})
    try:
        with Session(graph_def("\n".join(nodes))) as session:
            for dtype in _TYPES:
                try:
                    value = session.run(f"{dtype}:0")
                except errors.InvalidArgumentError:
                    got.append(None)
                else:
                    assert getattr(value, "dtype", object) == ps.dtypes.as_dtype(dtype).numpy
                    got.append(np.ravel(np.asarray(value, object))[0])
    finally:
        ps.register_py_func({"one": None})
    assert got == expected


def test_eager_results_may_be_more_than_are_declared(session: Session) -> None:
    """The first ones count; too few are refused, and so is anything where nothing is declared."""
    assert call(session, "eager:0", lambda x: [x, "more"]) == 2
    with pytest.raises(errors.InvalidArgumentError, match="returns 0 values, but expects to see 1"):
        call(session, "eager:0", lambda _: None)
    ps.register_py_func({"one": lambda: 5})
    with (
        Session(graph_def("none = EagerPyFunc[token=one; Tin=; Tout=]")) as other,
        pytest.raises(errors.UnknownError, match="IndexError: list index out of range"),
    ):
        other.run("none")


@pytest.mark.parametrize("tier", ps.Tier)
@pytest.mark.parametrize(
    ("op", "source", "calls"),
    [
        ("PyFunc", "Const[value=3]", [2, 4, 6]),
        ("PyFunc", "Placeholder", [2, 4, 6]),
        ("PyFuncStateless", "Const[value=3]", [2, 2, 2]),
        ("PyFuncStateless", "Placeholder", [1, 2, 3]),
        ("EagerPyFunc", "Const[value=3]", [2, 4, 6]),
    ],
)
def test_stateless_calls_are_merged_and_made_early(
    op: str, source: str, calls: list[int], tier: ps.Tier
) -> None:
    """Like any function of its inputs: once for constants, once for two that are equal.

    TensorFlow calls as often, run by run.
    """
    count = 0

    def double(x: Any) -> Any:
        nonlocal count
        count += 1
        return x * np.float32(2)

    text = f"x = {source}\n" + "\n".join(
        f"{name} = {op}[token=one; Tin=float32; Tout=float32](x)" for name in "ab"
    )
    feeds = {"x:0": 3.0} if source == "Placeholder" else {}
    counts = []
    ps.register_py_func({"one": double})
    try:
        with Session(graph_def(text), config=ps.Config(tier=tier)) as session:
            for _ in range(3):
                assert session.run(["a:0", "b:0"], feeds) == [6, 6]
                counts.append(count)
    finally:
        ps.register_py_func({"one": None})
    assert counts == calls


# -- a host that knows gradients --------------------------------------------------------------

#: As TensorFlow writes it: the gradient is a call by itself, which waits for the first one.
GRADIENT = """
    x = Placeholder
    z = Placeholder
    f = EagerPyFunc[token=f; Tin=float32|float32; Tout=float32](x, z)
    out = Neg(f)
    dy = Const[value=-1]
    g = EagerPyFunc[token=f_gradient; Tin=float32; Tout=float32|float32](dy, ^f)
    dx = Identity(g)
    dz = Identity(g:1)
"""


@pytest.fixture
def tape() -> Iterator[dict[tuple[int, str], Any]]:
    """A host that notes the inputs of f = x² z, and answers for its gradient."""
    noted: dict[tuple[int, str], Any] = {}

    def caller(made: ps.EagerCall) -> Any:
        if made.token == "f_gradient":
            assert made.function is None
            x, z = noted.pop((made.step_id, "f"))
            (dy,) = made.inputs
            return 2 * x * z * dy, x * x * dy
        noted[made.step_id, made.token] = made.inputs
        assert made.function is not None
        return made.function(*made.inputs)

    ps.register_py_func({"f": lambda x, z: x * x * z})
    ps.register_eager_caller(caller)
    yield noted
    ps.register_eager_caller(None)
    ps.register_py_func({"f": None})


@pytest.mark.parametrize("seed", [None, 1, 2])
@pytest.mark.parametrize("tier", ps.Tier)
def test_a_host_may_know_gradients(
    tape: dict[tuple[int, str], Any], tier: ps.Tier, seed: int | None
) -> None:
    """It sees every call with its step, and so can answer the call for the gradient."""
    config = ps.Config(tier=tier, ready_order_seed=seed)
    with Session(graph_def(GRADIENT), config=config) as session:
        got = session.run(["out:0", "dx:0", "dz:0"], {"x:0": [3.0, 4.0], "z:0": 5.0})

    assert [np.asarray(value).tolist() for value in got] == [[-45, -80], [-30, -40], [-9, -16]]
    assert not tape


def test_a_host_is_told_what_the_node_declares() -> None:
    """Token, function, inputs, types and place; what it returns is checked like a function's."""
    seen: list[ps.EagerCall] = []

    def caller(made: ps.EagerCall) -> Any:
        seen.append(made)
        return np.float64(1.5) if len(seen) < 3 else None

    ps.register_eager_caller(caller)
    try:
        with Session(graph_def("a = EagerPyFunc[token=t; Tin=; Tout=float32]")) as session:
            assert session.run("a:0").dtype == np.float32
            session.run("a:0")
            with pytest.raises(errors.InvalidArgumentError, match="t returns 0 values"):
                session.run("a:0")
    finally:
        ps.register_eager_caller(None)
    first, second, _ = seen
    assert (first.token, first.function, first.inputs, first.output_types) == (
        "t", None, (), ("float32",)
    )  # fmt: skip
    assert first.device.endswith("/device:CPU:0")
    assert first.step_id != second.step_id


def test_what_cannot_call_is_refused() -> None:
    """A host must be something to call."""
    with pytest.raises(errors.InvalidArgumentError, match="cannot be called"):
        ps.register_eager_caller(3)  # type: ignore[arg-type]
