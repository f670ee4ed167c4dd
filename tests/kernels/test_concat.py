"""Joining and dividing arrays, against answers recorded from TensorFlow."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from penstock.core import dtypes
from penstock.core.shapes import TensorShape
from penstock.errors import InvalidArgumentError
from support.ops import run_op

MATRIX = np.arange(6, dtype=np.float32).reshape(2, 3)
AXIS = np.int32(0)


class Sized:
    """An object that numpy would take for a sequence."""

    def __len__(self) -> int:
        return 2

    def __getitem__(self, index: int) -> int:
        return [7, 8][index]


@pytest.mark.parametrize("axis", [np.int32(1), np.int64(-1), np.array([1], np.int32)])
def test_concat(axis: Any) -> None:
    """The axis may count from the end, and may stand in an array of one element."""
    expected = [[0, 1, 2, 0, 1, 2], [3, 4, 5, 3, 4, 5]]

    assert run_op("ConcatV2", [MATRIX, MATRIX], axis).tolist() == expected


def test_concat_keeps_types() -> None:
    """Strings, quantised and narrow types stay what they are; the first version has axis first."""
    strings = run_op("Concat", AXIS, [np.array([b"a"], object), np.array([b"bc"], object)])
    quantized = np.array([(3,)], dtypes.quint8.numpy)
    narrow = np.ones(1, ml_dtypes.bfloat16)

    assert strings.tolist() == [b"a", b"bc"]
    assert run_op("ConcatV2", [quantized, quantized], AXIS).dtype == dtypes.quint8.numpy
    assert run_op("ConcatV2", [narrow, narrow], AXIS).dtype == ml_dtypes.bfloat16


@pytest.mark.parametrize(
    ("shapes", "axis", "message"),
    [
        ([(2, 3), (4, 2)], 0, r"Dimension 1 .* shape\[0\] = \[2,3\] vs. shape\[1\] = \[4,2\]"),
        ([(2, 3), (3,)], 0, r"Ranks of all input .* shape\[0\] = \[2,3\] vs. shape\[1\] = \[3\]"),
        ([(2, 3), (2, 3)], 5, r"dimensions in the range \[-2, 2\), but got 5"),
        ([(), ()], 0, "Can't concatenate scalars"),
        ([(2, 3), (2, 3)], [0, 1], "axis tensor should be a scalar integer"),
    ],
)
def test_concat_refuses(shapes: Any, axis: Any, message: str) -> None:
    """What does not fit together is named with its shapes."""
    with pytest.raises(InvalidArgumentError, match=message):
        run_op("ConcatV2", [np.zeros(shape) for shape in shapes], np.array(axis, np.int32))


@pytest.mark.parametrize("axis", [1, -2])
def test_concat_offset(axis: int) -> None:
    """Each shape starts where those before it end."""
    shapes = [np.array(shape, np.int32) for shape in ([2, 2, 7], [2, 3, 7], [2, 9, 7])]

    offsets = run_op("ConcatOffset", np.int32(axis), shapes)

    assert [offset.tolist() for offset in offsets] == [[0, 0, 0], [0, 2, 0], [0, 5, 0]]
    assert all(offset.dtype == np.int32 for offset in offsets)


@pytest.mark.parametrize(
    ("axis", "second", "message"),
    [
        (1, [1, 3, 7], "All dimensions except 1 must match. Input 1"),
        (1, [1, 3], "input 1 should contain 3 elements, but got 2"),
        (3, [2, 3, 7], "Concat dim is out of range: 3 vs. 3"),
    ],
)
def test_concat_offset_refuses(axis: int, second: list[int], message: str) -> None:
    """Shapes that cannot be concatenated have no offsets."""
    shapes = [np.array([2, 2, 7], np.int32), np.array(second, np.int32)]

    with pytest.raises(InvalidArgumentError, match=message):
        run_op("ConcatOffset", np.int32(axis), shapes)


@pytest.mark.parametrize("axis", [0, 1, 2, -1, -3])
def test_pack(axis: int) -> None:
    """The axis is the new dimension's place in the result."""
    np.testing.assert_array_equal(
        run_op("Pack", [MATRIX, MATRIX + 1], axis=axis), np.stack([MATRIX, MATRIX + 1], axis)
    )


@pytest.mark.parametrize("value", [np.int8(3), ml_dtypes.bfloat16(3), np.bool_(1), b"\x00"])
def test_pack_of_scalars_keeps_their_type(value: Any) -> None:
    """Even text that ends in zero bytes stays whole."""
    packed = run_op("Pack", [value, value])

    assert packed.shape == (2,)
    assert packed.tolist() == [value, value]


def test_pack_does_not_look_into_objects() -> None:
    """A variant is one element, whatever it contains."""
    packed = run_op("Pack", [Sized(), Sized()], axis=-1)

    assert packed.shape == (2,)


@pytest.mark.parametrize(
    ("values", "axis", "message"),
    [
        ([np.zeros((2, 3)), np.zeros((4, 2))], 0, r"values\[0\].shape = \[2,3\] != values\[1\]"),
        ([np.float64(0), np.zeros(1)], 0, r"values\[0\].shape = \[\] != values\[1\].shape = \[1\]"),
        ([np.zeros((2, 3))], 5, r"axis = 5 not in \[-3, 3\)"),
        ([np.float64(0)], -2, r"axis = -2 not in \[-1, 1\)"),
    ],
)
def test_pack_refuses(values: Any, axis: int, message: str) -> None:
    """All shapes must be equal: nothing is broadcast."""
    with pytest.raises(InvalidArgumentError, match=message):
        run_op("Pack", values, axis=axis)


