"""The context of a kernel in a compiled loop that does not read its frame.

In:   the step, and the node.
Out:  ``FramelessContext``, which has all that a context has, but for frame and iteration.
Not:  guesses neither: it would be the place of the loop, and not that of the iteration.
"""

from __future__ import annotations

from typing import NoReturn

from penstock.errors import InternalError
from penstock.kernels.context import OpKernelContext, StepContext

_UNSET = ("frame", "iteration")


class FramelessContext(OpKernelContext):
    """A context that is made once per run, for all iterations of a loop."""

    __slots__ = ()

    def __init__(self, step: StepContext, node_name: str, op: str) -> None:
        """Set all but frame and iteration: what asks for these ends in ``__getattr__``."""
        self.step = step
        self.node_name = node_name
        self.op = op
        self.is_input_dead = False
        self.waits_for = ""

    def __getattr__(self, name: str) -> NoReturn:
        if name not in _UNSET:
            raise AttributeError(f"a kernel's context has no attribute '{name}'")
        raise InternalError(
            f"The kernel of Op '{self.op}' reads context.{name}, and does not say so",
            next_step="register it with traits=ps.KernelTraits(reads_frame=True)",
        )
