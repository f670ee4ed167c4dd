"""Arithmetic of real numbers at the ends of their range."""

from __future__ import annotations

from typing import Any

import ml_dtypes

from cases_src.casebook import bf16, f16, f32, f64, inf, nan, op


def angles() -> list[Any]:
    """Points so far out or so near to an axis that no quotient tells their angle."""
    cases = []
    for make in (f16, bf16, f32, f64):
        limits = ml_dtypes.finfo(make(0).dtype)
        largest, least = float(limits.max), float(limits.tiny)
        sizes = [0.0, least, 3 * least, least**0.5, 1, largest**0.5, largest / 3, largest, inf]
        both = make([*sizes, *(-size for size in sizes), nan])
        cases += [
            op("Atan2", y=both[:, None], x=both),
            op("Atan2", y=both[3], x=both[10]),
        ]
        if make is not f16:
            below = make([least * 0.85, -least * 0.85, least / 4])
            cases += [
                op("Atan2", y=make([[least], [-least], [1]]), x=below),
                op("Atan2", y=below, x=make([[least], [-least], [1]])),
            ]
    return cases


CASES = [*angles()]
