"""Variables of the TF1 years: one place, seen by all who refer to it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from penstock import Session, errors
from support.sketch import sketch

VARIABLE = """
    x = Placeholder() dtype=float32
    v = VariableV2() shape=[2] dtype=float32
    read = Identity(v)
    is_there = IsVariableInitialized(v)
    assign = Assign(v, x)
    assign_any = Assign(v, x) validate_shape=False
    add = AssignAdd(v, x)
    sub = AssignSub(v, x)
"""


@pytest.fixture
def run() -> Callable[..., Any]:
    """Runs one node of a graph with a variable, fed with one value."""
    session = Session(sketch(VARIABLE))

    def run_node(name: str, value: Any = None) -> Any:
        feeds = {} if value is None else {"x:0": np.float32(value)}
        return session.run(f"{name}:0", feeds)

    return run_node


def test_value_stays_from_run_to_run(run: Callable[..., Any]) -> None:
    """What one run assigned is what the next one reads."""
    assert run("assign", [1, 2]).tolist() == [1, 2]
    assert run("add", [10, 20]).tolist() == [11, 22]
    assert run("sub", [1, 1]).tolist() == [10, 21]
    assert run("read").tolist() == [10, 21]


def test_sessions_have_variables_of_their_own() -> None:
    """The same graph in another session starts from nothing."""
    graph = sketch(VARIABLE)
    Session(graph).run("assign:0", {"x:0": np.ones(2, np.float32)})

    assert not Session(graph).run("is_there:0")


@pytest.mark.parametrize("node", ["read", "v", "add"])
def test_uninitialized_variable_is_named(run: Callable[..., Any], node: str) -> None:
    """Whoever needs a value that is not there is told whose."""
    with pytest.raises(
        errors.FailedPreconditionError, match="Attempting to use uninitialized value v"
    ):
        run(node, [1, 2])


def test_one_may_ask_whether_there_is_a_value(run: Callable[..., Any]) -> None:
    """Asking needs no value."""
    assert not run("is_there")
    run("assign", [1, 2])
    assert run("is_there")


def test_first_value_has_the_declared_shape(run: Callable[..., Any]) -> None:
    """The node's shape counts as long as there is no value."""
    with pytest.raises(
        errors.InvalidArgumentError,
        match=r"Assign requires shapes of both tensors to match. lhs shape= \[2\] rhs shape= \[3\]",
    ):
        run("assign", [1, 2, 3])
    assert not run("is_there")


def test_shape_may_change_if_the_node_says_so(run: Callable[..., Any]) -> None:
    """Then the shape that counts is the value's, and no longer the declared one."""
    run("assign_any", [[1, 2, 3]])

    assert run("add", [[1, 1, 1]]).tolist() == [[2, 3, 4]]
    with pytest.raises(errors.InvalidArgumentError, match=r"lhs shape= \[1,3\] rhs shape= \[2\]"):
        run("assign", [1, 2])


@pytest.mark.parametrize("value", [1, [1], [1, 2, 3], [[1, 2]]])
def test_updates_have_the_same_shape(run: Callable[..., Any], value: Any) -> None:
    """Nothing is broadcast, and the variable is left as it was."""
    run("assign", [1, 2])

    with pytest.raises(
        errors.InvalidArgumentError, match="Parameters and update must be the same size"
    ):
        run("add", value)
    assert run("read").tolist() == [1, 2]


def test_variable_does_not_change_with_the_fed_array() -> None:
    """The caller may go on writing into an array that was assigned."""
    session = Session(sketch(VARIABLE))
    mine = np.array([1, 2], np.float32)
    session.run("assign:0", {"x:0": mine})
    mine[0] = 100

    assert session.run("read:0").tolist() == [1, 2]


def test_fetched_value_does_not_change_with_the_variable() -> None:
    """What was fetched is the caller's, to keep and to write into."""
    session = Session(sketch(VARIABLE))
    fetched = session.run("assign:0", {"x:0": np.array([1, 2], np.float32)})
    session.run("add:0", {"x:0": np.array([1, 1], np.float32)})
    assert fetched.tolist() == [1, 2]
    fetched[0] = 100

    assert session.run("read:0").tolist() == [2, 3]


def test_integers_wrap_around() -> None:
    """Adding past the end starts again at the beginning."""
    session = Session(
        sketch("""
            x = Placeholder() dtype=int8
            v = VariableV2() shape=[] dtype=int8
            assign = Assign(v, x)
            add = AssignAdd(v, x)
        """)
    )
    session.run("assign:0", {"x:0": np.int8(100)})
    result = session.run("add:0", {"x:0": np.int8(100)})

    assert result == -56
    assert result.dtype == np.int8


