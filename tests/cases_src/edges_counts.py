"""Counts and histograms: weights that are not there, ids that do not count, nothing to count."""

from __future__ import annotations

from typing import Any

import numpy as np

from cases_src.casebook import EXACT, f32, f64, i32, i64, inf, nan, op, s

#: Weights that count as ones, whatever their shape.
_NONE = [np.zeros(0), np.zeros((0, 3)), np.zeros((2, 0))]
_NUMBERS = [1, 2, 2, 5]


def without_weights() -> list[Any]:
    """Each occurrence weighs 1; sizes of 0, and numbers beyond the size, count nothing."""
    cases = []
    for none in _NONE:
        for numbers in ([], _NUMBERS, [[1, 2], [2, 5]], 1):
            cases += [
                op("Bincount", arr=i32(numbers), size=i32(4), weights=f32(none)),
                op("DenseBincount", input=i32(numbers), size=i32(4), weights=f64(none)),
            ]
        cases += [
            op(
                "RaggedBincount",
                splits=i64([0, 2, 2, 4]),
                values=i32(_NUMBERS),
                size=i32(size),
                weights=i64(none),
            )
            for size in (0, 3, 6)
        ]
        cases += [
            op(
                "SparseBincount",
                indices=i64(indices),
                values=i32(values),
                dense_shape=i64(shape),
                size=i32(6),
                weights=i32(none),
            )
            for indices, values, shape in [
                ([[0, 0], [0, 1], [1, 0], [2, 2]], _NUMBERS, [3, 4]),
                ([[0], [1], [2], [3]], _NUMBERS, [4]),
                (np.zeros((0, 2)), [], [3, 4]),
                (np.zeros((0, 2)), [], [0, 4]),
            ]
        ]
    return cases


def whether() -> list[Any]:
    """Whether a number occurs has nothing to do with weights."""
    weights = f32([0, -1, 1, 0])
    row = {"size": i32(4), "weights": weights, "binary_output": True}
    return [
        op("DenseBincount", input=i32(_NUMBERS), **row),
        op("DenseBincount", input=i32([_NUMBERS]), **{**row, "weights": weights[None]}),
        op("RaggedBincount", splits=i64([0, 1, 4]), values=i32(_NUMBERS), **row),
        op(
            "SparseBincount",
            indices=i64([[0], [1], [2], [3]]),
            values=i32(_NUMBERS),
            dense_shape=i64([4]),
            **row,
        ),
    ]


def refusals() -> list[Any]:
    """What does not fit, in TensorFlow's words."""
    some, none = f32([1, 2]), f32([])
    same_size = "Input indices and weights must have the same size."
    dense = {"input": i32(_NUMBERS), "size": i32(4)}
    outside = "Sparse index tuple indices[0, :] = [5, 0] is out of bounds"
    cases = [
        op("Bincount", arr=i32(_NUMBERS), size=i32(4), weights=some, says=same_size),
        op("DenseBincount", **{**dense, "size": i32([4])}, weights=some, says="rank 0"),
        op("DenseBincount", **dense, weights=some, says="the same shape as `arr`"),
        op("DenseBincount", **{**dense, "input": i32([-1])}, weights=none, says="non-negative"),
    ]
    cases += [
        op(
            "RaggedBincount",
            splits=i64(splits),
            values=i32(values),
            size=i32(size),
            weights=none,
            says=says,
        )
        for splits, values, size, says in [
            ([0, 4], _NUMBERS, -1, "size (-1) must be non-negative"),
            ([], [], 3, "Splits must be non-empty"),
            ([1, 2], [1, 2], 3, "Splits must start with 0, not with 1"),
            ([-1, 2], [1, 2], 3, "Splits must start with 0, not with -1"),
            ([0, 3], [1, 2], 3, "Splits must end with the number of values, got 3 instead of 2"),
            ([0, 2], [1, -2], 3, "Input must be non-negative"),
        ]
    ]
    cases += [
        op(
            "SparseBincount",
            indices=i64([index]),
            values=i32([1]),
            dense_shape=i64([3, 4][: len(index)]),
            size=i32(4),
            weights=weights,
            says=says,
        )
        for index, weights, says in [
            ([5, 0], none, outside),
            ([-1, 0], none, "Sparse index tuple indices[0, :] = [-1, 0] is out of bounds"),
            ([0], some, same_size),
        ]
    ]
    return cases


def histograms() -> list[Any]:
    """Into a single bin goes everything; ranges are said as numbers are."""
    one = {"value_range": f32([0, 5]), "nbins": i32(1)}
    cases = [
        op("HistogramFixedWidth", values=f32(values), **one)
        for values in ([nan, 1, inf], [], [[1, 2], [3, 4]])
    ]
    cases += [
        op("HistogramFixedWidth", values=f32([1, inf, -inf]), **{**one, "nbins": i32(3)}),
        op(
            "HistogramFixedWidth",
            values=f32([nan]),
            **{**one, "nbins": i32(2)},
            says="Histogram values must not contain NaN",
        ),
        op(
            "HistogramFixedWidth",
            values=f32([1]),
            **{**one, "value_range": f32([0, nan])},
            says="but got '[0, nan]'",
        ),
        op(
            "HistogramFixedWidth",
            values=f64([1]),
            value_range=f64([2.5, 1]),
            nbins=i32(2),
            says="but got '[2.5, 1]'",
        ),
    ]
    cases += [
        op("HistogramSummary", tag=s(tag), values=f32(values), says=says)
        for tag, values, says in [
            ([b"t"], [1], "tags must be scalar"),
            (b"t", [nan, inf], "Nan in summary histogram for: node"),
            (b"t", [-inf], "Infinity in Histogram for: node"),
        ]
    ]
    cases += [
        op("HistogramSummary", tag=s(b"t"), values=make(values), **EXACT)
        for make, values in [(f32, []), (f64, [1e300, -1e-300, 0]), (i64, [-(2**63), 2**63 - 1])]
    ]
    return cases


CASES = [*without_weights(), *whether(), *refusals(), *histograms()]
