"""Pooling and biases, against answers recorded from TensorFlow."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from penstock.errors import OpError
from support.ops import both, run_op

NAN, INF = np.nan, np.inf
TWO = (1, 2, 2, 1)


def count(*shape: int) -> np.ndarray[Any, Any]:
    """Numbers from 1 on."""
    return np.arange(1, 1 + np.prod(shape), dtype=np.float32).reshape(shape)


def test_max_pool_does_not_see_padding() -> None:
    """Even if all elements are negative."""
    got = run_op("MaxPool", -count(1, 3, 3, 1), ksize=TWO, strides=TWO, padding="SAME")

    assert got.reshape(-1).tolist() == [-1, -3, -7, -9]


def test_avg_pool_does_not_count_padding() -> None:
    """The mean is that of the elements that are there."""
    got = run_op("AvgPool", count(1, 3, 3, 1), ksize=TWO, strides=TWO, padding="SAME")

    assert got.reshape(-1).tolist() == [3, 4.5, 7.5, 9]


@pytest.mark.parametrize("op", ["MaxPool", "AvgPool"])
@pytest.mark.parametrize("padding", ["SAME", "VALID"])
@pytest.mark.parametrize(("size", "stride"), [((2, 3), (1, 2)), ((3, 1), (2, 3)), ((7, 6), (1, 1))])
def test_pooling_is_its_definition(op: str, padding: str, size: Any, stride: Any) -> None:
    """Over the elements of each window that are inside the image."""
    images = np.random.default_rng(1).integers(-9, 9, (2, 7, 6, 3)).astype(np.float32)
    join = np.max if op == "MaxPool" else np.mean

    got = run_op(op, images, ksize=(1, *size, 1), strides=(1, *stride, 1), padding=padding)

    for row, column in np.ndindex(*got.shape[1:3]):
        bounds = []
        for place, n, k, s in zip((row, column), (7, 6), size, stride, strict=True):
            missing = max((-(-n // s) - 1) * s + k - n, 0) if padding == "SAME" else 0
            start = place * s - missing // 2
            bounds.append(slice(max(start, 0), start + k))
        window = images[:, bounds[0], bounds[1]]
        assert np.allclose(got[:, row, column], join(window, (1, 2)), 1e-6)


@pytest.mark.parametrize(
    ("elements", "expected"),
    [
        ([NAN, 1, 2, 3], 3),
        ([1, 2, 3, NAN], 3),
        ([NAN] * 4, np.finfo(np.float32).min),
        ([-INF] * 4, np.finfo(np.float32).min),
        ([INF, NAN, 0, 1], INF),
    ],
)
def test_max_pool_overlooks_nan(elements: list[float], expected: float) -> None:
    """TensorFlow starts from the least finite number, and NaN is greater than nothing."""
    image = np.float32(elements).reshape(1, 2, 2, 1)

    assert run_op("MaxPool", image, ksize=TWO, strides=TWO, padding="VALID").squeeze() == expected


def test_max_pool_with_margins() -> None:
    """Explicit paddings are less than the window and spatial only."""
    attrs: dict[str, Any] = {"ksize": TWO, "strides": TWO, "padding": "EXPLICIT"}
    image = count(1, 4, 4, 1)

    got = run_op("MaxPool", image, explicit_paddings=(0, 0, 1, 1, 1, 1, 0, 0), **attrs)

    assert got[0, ..., 0].tolist() == [[1, 3, 4], [9, 11, 12], [13, 15, 16]]
    with pytest.raises(ValueError, match="needs to be smaller than the window size 2"):
        run_op("MaxPool", image, explicit_paddings=(0, 0, 2, 2, 1, 1, 0, 0), **attrs)
    with pytest.raises(ValueError, match="in the batch or depth dimensions is not supported"):
        run_op("MaxPool", image, explicit_paddings=(1, 0, 1, 1, 1, 1, 0, 0), **attrs)


def test_max_pool_of_channels() -> None:
    """Neighbouring channels, in groups as long as the stride."""
    deep = (1, 1, 1, 2)

    got = run_op("MaxPool", count(1, 2, 2, 4), ksize=deep, strides=deep, padding="SAME")

    assert got.tolist() == [[[[2, 4], [6, 8]], [[10, 12], [14, 16]]]]


def test_max_pool_v2_takes_the_window_as_inputs() -> None:
    """Otherwise it is MaxPool."""
    size, one = np.array(TWO, np.int32), np.ones(4, np.int32)

    got = run_op("MaxPoolV2", count(1, 3, 3, 1), size, one, padding="VALID")

    assert got.reshape(-1).tolist() == [5, 6, 8, 9]


@pytest.mark.parametrize("op", ["MaxPool", "AvgPool"])
def test_depth_second_is_the_same_elsewhere(op: str) -> None:
    """NCHW moves the depth and nothing else."""
    images = count(2, 5, 4, 3)
    expected = run_op(op, images, ksize=TWO, strides=TWO, padding="SAME")

    got = run_op(
        op,
        images.transpose(0, 3, 1, 2),
        ksize=(1, 1, 2, 2),
        strides=(1, 1, 2, 2),
        padding="SAME",
        data_format="NCHW",
    )

    assert np.array_equal(got.transpose(0, 2, 3, 1), expected)


@pytest.mark.parametrize("dtype", [np.uint8, np.int64, np.float16, ml_dtypes.bfloat16])
def test_pooling_keeps_types(dtype: Any) -> None:
    """The result has the input's type; means of narrow types are rounded once."""
    image = count(1, 2, 2, 1).astype(dtype)

    greatest = run_op("MaxPool", image, ksize=TWO, strides=TWO, padding="VALID")
    assert greatest.dtype == dtype
    assert greatest.squeeze() == 4
    if np.dtype(dtype).kind not in "iu":
        mean = run_op("AvgPool", image, ksize=TWO, strides=TWO, padding="VALID")
        assert mean.dtype == dtype
        assert float(mean.squeeze()) == 2.5


