"""The op that computes the gradient of a function.

In:   the function's arguments, and gradients of its results.
Out:  gradients of the arguments.
Not:  makes no gradient itself; ``graph/gradients`` does, when the body is first wanted.
"""

from __future__ import annotations

from collections.abc import Sequence

from penstock.core.dtypes import DType
from penstock.core.values import Value, dtype_of, has_dtype
from penstock.defs.attrs import FuncAttr
from penstock.errors import InternalError, InvalidArgumentError
from penstock.kernels.api.attrs import Attrs
from penstock.kernels.api.context import Done, OpKernelContext
from penstock.kernels.api.registry import Kernel, async_kernel
from penstock.kernels.api.signatures import type_text
from penstock.kernels.control_flow.functional_ops import call, guarded


@async_kernel("SymbolicGradient")
def make_symbolic_gradient(attrs: Attrs) -> Kernel:
    """The gradient of a function: what was registered for it, or what its ops' rules make."""
    gradient = FuncAttr(attrs.op.name, {"f": attrs.func("f")})
    types, name = attrs.output_types, attrs.node_name

    def run(context: OpKernelContext, done: Done, *args: Value) -> None:
        def check(results: Sequence[Value]) -> None:
            _check(results, types, name)
            done(results)

        call(context, gradient, args, guarded(check, done))

    return run


def _check(results: Sequence[Value], types: Sequence[DType], node: str) -> None:
    """Refuse gradients that are not what the node declares: anybody may register one."""
    if len(results) != len(types):
        raise InvalidArgumentError(
            f"SymGrad expects to return {len(types)} tensor(s), but get {len(results)} "
            "tensor(s) instead.",
            next_step="a gradient gives one result for each argument of its function",
        )
    for slot, (value, dtype) in enumerate(zip(results, types, strict=True)):
        if not has_dtype(value, dtype):
            raise InternalError(
                f"Output {slot} of type {type_text(dtype_of(value))} does not match declared "
                f"output type {type_text(dtype)} for node {{{{node {node}}}}}"
            )
