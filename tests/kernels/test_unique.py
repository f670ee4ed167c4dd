"""Distinct elements, list differences, permutations, against answers from TensorFlow."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from penstock.core.dtypes import as_dtype
from penstock.errors import InvalidArgumentError
from support.ops import run_op

NAN = np.nan


def text(*words: bytes) -> Any:
    """A vector of strings."""
    return np.array(words, object)


@pytest.mark.parametrize(
    ("x", "distinct", "which"),
    [
        (np.array([3, 1, 3, 2, 1], np.int32), [3, 1, 2], [0, 1, 0, 2, 1]),
        (np.array([2**64 - 1, 0, 2**64 - 1], np.uint64), [2**64 - 1, 0], [0, 1, 0]),
        (np.array([True, False, True]), [True, False], [0, 1, 0]),
        (text(b"b", b"a", b"b"), [b"b", b"a"], [0, 1, 0]),
        (np.zeros(0, np.float32), [], []),
    ],
)
def test_unique(x: Any, distinct: list[Any], which: list[int]) -> None:
    """Distinct elements come in the order in which they are first seen."""
    values, places = run_op("Unique", x)
    assert (values.tolist(), places.tolist()) == (distinct, which)
    assert (values.dtype, places.dtype) == (x.dtype, np.int32)


def test_unique_floats() -> None:
    """No NaN is another NaN; 0 and -0 are one."""
    x = np.array([NAN, 1, NAN, 0, -0.0], np.float32)
    values, places = run_op("Unique", x, out_idx=as_dtype("int64"))
    np.testing.assert_array_equal(values, [NAN, 1, NAN, 0])
    assert (places.tolist(), places.dtype) == ([0, 1, 2, 3, 3], np.int64)


@pytest.mark.parametrize(
    "x",
    [
        np.random.default_rng(1).integers(-128, 128, 300).astype(np.int8),
        np.random.default_rng(2).integers(-5, 900, 400).astype(np.int32),
        np.random.default_rng(3).choice(np.array([-(2**63), 2**63 - 1, 0, 7]), 200),
        ~np.random.default_rng(4).integers(0, 90, 200).astype(np.uint64),
        np.random.default_rng(5).integers(0, 2**40, 150).repeat(2),
        np.random.default_rng(6).choice(np.array([NAN, 0, -0.0, 1, np.inf]), 200),
        np.random.default_rng(7).integers(0, 40, 200).astype(np.float16),
    ],
    ids=["bytes", "table", "extremes", "unsigned", "wide", "floats", "half"],
)
def test_many_elements(x: Any) -> None:
    """However many there are, each is the first that equals it, or new."""
    seen: list[Any] = []
    which, counts = [], []
    for element in x.tolist():
        number = next((n for n, one in enumerate(seen) if one == element), len(seen))
        if number == len(seen):
            seen.append(element)
            counts.append(0)
        counts[number] += 1
        which.append(number)
    values, places, sizes = run_op("UniqueWithCounts", x)
    np.testing.assert_array_equal(values, np.array(seen, x.dtype))
    np.testing.assert_array_equal(np.signbit(values), np.signbit(np.array(seen, x.dtype)))
    assert (places.tolist(), sizes.tolist()) == (which, counts)


@pytest.mark.parametrize(
    ("axis", "shape", "which", "counts"),
    [
        ([0], (2, 2), [0, 1, 0], [2, 1]),
        ([1], (3, 2), [0, 1], [1, 1]),
        ([-1], (3, 2), [0, 1], [1, 1]),
    ],
)
def test_unique_slices(axis: list[int], shape: Any, which: list[int], counts: list[int]) -> None:
    """Slices along an axis are elements too, and are counted."""
    x = np.array([[1, 2], [3, 4], [1, 2]], np.int32)
    values, places, sizes = run_op("UniqueWithCountsV2", x, np.array(axis))
    assert values.shape == shape
    assert (places.tolist(), sizes.tolist()) == (which, counts)


def test_unique_slices_of_text_and_of_nothing() -> None:
    """Strings are compared slice by slice; slices without elements are all the same."""
    words = np.array([[b"a", b"b"], [b"a", b"b"], [b"c", b""]], object)
    assert run_op("UniqueV2", words, np.array([0]))[1].tolist() == [0, 0, 1]
    empty = run_op("UniqueV2", np.zeros((3, 0), np.float32), np.array([0]))
    assert empty[0].shape == (1, 0)
    assert run_op("UniqueWithCounts", np.array([1, 1, 2]))[2].tolist() == [2, 1]


@pytest.mark.parametrize(
    ("shape", "axis", "complaint"),
    [
        ((3, 2), [], "unique expects a 1D vector"),
        ((3, 2), [2], r"axis has to be between \[0, 2\)"),
        ((3, 2), [0, 1], "axis does not support input tensors larger than 1 elements"),
        ((), [0], r"axis has to be between \[0, 0\)"),
    ],
)
def test_wrong_axis(shape: Any, axis: list[int], complaint: str) -> None:
    """There is one axis, and the array has it."""
    with pytest.raises(InvalidArgumentError, match=complaint):
        run_op("UniqueV2", np.zeros(shape, np.float32), np.array(axis, np.int64))


def test_list_difference() -> None:
    """Repeated elements stay, NaN too, since it is nowhere; places are those in the first."""
    values, places = run_op("ListDiff", np.array([1, 2, 3, 2, 5]), np.array([3, 5]))
    assert (values.tolist(), places.tolist()) == ([1, 2, 2], [0, 1, 3])
    x, y = np.array([NAN, 1, -0.0], np.float32), np.array([NAN, 0], np.float32)
    assert run_op("ListDiff", x, y)[1].tolist() == [0, 1]
    assert run_op("ListDiff", text(b"a", b"b"), text(b"b"))[0].tolist() == [b"a"]
    with pytest.raises(InvalidArgumentError, match="y should be a 1D vector"):
        run_op("ListDiff", x, np.zeros((1, 1), np.float32))


def test_inverse_of_permutation() -> None:
    """Each number stands where it was."""
    assert run_op("InvertPermutation", np.array([2, 0, 1], np.int32)).tolist() == [1, 2, 0]
    assert run_op("InvertPermutation", np.zeros(0, np.int64)).dtype == np.int64


@pytest.mark.parametrize(
    ("x", "complaint"),
    [
        ([0, 0, 1], "0 is duplicated in the input"),
        ([0, 3, 1], "3 is not between 0 and 3"),
        ([0, -1, 1], "-1 is not between 0 and 3"),
        ([[0, 1]], "expects a 1D vector"),
    ],
)
def test_no_permutation(x: Any, complaint: str) -> None:
    """What is no permutation has no inverse."""
    with pytest.raises(InvalidArgumentError, match=complaint):
        run_op("InvertPermutation", np.array(x, np.int32))