def test_unpack() -> None:
    """The parts of a vector are scalars, those of a matrix views along any axis."""
    rows = run_op("Unpack", MATRIX, num=3, axis=-1)

    assert [row.tolist() for row in rows] == [[0, 3], [1, 4], [2, 5]]
    assert all(np.shares_memory(row, MATRIX) for row in rows)
    assert [type(item) for item in run_op("Unpack", MATRIX[0], num=3)] == [np.float32] * 3
    assert run_op("Unpack", np.zeros((0, 3)), num=0) == ()


@pytest.mark.parametrize("axis", [0, 1, 2, -1, -3])
def test_unpack_along_any_axis(axis: int) -> None:
    """Each part is what stands at its index; small ones of rank 2 and more are contiguous."""
    cube = np.arange(24).reshape(2, 3, 4)

    parts = run_op("Unpack", cube, num=cube.shape[axis], axis=axis)

    expected = [cube.take(i, axis).tolist() for i in range(cube.shape[axis])]
    assert [part.tolist() for part in parts] == expected
    assert all(part.flags.c_contiguous for part in parts)


@pytest.mark.parametrize(
    ("values", "axis", "message"),
    [
        (MATRIX, 0, r"Input shape axis 0 must equal 3, got shape \[2,3\]"),
        (MATRIX, 4, r"axis = 4 not in \[-2, 2\)"),
        (np.float32(1), 0, r"axis = 0 not in \[0, 0\)"),
    ],
)
def test_unpack_refuses(values: Any, axis: int, message: str) -> None:
    """The number of outputs was fixed with the graph."""
    with pytest.raises(InvalidArgumentError, match=message):
        run_op("Unpack", values, num=3, axis=axis)


def test_split() -> None:
    """Parts are of equal size, also along an axis from the end, also of nothing."""
    parts = run_op("Split", np.int32(-1), MATRIX, num_split=3)

    assert [part.tolist() for part in parts] == [[[0], [3]], [[1], [4]], [[2], [5]]]
    assert [p.shape for p in run_op("Split", AXIS, np.zeros((0, 3)), num_split=2)] == [(0, 3)] * 2


def test_split_copies_only_small_parts_that_are_not_contiguous() -> None:
    """Whoever takes a small part finds its elements side by side; rows are views anyway."""
    large = np.zeros((4, 100_000), np.float32)

    assert all(p.flags.c_contiguous for p in run_op("Split", np.int32(1), MATRIX, num_split=3))
    assert np.shares_memory(run_op("Split", AXIS, MATRIX, num_split=2)[1], MATRIX)
    assert np.shares_memory(run_op("Split", np.int32(1), large, num_split=2)[1], large)


@pytest.mark.parametrize(
    ("sizes", "expected"),
    [([1, 2], [1, 2]), ([-1, 1], [2, 1]), ([3, -1], [3, 0]), ([0, 3], [0, 3])],
)
def test_split_v(sizes: list[int], expected: list[int]) -> None:
    """-1 is what the other sizes leave, which may be nothing."""
    parts = run_op("SplitV", MATRIX, np.array(sizes), np.int32(1), num_split=2)

    assert [part.shape[1] for part in parts] == expected


@pytest.mark.parametrize(
    ("sizes", "axis", "message"),
    [
        ([-1, -1], 1, "There can only be one -1"),
        ([3, 3], 1, "Determined shape must either match .* Got: 6"),
        ([1, 1], 1, "Determined shape must either match .* Got: 2"),
        ([-1, 4], 1, "Determined shape must either match .* Got: 4"),
        ([-2, 5], 1, "Split size at index 0 must be >= 0. Got: -2"),
        ([1, 2], 2, r"-input rank\(-2\) <= split_dim < input rank \(2\), but got 2"),
        ([3], 1, "must be 1-D and have the same elements as outputs got 1 -D and 1 elements"),
    ],
)
def test_split_v_refuses(sizes: list[int], axis: int, message: str) -> None:
    """The sizes must fill the dimension exactly."""
    with pytest.raises(InvalidArgumentError, match=message):
        run_op("SplitV", MATRIX, np.array(sizes), np.int32(axis), num_split=2)


def test_split_refuses_a_remainder() -> None:
    """Three columns make no two parts, and one output must be the whole input."""
    with pytest.raises(InvalidArgumentError, match="should evenly divide the split dimension"):
        run_op("Split", np.int32(1), MATRIX, num_split=2)
    with pytest.raises(InvalidArgumentError, match="If there is only one output"):
        run_op("SplitV", MATRIX, np.array([2]), np.int32(1), num_split=1)


def test_parallel_concat() -> None:
    """Rows are joined as Concat joins them."""
    shape = TensorShape((2, 3))

    joined = run_op("ParallelConcat", [MATRIX[:1], MATRIX[1:]], shape=shape)

    np.testing.assert_array_equal(joined, MATRIX)
