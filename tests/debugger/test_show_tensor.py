"""Values as text: parts, ranges, counts; nothing that a terminal would obey."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from penstock.core import dtypes
from penstock.debugger.breakpoints import has_inf, has_inf_or_nan, has_nan
from penstock.debugger.history import Recorded
from penstock.debugger.show_tensor import brief, statistics_lines, title, value_lines


def recorded(value: Any, **more: Any) -> Recorded:
    given: dict[str, Any] = {"node": "x", "frame": "", "iterations": (), "is_dead": False, **more}
    return Recorded(1, slot=0, dtype=dtypes.float32, op="Neg", seconds=0.0, value=value, **given)


def test_elements_in_a_range_are_marked() -> None:
    """Those on its ends as well, and they are counted."""
    lines = value_lines(np.float32([0, 1, 2, 3]), ranges=[(1, 2)])
    assert lines == ["2 of 4 elements in [1, 2]", "[0.0, *1.0*, *2.0*, 3.0]"]
    assert value_lines(np.array([True, False]), ranges=[(1, 1)])[0] == "1 of 2 elements in [1, 1]"


def test_many_elements_are_abridged_unless_all_are_wanted() -> None:
    """From a thousand on."""
    array = np.arange(2000)
    assert "..." in "".join(value_lines(array))
    assert "".join(value_lines(array, whole=True)).count(",") == 1999


def test_statistics_are_numpys() -> None:
    """Of what is finite; all kinds of elements are counted."""
    array = np.float32([np.nan, -np.inf, -1, 0, 2, 3, np.inf])
    first, second, *bars = statistics_lines(array)
    assert first == "7 elements: 1 NaN, 1 -inf, 1 below 0, 1 0, 2 above 0, 1 +inf"
    finite = array[np.isfinite(array)].astype(np.float64)
    assert second == (f"min -1, max 3, mean {finite.mean():.6g}, std {finite.std():.6g}")
    assert sum(int(bar.split()[-1]) for bar in bars) == 4
    assert len(bars) == 10


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (np.bool_([1, 0, 1]), "3 elements: 2 true, 1 false"),
        (np.array([b"a"], object), "1 elements, which are no numbers"),
        (np.zeros((0, 3)), "no elements"),
        (np.array([1, 2], ml_dtypes.bfloat16), "2 elements: 2 above 0"),
    ],
)
def test_statistics_of_other_types(value: Any, expected: str) -> None:
    """What has no mean is only counted."""
    assert statistics_lines(value)[0] == expected


def test_nothing_is_obeyed_by_a_terminal() -> None:
    """Neither names nor elements can move a cursor, or begin another line."""
    one = recorded(np.array([b"\x1b[2Jtext", "\x1b]0;title\x07\n"], object), node="x\x1b[31m\nevil")
    shown = "\n".join([title(one), brief(one), *value_lines(one.value)])
    assert "\x1b" not in shown
    assert "\x07" not in shown
    assert "\nevil" not in shown


def test_what_has_no_value_says_so() -> None:
    """A dead tensor is dead, and a resource is called by its class."""
    assert brief(recorded(None, is_dead=True)) == "dead"
    assert title(recorded(None, kind="ResourceHandle")) == "x:0 ResourceHandle (Neg)"
    in_loop = recorded(np.float32([1]), frame="a[2]/b", iterations=(2, 5))
    assert title(in_loop) == "x:0 float32[1] (Neg) in a[2]/b[5]"


@pytest.mark.parametrize(
    ("value", "nan", "inf"),
    [
        (np.float32([1, np.nan]), True, False),
        (np.float64(np.inf), False, True),
        (np.array([1, -np.inf], ml_dtypes.bfloat16), False, True),
        (np.array([1, np.nan], ml_dtypes.bfloat16), True, False),
        (np.complex64(complex(0, np.nan)), True, False),
        (np.int32([1]), False, False),
        (np.array([b"nan"], object), False, False),
        (b"nan", False, False),
        (None, False, False),
        (np.array([1], ml_dtypes.int4), False, False),
    ],
)
def test_filters(value: Any, nan: bool, inf: bool) -> None:
    """What is no number is found in every type that has such."""
    one = recorded(value)
    assert (has_nan(one, value), has_inf(one, value)) == (nan, inf)
    assert has_inf_or_nan(one, value) is (nan or inf)
