"""Kernels that may take long, and ask now and then whether their step must end.

In:   what tells whether a step must end, and the kernel's inputs.
Out:  ``LongKernel``, which a compiled function calls without a context; where one is, by thread.
Not:  registers no kernel.

A context costs more than a short loop takes; whether to go on is all that such a kernel asks.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from penstock.core.values import Value
from penstock.kernels.api.context import OpKernelContext
from penstock.state.interrupt import Interrupt

#: Tells the frame of a loop and its iteration.
Place = tuple[str, int]
#: By thread, as long as a kernel takes long there.  Each thread changes its own entry alone.
places: Final[dict[int, Callable[[], Place]]] = {}


class NoProgramError(Exception):
    """The nodes that a node stands for must be computed one by one; who runs it knows how."""


class LongKernel:
    """A kernel that is called with its step's interrupt."""

    __slots__ = ()

    def compute(self, interrupt: Interrupt, *values: Any) -> tuple[Value, ...]:
        """The outputs; raises the reason if the step must end, or NoProgramError."""
        raise NotImplementedError

    def __call__(self, context: OpKernelContext, *values: Any) -> tuple[Value, ...]:
        """The same for whoever has a context."""
        return self.compute(context.interrupt, *values)


def place_on(thread: int) -> Place | None:
    """Where a kernel is that takes long on a thread, if it is in a loop."""
    tell = places.get(thread)
    return tell() if tell is not None else None
