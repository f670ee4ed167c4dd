"""The context of a kernel in a compiled loop that does not read its frame.

In:   the step, and the node; later what went wrong in a kernel.
Out:  an ``OpKernelContext`` without frame and iteration; the error that says who asked for them.
Not:  guesses neither: it would be the place of the loop, and not that of the iteration.

The context is made once per run, for all iterations.  It is of the one class that kernels know:
with a second one, or with ``__getattr__``, CPython would find all of its attributes more slowly,
by 5 % of a loop over TensorArrays.
"""

from __future__ import annotations

from penstock.errors import InternalError
from penstock.kernels.api.context import OpKernelContext, StepContext
from penstock.runtime.frame_names import FrameTag

_NOWHERE = FrameTag(None, 0, "")


def frameless_context(step: StepContext, node_name: str, op: str) -> OpKernelContext:
    """A context that has neither frame nor iteration."""
    context = OpKernelContext(step, node_name, op, _NOWHERE, 0, False)  # noqa: FBT003
    del context.frame, context.iteration
    return context


def told(cause: BaseException) -> BaseException:
    """What a kernel raised; in plain words if it asked for what its context has not."""
    if not isinstance(cause, AttributeError) or not isinstance(cause.obj, OpKernelContext):
        return cause
    if cause.name not in ("frame", "iteration"):
        return cause
    return InternalError(
        f"The kernel of Op '{cause.obj.op}' reads context.{cause.name}, and does not say so",
        next_step="register it with traits=ps.KernelTraits(reads_frame=True)",
    )