@pytest.mark.parametrize(
    ("shape", "ksize", "strides", "message", "code"),
    [
        ((3, 3, 1), TWO, TWO, "must have 2 spatial dimensions", None),
        ((1, 3, 3, 1), (1, 5, 5, 1), (1, 1, 1, 1), "would be negative: -1", None),
        ((1, 3, 3, 1), (1, 0, 2, 1), TWO, "ksize must be positive.*1,0,2,1", None),
        ((1, 3, 3, 1), TWO, (1, 0, 1, 1), "Stride must be > 0, but got 0", None),
        ((1, 3, 3, 1), (1, 2, 2, 1, 1), TWO, "ksize field must specify 4", None),
        ((1, 3, 3, 1), (2, 2, 2, 1), TWO, "on the batch dimension", "UNIMPLEMENTED"),
        ((1, 2, 2, 4), (1, 2, 2, 2), (1, 2, 2, 2), "exactly one of", "UNIMPLEMENTED"),
        ((1, 2, 2, 4), (1, 1, 1, 2), (1, 1, 1, 1), "equal the depth stride", "UNIMPLEMENTED"),
        ((1, 2, 2, 5), (1, 1, 1, 2), (1, 1, 1, 2), "evenly divide", "UNIMPLEMENTED"),
    ],
)
def test_max_pool_refuses(
    shape: Any, ksize: Any, strides: Any, message: str, code: str | None
) -> None:
    """Windows that do not fit the image, in TensorFlow's words and with its codes."""
    with pytest.raises((ValueError, OpError), match=message) as caught:
        run_op("MaxPool", count(*shape), ksize=ksize, strides=strides, padding="VALID")
    if code:
        assert isinstance(caught.value, OpError)
        assert caught.value.code.name == code


def test_there_may_be_no_pixels() -> None:
    """Empty batches, images and depths give empty results."""
    for shape, expected in (
        ((0, 3, 3, 1), (0, 2, 2, 1)),
        ((1, 0, 3, 1), (1, 0, 2, 1)),
        ((1, 3, 3, 0), (1, 2, 2, 0)),
    ):
        for op in ("MaxPool", "AvgPool"):
            got = run_op(op, count(*shape), ksize=TWO, strides=TWO, padding="SAME")
            assert got.shape == expected


