"""The op that computes the gradient of a function.

In:   the function's arguments, and gradients of its results.
Out:  gradients of the arguments.
Not:  makes no gradient itself; ``graph/gradients`` does, when the body is first wanted.
"""

from __future__ import annotations

from penstock.core.values import Value
from penstock.defs.attrs import FuncAttr
from penstock.kernels.attrs import Attrs
from penstock.kernels.context import Done, OpKernelContext
from penstock.kernels.control_flow.functional_ops import call, expecting
from penstock.kernels.registry import Kernel, async_kernel


@async_kernel("SymbolicGradient")
def make_symbolic_gradient(attrs: Attrs) -> Kernel:
    """The gradient of a function: what was registered for it, or what its ops' rules make."""
    gradient = FuncAttr(attrs.op.name, {"f": attrs.func("f")})
    types = attrs.output_types

    def run(context: OpKernelContext, done: Done, *args: Value) -> None:
        call(context, gradient, args, expecting(types, done))

    return run
