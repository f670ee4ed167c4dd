"""Quantised integers with a range: sums, joins, images, norms, ranges per channel."""

from __future__ import annotations

from typing import Any

import numpy as np

from cases_src.casebook import f32, graph, i32, inf, integers, normal, op, q, steps, u32

_LEAST, _MOST = -(2**31), 2**31 - 1
_ROWS = [[0, 255, 128], [10, 20, 30]]
_BIAS = [1, 200, 77]


def _u8(values: Any) -> Any:
    return q("quint8", values)


def _bytes(*shape: int, seed: int = 0) -> Any:
    return _u8(integers(*shape, low=0, high=256, seed=seed))


def _words(*shape: int, seed: int = 0) -> Any:
    return q("qint32", integers(*shape, low=_LEAST, high=_MOST, seed=seed, dtype="i8"))


def _ends(name: str, low: Any, high: Any) -> dict[str, Any]:
    return {f"min_{name}": f32(low), f"max_{name}": f32(high)}


def _bias(x: Any, bias: Any, *ends: Any, kind: str = "quint8", says: str = "") -> Any:
    ranges = {**_ends("input", *ends[:2]), **_ends("bias", *ends[2:])}
    values = {"input": q(kind, x), "bias": q(kind, bias)}
    return op("QuantizedBiasAdd", out_type="qint32", says=says, **values, **ranges)


def _sum(x: Any, y: Any, *ends: Any, says: str = "") -> Any:
    ranges = {**_ends("x", *ends[:2]), **_ends("y", *ends[2:])}
    return op("QuantizedAdd", x=_u8(x), y=_u8(y), Toutput="qint32", says=says, **ranges)


def _joined(axis: Any, values: Any, lows: Any, highs: Any, says: str = "") -> Any:
    ranges = {"input_mins": [f32(low) for low in lows], "input_maxes": [f32(x) for x in highs]}
    return op("QuantizedConcat", concat_dim=i32(axis), values=values, says=says, **ranges)


def _resized(images: Any, size: Any, *ends: Any, says: str = "", **attrs: bool) -> Any:
    low, high = ends or (-1, 1)
    facts = {"images": images, "size": i32(size), "min": f32(low), "max": f32(high)}
    return op("QuantizedResizeBilinear", says=says, **facts, **attrs)


def _normed(x: Any, low: Any, high: Any, says: str = "", **attrs: Any) -> Any:
    return op("QuantizedInstanceNorm", x=x, x_min=f32(low), x_max=f32(high), says=says, **attrs)


_RANGES = {"t": (-1, 1), "m": (-2, 5), "v": (0, 3), "beta": (-1, 2), "gamma": (0.5, 4)}


def _batch_norm(
    epsilon: float = 0.01, says: str = "", is_scaled: bool = True, **changed: Any
) -> Any:
    vectors = {"m": [10, 100, 255], "v": [3, 255, 90], "beta": [1, 128, 255], "gamma": [255, 2, 70]}
    args = {"t": _bytes(1, 2, 2, 3, seed=2), **{name: _u8(x) for name, x in vectors.items()}}
    for name, (low, high) in _RANGES.items():
        args |= {f"{name}_min": f32(low), f"{name}_max": f32(high)}
    return op(
        "QuantizedBatchNormWithGlobalNormalization",
        out_type="qint32",
        variance_epsilon=epsilon,
        scale_after_normalization=is_scaled,
        says=says,
        **args | changed,
    )


def _channel_range(x: Any, low: Any, high: Any, most: float, says: str = "") -> Any:
    ranges = {"input_min": f32(low), "input_max": f32(high)}
    return op("RequantizationRangePerChannel", input=x, clip_value_max=most, says=says, **ranges)


def _by_channel(x: Any, *ends: Any, out: str = "qint8", says: str = "") -> Any:
    names = ("input_min", "input_max", "requested_output_min", "requested_output_max")
    ranges = dict(zip(names, map(f32, ends), strict=True))
    return op("RequantizePerChannel", input=x, out_type=out, says=says, **ranges)


def xla_dequantize(tf: Any, words: Any, low: float, high: float, is_turned: bool) -> Any:
    """Bytes in words, as numbers."""
    from tensorflow.compiler.tf2xla.ops import gen_xla_ops

    fed = tf.placeholder(tf.uint32, name="words")
    made = gen_xla_ops.xla_dequantize(fed, low, high, "MIN_COMBINED", is_turned, name="node")
    return steps(({fed: words}, [made]))


_WORDS = u32([[0x01020304, 0xFF80FE7F], [5, 0xFFFFFFFF]])
_LOWS, _HIGHS = [-1, -2, -3], [1, 2, 3]
_IMAGE = _u8(np.arange(0, 240, 10).reshape(1, 4, 3, 2))
_FEW = _words(2, 3, 2, 3, seed=4)