def test_shared_name_means_the_same_variable() -> None:
    """Nodes share by name and container; the first one's shape counts."""
    session = Session(
        sketch("""
            one = Const() value=[1.0,2.0]
            v = VariableV2() shape=[2] dtype=float32 shared_name="s"
            w = VariableV2() shape=[3] dtype=float32 shared_name="s"
            other = VariableV2() shape=[2] dtype=float32 shared_name="s" container="c"
            wrong = VariableV2() shape=[2] dtype=int32 shared_name="s"
            assign = Assign(v, one)
            read = Identity(w)
            is_other = IsVariableInitialized(other)
            is_wrong = IsVariableInitialized(wrong) dtype=int32
        """)
    )
    session.run("assign:0")

    assert session.run("read:0").tolist() == [1, 2]
    assert not session.run("is_other:0")
    with pytest.raises(errors.InternalError, match=r"float_ref does not match .* int32_ref"):
        session.run("is_wrong:0")


@pytest.mark.parametrize(
    ("attrs", "message"),
    [
        ('container="!x"', "container contains invalid characters: !x"),
        ('shared_name="_q"', "shared_name cannot start with '_':_q"),
        ("shape=[-1,2]", r"Shape \[\?,2\] is not fully defined"),
    ],
)
def test_bad_names_and_shapes_are_refused(attrs: str, message: str) -> None:
    """A variable that could not be made is reported when the node is needed."""
    shape = "" if "shape=" in attrs else "shape=[2]"
    session = Session(sketch(f"v = VariableV2() dtype=float32 {shape} {attrs}"))

    with pytest.raises(errors.InvalidArgumentError, match=message):
        session.run("v:0")


def test_unknown_rank_counts_as_rank_0() -> None:
    """As in TensorFlow, where only an unvalidated assignment gives such a variable a shape."""
    session = Session(
        sketch("""
            one = Const() value=[1.0,2.0]
            v = VariableV2() shape=None dtype=float32
            assign = Assign(v, one)
            assign_any = Assign(v, one) validate_shape=False
        """)
    )

    with pytest.raises(errors.InvalidArgumentError, match=r"lhs shape= \[\] rhs shape= \[2\]"):
        session.run("assign:0")
    assert session.run("assign_any:0").tolist() == [1, 2]


def test_counting_ends_at_the_limit() -> None:
    """Each run gives the next number; at the limit it fails, and the variable stays."""
    session = Session(
        sketch("""
            zero = Const() value=0
            v = VariableV2() shape=[] dtype=int32
            assign = Assign(v, zero)
            count = CountUpTo(v) limit=2 T=int32
            read = Identity(v)
        """)
    )
    session.run("assign:0")

    assert [session.run("count:0") for _ in range(2)] == [0, 1]
    with pytest.raises(errors.OutOfRangeError, match="Reached limit of 2"):
        session.run("count:0")
    assert session.run("read:0") == 2


TEMPORARY = """
    one = Const() value=[1.0,2.0]
    t = TemporaryVariable() shape=[2] dtype=float32 var_name="t"
    assign = Assign(t, one)
    add = AssignAdd(assign, one)
    last = DestroyTemporaryVariable(add) var_name="t"
    unnamed = TemporaryVariable() shape=[2] dtype=float32
    unnamed_last = DestroyTemporaryVariable(unnamed) var_name="unnamed"
    wrong = DestroyTemporaryVariable(add) var_name="nobody"
    again = TemporaryVariable(^assign) shape=[2] dtype=float32 var_name="t"
"""


def test_temporary_variable_lives_in_one_run() -> None:
    """Every run starts anew, and destroying gives the last value."""
    session = Session(sketch(TEMPORARY))

    assert [session.run("last:0").tolist() for _ in range(2)] == [[2, 4], [2, 4]]
    assert session.run("unnamed_last:0").shape == (2,)


def test_temporary_variables_have_names_of_their_own() -> None:
    """A second one of the same name, and destroying one that is not there, are errors."""
    session = Session(sketch(TEMPORARY))

    with pytest.raises(errors.AlreadyExistsError, match="t/frame:0/iter:0"):
        session.run("again:0")
    with pytest.raises(errors.NotFoundError, match="nobody/frame:0/iter:0"):
        session.run("wrong:0")
