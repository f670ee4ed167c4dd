"""Variables as resources: they come to be when they are first assigned."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

from penstock import Session, errors
from support.sketch import sketch

VARIABLE = """
    x = Placeholder() dtype=float32
    h = VarHandleOp() shape=[2] dtype=float32 shared_name="var"
    is_there = VarIsInitializedOp(h)
    read = ReadVariableOp(h) dtype=float32
    shape = VariableShape(h)
    long_shape = VariableShape(h) out_type=int64
    assign = AssignVariableOp(h, x) dtype=float32
    assign_strict = AssignVariableOp(h, x) dtype=float32 validate_shape=True
    add = AssignAddVariableOp(h, x) dtype=float32
    sub = AssignSubVariableOp(h, x) dtype=float32
    drop = DestroyResourceOp(h) ignore_lookup_error=False
    drop_any = DestroyResourceOp(h)
    n = Const() value=[1,2]
    read_int = ReadVariableOp(h) dtype=int32
    assign_int = AssignVariableOp(h, n) dtype=int32
    add_int = AssignAddVariableOp(h, n) dtype=int32
"""
OPERATIONS = {"assign", "assign_strict", "add", "sub", "drop", "drop_any", "assign_int", "add_int"}


@pytest.fixture
def run() -> Callable[..., Any]:
    """Runs one node of a graph with a variable, fed with one value."""
    session = Session(sketch(VARIABLE))

    def run_node(name: str, value: Any = None) -> Any:
        feeds = {} if value is None else {"x:0": np.float32(value)}
        return session.run(name if name in OPERATIONS else f"{name}:0", feeds)

    return run_node


def test_value_stays_from_run_to_run(run: Callable[..., Any]) -> None:
    """What one run assigned is what the next one reads, with all updates."""
    run("assign", [1, 2])
    run("add", [10, 20])
    run("sub", [1, 1])

    assert run("read").tolist() == [10, 21]


def test_variable_is_there_from_the_first_assignment_on(run: Callable[..., Any]) -> None:
    """Until it is destroyed; then it can be made again."""
    assert not run("is_there")
    run("assign", [1, 2])
    assert run("is_there")
    run("drop")
    assert not run("is_there")
    run("assign", [3, 4])
    assert run("read").tolist() == [3, 4]


def test_missing_variable_is_named(run: Callable[..., Any]) -> None:
    """Reading what is not there is a failed precondition; all else does not find it."""
    with pytest.raises(errors.FailedPreconditionError, match="Could not find variable var"):
        run("read")
    for node in ("shape", "add", "drop"):
        with pytest.raises(errors.NotFoundError, match="localhost/var/Var does not exist"):
            run(node, [1, 2])
    run("drop_any")


def test_value_may_have_any_shape(run: Callable[..., Any]) -> None:
    """The handle's shape binds nobody at run time; updates must fit the value."""
    run("assign", [1, 2, 3])
    assert run("shape").tolist() == [3]
    assert run("shape").dtype == np.int32
    assert run("long_shape").dtype == np.int64
    with pytest.raises(
        errors.InvalidArgumentError,
        match=r"Cannot update variable with shape \[3\] using a Tensor with shape \[2\]",
    ):
        run("add", [1, 2])
    with pytest.raises(errors.InvalidArgumentError, match=r"with shape \[\], shapes must be"):
        run("sub", 1)

    assert run("read").tolist() == [1, 2, 3]


def test_assignment_may_insist_on_the_shape(run: Callable[..., Any]) -> None:
    """Then a new value must have the old one's shape; the first one may have any."""
    run("assign_strict", [1, 2, 3])
    with pytest.raises(
        errors.InvalidArgumentError, match=r"wrong shape\. Expected \[3\] got \[2\]"
    ):
        run("assign_strict", [1, 2])
    run("assign", [1, 2])

    assert run("shape").tolist() == [2]


def test_types_are_compared(run: Callable[..., Any]) -> None:
    """A variable keeps the type of its first value; other types are refused."""
    run("assign", [1, 2])

    with pytest.raises(errors.InvalidArgumentError, match="Expected int32 got float"):
        run("read_int")
    with pytest.raises(errors.InvalidArgumentError, match="Expected float got int32"):
        run("assign_int")
    with pytest.raises(errors.InvalidArgumentError, match="does not match"):
        run("add_int")


def test_variable_does_not_change_with_the_fed_array() -> None:
    """The caller may go on writing into an array that was assigned."""
    session = Session(sketch(VARIABLE))
    mine = np.array([1, 2], np.float32)
    session.run("assign", {"x:0": mine})
    mine[0] = 100

    assert session.run("read:0").tolist() == [1, 2]


def test_handles_of_one_name_are_one_variable() -> None:
    """The name is the shared one, or else the node's; other containers are apart."""
    session = Session(
        sketch("""
            one = Const() value=1.0
            h = VarHandleOp() shape=[] dtype=float32
            same = VarHandleOp() shape=[] dtype=float32 shared_name="h"
            apart = VarHandleOp() shape=[] dtype=float32 shared_name="h" container="c"
            assign = AssignVariableOp(h, one)
            read = ReadVariableOp(same)
            is_apart = VarIsInitializedOp(apart)
        """)
    )
    session.run("assign")

    assert session.run("read:0") == 1
    assert not session.run("is_apart:0")


def test_anonymous_variables_are_all_different() -> None:
    """Under TensorFlow's name for no name, each run has a variable of its own."""
    session = Session(
        sketch("""
            one = Const() value=1.0
            h = VarHandleOp() shape=[] shared_name="cd2c89b7-88b7-44c8-ad83-06c2a9158347"
            was_there = VarIsInitializedOp(h)
            assign = AssignVariableOp(h, one, ^was_there)
            read = ReadVariableOp(h, ^assign)
        """)
    )

    assert [session.run(["was_there:0", "read:0"]) for _ in range(2)] == [[False, 1], [False, 1]]


def test_counting_ends_at_the_limit() -> None:
    """Each run gives the next number; at the limit it fails, and the variable stays."""
    session = Session(
        sketch("""
            zero = Const() value=0
            h = VarHandleOp() shape=[] dtype=int32
            assign = AssignVariableOp(h, zero)
            count = ResourceCountUpTo(h) limit=2 T=int32
            read = ReadVariableOp(h) dtype=int32
        """)
    )
    with pytest.raises(errors.NotFoundError):
        session.run("count:0")
    session.run("assign")

    assert [session.run("count:0") for _ in range(2)] == [0, 1]
    with pytest.raises(errors.OutOfRangeError, match="Reached limit of 2"):
        session.run("count:0")
    assert session.run("read:0") == 2


def test_several_variables_are_read_at_once() -> None:
    """The internal ops for many handles do what the single ones do."""
    session = Session(
        sketch("""
            one = Const() value=1.0
            two = Const() value=2
            a = VarHandleOp() shape=[] dtype=float32
            b = VarHandleOp() shape=[] dtype=int32
            assign_a = AssignVariableOp(a, one)
            assign_b = AssignVariableOp(b, two)
            read = _ReadVariablesOp(a, b) dtypes=['float32','int32']
        """)
    )
    session.run(["assign_a", "assign_b"])

    assert session.run(["read:0", "read:1"]) == [1, 2]


def test_no_update_is_lost() -> None:
    """Runs on many threads that add to one variable add up."""
    session = Session(sketch(VARIABLE))
    session.run("assign", {"x:0": np.zeros(2, np.float32)})
    one = np.ones(2, np.float32)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _: session.run("add", {"x:0": one}), range(100)))

    assert session.run("read:0").tolist() == [100, 100]
