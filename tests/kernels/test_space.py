"""Space, batch and depth, against answers recorded from TensorFlow."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.errors import OpError
from support.ops import run_op


def count(*shape: int) -> np.ndarray[Any, Any]:
    """Numbers from 1 on."""
    return np.arange(1, 1 + np.prod(shape), dtype=np.float32).reshape(shape)


def pairs(*numbers: int) -> np.ndarray[Any, Any]:
    """Paddings or crops."""
    return np.array(numbers, np.int32).reshape(-1, 2)


def sizes(*numbers: int) -> np.ndarray[Any, Any]:
    """Sizes of a block."""
    return np.array(numbers, np.int32)


def test_space_to_batch_deals_out_in_turn() -> None:
    """Element i of a row goes to batch i modulo the block; padding counts as elements."""
    assert run_op("SpaceToBatchND", count(1, 4, 1), sizes(2), pairs(0, 0)).tolist() == [
        [[1], [3]],
        [[2], [4]],
    ]
    assert run_op("SpaceToBatchND", count(1, 3), sizes(2), pairs(0, 1)).tolist() == [[1, 3], [2, 0]]
    images = run_op("SpaceToBatch", count(1, 2, 2, 1), pairs(0, 0, 0, 0), block_size=2)
    assert images.reshape(-1).tolist() == [1, 2, 3, 4]
    assert images.shape == (4, 1, 1, 1)


def test_batch_to_space_crops_what_it_interleaved() -> None:
    """Crops may take everything."""
    batches = count(2, 2, 1)

    def joined(crops: Any) -> Any:
        return run_op("BatchToSpaceND", batches, sizes(2), crops)

    assert joined(pairs(0, 0)).tolist() == [[[1], [3], [2], [4]]]
    assert joined(pairs(1, 1)).tolist() == [[[3], [2]]]
    assert joined(pairs(2, 2)).shape == (1, 0, 1)


@given(st.data())
@settings(max_examples=40, deadline=None)
def test_batch_to_space_undoes_space_to_batch(data: st.DataObject) -> None:
    """With the paddings as crops, whatever the block."""
    block = data.draw(st.lists(st.integers(1, 3), max_size=3))
    margins = []
    inner = []
    for size in block:
        before, places = data.draw(st.integers(0, 2)), data.draw(st.integers(1, 3))
        length = max(places * size - before, 0)
        inner.append(length)
        margins += [before, -(length + before) % size]
    array = count(2, *inner, 3)

    batches = run_op("SpaceToBatchND", array, sizes(*block), pairs(*margins))

    assert np.array_equal(run_op("BatchToSpaceND", batches, sizes(*block), pairs(*margins)), array)


@pytest.mark.parametrize(
    ("op", "array", "block", "margins", "message"),
    [
        ("SpaceToBatchND", count(1, 3, 1), sizes(2), pairs(0, 0), r"padded_shape\[0\]=3 is"),
        ("SpaceToBatchND", count(1, 3), sizes(0), pairs(0, 1), "must be positive, got value, 0 at"),
        ("SpaceToBatchND", count(1, 3), sizes(2), pairs(-1, 1), "Paddings must be non-negative"),
        ("SpaceToBatchND", count(1, 3), sizes(2, 2), pairs(0, 1, 0, 0), "rank should be >= 3"),
        ("SpaceToBatchND", count(1, 3), sizes(2), pairs(0, 0, 0, 0), r"should have shape \[1, 2\]"),
        ("SpaceToBatchND", np.float32(1), sizes(1), pairs(0, 0), "input rank should be >= 2"),
        ("SpaceToBatchND", count(1, 3), sizes(1), pairs(0, 2**31 - 1)[:, ::-1], None),
        ("BatchToSpaceND", count(2, 2), sizes(2), pairs(3, 2), r"cropped_shape\[0\]=-1 must"),
        ("BatchToSpaceND", count(3, 2), sizes(2), pairs(0, 0), r"Input batch dimension \(3\)"),
    ],
)
def test_blocks_that_do_not_fit_are_refused(
    op: str, array: Any, block: Any, margins: Any, message: str | None
) -> None:
    """Sizes must divide, margins be sensible, and there must be memory."""
    if message is None:
        array, message = np.broadcast_to(np.float32(1), (1 << 20, 3)), "OOM"
    with pytest.raises((ValueError, OpError), match=message):
        run_op(op, array, block, margins)


def test_depth_and_space_are_exchanged_block_by_block() -> None:
    """Rows of a block come before its columns, both before the old depth."""
    image = count(1, 2, 2, 2)

    deep = run_op("SpaceToDepth", image, block_size=2)

    assert deep.tolist() == [[[[1, 2, 3, 4, 5, 6, 7, 8]]]]
    assert np.array_equal(run_op("DepthToSpace", deep, block_size=2), image)
    assert run_op("DepthToSpace", count(1, 4, 1, 4), block_size=2)[0, :2, :, 0].tolist() == [
        [1, 2],
        [3, 4],
    ]


def test_depth_second_is_the_same_elsewhere() -> None:
    """NCHW moves the depth and nothing else."""
    image = count(2, 4, 6, 3)

    expected = run_op("SpaceToDepth", image, block_size=2).transpose(0, 3, 1, 2)

    got = run_op("SpaceToDepth", image.transpose(0, 3, 1, 2), block_size=2, data_format="NCHW")
    assert np.array_equal(got, expected)


def test_space_to_depth_moves_strings() -> None:
    """The ops move elements of any type."""
    image = np.array([b"a", b"b", b"c", b"d"], object).reshape(1, 2, 2, 1)

    assert run_op("SpaceToDepth", image, block_size=2).tolist() == [[[[b"a", b"b", b"c", b"d"]]]]


@pytest.mark.parametrize(
    ("op", "shape", "message"),
    [
        ("SpaceToDepth", (1, 3, 2, 2), "width 2 and height 3 should be divisible by block_size: 2"),
        ("SpaceToDepth", (1, 3, 2), "Input rank should be"),
        ("DepthToSpace", (1, 1, 1, 3), "depth dimension 3 should be divisible by: 4"),
        ("DepthToSpace", (1, 3), "Input rank should be"),
    ],
)
def test_depth_and_space_must_divide(op: str, shape: tuple[int, ...], message: str) -> None:
    """Blocks may not be cut."""
    with pytest.raises(ValueError, match=message):
        run_op(op, count(*shape), block_size=2)


def test_dimensions_are_mapped_between_layouts() -> None:
    """Negative dimensions count from the end; the shape of the input stays."""
    mapped = run_op("DataFormatDimMap", np.array([0, 1, 2, 3, -1, -2, -3, -4], np.int32))

    assert mapped.tolist() == [0, 2, 3, 1, 1, 3, 2, 0]
    assert run_op("DataFormatDimMap", np.int64(2)) == 3
    assert run_op(
        "DataFormatDimMap", np.arange(4, dtype=np.int32), src_format="abcd", dst_format="dcba"
    ).tolist() == [3, 2, 1, 0]


def test_vectors_are_permuted_between_layouts() -> None:
    """What is given per dimension, per spatial dimension, or as pairs of either."""
    four, two = np.array([1, 2, 3, 4], np.int32), np.array([1, 2], np.int32)

    assert run_op("DataFormatVecPermute", four).tolist() == [1, 4, 2, 3]
    assert run_op("DataFormatVecPermute", two).tolist() == [1, 2]
    assert run_op("DataFormatVecPermute", two, dst_format="NCWH").tolist() == [2, 1]
    assert run_op("DataFormatVecPermute", four, src_format="HWNC", dst_format="NCHW").tolist() == [
        3,
        4,
        1,
        2,
    ]
    assert run_op("DataFormatVecPermute", np.stack([four, -four], 1)).tolist() == [
        [1, -1],
        [4, -4],
        [2, -2],
        [3, -3],
    ]


@pytest.mark.parametrize(
    ("array", "formats", "message"),
    [
        ([1, 2, 3], ("NHWC", "NCHW"), r"must be of size 2 or 4, but got shape \[3\]"),
        ([[1, 2, 3]] * 4, ("NHWC", "NCHW"), "Second dimension of 2D input must be of size 2"),
        (3, ("NHWC", "NCHW"), r"must be a vector or 2D tensor, but got shape \[\]"),
        ([1, 2], ("NHW", "WHN"), "must be of length 4 or 5"),
        ([1, 2], ("NHWC", "NCHX"), "must determine a permutation, got NHWC and NCHX"),
    ],
)
def test_layouts_and_vectors_must_agree(array: Any, formats: tuple[str, str], message: str) -> None:
    """Layouts are permutations of each other, vectors as long as they or two shorter."""
    with pytest.raises(ValueError, match=message):
        run_op(
            "DataFormatVecPermute",
            np.array(array, np.int32),
            src_format=formats[0],
            dst_format=formats[1],
        )


def test_image_patches_are_what_lies_under_the_window() -> None:
    """Rows first, then columns, then depth; beyond the border are zeros."""
    image = count(1, 3, 3, 1)
    one = (1, 1, 1, 1)

    valid = run_op(
        "ExtractImagePatches", image, ksizes=(1, 2, 2, 1), strides=one, rates=one, padding="VALID"
    )
    same = run_op(
        "ExtractImagePatches",
        image,
        ksizes=(1, 2, 2, 1),
        strides=(1, 2, 2, 1),
        rates=one,
        padding="SAME",
    )

    assert valid[0].tolist() == [[[1, 2, 4, 5], [2, 3, 5, 6]], [[4, 5, 7, 8], [5, 6, 8, 9]]]
    assert same[0].tolist() == [[[1, 2, 4, 5], [3, 0, 6, 0]], [[7, 8, 0, 0], [9, 0, 0, 0]]]


def test_rates_spread_the_window() -> None:
    """Rate 2 reads every second pixel."""
    got = run_op(
        "ExtractImagePatches",
        count(1, 3, 3, 1),
        ksizes=(1, 2, 2, 1),
        strides=(1, 1, 1, 1),
        rates=(1, 2, 2, 1),
        padding="VALID",
    )

    assert got.tolist() == [[[[1, 3, 7, 9]]]]


def test_volume_patches_start_later_where_strides_skip() -> None:
    """With SAME and strides longer than the window, TensorFlow leaves out both ends alike."""
    line = count(1, 3, 1, 1, 1)

    got = run_op(
        "ExtractVolumePatches",
        line,
        ksizes=(1, 1, 1, 1, 1),
        strides=(1, 3, 1, 1, 1),
        padding="SAME",
    )

    assert got.reshape(-1).tolist() == [2]
    assert run_op(
        "ExtractVolumePatches",
        count(1, 2, 2, 2, 1),
        ksizes=(1, 1, 1, 2, 1),
        strides=(1, 1, 1, 1, 1),
        padding="SAME",
    )[0, 0].tolist() == [[[1, 2], [2, 0]], [[3, 4], [4, 0]]]


@pytest.mark.parametrize(
    ("attrs", "message", "code"),
    [
        ({"ksizes": (2, 2, 2, 1)}, "Only support ksizes across space", "UNIMPLEMENTED"),
        ({"ksizes": (1, 0, 2, 1)}, "ksizes is out of range", "OUT_OF_RANGE"),
        ({"strides": (1, 0, 1, 1)}, "strides is out of range", "OUT_OF_RANGE"),
        ({"rates": (1, 1, 0, 1)}, "rates is out of range", "OUT_OF_RANGE"),
    ],
)
def test_bad_windows_have_their_codes(attrs: dict[str, Any], message: str, code: str) -> None:
    """Windows span space only, and by positive numbers."""
    one = (1, 1, 1, 1)
    all_attrs = {"ksizes": (1, 2, 2, 1), "strides": one, "rates": one, "padding": "SAME"} | attrs

    with pytest.raises(OpError, match=message) as caught:
        run_op("ExtractImagePatches", count(1, 3, 3, 1), **all_attrs)
    assert caught.value.code.name == code
