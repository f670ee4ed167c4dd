"""The library of functions: what it takes, what it refuses, what it gives back."""

from __future__ import annotations

import pytest

from penstock.core import dtypes
from penstock.defs.schema import FunctionDefLibrary
from penstock.errors import InvalidArgumentError, NotFoundError
from penstock.graph.functions import FunctionLibrary
from support.functions import function, library

TWICE = function(
    """
    Twice(x: T) -> (y: T) [T: type{float32 int32}]
    sum = Add[T=$T](x, x)
    return y = sum:z
    """
)
OTHER_TWICE = function(
    """
    Twice(x: T) -> (y: T) [T: type{float32 int32}]
    sum = Mul[T=$T](x, x)
    return y = sum:z
    """
)
THRICE = function(
    """
    Thrice(x: float32) -> (y: float32) stateful
    sum = AddN[N=3](x, x, x)
    return y = sum:sum
    """
)


def test_functions_are_found_by_name() -> None:
    """A library knows its functions, in the order in which they came."""
    known = library(TWICE, THRICE)

    assert list(known) == ["Twice", "Thrice"]
    assert len(known) == 2
    assert "Twice" in known
    assert known.get("Thrice") == THRICE


def test_unknown_functions() -> None:
    """The error names what was asked for."""
    with pytest.raises(NotFoundError, match="Function Nope is not defined"):
        library(TWICE).get("Nope")


def test_the_same_function_may_come_twice() -> None:
    """An equal definition is ignored."""
    known = library(TWICE)
    known.add_library(FunctionDefLibrary(function=[TWICE]))

    assert list(known) == ["Twice"]


def test_another_function_of_the_same_name() -> None:
    """A second definition of a name is refused."""
    known = library(TWICE)
    with pytest.raises(InvalidArgumentError, match="'Twice' because a different function"):
        known.add_library(FunctionDefLibrary(function=[OTHER_TWICE]))


def test_two_functions_of_one_name_together() -> None:
    """They are refused also when they come in one library."""
    with pytest.raises(InvalidArgumentError, match="'Twice' because a different function"):
        library(TWICE, OTHER_TWICE)


def test_ops_keep_their_names() -> None:
    """A function cannot take the name of an op."""
    add = function("Add(x: float32) -> (y: float32)\nreturn y = x")
    with pytest.raises(InvalidArgumentError, match="'Add' because an op with the same name"):
        library(add)


def test_a_library_is_added_whole_or_not_at_all() -> None:
    """One bad function leaves the library as it was."""
    known = library(TWICE)
    bad = FunctionDefLibrary(function=[THRICE, OTHER_TWICE])
    bad.gradient.add(function_name="Thrice", gradient_func="Twice")
    with pytest.raises(InvalidArgumentError):
        known.add_library(bad)

    assert list(known) == ["Twice"]
    assert known.gradient_of("Thrice") is None


def test_gradients() -> None:
    """A function has one gradient; the same one may come again."""
    known = library(TWICE, THRICE)
    first, second = FunctionDefLibrary(), FunctionDefLibrary()
    first.gradient.add(function_name="Twice", gradient_func="Thrice")
    second.gradient.add(function_name="Twice", gradient_func="Other")
    known.add_library(first)
    known.add_library(first)

    assert known.gradient_of("Twice") == "Thrice"
    assert known.gradient_of("Thrice") is None
    with pytest.raises(InvalidArgumentError, match="Cannot assign gradient function 'Other'"):
        known.add_library(second)


def test_signatures() -> None:
    """A function's signature is an op's: attributes, constraints, flags."""
    op = library(TWICE, THRICE).op_def("Twice")

    assert op.is_function
    assert not op.is_stateful
    assert op.attrs["T"].allowed == {dtypes.float32, dtypes.int32}
    assert op.input_types({"T": dtypes.int32}) == (dtypes.int32,)
    assert library(THRICE).op_def("Thrice").is_stateful


def test_signatures_of_ops() -> None:
    """What is no function is looked for among the ops."""
    assert not library(TWICE).op_def("Add").is_function
    with pytest.raises(NotFoundError, match="Op type not registered 'Nope'"):
        library(TWICE).op_def("Nope")


def test_attributes_of_a_signature() -> None:
    """Defaults, minima and lists of types survive the way through the message."""
    op = library(
        function(
            "Many(a: N*T, b: Ts*, c: ref float32) -> (y: T) "
            '[N: int >= 1 = 2, T: type = "int32", Ts: list(type)]\nreturn y = a:0'
        )
    ).op_def("Many")

    assert (op.attrs["N"].default, op.attrs["N"].minimum) == (2, 1)
    assert op.attrs["T"].default is dtypes.int32
    assert op.input_types({"N": 2, "T": dtypes.int32, "Ts": (dtypes.bool_, dtypes.string)}) == (
        dtypes.int32,
        dtypes.int32,
        dtypes.bool_,
        dtypes.string,
        dtypes.float32.ref,
    )


def test_libraries_are_written_whole_or_in_part() -> None:
    """What goes out is what came in; or the named functions with their gradients."""
    proto = FunctionDefLibrary(function=[TWICE, THRICE])
    proto.gradient.add(function_name="Twice", gradient_func="Thrice")
    known = FunctionLibrary()
    known.add_library(proto)

    assert known.to_proto() == proto
    assert known.to_proto(["Thrice"]) == FunctionDefLibrary(function=[THRICE])
