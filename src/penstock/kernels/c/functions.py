"""Kernels that are functions of single elements in C.

In:   the attributes of a node.
Out:  a function of numpy's kind; None where there is none for the op and its type.
Not:  computes nothing.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from penstock.core import dtypes
from penstock.kernels.api.attrs import Attrs
from penstock.kernels.c.programs import function_named

#: Ops whose functions are not numpy's own, or not in one pass.
FUNCTIONS: Final = frozenset(
    {
        *("Exp", "Tanh", "Sigmoid", "Erf", "Erfc", "Relu", "Relu6"),
        *("Log", "Log1p", "Expm1", "Softplus", "Elu", "Selu"),
        *("ReluGrad", "Relu6Grad", "TanhGrad", "SigmoidGrad"),
        *("SoftplusGrad", "EluGrad", "SeluGrad"),
    }
)


def in_c(attrs: Attrs) -> np.ufunc | None:
    """The function of float32 that the op is named after."""
    op = attrs.op.name
    if op not in FUNCTIONS or not attrs.accelerate or attrs.dtype("T") is not dtypes.float32:
        return None
    return function_named(op)
