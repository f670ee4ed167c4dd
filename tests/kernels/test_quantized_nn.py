"""Products and pooling of quantised integers, recorded from TensorFlow."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from penstock.core import dtypes
from support.ops import run_op


def quantized(values: Any, name: str = "quint8") -> Any:
    """Integers as quantised ones."""
    dtype = dtypes.as_dtype(name).numpy
    return np.array(values, dtype[0]).view(dtype)


def integers(values: Any) -> Any:
    """Quantised integers as nested lists of integers."""
    return values.view(values.dtype[0]).tolist()


def test_quantized_products() -> None:
    """Recorded from TensorFlow: zero is taken off first; a unit is the product of units."""
    a, b = quantized([[0, 255], [128, 10]]), quantized([[1, 2], [200, 255]])
    ranges = [np.float32(x) for x in (-0.3, 1, -1, 2)]
    product, low, high = run_op("QuantizedMatMul", a, b, *ranges, Toutput=dtypes.qint32)
    assert integers(product) == [[27496, 38217], [-11431, -14057]]
    np.testing.assert_allclose([low, high], [-128799.4765625, 128799.4765625], rtol=1e-6)
    images, filters = quantized(np.arange(4).reshape(1, 2, 2, 1)), quantized([[[[2]]]])
    ranges = [np.float32(x) for x in (0, 255, 0, 255)]
    product, *_ = run_op("QuantizedConv2D", images, filters, *ranges, strides=[1, 1, 1, 1],
                         padding="VALID")  # fmt: skip
    assert np.ravel(integers(product)).tolist() == [0, 2, 4, 6]


def test_quantized_ranges() -> None:
    """Recorded from TensorFlow: 32 bits to 8, for the range there is or one asked for."""
    values = quantized([-100, 100000, 5, 1000000, -70000, 0], "qint32")
    given = np.float32(-1000), np.float32(1000)
    low, high = run_op("RequantizationRange", values, *given)
    np.testing.assert_allclose([low, high], [-0.03259606, 0.46566153], rtol=1e-6)
    shrunk, *_ = run_op("QuantizeDownAndShrinkRange", values, *given, out_type=dtypes.quint8)
    assert integers(shrunk) == [17, 41, 17, 255, 0, 17]
    wanted = np.float32(-0.1), np.float32(0.3)
    for out, expected in (
        (dtypes.quint8, [64, 93, 64, 255, 43, 64]),
        (dtypes.qint8, [-64, -34, -64, 127, -85, -64]),
    ):
        got, *_ = run_op("Requantize", values, *given, *wanted, out_type=out)
        assert integers(got) == expected
    with pytest.raises(ValueError, match="requested_output_min must be <= 0"):
        run_op("Requantize", values, *given, np.float32(0.1), wanted[1], out_type=dtypes.quint8)


def test_quantized_activations_and_means() -> None:
    """Zero and six have integers of their own; means are rounded down."""
    values = quantized([0, 255, 128, 10])
    relu, *_ = run_op("QuantizedRelu", values, np.float32(-1), np.float32(1))
    assert integers(relu) == [128, 255, 128, 128]
    relu6, *_ = run_op("QuantizedRelu6", values, np.float32(-10), np.float32(10))
    assert integers(relu6) == [128, 205, 128, 128]
    image = values.reshape(1, 2, 2, 1)
    attrs: dict[str, Any] = {"ksize": [1, 2, 2, 1], "strides": [1, 1, 1, 1], "padding": "VALID"}
    mean, *_ = run_op("QuantizedAvgPool", image, np.float32(0), np.float32(1), **attrs)
    assert integers(mean) == [[[[98]]]]
