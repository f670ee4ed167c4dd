"""Asynchronous kernels that mostly need not wait.

In:   an asynchronous kernel, and the same as a plain attempt.
Out:  ``TryKernel``, which whoever runs it may try before it starts it.
Not:  registers no kernel; knows neither tier.

To be called back costs more than most of what such kernels do: an element goes into a queue,
a value is there already.
"""

from __future__ import annotations

import enum
from typing import Any, Final

from penstock.kernels.api.context import Done, OpKernelContext
from penstock.kernels.api.registry import Kernel


class WouldBlock(enum.Enum):
    """The one answer of an attempt that came too early."""

    WOULD_BLOCK = enum.auto()


#: The kernel would have to wait, and has done nothing.
WOULD_BLOCK: Final = WouldBlock.WOULD_BLOCK


class TryKernel:
    """A kernel that is asked first for what it has at once.

    ``try_compute(step, *inputs)`` gives the outputs, or WOULD_BLOCK.
    """

    __slots__ = ("start", "try_compute")

    def __init__(self, try_compute: Kernel, start: Kernel) -> None:
        self.try_compute = try_compute
        self.start = start

    def __call__(self, context: OpKernelContext, done: Done, *inputs: Any) -> None:
        """Start the kernel as any other that is asynchronous."""
        self.start(context, done, *inputs)
