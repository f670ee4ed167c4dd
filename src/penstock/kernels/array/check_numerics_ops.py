"""Checks for numbers that are none.

In:   a tensor of floats.
Out:  the same tensor, or an error that says which kinds of non-numbers it has.
Not:  changes nothing.
"""

from __future__ import annotations

import numpy as np

from penstock.core.values import Value
from penstock.kernels.api.attrs import Attrs
from penstock.kernels.api.registry import Kernel, kernel
from penstock.kernels.api.types import FLOATS


@kernel("CheckNumerics", "CheckNumericsV2", types={"T": FLOATS})
def make_check_numerics(attrs: Attrs) -> Kernel:
    """The tensor itself, if all of it is finite; the second version tells the signs."""
    message = attrs.str("message")
    kinds = _unsigned_kinds if attrs.op.name == "CheckNumerics" else _signed_kinds

    def check_numerics(tensor: Value) -> Value:
        if not np.isfinite(tensor).all():
            raise ValueError(f"{message} : Tensor had {kinds(tensor)} values")
        return tensor

    return check_numerics


def _unsigned_kinds(tensor: Value) -> str:
    found = {"Inf": np.isinf(tensor).any(), "NaN": np.isnan(tensor).any()}
    return " and ".join(kind for kind, is_there in found.items() if is_there)


def _signed_kinds(tensor: Value) -> str:
    found = {
        "-Inf": (tensor == -np.inf).any(),
        "+Inf": (tensor == np.inf).any(),
        "NaN": np.isnan(tensor).any(),
    }
    kinds = [kind for kind, is_there in found.items() if is_there]
    return "-Inf, +Inf, and NaN" if len(kinds) == 3 else " and ".join(kinds)
