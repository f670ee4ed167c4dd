"""Convolutions of uniformly quantised integers."""

from __future__ import annotations

from typing import Any

import numpy as np

from cases_src.casebook import f32, i32, integers, normal, op, q

#: Batch first, depth last; filters have depth and count last.
_LAST = b"\x10\x03\x1a\x02\x01\x02\x20\x02\x28\x03\x32\x02\x00\x01\x40\x03\x4a\x02\x01\x02"
_IMAGES = integers(1, 2, 4, 4, low=-128, high=128, seed=1)
_FILTERS = integers(3, 2, 2, 2, low=-128, high=128, seed=2)
_PLAIN: dict[str, Any] = {
    "window_strides": [],
    "padding": "VALID",
    "explicit_padding": [],
    "lhs_dilation": [],
    "rhs_dilation": [],
    "batch_group_count": 1,
    "feature_group_count": 1,
    "dimension_numbers": "",
    "rhs_quantization_axis": -1,
    "rhs_quantization_min_val": -128,
    "rhs_quantization_max_val": 127,
    "rhs_scales": f32(0.25),
    "rhs_zero_points": i32(-1),
}


def _convolution(lhs: Any = _IMAGES, rhs: Any = _FILTERS, says: str = "", **changed: Any) -> Any:
    args = {
        **_PLAIN,
        "lhs_quantization_min_val": -128,
        "lhs_quantization_max_val": 127,
        "output_quantization_min_val": -(2**31),
        "output_quantization_max_val": 2**31 - 1,
        "lhs_scales": f32(0.5),
        "lhs_zero_points": i32(3),
        "output_scales": f32(0.3),
        "output_zero_points": i32(2),
        "output_quantization_axis": -1,
    }
    args |= {"lhs": q("qint8", lhs), "rhs": q("qint8", rhs), "Tout": "qint32"}
    return op("UniformQuantizedConvolution", says=says, **args | changed)


def _hybrid(lhs: Any, rhs: Any = _FILTERS, says: str = "", **changed: Any) -> Any:
    args = {**_PLAIN, "lhs": f32(lhs), "rhs": q("qint8", rhs), "Tout": "float32"}
    return op("UniformQuantizedConvolutionHybrid", says=says, tol=(1e-4, 1e-4), **args | changed)


def _per(which: str, scales: Any, zeros: Any, axis: int) -> dict[str, Any]:
    facts = {f"{which}_scales": f32(scales), f"{which}_zero_points": i32(zeros)}
    return {**facts, f"{which}_quantization_axis": axis}


_THREE = _per("rhs", [0.1, 0.2, 0.3], [1, 2, 3], 0)
_MANY = integers(4, 4, 3, 3, seed=1)
_PAIRS = integers(4, 2, 2, 2, seed=2)

CASES = [
    _convolution(),
    _convolution(padding="SAME"),
    _convolution(padding="SAME", window_strides=[2, 3], rhs_dilation=[2, 1]),
    _convolution(padding="EXPLICIT", explicit_padding=[1, 0, 0, 2], window_strides=[2, 1]),
    _convolution(lhs_dilation=[2, 1], rhs_dilation=[1, 2]),
    _convolution(padding="SAME", lhs_dilation=[2, 3]),
    _convolution(**_THREE),
    _convolution(**_THREE, **_per("output", [0.1, 0.2, 0.3], [1, 2, 3], 1)),
    _convolution(_MANY, _PAIRS, feature_group_count=2),
    _convolution(integers(4, 2, 3, 3, seed=1), _PAIRS, batch_group_count=2),
    _convolution(integers(2, 2, 5, seed=1), integers(4, 2, 2, seed=2), window_strides=[2]),
    _convolution(
        integers(1, 4, 4, 2, low=-128, high=128, seed=1),
        integers(2, 2, 2, 3, low=-128, high=128, seed=2),
        dimension_numbers=_LAST,
        padding="SAME",
        **_per("rhs", [0.1, 0.2, 0.3], [0, 0, 0], 3),
    ),
    _convolution(np.zeros((0, 2, 4, 4))),
    _convolution(_IMAGES, integers(3, 2, 5, 2)),
    _convolution(padding="FOO", says="padding Attr must be one of [EXPLICIT | SAME | VALID]"),
    _convolution(padding="EXPLICIT", says="Size of explicit_padding Attr must be 2 * (rank - 2)"),
    _convolution(
        padding="EXPLICIT",
        explicit_padding=[-1, 0, 0, 0],
        says="All explicit_padding elems must be >= 0",
    ),
    _convolution(padding="SAME", explicit_padding=[1, 1], says="explicit_padding Attr must be emp"),
    _convolution(window_strides=[1], says="Size of window_strides Attr must be dims - 2"),
    _convolution(window_strides=[0, 1], says="All elements of window_strides must be >= 1"),
    _convolution(lhs_dilation=[1], says="Size of lhs_dilation Attr must be dims - 2"),
    _convolution(rhs_dilation=[1, 0], says="All elements of rhs_dilation must be >= 1"),
    _convolution(feature_group_count=0, says="must be a positive integer"),
    _convolution(batch_group_count=0, says="must be a positive integer"),
    _convolution(batch_group_count=2, says="batch_group_count must divide lhs batch dimension"),
    _convolution(_MANY, integers(4, 3, 2, 2), says="must divide lhs feature dimension size"),
    _convolution(_MANY, integers(3, 2, 2, 2), feature_group_count=2, says="must be a multiple of"),
    _convolution(_MANY, _PAIRS, says="divided by feature_group_count must equal"),
    _convolution(_MANY, integers(4, 4, 2), says="lhs and rhs must have same dims"),
    _convolution(integers(1, 2), integers(3, 2), says="shape dims must be at least 3"),
    _convolution(dimension_numbers=b"\x08", says="Error parsing convolution dimension numbers"),
    _convolution(
        **_per("rhs", [0.1, 0.2], [1, 2], 1), says="rhs_quantization_axis Attr must be -1"
    ),
    _convolution(**_per("rhs", [0.1, 0.2], [1, 2], 0), says="quantization_axis"),
    _convolution(
        **_THREE,
        **_per("output", [1, 1, 1], [0, 0, 0], 2),
        says="output_quantization_axis Attr must be -1",
    ),
    _convolution(
        **_per("output", [1, 1, 1], [0, 0, 0], 1), says="output must be also per-tensor quantized"
    ),
    _convolution(output_scales=f32(-1), says="scales elements must be all positive"),
    _hybrid(normal(2, 2, 3, 4)),
    _hybrid(normal(2, 2, 3, 4), padding="SAME", window_strides=[2, 1]),
    _hybrid(normal(2, 2, 3, 4), **_THREE),
    _hybrid(normal(2, 4, 3, 4), _PAIRS, feature_group_count=2),
    _hybrid(normal(1, 4, 4, 2), integers(2, 2, 2, 3), dimension_numbers=_LAST),
    _hybrid(np.zeros((0, 2, 3, 4))),
    _hybrid(normal(2, 3, 4), says="lhs and rhs must have same dims"),
]