CASES = [
    _bias(_ROWS, _BIAS, -1, 1, -2, 5),
    _bias(_ROWS, _BIAS, 0, 1, 0, 1),
    _bias(_ROWS, _BIAS, 0, 0, 0, 1),
    _bias(_ROWS, _BIAS, -1, 1, 3, 3),
    _bias(_ROWS, _BIAS, 2, 1, 0, 1),
    _bias([[-128, 127, 5], [0, -1, 64]], [1, -100, 77], -1.3, 0.7, -2.9, 5.1, kind="qint8"),
    _bias(integers(2, 3, 5, 7, high=256), integers(7, high=256), -100, 3, 0.01, 0.02),
    _bias(np.zeros((0, 3)), _BIAS, -1, 1, -2, 5),
    _bias(_ROWS, [1], -1, 1, -2, 5, says="as many biases as the last dimension"),
    _bias(_ROWS, 3, -1, 1, -2, 5, says="Biases must be 1D"),
    _bias(_BIAS, _BIAS, -1, 1, -2, 5, says="Input tensor must be at least 2D"),
    _bias(np.zeros((2, 0)), [], -1, 1, -2, 5, says="Must provide at least 1 bias"),
    _bias(_ROWS, _BIAS, [0], 1, 0, 1, says="`min_input` must be rank 0 but is rank 1"),
    _sum(_ROWS, _BIAS, -1, 1, -2, 5),
    _sum(_ROWS, _ROWS, 0, 1, -3, 0.1),
    _sum(_ROWS, 3, -1, 1, -2, 5),
    _sum([7], _ROWS, -1.7, 1.1, -2.3, 5.9),
    _sum(3, 4, 1, 2, 3, 4),
    _sum(integers(2, 3, 4, high=256), integers(3, 4, high=256), -100, 3, 0.01, 0.02),
    _sum(_ROWS, _BIAS, 0, 0, 0, 1, says="max_x must be larger than min_x"),
    _sum(_ROWS, _BIAS, 0, 1, 2, 1, says="max_y must be larger than min_y"),
    _sum(_ROWS, _BIAS, 0, 1, [0], 1, says="`min_y` must be rank 0 but is rank 1"),
    _sum(np.zeros((0, 3)), _BIAS, 0, 1, 0, 1, says="Must have some elements to add"),
    _joined(0, [_u8(_ROWS), _u8([_BIAS])], [0, 0], [1, 1]),
    _joined(0, [_u8(_ROWS), _u8([_BIAS])], [0, -1], [1, 3]),
    _joined(1, [_u8(_ROWS), _u8(_ROWS), _u8(_ROWS)], [0.5, 3, -2], [1, 3.5, -1]),
    _joined(0, [_u8(_ROWS), _u8([_BIAS])], [0, 0], [0, 0]),
    _joined(0, [_u8(_ROWS), _u8([_BIAS])], [1, 0], [0, 1]),
    _joined(0, [_u8(_ROWS), _u8(np.zeros((0, 3)))], [[0], 0], [1, 2]),
    _joined(0, [_u8([]), _u8([])], [0, 0], [1, 2]),
    _joined(0, [q("qint32", [1, _LEAST, _MOST]), q("qint32", [5, -1000000])], [-1, -2], [1, 3]),
    _joined(0, [q("qint32", [1, _LEAST, _MOST]), q("qint32", [_MOST])], [-3, -3], [3, 3]),
    _joined(-1, [_u8(_ROWS)] * 2, [0, 0], [1, 2], says="in the range [0, 2), but got -1"),
    _joined([0], [_u8(_ROWS)] * 2, [0, 0], [1, 2], says="should be a scalar integer"),
    _joined(0, [_u8(3)] * 2, [0, 0], [1, 2], says="in the range [0, 0), but got 0"),
    _joined(0, [_u8(_ROWS), _u8(_BIAS)], [0, 0], [1, 2], says="Ranks of all input tensors"),
    _joined(1, [_u8(_ROWS), _u8([_BIAS])], [0, 0], [1, 2], says="Dimensions of inputs should"),
    _joined(0, [_u8(_ROWS)] * 2, [[0, 1], 0], [1, 1], says="input_mins each tensor's num elements"),
    _resized(_IMAGE, [5, 7]),
    _resized(_IMAGE, [5, 7], 1, 1, align_corners=True),
    _resized(_IMAGE, [3, 8], half_pixel_centers=True),
    _resized(_IMAGE, [5, 7], align_corners=True, half_pixel_centers=True),
    _resized(_IMAGE, [4, 3]),
    _resized(_bytes(2, 5, 6, 8, seed=1), [7, 11]),
    _resized(_words(2, 5, 6, 3, seed=2), [7, 4]),
    _resized(_words(1, 1, 2, 1, seed=3), [2, 3], half_pixel_centers=True),
    _resized(normal(2, 4, 3, 2), [5, 2]),
    _resized(_IMAGE, [0, 2], says="output dimensions must be positive"),
    _resized(_IMAGE, [2], says="shape_t must have two elements"),
    _resized(_u8([1, 2]), [2, 2], says="input must be 4-dimensional"),
    _resized(_IMAGE, [2, 2], [0], 1, says="min must be a scalar"),
    _resized(_u8(np.zeros((1, 0, 2, 1))), [2, 2], says="input image must be of non-zero size"),
    _resized(_u8(np.zeros((1, 2, 2, 0))), [2, 2], says="image must have at least one channel"),
    _normed(_bytes(2, 3, 2, 3, seed=1), -1, 1),
    _normed(_bytes(2, 3, 2, 3, seed=1), -3, 8, variance_epsilon=1.0),
    _normed(_bytes(2, 3, 2, 3, seed=1), -1, 1, min_separation=10.0),
    _normed(_bytes(2, 3, 2, 3), 0, 1, output_range_given=True, given_y_min=-0.5, given_y_max=0.7),
    _normed(_u8(np.full((1, 1, 1, 2), 7)), -1, 1),
    _normed(_u8(np.zeros((0, 2, 2, 1))), -1, 1),
    _normed(_u8(np.zeros((1, 0, 2, 1))), -1, 1),
    _normed(_bytes(1, 1, 2, 1), 1, 1, says="input_min must be less than input_max"),
    _normed(_bytes(1, 1, 2, 1), 2, 1, says="input_min must be less than input_max"),
    _normed(_bytes(1, 1, 2, 1), [0], 1, says="`x_min` must be rank 0 but is rank 1"),
    _normed(
        _bytes(1, 1, 2, 1),
        0,
        1,
        output_range_given=True,
        given_y_min=1.0,
        given_y_max=1.0,
        says="given_y_min must be less than given_y_max",
    ),
    _batch_norm(),
    _batch_norm(is_scaled=False),
    _batch_norm(0.0, v=_u8([0, 0, 0])),
    _batch_norm(t_min=f32(0), t_max=f32([0])),
    _batch_norm(t_min=f32(2), t_max=f32(0)),
    _batch_norm(v_min=f32(-3), v_max=f32(0)),
    _batch_norm(t_min=f32(-1e5), t_max=f32(1e5)),
    _batch_norm(t_max=f32(inf)),
    _batch_norm(t=_u8(np.zeros((0, 1, 1, 3)))),
    _batch_norm(m_min=f32([0, 1]), says="mean_min must have 1 element"),
    _batch_norm(m=_u8([1, 2]), says="as many means as the last dimension"),
    _batch_norm(m=_u8([[1, 2, 3]]), says="mean must be 1-dimensional"),
    _batch_norm(t=_u8([1, 2, 3]), says="input must be 4-dimensional"),
    _batch_norm(t=_bytes(1, 1, 1, 1), m=_u8([1]), says="Must have at least a mean value"),
    _batch_norm(v=_u8([1, 2]), says="Mean and variance tensors must have the same shape"),
    _channel_range(_FEW, _LOWS, _HIGHS, 100.0),
    _channel_range(_FEW, [-1, -2, -9], [4, 2, 3], 100.0),
    _channel_range(_FEW, _LOWS, _HIGHS, 0.5),
    _channel_range(q("qint32", [[[[1, 2, 1 << 30]]]]), _LOWS, _HIGHS, 100.0),
    _channel_range(q("qint32", [[[[-1, -2, -1 << 30]]]]), _LOWS, _HIGHS, 100.0),
    _channel_range(q("qint32", [[[[0, 0, 0]]]]), _LOWS, _HIGHS, 100.0),
    _channel_range(_FEW, [-1], [1], 1.0, says="same number of channels as length of input_min"),
    _channel_range(_FEW, _LOWS, [1, 2], 1.0, says="has incorrect size"),
    _channel_range(q("qint32", _ROWS), _LOWS, _HIGHS, 1.0, says="input must be in NHWC format"),
    _channel_range(
        q("qint32", np.zeros((0, 2, 2, 3))), _LOWS, _HIGHS, 1.0, says="input must not be empty"
    ),
    _by_channel(_FEW, _LOWS, _HIGHS, -1, 1),
    _by_channel(_FEW, _LOWS, _HIGHS, -0.5, 2, out="quint8"),
    _by_channel(_FEW, [-9, -2, -3], _HIGHS, 0, 3, out="quint8"),
    _by_channel(_FEW, -1, 1, [-1], [1]),
    _by_channel(_FEW, _LOWS, _HIGHS, 1, 1, out="quint8"),
    _by_channel(q("qint32", np.zeros((1, 1, 0, 3))), _LOWS, _HIGHS, -1, 1),
    _by_channel(_FEW, _LOWS, _HIGHS, 0, 3, says="requested_output_max must be non negative"),
    _by_channel(_FEW, _LOWS, [1], -1, 1, says="input_max has incorrect size, expected 3 was 1"),
    _by_channel(_FEW, _LOWS, _HIGHS, [-1, 2], 1, says="requested_output_min must be a scalar"),
    _by_channel(q("qint32", _ROWS), _LOWS, _HIGHS, -1, 1, says="Current RequantizePerChannel"),
    graph(xla_dequantize, _WORDS, -1.0, 2.0, False),
    graph(xla_dequantize, _WORDS, -1.234, 5.678, True),
    graph(xla_dequantize, _WORDS[0], 3.0, 3.0, True),
    graph(xla_dequantize, _WORDS.reshape(1, 2, 2), -128.0, 128.0, True),
    graph(xla_dequantize, _WORDS[:0], -1.0, 2.0, False),
]