def test_bias_goes_to_its_channel() -> None:
    """The last dimension, or the second of any number of them."""
    cube = count(2, 2, 2)
    bias = np.float32([1, 2])

    assert run_op("BiasAdd", cube, bias).tolist() == [[[2, 4], [4, 6]], [[6, 8], [8, 10]]]
    assert run_op("BiasAdd", cube, bias, data_format="NCHW").tolist() == [
        [[2, 3], [5, 6]],
        [[6, 7], [9, 10]],
    ]
    assert run_op("BiasAddV1", cube[0], bias).tolist() == [[2, 4], [4, 6]]


@pytest.mark.parametrize("channels", [1, 2, 3, 32, 33])
@pytest.mark.parametrize("places", [(64, 128), (91, 101)])
@pytest.mark.parametrize("dtype", [np.float32, np.int64, np.float16])
def test_biases_of_many_places(channels: int, places: tuple[int, int], dtype: Any) -> None:
    """However few the channels are, and wherever the values lie."""
    numbers = np.arange(places[0] * places[1] * 2 * channels) % 7
    values = numbers.astype(dtype).reshape(*places, 2, channels)
    bias = np.arange(channels).astype(dtype) + 1
    wanted = np.stack([values[..., at] + bias[at] for at in range(channels)], -1)

    found = run_op("BiasAdd", values, bias)
    turned = run_op("BiasAdd", values.swapaxes(0, 1), bias)

    assert found.dtype == dtype
    np.testing.assert_array_equal(found, wanted)
    np.testing.assert_array_equal(turned, wanted.swapaxes(0, 1))


@pytest.mark.parametrize(
    ("values", "bias", "message"),
    [
        ((2, 3), (2,), r"Must provide as many biases as the last .*\[2\] vs. \[2,3\]"),
        ((2, 3), (1,), "Must provide as many biases"),
        ((2, 3), (1, 3), r"Biases must be 1D: \[1,3\]"),
        ((3,), (3,), r"Input tensor must be at least 2D: \[3\]"),
        ((), (1,), "Input tensor must be at least 2D"),
    ],
)
def test_biases_are_never_broadcast(values: Any, bias: Any, message: str) -> None:
    """There is one for each channel, and at least one other dimension."""
    for layout in ("NHWC", "NCHW"):
        wanted = message.replace("the last", "the (last|second)")
        with pytest.raises(ValueError, match=wanted):
            run_op("BiasAdd", count(*values), count(*bias), data_format=layout)


def test_gradients_of_biases_are_sums_of_channels() -> None:
    """Integers wrap around; half precision is summed up in float32."""
    assert run_op("BiasAddGrad", count(2, 3, 1, 2)).tolist() == [36, 42]
    assert run_op("BiasAddGrad", count(2, 3, 1, 2), data_format="NCHW").tolist() == [18, 26, 34]
    assert run_op("BiasAddGrad", np.full((300, 1), 100, np.int8)).tolist() == [48]
    assert run_op("BiasAddGrad", np.ones((5000, 1), np.float16)).tolist() == [5000]
    assert run_op("BiasAddGrad", np.zeros((0, 3), np.float32)).tolist() == [0, 0, 0]


@pytest.mark.parametrize("channels", [3, 8, 200])
def test_many_gradients_of_biases_are_added_up_as_exactly_as_few(channels: int) -> None:
    """By the library in C, too, where there are enough channels for it."""
    gradients = np.random.default_rng(3).random((300, 400, channels), np.float32)
    wanted = gradients.sum((0, 1), np.float64)
    for found in both("BiasAddGrad", gradients):
        np.testing.assert_allclose(found, wanted, rtol=1e-4)
    np.testing.assert_allclose(found, wanted, rtol=1e-4 if channels < 8 else 3e-7)
