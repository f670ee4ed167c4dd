"""Special functions of two numbers, at their edges and in between."""

from __future__ import annotations

from typing import Any

from cases_src.casebook import f32, f64, inf, nan, op

#: TensorFlow itself errs by so much in float32; for float64 it is a thousandth of that.
_CLOSE = {"tol": (3e-5, 1e-9)}
_POINTS = ([0.5, 2, 8, 30, 150], [0.2, 3, 7, 40, 140])
_EDGES = ([0, 0, 1, 1, 1, nan, 2, inf, 1], [0, 1, 0, inf, -1, 1, nan, 1, 1])


def _cases(name: str, first: str, second: str, pairs: Any) -> list[Any]:
    return [
        op(name, **{first: kind(one), second: kind(other)}, **_CLOSE)
        for one, other in pairs
        for kind in (f32, f64)
    ]


CASES = [
    *_cases("Igamma", "a", "x", (_POINTS, _EDGES)),
    *_cases("Igammac", "a", "x", (_POINTS, _EDGES)),
    *_cases(
        "Zeta", "x", "q",
        (([1.5, 2, 3, 8, 2, 3], [1, 0.25, 40, 2.5, -1.5, -2.25]),
         ([1, 0.5, 2, 2, 2.5, nan, 2], [2, 2, 0, -1, -1.5, 1, nan])),
    ),
    *_cases(
        "Polygamma", "a", "x",
        (([0, 1, 2, 5, 1, 2], [1.5, 0.5, 3, 20, -1.5, -0.25]),
         ([0.5, -1, 1, nan, 1], [1, 1, nan, 1, 0])),
    ),
]  # fmt: skip
