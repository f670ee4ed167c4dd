"""Asynchronous kernels that mostly need not wait.

In:   an asynchronous kernel, and the same as a plain attempt.
Out:  ``Prompt``, which whoever runs it may try before it starts it.
Not:  registers no kernel; knows neither tier.

To be called back costs more than most of what such kernels do: an element goes into a queue,
a value is there already.
"""

from __future__ import annotations

import enum
from typing import Any, Final

from penstock.kernels.context import Done, OpKernelContext
from penstock.kernels.registry import Kernel


class Wait(enum.Enum):
    """The one answer of an attempt that came too early."""

    WAIT = enum.auto()


#: The kernel would have to wait, and has done nothing.
WAIT: Final = Wait.WAIT


class Prompt:
    """A kernel that is asked first for what it has at once.

    ``at_once(step, *inputs)`` gives the outputs, or WAIT.
    """

    __slots__ = ("at_once", "start")

    def __init__(self, at_once: Kernel, start: Kernel) -> None:
        self.at_once = at_once
        self.start = start

    def __call__(self, context: OpKernelContext, done: Done, *inputs: Any) -> None:
        """Start the kernel as any other that is asynchronous."""
        self.start(context, done, *inputs)
