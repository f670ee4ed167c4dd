"""Which kernels work on each element by itself.

In:   kernels.
Out:  whether a part of the output is the kernel's output for that part of the inputs, so that
      long arrays can be worked on in pieces.
Not:  calls no kernel.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, Final, TypeVar
from weakref import WeakSet

import numpy as np

_AnyKernel = TypeVar("_AnyKernel", bound=Callable[..., Any])

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
#: Functions that said so.
_marked: Final[WeakSet[Callable[..., Any]]] = WeakSet()


def elementwise(compute: _AnyKernel) -> _AnyKernel:
    """Note that a function works element by element; returns it."""
    _marked.add(compute)
    return compute


def is_elementwise(compute: Callable[..., Any]) -> bool:
    """Whether a kernel is known to work element by element."""
    if isinstance(compute, np.ufunc):
        return compute.nout == 1 and compute.signature is None
    try:
        return compute in _OPERATORS or compute in _marked
    except TypeError:  # no hash, or no weak references
        return False
