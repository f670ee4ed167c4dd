"""Arrays that several threads put together are those that numpy puts together."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from penstock.errors import InvalidArgumentError
from penstock.kernels.array.concat_ops import join_two
from penstock.kernels.parallel.joining import LARGE, joined_by_rows


def arrays(shapes: list[tuple[int, ...]], dtype: Any = np.float32) -> list[Any]:
    """Arrays of numbers in no order."""
    draw = np.random.default_rng(3)
    return [draw.permutation(int(np.prod(shape))).reshape(shape).astype(dtype) for shape in shapes]


@pytest.mark.parametrize(
    ("shapes", "axis"),
    [
        ([(40, 3), (40, 5)], 1),
        ([(40, 3), (40, 5)], -1),
        ([(4, 9, 16), (4, 9, 16)], np.int32(2)),
        ([(40, 9, 16), (40, 2, 16), (40, 1, 16)], np.int64(1)),
        ([(5, 7, 9, 1), (5, 7, 9, 64), (5, 7, 9, 3), (5, 7, 9, 0)], -1),
        ([(61, 2, 3), (61, 4, 3)], -2),
        ([(50, 100), (50, 100)], 1),
    ],
)
@pytest.mark.parametrize("dtype", [np.float32, np.bool_, ml_dtypes.bfloat16, np.complex128])
@pytest.mark.parametrize("near", [1, 300, LARGE])
def test_rows_of_all_follow_each_other(
    shapes: list[tuple[int, ...]], axis: Any, dtype: Any, near: int
) -> None:
    """As numpy has them, whichever axis it is, and however many are put together at a time."""
    values = arrays(shapes, dtype)
    made = joined_by_rows(values, axis, large=0, near=near)
    expected = np.concatenate(values, axis)
    assert made is not None
    assert made.dtype == expected.dtype
    np.testing.assert_array_equal(made, expected)


@pytest.mark.parametrize(
    ("shapes", "axis"),
    [
        ([(40, 3), (41, 3)], 1),
        ([(40, 3, 2), (40, 3, 1)], 1),
        ([(40, 3), (40, 3, 1)], 1),
        ([(40, 3), (40, 3)], 2),
        ([(40, 3), (40, 3)], -3),
        ([(), ()], 0),
    ],
)
def test_what_does_not_fit_is_left_to_others(shapes: list[tuple[int, ...]], axis: int) -> None:
    """They know what to say of it."""
    assert joined_by_rows(arrays(shapes), axis, large=0) is None


def test_what_does_not_pay_is_left_to_numpy() -> None:
    """Little, few rows, and what would have to be copied before."""
    one, other = arrays([(40, 3), (40, 5)])
    assert joined_by_rows([one, other], 1) is None
    assert joined_by_rows([one, one], 0, large=0) is None
    assert joined_by_rows([one, other[:, ::2]], 1, large=0) is None
    assert joined_by_rows([one, other.astype(np.float64)], 1, large=0) is None
    assert joined_by_rows([one.astype(object)] * 2, 1, large=0) is None


def test_the_op_does_so_with_what_is_large() -> None:
    """And gives what it gives otherwise, errors among it."""
    one = np.arange(LARGE // 8, dtype=np.float32).reshape(-1, 8)
    np.testing.assert_array_equal(join_two(one, -one, np.int32(1)), np.hstack([one, -one]))
    with pytest.raises(InvalidArgumentError, match="Ranks of all input tensors should match"):
        join_two(one, one.reshape(-1, 4, 2), np.int32(1))


@pytest.mark.parametrize("value", [b"text", np.float32(1)])
def test_what_has_no_axis_cannot_be_joined(value: Any) -> None:
    """Texts of rank 0 are no arrays at all."""
    with pytest.raises(InvalidArgumentError, match="Can't concatenate scalars"):
        join_two(value, value, np.int32(0))
