"""A graph that stands for one function, and is run node by node.

In:   the executor of a graph that has no effects and sends nothing; what the function would take.
Out:  what that would give.
Not:  makes no executor, and knows no text.

It goes on where a program does not know, should there be a node that no text can compute.
"""

from __future__ import annotations

from collections.abc import Callable

from penstock.core.dtypes import DType
from penstock.core.values import Value, dtype_of
from penstock.dataclass import dataclass
from penstock.kernels.api.context import StepContext
from penstock.runtime.compiler.source import Source
from penstock.runtime.executor.executor import Executor
from penstock.runtime.executor.params import ExecutorArgs
from penstock.state.call_frame import CallFrame
from penstock.state.interrupt import Interrupt


@dataclass(frozen=True, slots=True)
class NodeByNode:
    """One graph on the calling thread, helped by the pool."""

    #: Makes the executor for the step that first needs it, or gives what it has made.
    executor: Callable[[Interrupt], Executor]
    #: The types of its results.
    ret_types: tuple[DType, ...]

    def sources(self) -> list[Source]:
        """All texts that may run: there are none."""
        return []

    def run(self, step: StepContext, *args: Value) -> tuple[Value | None, ...]:
        """Run all nodes; None stands for what is dead.

        Raises:
            OpError: a kernel's error, with its place; or the reason why the step must end.

        """
        frame = CallFrame([*map(dtype_of, args)], self.ret_types)
        frame.set_args(args)
        self.executor(step.interrupt).run(
            ExecutorArgs(step.state, frame, call_depth=step.call_depth)
        )
        return tuple(frame.consume_retvals(allow_dead=True))
