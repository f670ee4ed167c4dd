"""Records are found by name, place and time, and there are never too many."""

from __future__ import annotations

from collections import deque
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock import errors
from penstock.core import dtypes
from penstock.core.values import Ref
from penstock.debugger.history import History, Recorded, kept_copy, split_key


def recorded(number: int, node: str = "x", value: Any = 1.0, **more: Any) -> Recorded:
    given: dict[str, Any] = {"frame": "", "iterations": (), "is_dead": False, **more}
    return Recorded(number, node, 0, dtypes.float32, "Neg", seconds=0.0, value=value, **given)


@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 300)), max_size=40))
def test_the_latest_are_kept_within_the_bound(given_: list[tuple[str, int]]) -> None:
    """As many of the latest as fit, each with its value and a little more."""
    history, bound = History(3000), 3000
    kept: deque[tuple[int, str, int]] = deque()
    for number, (node, size) in enumerate(given_, 1):
        history.add(recorded(number, node, np.zeros(size, np.float64)))
        kept.append((number, node, size * 8 + 1000))
        while sum(one[2] for one in kept) > bound:
            kept.popleft()
        assert history.nbytes <= bound
        assert [one.number for one in history.all()] == [one[0] for one in kept]
        for name in "abc":
            expected = [one[0] for one in kept if one[1] == name]
            assert [one.number for one in history.of(f"{name}:0")] == expected
    assert history.forgotten == len(given_) - len(kept)


def test_one_record_of_many() -> None:
    """The latest, of the place that is near, in a named iteration, by number, or as of then."""
    history = History()
    for number in range(1, 7):
        place = {"frame": "loop", "iterations": ((number - 1) // 2,)}
        history.add(recorded(number, "xy"[number % 2], float(number), **place))
    found = history.find("x")
    assert found is not None
    assert (found.number, found.key) == (6, "x:0@loop[2]")

    def number_of(*args: Any, **named: Any) -> int | None:
        one = history.find(*args, **named)
        return one.number if one is not None else None

    assert number_of("x:0@loop[1]") == 4
    assert number_of("x:0@loop[9]") is None
    assert number_of("x:0@other[1]") is None
    assert number_of("x", near=("loop", (0,))) == 2
    assert number_of("x", near=("loop", (9,))) == 6
    assert number_of("x", index=0) == 2
    assert number_of("x", index=3) is None
    assert number_of("x", until=5) == 4
    assert number_of("z") is None
    assert [one.number for one in history.at(3)] == [3]
    assert history.at(9) == []


@pytest.mark.parametrize(
    ("key", "parts"),
    [
        ("x", ("x:0", "", 0)),
        ("a/b:3", ("a/b:3", "", 0)),
        ("x:1@loop[7]", ("x:1", "loop", 7)),
        ("x@outer[3]/in/ner[12]", ("x:0", "outer[3]/in/ner", 12)),
    ],
)
def test_keys_are_taken_apart(key: str, parts: tuple[str, str, int]) -> None:
    """Into the tensor, the loop for people, and the iteration."""
    assert split_key(key) == parts


def test_what_is_kept_does_not_change() -> None:
    """Arrays are copied, references read; what is no array is not kept."""
    array = np.float32([1, 2])
    kept = kept_copy(array)
    array[0] = 9
    assert kept.tolist() == [1, 2]
    assert kept_copy(Ref("v", dtypes.float32, np.float32(3))) == 3
    assert kept_copy(b"text") == b"text"
    assert kept_copy(object()) is None


def test_a_bound_that_leaves_no_room_is_refused() -> None:
    """Rather than to forget everything at once."""
    with pytest.raises(errors.InvalidArgumentError):
        History(1000)
