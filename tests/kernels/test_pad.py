"""Margins around arrays, against answers recorded from TensorFlow."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from penstock.core import dtypes
from penstock.errors import InvalidArgumentError, ResourceExhaustedError
from support.ops import run_op

MATRIX = np.arange(6, dtype=np.float32).reshape(2, 3)


def ints(values: Any) -> Any:
    """Paddings as int32."""
    return np.array(values, np.int32).reshape(-1, 2)


def test_pad() -> None:
    """Zeros by default, or the value given, in front of and behind each dimension."""
    margins = ints([[1, 0], [0, 2]])

    zeros = run_op("Pad", MATRIX, margins)
    fives = run_op("PadV2", MATRIX, margins, np.float32(5))

    assert zeros.tolist() == [[0, 0, 0, 0, 0], [0, 1, 2, 0, 0], [3, 4, 5, 0, 0]]
    assert fives.tolist() == [[5, 5, 5, 5, 5], [0, 1, 2, 5, 5], [3, 4, 5, 5, 5]]


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (np.array([b"a"], object), [b"", b"a"]),
        (np.array([True]), [False, True]),
        (np.zeros(0, np.float32), [0]),
        (np.array([(3,)], dtypes.qint8.numpy), [(0,), (3,)]),
    ],
)
def test_pad_of_other_types(values: Any, expected: list[Any]) -> None:
    """Every type has something that stands for zero."""
    assert run_op("Pad", values, ints([[1, 0]])).tolist() == expected


def test_scalars_have_no_margins() -> None:
    """Paddings without rows leave a scalar as it is."""
    none = np.zeros((0, 2), np.int32)

    assert run_op("Pad", np.float32(3), none) == 3
    assert run_op("MirrorPad", b"a", none, mode="REFLECT") == b"a"
    assert run_op("MirrorPadGrad", np.float32(3), none, mode="REFLECT") == 3


@pytest.mark.parametrize(
    ("margins", "message"),
    [
        ([[1, 0]], "The first dimension of paddings must be the rank of inputs"),
        ([1, 0], "paddings must be a matrix with 2 columns"),
        ([[1, 0, 0], [0, 2, 0]], "paddings must be a matrix with 2 columns"),
        ([[-1, 0], [0, 2]], "Paddings must be non-negative: -1 0"),
    ],
)
def test_pad_refuses(margins: Any, message: str) -> None:
    """One pair for each dimension, and nothing is cut off."""
    with pytest.raises(InvalidArgumentError, match=message):
        run_op("Pad", MATRIX, np.array(margins, np.int32))


def test_pad_refuses_absurd_sizes() -> None:
    """Memory that nobody has is refused before it is asked for."""
    with pytest.raises(ResourceExhaustedError):
        run_op("Pad", MATRIX, np.array([[2**22, 2**22], [2**22, 2**22]]))


@pytest.mark.parametrize(
    ("mode", "expected"),
    [
        ("REFLECT", [[5, 4, 3, 4, 5, 4, 3], [2, 1, 0, 1, 2, 1, 0], [5, 4, 3, 4, 5, 4, 3]]),
        ("SYMMETRIC", [[1, 0, 0, 1, 2, 2, 1], [1, 0, 0, 1, 2, 2, 1], [4, 3, 3, 4, 5, 5, 4]]),
    ],
)
def test_mirror_pad(mode: str, expected: Any) -> None:
    """The mirror stands on the edge element, or behind it."""
    assert run_op("MirrorPad", MATRIX, ints([[1, 0], [2, 2]]), mode=mode).tolist() == expected


@pytest.mark.parametrize(
    ("values", "margins", "mode", "message"),
    [
        (MATRIX, [[2, 0], [0, 2]], "REFLECT", "less than the dimension size: 2, 0 not less"),
        (MATRIX, [[3, 0], [0, 2]], "SYMMETRIC", "no greater than the dimension size: 3, 0 greater"),
        (np.zeros((3, 0)), [[1, 1], [0, 0]], "REFLECT", "0, 0 not less than 0"),
    ],
)
def test_mirror_pad_refuses(values: Any, margins: Any, mode: str, message: str) -> None:
    """There is no more to show than the array has."""
    with pytest.raises(InvalidArgumentError, match=message):
        run_op("MirrorPad", values, ints(margins), mode=mode)


@pytest.mark.parametrize(("mode", "expected"), [("REFLECT", [1, 6, 3]), ("SYMMETRIC", [1, 2, 7])])
def test_mirror_pad_grad(mode: str, expected: list[float]) -> None:
    """Every mirror image adds to the element that it shows."""
    values = np.arange(5, dtype=np.float32)

    assert run_op("MirrorPadGrad", values, ints([[1, 1]]), mode=mode).tolist() == expected


def test_mirror_pad_grad_in_two_dimensions() -> None:
    """The corner is an image of an image."""
    values = np.arange(12, dtype=np.float32).reshape(3, 4)

    result = run_op("MirrorPadGrad", values, ints([[1, 0], [0, 1]]), mode="REFLECT")

    assert result.tolist() == [[4, 12, 6], [8, 24, 12]]


@pytest.mark.parametrize(
    ("margins", "mode", "message"),
    [
        ([[2, 2]], "REFLECT", "less than the output dimension size: 2, 2 not less than 1"),
        ([[2, 2]], "SYMMETRIC", "no greater than the output dimension size: 2, 2 greater than 1"),
        ([[3, 2]], "SYMMETRIC", "Total paddings must be less .* 5 was not less than 5"),
    ],
)
def test_mirror_pad_grad_refuses(margins: Any, mode: str, message: str) -> None:
    """No input can have had such a margin."""
    with pytest.raises(InvalidArgumentError, match=message):
        run_op("MirrorPadGrad", np.zeros(5), ints(margins), mode=mode)
