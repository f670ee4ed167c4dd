"""A loop as one node: what it means, computed node by node.

In:   the loop's variables as they begin, then what stays the same in it.
Out:  the variables as they end.
Not:  compiles nothing.

Such nodes stand in regions that XLA computes; here is what happens until the region is compiled,
and where it cannot be.
"""

from __future__ import annotations

import dataclasses
from typing import Final

from penstock.core.values import Value
from penstock.errors import CancelledError, OpError
from penstock.kernels.api.attrs import Attrs
from penstock.kernels.api.context import OpKernelContext
from penstock.kernels.api.node_list import NodeList
from penstock.kernels.api.registry import Kernel, context_kernel
from penstock.kernels.api.traits import KernelTraits
from penstock.kernels.control_flow.functional_ops import LOWERED, condition_of


@context_kernel("_NativeLoop", traits=KernelTraits(reads_frame=False))
def make_native_loop(attrs: Attrs) -> Kernel:
    """Compute the body as long as the condition holds."""
    return _PlainLoop(attrs)


class _PlainLoop:
    """The kernel of one loop."""

    __slots__ = ("_body", "_cond", "_count", "_frame", "_holds")

    def __init__(self, attrs: Attrs) -> None:
        reads = attrs.list("reads")
        self._cond: Final = NodeList(attrs.bytes("cond"), reads, [attrs.bytes("test")], attrs)
        self._body: Final = NodeList(attrs.bytes("body"), reads, attrs.list("gives"), attrs)
        self._count: Final = len(attrs.output_types)
        self._frame: Final = attrs.str("frame")
        self._holds: Final = condition_of(dataclasses.replace(attrs, values={LOWERED: True}))

    def __call__(self, context: OpKernelContext, *values: Value) -> tuple[Value, ...]:
        variables, rest = values[: self._count], values[self._count :]
        iteration = 0
        interrupt = context.interrupt
        try:
            while self._holds(self._cond((*variables, *rest), context)[0]):
                if interrupt.loops_end:
                    raise interrupt.reason or CancelledError(
                        "Loop execution was cancelled.", derived=True
                    )
                variables = self._body((*variables, *rest), context)
                iteration += 1
        except OpError as error:
            raise self._placed(error, iteration) from error.__cause__
        return tuple(variables)

    def _placed(self, error: OpError, iteration: int) -> OpError:
        """An error in this loop, and not in one within it, says in which iteration it came."""
        where = error.where
        if where is not None and not where.frame:
            error.where = dataclasses.replace(where, frame=self._frame, iteration=iteration)
        return error
