"""What a kernel read out of an input that is the same object in every call.

In:   an input that says how, not what: an axis, a shape, a permutation.
Out:  what was made of it the last time, if it is the same object and cannot have changed.
Not:  registers no kernel; compares no elements.

Such inputs are constants in nearly every graph.  One tuple holds what is remembered and is
replaced as a whole, so threads need no lock.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from penstock.core.values import Value

_T = TypeVar("_T")


def is_constant(value: Value) -> bool:
    """Whether a value that is met again as the same object is sure to be the same value."""
    return isinstance(value, np.generic) or (
        isinstance(value, np.ndarray) and not value.flags.writeable
    )


def remembering(read: Callable[[Value], _T]) -> Callable[[Value], _T]:
    """``read``, which is not asked again about the constant that came last."""
    #: The constant, which must live on so that no other object is taken for it.
    last: tuple[Value, Any] = (remembering, None)

    def remembered(value: Value) -> _T:
        nonlocal last
        known, found = last
        if value is not known:
            found = read(value)
            if is_constant(value):
                last = value, found
        result: _T = found
        return result

    return remembered
