"""Which kernels work on each element by itself.

In:   kernels.
Out:  whether a part of the output is the kernel's output for that part of the inputs, so that
      long arrays can be worked on in pieces.
Not:  calls no kernel.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, Final

import numpy as np

_OPERATORS: Final = frozenset(
    {
        operator.add,
        operator.sub,
        operator.mul,
        operator.truediv,
        operator.mod,
        operator.pow,
        operator.neg,
        operator.pos,
        operator.abs,
        operator.invert,
        operator.and_,
        operator.or_,
        operator.xor,
        operator.lt,
        operator.le,
        operator.gt,
        operator.ge,
        operator.eq,
        operator.ne,
    }
)


def is_elementwise(compute: Callable[..., Any]) -> bool:
    """Whether a kernel is known to work element by element."""
    if isinstance(compute, np.ufunc):
        return compute.nout == 1 and compute.signature is None
    try:
        return compute in _OPERATORS
    except TypeError:  # no hash
        return False
