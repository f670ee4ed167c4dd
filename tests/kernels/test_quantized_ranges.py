"""Quantised ops where TensorFlow itself ends its process, or refuses what has an answer."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from cases_src.casebook import f32, i32, q
from penstock.core import dtypes
from penstock.errors import InvalidArgumentError
from penstock.kernels.quantization.quantized_ranges import Single, double_integers, double_numbers
from support.ops import run_op

_BYTE, _WORD = np.dtype(np.uint8), np.dtype(np.int32)
_CONVOLUTION: dict[str, Any] = {
    "padding": "SAME",
    "rhs_quantization_min_val": -128,
    "rhs_quantization_max_val": 127,
    "Tout": dtypes.float32,
}


def test_numbers_come_back_as_their_integers() -> None:
    """Every byte stands for a number that it is nearest to, if zero falls on an integer."""
    every = np.arange(256, dtype=np.uint8)
    for low, high in ((0.0, 6.0), (-1.0, 1.55), (2.0, 4.55)):
        single = Single(_BYTE, np.float32(low), np.float32(high))
        assert single.integers(single.numbers(every)).tolist() == every.tolist()
        numbers = double_numbers(every, low, high)
        assert double_integers(numbers, low, high, _BYTE).tolist() == every.tolist()


def test_zero_has_an_integer_of_its_own() -> None:
    """Whatever the range is, some integer stands for exactly zero."""
    for low, high in ((-1.0, 1.0), (-0.3, 7.1), (-5.0, 0.25)):
        single = Single(_BYTE, np.float32(low), np.float32(high))
        assert 0 in single.numbers(np.arange(256, dtype=np.uint8))


def test_numbers_that_are_none_or_too_large() -> None:
    """They become the least integer; those that are only outside become the nearest."""
    numbers = np.array([np.nan, np.inf, -np.inf, 1e30, 5.0, -5.0], np.float32)
    least, most = -(2**31), 2**31 - 1
    with np.errstate(all="ignore"):
        found = double_integers(numbers, -1.0, 1.0, _WORD)
    assert found.tolist() == [least, least, least, least, most, least]
    assert double_integers(numbers[4:], 3.0, 3.0, _WORD).tolist() == [0, 0]


def test_images_without_channels_and_of_other_ranks() -> None:
    """TensorFlow's instance norm dies of both."""
    y, *_ = run_op("QuantizedInstanceNorm", q("quint8", np.zeros((1, 2, 2, 0))), f32(-1), f32(1))
    assert y.shape == (1, 2, 2, 0)
    with pytest.raises(ValueError, match="input must be 4-dimensional"):
        run_op("QuantizedInstanceNorm", q("quint8", [1, 2]), f32(-1), f32(1))


def test_no_images_by_channel() -> None:
    """TensorFlow divides by their number."""
    ends = f32([-1, -2, -3]), f32([1, 2, 3]), f32(-1), f32(1)
    images = q("qint32", np.zeros((0, 1, 1, 3)))
    y, *_ = run_op("RequantizePerChannel", images, *ends, out_type=dtypes.qint8)
    assert y.shape == (0, 1, 1, 3)


def test_any_shapes_that_can_be_broadcast_are_added() -> None:
    """TensorFlow refuses some of them, and leaves memory as it was for others."""
    x, y = q("quint8", [[[1], [2]]]), q("quint8", [[3, 4, 5]])
    total, *_ = run_op("QuantizedAdd", x, y, *map(f32, (0, 255, 0, 255)), Toutput=dtypes.qint32)
    sums = np.array([[[4, 5, 6], [5, 6, 7]]])
    assert (total.view(np.int32) == sums * (total.view(np.int32)[0, 0, 0] // 4)).all()
    with pytest.raises(ValueError, match=r"\(2,\).*\(3,\)"):
        run_op(
            "QuantizedAdd",
            q("quint8", [1, 2]),
            q("quint8", [1, 2, 3]),
            *map(f32, (0, 1, 0, 1)),
            Toutput=dtypes.qint32,
        )


@pytest.mark.parametrize(
    ("images", "filters"),
    [((1, 2, 0, 4), (3, 2, 2, 2)), ((1, 2, 4, 4), (0, 2, 2, 2)), ((1, 0, 4, 4), (3, 0, 2, 2))],
)
def test_convolutions_of_nothing(images: tuple[int, ...], filters: tuple[int, ...]) -> None:
    """TensorFlow dies of most of them; sums of nothing are 0."""
    x, w = np.zeros(images, np.float32), q("qint8", np.zeros(filters))
    op = "UniformQuantizedConvolutionHybrid"
    y = run_op(op, x, w, f32(1), i32(0), **_CONVOLUTION)
    assert y.shape == (1, filters[0], *images[2:])
    assert not y.any()


def test_words_of_rank_0_are_refused() -> None:
    """There is no last dimension that bytes could be in."""
    attrs = {"min_range": 0.0, "max_range": 1.0, "mode": "MIN_COMBINED", "transpose_output": False}
    with pytest.raises(InvalidArgumentError, match="at least one dimension"):
        run_op("XlaDequantize", np.uint32(5), **attrs)
    with pytest.raises(InvalidArgumentError, match="Only MIN_COMBINED mode is supported"):
        run_op("XlaDequantize", np.zeros(1, np.uint32), **attrs | {"mode": "SCALED"})
