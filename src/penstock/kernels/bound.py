"""A kernel made for one node, and how to call it.

In:   what a maker returned.
Out:  ``BoundKernel``, for both tiers.
Not:  knows neither tier.
"""

from __future__ import annotations

from dataclasses import dataclass

from penstock.kernels.registry import Calling, Cost, Kernel


@dataclass(frozen=True, slots=True)
class BoundKernel:
    """A kernel made for one node."""

    compute: Kernel
    calling: Calling
    cost: Cost
    #: Penstock's own kernels are trusted to return what they declare.
    is_builtin: bool = True
