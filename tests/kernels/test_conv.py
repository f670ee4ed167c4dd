"""Convolution, against its definition and answers recorded from TensorFlow."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from penstock.errors import OpError
from support.ops import run_op

ONE = (1, 1, 1, 1)


def count(*shape: int) -> np.ndarray[Any, Any]:
    """Numbers from 1 on."""
    return np.arange(1, 1 + np.prod(shape), dtype=np.float32).reshape(shape)


def random(*shape: int) -> np.ndarray[Any, Any]:
    """Whole numbers, so that sums are exact in any order."""
    return np.random.default_rng(sum(shape)).integers(-4, 5, shape).astype(np.float32)


def convolved(
    images: Any, filters: Any, strides: Any, dilations: Any, margins: Any
) -> np.ndarray[Any, Any]:
    """The definition, term by term: one sum per place and filter."""
    padded = np.pad(images, ((0, 0), *margins, (0, 0)))
    extents = [(n - 1) * d + 1 for n, d in zip(filters.shape, dilations, strict=False)]
    places = [(n - e) // s + 1 for n, e, s in zip(padded.shape[1:3], extents, strides, strict=True)]
    groups = images.shape[3] // filters.shape[2]
    result = np.zeros((len(images), *places, filters.shape[3]), np.float32)
    for image, row, column, number in np.ndindex(*result.shape):
        group = number // (filters.shape[3] // groups)
        depth = slice(group * filters.shape[2], (group + 1) * filters.shape[2])
        top, left = row * strides[0], column * strides[1]
        window = padded[
            image,
            top : top + extents[0] : dilations[0],
            left : left + extents[1] : dilations[1],
            depth,
        ]
        result[image, row, column, number] = (window * filters[..., number]).sum()
    return result


@pytest.mark.parametrize("groups", [1, 2, 3])
@pytest.mark.parametrize(
    ("strides", "dilations", "margins"),
    [
        ((1, 1), (1, 1), ((0, 0), (0, 0))),
        ((2, 3), (1, 1), ((1, 0), (2, 2))),
        ((1, 2), (2, 1), ((0, 3), (1, 0))),
        ((2, 1), (1, 3), ((2, 2), (3, 3))),
    ],
)
def test_conv2d_is_its_definition(groups: int, strides: Any, dilations: Any, margins: Any) -> None:
    """For any strides, dilations, margins and groups of the depth."""
    images, filters = random(2, 7, 8, 2 * groups), random(3, 2, 2, 4 * groups)

    got = run_op(
        "Conv2D",
        images,
        filters,
        strides=(1, *strides, 1),
        dilations=(1, *dilations, 1),
        padding="EXPLICIT",
        explicit_paddings=(0, 0, *margins[0], *margins[1], 0, 0),
    )

    assert np.array_equal(got, convolved(images, filters, strides, dilations, margins))


def test_same_padding_puts_the_odd_element_last() -> None:
    """As TensorFlow and no one else does."""
    got = run_op("Conv2D", count(1, 3, 3, 1), count(2, 2, 1, 1), strides=ONE, padding="SAME")

    assert got[0, ..., 0].tolist() == [[37, 47, 21], [67, 77, 33], [23, 26, 9]]


@pytest.mark.parametrize("stride", [1, 2, 3])
def test_windows_of_one_pixel_are_products(stride: int) -> None:
    """The short way for 1x1 filters gives what the long one would."""
    images, filters = random(2, 5, 4, 3), random(1, 1, 3, 7)

    got = run_op("Conv2D", images, filters, strides=(1, stride, stride, 1), padding="SAME")

    assert np.array_equal(got, images[:, ::stride, ::stride] @ filters[0, 0])


def test_large_images_are_convolved_in_parts() -> None:
    """More windows than are laid out at once, by rows and by images."""
    tall, many = random(1, 300, 80, 8), random(30, 30, 30, 8)
    filters = random(3, 3, 8, 2)

    for images in (tall, many):
        got = run_op("Conv2D", images, filters, strides=ONE, padding="VALID")
        windows = np.lib.stride_tricks.sliding_window_view(images, (3, 3), (1, 2))
        assert np.array_equal(got, np.einsum("nhwcij,ijco->nhwo", windows, filters))


@pytest.mark.parametrize("op", ["Conv2D", "DepthwiseConv2dNative"])
def test_depth_second_is_the_same_elsewhere(op: str) -> None:
    """NCHW moves the depth of images; filters keep their layout."""
    images, filters = random(2, 6, 5, 3), random(3, 2, 3, 3)
    attrs = {"padding": "EXPLICIT", "explicit_paddings": (0, 0, 1, 0, 0, 2, 0, 0)}

    expected = run_op(op, images, filters, strides=(1, 2, 2, 1), **attrs)

    attrs["explicit_paddings"] = (0, 0, 0, 0, 1, 0, 0, 2)
    got = run_op(
        op,
        images.transpose(0, 3, 1, 2),
        filters,
        strides=(1, 1, 2, 2),
        data_format="NCHW",
        **attrs,
    )
    assert np.array_equal(got.transpose(0, 2, 3, 1), expected)


@pytest.mark.parametrize("depth", [2, 70, 200])
@pytest.mark.parametrize("stride", [1, 2])
def test_depthwise_convolves_each_channel_alone(depth: int, stride: int) -> None:
    """It is Conv2D with as many groups as channels; shallow or deep, by either way."""
    images, filters = random(2, 6, 7, depth), random(3, 2, depth, 2)
    margins = ((0, 0), (0, 0))

    got = run_op(
        "DepthwiseConv2dNative", images, filters, strides=(1, stride, stride, 1), padding="VALID"
    )

    flat = filters.reshape(3, 2, 1, depth * 2)
    assert np.array_equal(got, convolved(images, flat, (stride, stride), (1, 1), margins))


def test_half_precision_is_summed_up_in_float32() -> None:
    """4000 ones are 4000, although bfloat16 cannot count beyond 256 one by one."""
    ones = np.ones((1, 1, 1, 4000), ml_dtypes.bfloat16)

    got = run_op("Conv2D", ones, ones.reshape(1, 1, 4000, 1), strides=ONE, padding="VALID")

    assert got.dtype == ml_dtypes.bfloat16
    assert float(got.squeeze()) == 4000


def test_integers_wrap_around() -> None:
    """int32 is convolved exactly, modulo 2**32."""
    images, filters = np.full((1, 1, 2, 1), 2**30, np.int32), np.full((1, 2, 1, 1), 3, np.int32)

    got = run_op("Conv2D", images, filters, strides=ONE, padding="VALID")

    assert got.dtype == np.int32
    assert got.squeeze() == -(2**31)


def test_there_may_be_no_place_or_no_image() -> None:
    """A window one larger than the image fits nowhere; two larger is an error."""
    image = count(1, 3, 3, 1)

    def shape(images: Any, size: int) -> Any:
        filters = count(size, size, 1, 2)
        return run_op("Conv2D", images, filters, strides=ONE, padding="VALID").shape

    assert shape(image, 4) == (1, 0, 0, 2)
    assert shape(image[:0], 2) == (0, 2, 2, 2)
    with pytest.raises(ValueError, match="Computed output size would be negative: -1"):
        shape(image, 5)


@pytest.mark.parametrize(
    ("shape", "filters", "attrs", "message", "code"),
    [
        ((1, 3, 3, 3), (2, 2, 2, 1), {}, "input depth must be evenly divisible by filter", None),
        ((1, 3, 3, 2), (2, 2, 1, 1), {}, "output depth must be evenly divisible by number", None),
        ((3, 3, 1), (2, 2, 1, 1), {}, "input must be 4-dimensional", None),
        ((1, 3, 3, 1), (2, 2, 1), {}, "filter must be 4-dimensional", None),
        ((1, 3, 3, 1), (0, 2, 1, 1), {}, "filter must not have zero elements", None),
        ((1, 3, 3, 1), (2, 2, 1, 1), {"strides": (1, 1, 1)}, "must specify 4 dimensions", None),
        ((1, 3, 3, 1), (2, 2, 1, 1), {"strides": (1, 0, 1, 1)}, "should be larger than 0", None),
        ((1, 3, 3, 1), (2, 2, 1, 1), {"strides": (2, 1, 1, 1)}, "batch and depth", "UNIMPLEMENTED"),
        ((1, 3, 3, 1), (2, 2, 1, 1), {"dilations": (1, 1, 1, 2)}, "not yet", "UNIMPLEMENTED"),
        ((1, 3, 3, 1), (2, 2, 1, 1), {"padding": "EXPLICIT"}, "must contain 8 values", None),
        ((1, 3, 3, 1), (2, 2, 1, 1), {"explicit_paddings": (0,) * 8}, "must be empty if", None),
    ],
)
def test_conv2d_refuses(
    shape: Any, filters: Any, attrs: dict[str, Any], message: str, code: str | None
) -> None:
    """Wrong ranks, depths and numbers, in TensorFlow's words and with its codes."""
    all_attrs = {"strides": ONE, "padding": "VALID"} | attrs

    with pytest.raises((ValueError, OpError), match=message) as caught:
        run_op("Conv2D", count(*shape), count(*filters), **all_attrs)
    if code:
        assert isinstance(caught.value, OpError)
        assert caught.value.code.name == code
