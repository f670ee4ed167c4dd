"""Complex numbers: products and quotients as TensorFlow rounds them, infinities included."""

from __future__ import annotations

from typing import Any

import numpy as np

from cases_src.casebook import EXACT, c64, c128, f32, inf, nan, normal, op

_PARTS = (nan, inf, -inf, 0.0, -0.0, 1, -2.5)
_SPECIAL = [complex(a, b) for a in _PARTS for b in _PARTS]
_OF_TWO = ("Mul", "Div", "RealDiv", "DivNoNan", "MulNoNan", "Xdivy", "SquaredDifference")
_OF_ONE = ("Square", "Inv", "Reciprocal")
_GRADS = ("SqrtGrad", "RsqrtGrad", "InvGrad", "TanhGrad")


def _numbers(make: Any, count: int, seed: int) -> Any:
    return make(normal(count, seed=seed) + 1j * normal(count, seed=seed + 1))


def ordinary() -> list[Any]:
    """So many numbers that some are taken several at a time, and others one by one."""
    cases = []
    for make in (c64, c128):
        for count in (1, 2, 3, 4, 7, 16, 33):
            x, y = _numbers(make, count, 1), _numbers(make, count, 3)
            cases += [op(name, x=x, y=y, **EXACT) for name in _OF_TWO]
            cases += [op(name, x=x, **EXACT) for name in _OF_ONE]
            cases += [op(name, y=x, dy=y) for name in _GRADS]
        row, column = _numbers(make, 8, 5), _numbers(make, 4, 7)[:, None]
        cases += [op(name, x=row, y=column, **EXACT) for name in ("Mul", "RealDiv")]
        cases += [op(name, x=row, y=column[0, 0], **EXACT) for name in ("Mul", "RealDiv")]
        cases += [op(name, x=row[0], y=column, **EXACT) for name in ("Mul", "RealDiv")]
        cases += [op(name, x=row[:0], y=column, **EXACT) for name in ("Mul", "RealDiv")]
    return cases


def special() -> list[Any]:
    """Infinities, NaN and zeros of both signs, many of them and one by one."""
    cases = []
    for make in (c64, c128):
        x, y = (
            part.copy() for part in np.broadcast_arrays(make(_SPECIAL)[:, None], make(_SPECIAL))
        )
        # A number that is not a multiple of four, so that the last ones are taken one by one.
        cases += [op(name, x=x[:33], y=y[:33], **EXACT) for name in ("Mul", "Div", "RealDiv")]
        cases += [
            op(name, x=make(a), y=make(b), **EXACT)
            for name in ("Mul", "RealDiv")
            for a in (complex(inf, nan), complex(nan, -inf), complex(1, inf), 2, 0j)
            for b in (complex(-inf, 0), complex(nan, 3), complex(nan, nan), -0.0, 1j)
        ]
        cases += [op(name, x=make(_SPECIAL), **EXACT) for name in _OF_ONE]
        infinite = make([complex(a, b) for a in (inf, -inf) for b in _PARTS])
        cases += [op(name, x=infinite) for name in ("Sigmoid", "Rsqrt")]
        cases += [op("Rsqrt", x=make([0, -0.0, 1, -4]))]
    # Partial products that overflow are found again, too.
    huge = c64([complex(3e38, nan)])
    cases += [op("Mul", x=huge, y=huge, **EXACT), op("Mul", x=huge[0], y=c64(inf), **EXACT)]
    return cases


def extreme() -> list[Any]:
    """Divisors whose squares are infinite or zero."""
    scale = f32([1e30, 1e20, 1e-20, 1e-30])
    x, y = _numbers(c64, 4, 9), _numbers(c64, 4, 11)
    return [
        op("RealDiv", x=c64(x * a), y=c64(y * b), **EXACT)
        for a in scale
        for b in scale
        if 1e-37 < float(a) / float(b) < 1e37
    ] + [op("Inv", x=c64(y * b), **EXACT) for b in scale]


CASES = [*ordinary(), *special(), *extreme()]
