"""Assertions.

In:   a condition, and values that explain its failure.
Out:  nothing; InvalidArgumentError with the values in it if the condition is false.
Not:  prints nothing (Print and its kin stand elsewhere).
"""

from __future__ import annotations

from penstock.core.values import Value, shape_of
from penstock.errors import InvalidArgumentError
from penstock.kernels.api.attrs import Attrs
from penstock.kernels.api.registry import Cost, Kernel, kernel
from penstock.kernels.values.arrays import shape_text
from penstock.kernels.values.printing import summarize


@kernel("Assert", cost=Cost.CHEAP)
def make_assert(attrs: Attrs) -> Kernel:
    """Nothing, as long as the condition is true."""
    limit = attrs.int("summarize")

    def check(condition: Value, *data: Value) -> None:
        if shape_of(condition) != ():
            raise InvalidArgumentError(
                f"In[0] should be a scalar: {shape_text(shape_of(condition))}"
            )
        if not condition:
            shown = " ".join(f"[{summarize(value, limit)}]" for value in data)
            raise InvalidArgumentError(f"assertion failed: {shown}")

    return check
