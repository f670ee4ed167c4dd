"""Kernels that are functions of single elements in C.

In:   the attributes of a node.
Out:  a function of numpy's kind; None where there is none for the op and its type.
Not:  computes nothing.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Final

import numpy as np

from penstock.core import dtypes
from penstock.core.values import Value
from penstock.kernels.api.attrs import Attrs
from penstock.kernels.c.programs import Compiled, Step, compile_steps, function_named

#: The most arrays that numpy has a function take.
MOST_INPUTS: Final = 16
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


def leaky_relu(alpha: float) -> Callable[[Value], Value] | None:
    """The number where it is positive, alpha times it elsewhere; None where there is no library."""
    made = _leaky_relu(np.float32(alpha).tobytes())
    if made is None:
        return None

    def leaky(x: Value) -> Value:
        result: Value = made.function(x)  # and ``made`` has its memory
        return result

    return leaky


@functools.lru_cache(maxsize=MOST_INPUTS)
def sum_of(count: int) -> Compiled | None:
    """Adds up so many arrays of one shape, first to last, in one pass; None without a library."""
    steps = [Step("Add", count, count if number > 1 else 0, number) for number in range(1, count)]
    return compile_steps(f"sum_of_{count}", count, [], steps)


@functools.lru_cache(maxsize=64)
def _leaky_relu(alpha: bytes) -> Compiled | None:
    """The same as numpy's function, and its memory, for an alpha by its bits."""
    [number] = np.frombuffer(alpha, np.float32)
    steps = [Step("Mul", 2, 0, 1), Step(leaky_choice(number), 3, 0, 2)]
    return compile_steps("leaky_relu", 1, [number], steps)


def leaky_choice(alpha: float) -> str:
    """Which of the number and alpha times it is the one: its function of two numbers."""
    return "Maximum" if alpha <= 1 else "Minimum"
