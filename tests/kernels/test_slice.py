"""Parts of arrays, against Python's own slices and answers recorded from TensorFlow."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.core import dtypes
from penstock.errors import InvalidArgumentError
from penstock.kernels.array.slice_ops import Masks, index_maker
from support.ops import run_op

MATRIX = np.arange(6, dtype=np.float32).reshape(2, 3)


def strided(values: Any, begin: Any, end: Any, strides: Any, **masks: int) -> Any:
    """StridedSlice of ``values`` with int32 specs."""
    spec = [np.array(part, np.int32) for part in (begin, end, strides)]
    return run_op("StridedSlice", values, *spec, **masks)


@pytest.mark.parametrize(
    ("begin", "size", "expected"),
    [
        ([0, 1], [-1, 2], MATRIX[:, 1:3]),
        ([1, 0], [1, 2], MATRIX[1:, :2]),
        ([2, 0], [-1, -1], MATRIX[2:]),
    ],
)
def test_slice(begin: list[int], size: list[int], expected: Any) -> None:
    """Size -1 means all the rest, which may be nothing."""
    result = run_op("Slice", MATRIX, np.array(begin), np.array(size))

    np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize(
    ("begin", "size", "message"),
    [
        ([0], [2], r"1-D tensors of size 2, but got shapes \[1\] and \[1\] instead"),
        (0, 1, r"1-D tensors of size 2, but got shapes \[\] and \[\] instead"),
        ([3, 0], [-1, -1], r"Expected begin\[0\] in \[0, 2\], but got 3"),
        ([-1, 0], [1, 1], r"Expected begin\[0\] in \[0, 2\], but got -1"),
        ([0, 0], [3, 1], r"Expected size\[0\] in \[0, 2\], but got 3"),
        ([0, 1], [-2, 1], r"Expected size\[0\] in \[0, 2\], but got -2"),
    ],
)
def test_slice_refuses(begin: Any, size: Any, message: str) -> None:
    """Unlike Python, Slice takes no part that is not entirely there."""
    with pytest.raises(InvalidArgumentError, match=message):
        run_op("Slice", MATRIX, np.array(begin, np.int32), np.array(size, np.int32))


@given(data=st.data())
@settings(max_examples=60, deadline=None)
def test_strided_slice_is_pythons_indexing(data: st.DataObject) -> None:
    """Begins, ends and strides of either sign mean what they mean in Python."""
    shape = data.draw(st.lists(st.integers(0, 4), max_size=3).map(tuple))
    values = np.arange(np.prod(shape, dtype=int)).reshape(shape)
    parts = data.draw(
        st.lists(
            st.slices(5).map(lambda s: (s.start or 0, s.stop or 0, s.step or 1)),
            max_size=len(shape),
        )
    )
    columns = np.array(parts, np.int64).reshape(-1, 3).T

    result = run_op("StridedSlice", values, *columns)

    np.testing.assert_array_equal(result, values[tuple(slice(*part) for part in parts)])


@pytest.mark.parametrize(
    ("spec", "masks", "expected"),
    [
        (([5, 1], [6, 9], [1, 1]), {"begin_mask": 1}, MATRIX[:6, 1:]),
        (([0, 0], [1, 0], [1, -1]), {"begin_mask": 2, "end_mask": 2}, MATRIX[:1, ::-1]),
        (([0, 0, 0], [1, 1, 1], [1, 1, 1]), {"ellipsis_mask": 2}, MATRIX[0:1, ..., 0:1]),
        (([0, 0], [0, 1], [1, 1]), {"new_axis_mask": 1}, MATRIX[None, 0:1]),
        (([0, 0, 1], [0, 0, 2], [1, 1, 1]), {"ellipsis_mask": 2, "shrink_axis_mask": 4,
                                            "new_axis_mask": 1}, MATRIX[None, ..., 1]),
        (([-1], [0], [1]), {"shrink_axis_mask": 1}, MATRIX[-1]),
        (([1], [0], [2]), {"shrink_axis_mask": 1, "begin_mask": 1, "end_mask": 1}, MATRIX[1]),
        (([1], [0], [1]), {"shrink_axis_mask": 1, "new_axis_mask": 1}, MATRIX[None]),
        (([1], [0], [1]), {"new_axis_mask": 1, "ellipsis_mask": 1}, MATRIX),
        (([0], [1], [0]), {"new_axis_mask": 1}, MATRIX[None]),
        (([1, 2], [0, 0], [1, 1]), {"shrink_axis_mask": 3}, np.float32(5)),
    ],
)  # fmt: skip
def test_masks(spec: Any, masks: dict[str, int], expected: Any) -> None:
    """Where masks meet, the ellipsis wins over the new axis and that over all others."""
    result = strided(MATRIX, *spec, **masks)

    assert np.shape(result) == np.shape(expected)
    np.testing.assert_array_equal(result, expected)


def test_picking_one_element() -> None:
    """One element of a vector is a scalar of its type, for strings bytes; of a matrix a view."""
    shape = np.array([7, 8, 9], np.int32)
    row = strided(MATRIX, [1], [2], [1], shrink_axis_mask=1)

    assert type(strided(shape, [-1], [0], [1], shrink_axis_mask=1)) is np.int32
    assert strided(np.array([b"a"], object), [0], [1], [1], shrink_axis_mask=1) == b"a"
    assert np.shares_memory(row, MATRIX)


def test_scalars_take_specs_without_dimensions() -> None:
    """A scalar has no dimension to cut, but can get new ones."""
    assert strided(np.float32(3), [], [], []) == 3
    assert strided(b"a", [0], [1], [1], new_axis_mask=1).tolist() == [b"a"]
    assert strided(np.float32(3), [0], [1], [1], ellipsis_mask=1) == 3


@pytest.mark.parametrize(
    ("spec", "masks", "message"),
    [
        (([0], [1], [0]), {}, r"strides\[0\] must be non-zero"),
        (([5], [6], [1]), {"shrink_axis_mask": 1}, "slice index 5 of dimension 0 out of bounds"),
        (([-3], [0], [1]), {"shrink_axis_mask": 1}, "slice index -1 of dimension 0 out of bounds"),
        (([0, 3], [0, 0], [1, 1]), {"ellipsis_mask": 1, "shrink_axis_mask": 2},
         "slice index 3 of dimension 1 out of bounds"),
        (([1], [0], [-1]), {"shrink_axis_mask": 1}, "only stride 1 allowed"),
        (([0] * 3, [1] * 3, [1] * 3), {}, "using input dim 2; input has only 2 dims"),
        (([0] * 3, [1] * 3, [1] * 3), {"ellipsis_mask": 3}, "Multiple ellipses"),
        (([0], [1, 1], [1]), {"shrink_axis_mask": 1}, r"got shapes \[1\], \[2\], and \[1\]"),
        ((0, 1, 1), {}, r"got shapes \[\], \[\], and \[\]"),
    ],
)  # fmt: skip
def test_strided_slice_refuses(spec: Any, masks: dict[str, int], message: str) -> None:
    """Indices outside are errors, although the ends of slices may lie anywhere."""
    with pytest.raises(InvalidArgumentError, match=message):
        strided(MATRIX, *spec, **masks)


def test_only_constant_specs_are_remembered() -> None:
    """An array that may still change is read again each time."""
    index_of = index_maker(Masks(0, 0, 0, 0, 0))
    begin, end, strides = np.array([0]), np.array([2]), np.array([1])

    assert index_of(begin, end, strides) == (slice(0, 2, 1),)
    end[0] = 1
    assert index_of(begin, end, strides) == (slice(0, 1, 1),)
    for part in (begin, end, strides):
        part.flags.writeable = False
    assert index_of(begin, end, strides) is index_of(begin, end, strides)


@pytest.mark.parametrize("seed", range(40))
def test_strides_that_stay_are_read_once(seed: int) -> None:
    """With constant strides, begins and ends that change mean what they mean by themselves."""
    random = np.random.default_rng(seed)
    places = [(0, 1), *((1 << i, 1) for i in range(3))]
    masks = Masks(*(int(random.integers(8)) for _ in range(2)), random.choice([0, 2]), 0, 0)
    if random.integers(2):
        new_axis, shrink = (random.choice(places)[0] for _ in range(2))
        masks = dataclasses.replace(masks, new_axis=int(new_axis), shrink_axis=int(shrink))
    strides = np.array(random.integers(1, 4, 3), np.int32)
    strides.flags.writeable = False
    index_of = index_maker(masks)

    for _ in range(5):
        begin, end = random.integers(-4, 4, (2, 3))
        assert index_of(begin, end, strides) == masks.index(begin, end, strides)


def test_strides_that_stay_say_nothing_of_other_specs() -> None:
    """Begins and ends of another size are an error as ever, and other strides others."""
    index_of = index_maker(Masks(0, 0, 0, 0, 0))
    one, two = np.array([1]), np.array([2])
    for strides in (one, two):
        strides.flags.writeable = False
    free = np.array([0])
    assert index_of(free, free, one) == index_of(free, free, one) == (slice(0, 0, 1),)

    assert index_of(free, free, two) == (slice(0, 0, 2),)
    with pytest.raises(InvalidArgumentError, match=r"got shapes \[2\], \[1\], and \[1\]"):
        index_of(np.zeros(2, int), free, two)


@pytest.mark.parametrize(
    ("dy", "masks", "expected"),
    [
        (np.array([1, 2], np.float32), {}, [0, 1, 2, 0]),
        (np.float32(5), {"shrink_axis_mask": 1}, [0, 5, 0, 0]),
    ],
)
def test_strided_slice_grad(dy: Any, masks: dict[str, int], expected: list[float]) -> None:
    """The gradient stands where the part was, zeros elsewhere."""
    spec = [np.array([n], np.int32) for n in (4, 1, 3, 1)]

    assert run_op("StridedSliceGrad", *spec, dy, **masks).tolist() == expected


def test_strided_slice_grad_refuses_other_shapes() -> None:
    """Nothing is broadcast."""
    spec = [np.array([n], np.int32) for n in (4, 1, 3, 1)]

    with pytest.raises(InvalidArgumentError, match=r"shape of dy was \[1\] instead of \[2\]"):
        run_op("StridedSliceGrad", *spec, np.ones(1, np.float32))


def update(new: Any, end: int = 2) -> Any:
    """TensorStridedSliceUpdate of the first rows of MATRIX."""
    spec = [np.array([n], np.int32) for n in (0, end, 1)]
    return run_op("TensorStridedSliceUpdate", MATRIX, *spec, np.array(new, np.float32))


def test_update_broadcasts_and_changes_a_copy() -> None:
    """One row or one number fills all rows of the part; the input stays."""
    assert update([9, 8, 7]).tolist() == [[9, 8, 7], [9, 8, 7]]
    assert update(9).tolist() == [[9, 9, 9], [9, 9, 9]]
    assert update([[[9, 9, 9]]], end=1).tolist() == [[9, 9, 9], [3, 4, 5]]
    assert update([9, 9], end=0).tolist() == MATRIX.tolist()
    assert MATRIX[0, 0] == 0
    with pytest.raises(InvalidArgumentError, match=r"input shape \[2\] into final shape \[2,3\]"):
        update([9, 9])


def test_every_type_has_zeros() -> None:
    """The gradient of strings has empty ones, of quantised integers has zeros."""
    spec = [np.array([n], np.int32) for n in (2, 0, 1, 1)]

    strings = run_op("StridedSliceGrad", *spec, np.array([b"a"], object))
    quantized = run_op("StridedSliceGrad", *spec, np.array([(3,)], dtypes.qint8.numpy))

    assert strings.tolist() == [b"a", b""]
    assert quantized.tolist() == [(3,), (0,)]
