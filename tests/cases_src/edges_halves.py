"""Half precision: TensorFlow rounds after each step of a formula, to the last bit."""

from __future__ import annotations

from typing import Any

import numpy as np

from cases_src.casebook import EXACT, bf16, f16, f32, f64, inf, nan, normal, op

#: As many as eight at a time, and some more.
_SOME = np.concatenate(
    [normal(53, seed=4) * 3, [0, -0.0, 1, -1, inf, -inf, nan, 5, -5, 7.25, 1e-3]]
)
_OTHER = np.concatenate([normal(53, seed=5) * 2, _SOME[53:][::-1]])
_OF_FEATURES = ("Elu", "Selu", "Softplus", "Softsign")
_OF_ONE = ("Exp", "Expm1", "Log", "Log1p", "Tanh", "Sin", "Cos", "Sqrt", "Square", "Neg", "Abs")
_OF_TWO = (
    "AddV2", "Sub", "Mul", "RealDiv", "DivNoNan", "MulNoNan", "Xdivy", "Xlogy", "Xlog1py",
    "SquaredDifference", "FloorDiv", "FloorMod", "Pow", "Atan2",
)  # fmt: skip
_GRADS = {
    **dict.fromkeys(("SoftplusGrad", "SoftsignGrad"), ("gradients", "features")),
    **dict.fromkeys(("EluGrad", "SeluGrad"), ("gradients", "outputs")),
    **dict.fromkeys(("SigmoidGrad", "TanhGrad", "SqrtGrad", "ReciprocalGrad"), ("dy", "y")),
}


def narrow() -> list[Any]:
    """Every formula of float16 and bfloat16."""
    cases = []
    for make in (f16, bf16):
        x, y = make(_SOME), make(_OTHER)
        cases += [op(name, features=x, **EXACT) for name in _OF_FEATURES]
        cases += [op(name, x=x, **EXACT) for name in _OF_ONE]
        cases += [
            op(name, **({"y": x, "x": y} if name == "Atan2" else {"x": x, "y": y}), **EXACT)
            for name in _OF_TWO
        ]
        cases += [
            op(name, **{gradients: x, of: y}, **EXACT) for name, (gradients, of) in _GRADS.items()
        ]
        few = make([0.5, 1.001, -2, 3, 0.1, 1e-3, 88])
        cases += [op("Sigmoid", x=few, **EXACT), op("Rsqrt", x=few, **EXACT)]
        cases += [op("Sigmoid", x=one, **EXACT) for one in few]
    return cases


def wide() -> list[Any]:
    """Formulas of the others, where every step is exact arithmetic or a choice."""
    cases = []
    for make in (f32, f64):
        x, y = make(_SOME), make(_OTHER)
        names = ("TanhGrad", "SigmoidGrad", "SqrtGrad", "ReciprocalGrad", "SeluGrad", "EluGrad")
        cases += [
            op(name, **dict(zip(_GRADS[name], (x, y), strict=True)), **EXACT) for name in names
        ]
        cases += [op("FloorMod", x=x, y=y, **EXACT), op("Xdivy", x=x, y=y, **EXACT)]
        cases += [op(name, features=make([-0.0, 0, -inf, inf, nan]), **EXACT) for name in ("Elu",)]
        zeros, ones = make([0, -0.0, 4, -4]), make([3, -3, 2, -2])
        cases += [op("FloorMod", x=zeros[:, None], y=ones, **EXACT)]
        cases += [op("FloorMod", x=x, y=y, **EXACT) for x, y in zip(zeros, -ones, strict=True)]
        # The textbook's 1 - exp(x), where other formulas have more digits.
        cases += [
            op(name, features=make([-1e-3, -1e-5]), tol=(0.0, 1e-4)) for name in ("Elu", "Selu")
        ]
    return cases


CASES = [*narrow(), *wide()]
