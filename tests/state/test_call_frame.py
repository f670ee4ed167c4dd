"""Arguments and results keep their places and their types."""

from __future__ import annotations

import numpy as np
import pytest

from penstock.core import dtypes
from penstock.core.values import Ref, Value
from penstock.errors import InternalError, InvalidArgumentError
from penstock.state.call_frame import CallFrame

FLOAT = np.float32(1.5)


@pytest.fixture
def frame() -> CallFrame:
    """A frame of two arguments and two results."""
    return CallFrame((dtypes.float32, dtypes.string), (dtypes.int32, dtypes.float32))


def test_arguments_are_found_by_index(frame: CallFrame) -> None:
    """What was set is what is there, the very objects."""
    array = np.zeros(3, np.float32)
    frame.set_args([array, b"text"])

    assert frame.get_arg(0) is array
    assert frame.get_arg(1) == b"text"


@pytest.mark.parametrize("args", [[], [FLOAT], [FLOAT, b"x", b"y"]])
def test_number_of_arguments_is_checked(frame: CallFrame, args: list[Value]) -> None:
    """Too few or too many arguments are counted out."""
    with pytest.raises(InvalidArgumentError) as caught:
        frame.set_args(args)

    assert caught.value.reason == f"Expects 2 arguments, but {len(args)} is provided"


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ([np.zeros((2, 3)), b"x"], "Expects arg[0] to be float32 but float64[2,3] is provided"),
        ([FLOAT, np.int32(7)], "Expects arg[1] to be string but int32 7 is provided"),
    ],
)
def test_types_of_arguments_are_checked(frame: CallFrame, args: list[Value], message: str) -> None:
    """The first argument of a wrong type is named."""
    with pytest.raises(InvalidArgumentError) as caught:
        frame.set_args(args)

    assert caught.value.reason == message


@pytest.mark.parametrize("index", [-1, 2])
def test_there_is_no_argument_out_of_range(frame: CallFrame, index: int) -> None:
    """An index below 0 is not counted from the end."""
    frame.set_args([FLOAT, b"x"])

    with pytest.raises(InvalidArgumentError, match=rf"GetArg {index} is not within \[0, 2\)"):
        frame.get_arg(index)


def test_results_come_in_order_whoever_is_first(frame: CallFrame) -> None:
    """Results are set in any order and consumed in theirs."""
    frame.set_retval(1, FLOAT)
    frame.set_retval(0, np.int32(7))

    assert frame.consume_retvals(allow_dead=False) == [7, FLOAT]


def test_result_is_set_once(frame: CallFrame) -> None:
    """A second result in the same place is our own mistake."""
    frame.set_retval(0, np.int32(7))

    with pytest.raises(InternalError, match=r"Retval\[0\] has already been set\."):
        frame.set_retval(0, np.int32(7))


@pytest.mark.parametrize(
    ("index", "value", "message"),
    [
        (2, FLOAT, "SetRetval 2 is not within [0, 2)"),
        (-1, FLOAT, "SetRetval -1 is not within [0, 2)"),
        (0, FLOAT, "Expects ret[0] to be int32, but float32 1.5 is provided."),
    ],
)
def test_result_must_fit(frame: CallFrame, index: int, value: Value, message: str) -> None:
    """A place that is not there, or a value of another type, is refused; nothing is kept."""
    with pytest.raises(InvalidArgumentError) as caught:
        frame.set_retval(index, value)

    assert caught.value.reason == message
    assert frame.consume_retvals(allow_dead=True) == [None, None]


def test_missing_result_is_none_if_it_may_be_dead(frame: CallFrame) -> None:
    """Dead results are told from live ones by None."""
    frame.set_retval(1, FLOAT)

    assert frame.consume_retvals(allow_dead=True) == [None, FLOAT]


def test_missing_result_is_an_error_if_it_may_not_be_dead(frame: CallFrame) -> None:
    """The first missing result is named, and nothing is lost."""
    frame.set_retval(0, np.int32(7))

    with pytest.raises(InternalError, match=r"Retval\[1\] does not have value"):
        frame.consume_retvals(allow_dead=False)
    assert frame.consume_retvals(allow_dead=True) == [7, None]


def test_results_are_consumed_once(frame: CallFrame) -> None:
    """The frame does not keep results alive that were taken out."""
    frame.set_retval(1, FLOAT)
    frame.consume_retvals(allow_dead=True)

    assert frame.consume_retvals(allow_dead=True) == [None, None]


def test_reference_is_not_its_value() -> None:
    """A place for a reference takes a reference, and none of another type."""
    frame = CallFrame((dtypes.float32.ref,), ())
    frame.set_args([Ref("v", dtypes.float32)])

    with pytest.raises(InvalidArgumentError):
        frame.set_args([FLOAT])
    with pytest.raises(InvalidArgumentError):
        frame.set_args([Ref("v", dtypes.int32)])


@pytest.mark.parametrize("dtype", dtypes.ALL, ids=str)
def test_arrays_of_every_type_fit_their_own_place(dtype: dtypes.DType) -> None:
    """The quick look at the numpy type agrees with the thorough one."""
    frame = CallFrame((dtype,), ())
    frame.set_args([np.empty(2, dtype.numpy)])

    assert frame.get_arg(0).dtype == dtype.numpy
