"""Arithmetic on uniformly quantised integers."""

from __future__ import annotations

from typing import Any

import numpy as np

from cases_src.casebook import f32, i32, integers, op, q

_LEAST, _MOST = -(2**31), 2**31 - 1


def _limits(which: str, bits: int = 32) -> dict[str, int]:
    return {
        f"{which}quantization_min_val": -(2 ** (bits - 1)),
        f"{which}quantization_max_val": 2 ** (bits - 1) - 1,
    }


def _facts(which: str, scales: Any, zeros: Any, axis: int = -1) -> dict[str, Any]:
    made = {f"{which}_scales": f32(scales), f"{which}_zero_points": i32(zeros)}
    return {**made, f"{which}_quantization_axis": axis}


def _sum(lhs: Any, rhs: Any, *facts: dict[str, Any]) -> Any:
    ends = {**_limits("lhs_"), **_limits("rhs_"), **_limits("output_")}
    merged = {key: value for fact in facts for key, value in fact.items()}
    return op("UniformQuantizedAdd", lhs=q("qint32", lhs), rhs=q("qint32", rhs), **ends, **merged)


def _dot(*facts: dict[str, Any], seed: int) -> Any:
    ends = {**_limits("lhs_", 8), **_limits("rhs_", 8), **_limits("output_")}
    merged = {key: value for fact in facts for key, value in fact.items()}
    return op(
        "UniformQuantizedDot",
        lhs=q("qint8", integers(3, 5, low=-128, high=128, seed=seed)),
        rhs=q("qint8", integers(5, 2, low=-128, high=128, seed=seed + 1)),
        Tout="qint32",
        **ends,
        **merged,
    )


def _requantize(kind: str, values: Any, *facts: dict[str, Any]) -> Any:
    merged = {key: value for fact in facts for key, value in fact.items()}
    bits = int(kind.removeprefix("qint"))
    ends = {**_limits("input_", bits), **_limits("output_", 8)}
    return op("UniformRequantize", input=q(kind, values), Tout="qint8", **ends, **merged)


def _clip(values: Any, low: Any, high: Any, scales: Any, zeros: Any, axis: int) -> Any:
    return op(
        "UniformQuantizedClipByValue",
        operand=q("qint32", values),
        min=q("qint32", low),
        max=q("qint32", high),
        scales=f32(scales),
        zero_points=i32(zeros),
        quantization_axis=axis,
        **_limits(""),
    )


def _hybrid(lhs: Any, rhs: Any, *facts: dict[str, Any], says: str = "") -> Any:
    merged = {key: value for fact in facts for key, value in fact.items()}
    return op(
        "UniformQuantizedDotHybrid",
        lhs=f32(lhs),
        rhs=q("qint8", rhs),
        Tout="float32",
        says=says,
        **_limits("rhs_", 8),
        **merged,
    )


_ROWS = [[1, 2, -7], [100, 5, 6]]
#: Twice the halves.
_ODD = list(range(-9, 10, 2))
_SQUARE = [[1, 2], [3, -128]]

CASES = [
    _sum(_ROWS, [4, -3, 9], *map(_facts, ("lhs", "rhs", "output"), (0.5, 0.3, 0.7), (3, -2, 10))),
    _sum(_ROWS, _ROWS, *map(_facts, ("lhs", "rhs", "output"), (0.5, 0.5, 0.5), (3, 3, 3))),
    _sum(
        _ROWS,
        [4, -3, 9],
        _facts("lhs", [0.5, 1, 0.2], [3, 0, 1], 1),
        _facts("rhs", [0.3, 2, 0.1], [-2, 1, 0], 0),
        _facts("output", [0.7, 1, 0.01], [10, 0, 0], 1),
    ),
    _dot(_facts("lhs", 0.5, 3), _facts("rhs", 0.3, -2), _facts("output", 0.07, 10), seed=1),
    _dot(
        _facts("lhs", 0.013, 3),
        _facts("rhs", [0.3, 0.1], [-2, 0], 1),
        _facts("output", [0.07, 0.2], [10, 0], 1),
        seed=3,
    ),
    _requantize(
        "qint32",
        [1, -7, 100, 1000, -333, _MOST, _LEAST],
        _facts("input", 0.5, 3),
        _facts("output", 0.7, 10),
    ),
    _requantize(
        "qint32",
        [[1, -7, 100], [5, 6, 1000]],
        _facts("input", [0.5, 0.2, 0.1], [3, 0, 1], 1),
        _facts("output", 0.7, 10),
    ),
    _requantize(
        "qint8",
        [[1, -7, 100], [5, 6, -128]],
        _facts("input", 0.2, 3),
        _facts("output", [0.7, 0.1], [10, -3], 0),
    ),
    _clip([1, -5, 99], -2, 50, 0.5, 3, -1),
    _clip([[1, -5, 99], [9, 0, 3]], [-2, -9, 0], [0, 50, 9], [0.5] * 3, [3] * 3, 1),
    _sum(_ODD, [0] * 10, *map(_facts, ("lhs", "rhs", "output"), (0.5, 1, 1), (0, 0, 0))),
    _requantize("qint8", _ODD, _facts("input", 0.5, 0), _facts("output", 1, 0)),
    _hybrid(_ROWS, [[1, 2], [3, 4], [-128, 127]], _facts("rhs", 0.5, 1)),
    _hybrid(_SQUARE, _SQUARE, _facts("rhs", [0.5, 0.3], [1, 2], 1)),
    _hybrid([[0, 0], [-1, -3]], _SQUARE, _facts("rhs", 0.5, 1)),
    _hybrid(np.zeros((0, 2)), _SQUARE, _facts("rhs", 0.5, 1)),
    _hybrid(np.zeros((2, 0)), np.zeros((0, 2)), _facts("rhs", 0.5, 1)),
    _hybrid(_ROWS, _SQUARE, _facts("rhs", 0.5, 1), says="lhs"),
    _hybrid([1, 2], _SQUARE, _facts("rhs", 0.5, 1), says="lhs"),
    _hybrid(_SQUARE, _SQUARE, _facts("rhs", -0.5, 1), says="scales elements must be all positive"),
    _hybrid(_SQUARE, _SQUARE, _facts("rhs", [1, 1], 1, 1), says="shape must be same"),
]
