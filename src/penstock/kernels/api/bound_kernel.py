"""A kernel made for one node, and how to call it.

In:   what a maker returned.
Out:  ``BoundKernel``, for both tiers.
Not:  knows neither tier.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

from penstock.dataclass import dataclass
from penstock.kernels.api.context import StepContext
from penstock.kernels.api.elementwise import is_elementwise
from penstock.kernels.api.registry import Calling, Cost, Kernel
from penstock.kernels.api.traits import UNSAID, KernelTraits

#: Seconds for a kernel that nobody can tell that its step ends, but that does nothing but compute.
BRIEF: Final = 0.1


@dataclass(frozen=True, slots=True)
class BoundKernel:
    """A kernel made for one node."""

    compute: Kernel
    calling: Calling
    cost: Cost
    #: Penstock's own kernels are trusted to return what they declare.
    is_builtin: bool = True
    #: Whether it does nothing but compute, or make what nobody has seen yet: whoever does not
    #: need its results may go before it is done.
    is_pure: bool = False
    #: What the kernel's author says about it.
    traits: KernelTraits = UNSAID
    #: What says where in a step the kernel is, if it does many things.
    explain: Callable[[StepContext], str] | None = None

    @property
    def reads_frame(self) -> bool:
        """Whether it may ask where in a loop it is: who says nothing may, unless it is ours."""
        said = self.traits.reads_frame
        return not self.is_builtin if said is None else said

    @property
    def is_elementwise(self) -> bool:
        """Whether parts of the output are its outputs for those parts of the inputs."""
        return self.traits.is_elementwise or (self.is_builtin and is_elementwise(self.compute))


def patience_of(kernel: BoundKernel, patience: float) -> float:
    """How long a step that is ended waits for a kernel: for effects, until they are done.

    Args:
        kernel: what may take its time.
        patience: seconds for asynchronous kernels.

    """
    if kernel.calling is Calling.ASYNC:
        return patience
    return BRIEF if kernel.is_pure else math.inf
