"""Segments at their edges: ids that are out of order or out of range, NaN, half precision."""

from __future__ import annotations

from typing import Any

import numpy as np

from cases_src.casebook import (
    EXACT,
    bf16,
    c64,
    f16,
    f32,
    f64,
    i32,
    i64,
    inf,
    nan,
    normal,
    op,
)

_ROWS = f32([[1, 2], [3, 4], [5, 6], [7, 8]])
_KINDS = ("Sum", "Mean", "Prod", "Max", "Min")
_SPARSE = ("Sum", "Mean", "SqrtN")
_NO_ORDER = "segment ids are not increasing"
_OUT = "possibly because 'segment_ids' input is not sorted"
#: Ids for four rows that are refused, and why.
_BAD_IDS = [
    ([1, 0, 0, 0], _NO_ORDER),
    ([0, 2, 1, 3], _NO_ORDER),
    ([2, 1, 0, -1], "segment ids must be >= 0"),
    ([-2, -1, -1, -1], "segment ids must be >= 0"),
    ([-1, 0, 1, 1], _OUT),
    ([0, 1, 1], "segment_ids should be the same size as dimension 0 of input"),
    ([[0, 0], [1, 1]], "segment_ids should be a vector"),
    (0, "segment_ids should be a vector"),
]


def refused() -> list[Any]:
    """Ids that are not sorted, negative, too many, or too large."""
    cases = [
        op(f"Segment{kind}", data=_ROWS, segment_ids=make(ids), says=says)
        for kind in _KINDS
        for make, (ids, says) in zip((i32, i64) * 4, _BAD_IDS, strict=True)
    ]
    for kind in _SPARSE:
        name = f"SparseSegment{kind}"
        gather = {"data": _ROWS, "indices": i32([0, 1, 2, 3])}
        cases += [
            op(name, **gather, segment_ids=i32(ids), says=says)
            for ids, says in _BAD_IDS
            if np.size(ids) == 4 and np.ndim(ids) == 1
        ]
        cases += [
            op(name, **gather, segment_ids=i32([0, 1, 1]), says="should have same size"),
            op(
                name,
                data=_ROWS,
                indices=i32([0, 4, 1, 1]),
                segment_ids=i32([0, 0, 1, 1]),
                says="Bad: indices[1] == 4 out of range [0, 4)",
            ),
        ]
        cases += [
            op(
                f"{name}WithNumSegments",
                **gather,
                segment_ids=i32(ids),
                num_segments=i32(count),
                says=says,
            )
            for ids, count, says in [
                ([-2, -1, -1, -1], 2, "Segment id -2 out of range [0, 2)"),
                ([-1, 0, 0, 1], 2, "Segment id -1 out of range [0, 2)"),
                ([0, 0, 1, 2], 2, "segment ids must be < num_segments"),
                ([0, 0, 1, 1], -1, "segment ids must be >= 0"),
                ([0, 0, 1, 1], [2], "num_segments should be a scalar"),
            ]
        ]
    cases += [
        op(
            f"UnsortedSegment{kind}",
            data=_ROWS,
            segment_ids=i32(ids),
            num_segments=i32(count),
            says=says,
        )
        for kind in ("Sum", "Prod", "Max", "Min")
        for ids, count, says in [
            ([0, 5, 1, 1], 4, "segment_ids[1] = 5 is out of range [0, 4)"),
            ([0, 1, 1], 4, "does not start with segment_ids.shape = [3]"),
            ([0, 0, 1, 1], -1, "num_segments == -1 must not be negative"),
        ]
    ]
    return cases


def accepted() -> list[Any]:
    """Ids of rows without elements are not looked at, and negative ones drop their rows."""
    none = f32(np.zeros((4, 0)))
    cases = []
    for kind in ("Sum", "Prod", "Max", "Min"):
        name = f"UnsortedSegment{kind}"
        cases += [
            op(name, data=none, segment_ids=i32([0, 9, -1, 1]), num_segments=i32(3)),
            op(name, data=_ROWS, segment_ids=i32([2, -5, 0, 2]), num_segments=i64(3)),
            op(name, data=_ROWS, segment_ids=i32([-1, -1, -1, -1]), num_segments=i32(0)),
        ]
    for kind in _SPARSE:
        args = {"grad": _ROWS, "indices": i32([0, 3, 3, 1]), "segment_ids": i32([0, 0, 1, 3])}
        name = f"SparseSegment{kind}Grad"
        cases += [
            op(name, **args, output_dim0=i32(4), **EXACT),
            op(name, **args, output_dim0=i32(0)),
            op(f"{name}V2", **args, dense_output_dim0=i32(4), **EXACT),
            op(f"{name}V2", **args, dense_output_dim0=i32(0)),
            op(name, **args, output_dim0=i32(-1), says="Expected a non-negative size, got -1"),
            op(name, **args, output_dim0=i32([4]), says="output_dim0 should be a scalar"),
            op(name, **args, output_dim0=i32(3), says="out of range [0, 3)"),
        ]
    return cases


def not_numbers() -> list[Any]:
    """A NaN makes an extremum forget what came before it."""
    values = [[nan, 1, 2], [1, nan, 2], [2, nan, 1], [1, 2, nan], [nan, nan, nan], [-0.5, 0, -1]]
    cases = []
    for make in (f32, f16, bf16, f64):
        data, ids = make(values).reshape(-1), i32(np.repeat(np.arange(6), 3))
        for kind in ("Max", "Min"):
            count = {"num_segments": i32(7)}
            cases += [
                op(f"Segment{kind}", data=data, segment_ids=ids, **EXACT),
                op(f"UnsortedSegment{kind}", data=data, segment_ids=ids, **count, **EXACT),
                op(
                    f"UnsortedSegment{kind}",
                    data=np.stack([data, data[::-1]], 1),
                    segment_ids=i32(np.arange(18) * 5 % 7),
                    **count,
                    **EXACT,
                ),
            ]
    special = c64([complex(inf, 1), complex(nan, 0), 1, 2j, 3])
    cases += [
        op(f"Segment{kind}", data=special, segment_ids=i32([0, 1, 3, 3, 3]), **EXACT)
        for kind in ("Sum", "Mean")
    ]
    return cases


def rounded() -> list[Any]:
    """Sums are rounded row by row in half precision; of gathered rows, eight by eight."""
    cases = []
    for make in (f16, bf16):
        data, ids = make(normal(12, 3, seed=1)), i32([0, 0, 0, 0, 0, 2, 2, 2, 2, 2, 2, 3])
        cases += [
            op(f"Segment{kind}", data=data, segment_ids=ids, **EXACT)
            for kind in ("Sum", "Prod", "Mean")
        ]
        cases += [
            op(f"UnsortedSegment{kind}", data=data, segment_ids=ids, num_segments=i32(4), **EXACT)
            for kind in ("Sum", "Prod")
        ]
    for make in (f32, f64, f16, bf16):
        data = make(normal(60, 5, seed=2))
        # Segments of 1, 2, 3, 7, 8, 9, 10, and 20 rows.
        ids = np.repeat([0, 1, 3, 4, 5, 6, 8, 9], [1, 2, 3, 7, 8, 9, 10, 20])
        cases += [
            op(
                f"SparseSegment{kind}",
                data=data,
                indices=i32(np.arange(60) * 7 % 60),
                segment_ids=i32(ids),
                **EXACT,
            )
            for kind in _SPARSE
        ]
    return cases


CASES = [*refused(), *accepted(), *not_numbers(), *rounded()]
