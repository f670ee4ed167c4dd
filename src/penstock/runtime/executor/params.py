"""What an executor is given: once for all its steps, and anew by each step.

In:   facts about the device, and the objects that a step's kernels share.
Out:  ``LocalExecutorParams`` and ``ExecutorArgs``.
Not:  nothing here changes, though what it refers to may.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import field
from typing import TypeAlias

from penstock.core.limits import DEFAULT_LIMITS, Limits
from penstock.dataclass import dataclass
from penstock.errors import OpError
from penstock.graph.graph import Node
from penstock.kernels.api.bound_kernel import BoundKernel
from penstock.kernels.api.context import FunctionCaller, StepContext, Waiting
from penstock.runtime.executor.node_outputs import NodeOutputsCallback
from penstock.runtime.executor.state import ReadyQueue
from penstock.runtime.unfinished import Unfinished
from penstock.state.call_frame import CallFrame
from penstock.state.node_hook import NodeHook
from penstock.state.resources import ResourceManager
from penstock.state.step_state import Runner, StepState
from penstock.tracing.recorder import Recorder

#: Called once, with None or the error, when nothing of a step runs any more.
DoneCallback: TypeAlias = Callable[[OpError | None], None]


def _describe(waiting: Waiting) -> str:
    return waiting.describe()


def _is_none(_waits: Sequence[tuple[str, Waiting]]) -> str:
    return ""


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalExecutorParams:
    """What an executor keeps for all its steps."""

    device: str
    make_kernel: Callable[[Node], BoundKernel]
    resources: ResourceManager = field(default_factory=ResourceManager)
    functions: FunctionCaller | None = None
    make_ready_queue: Callable[[], ReadyQueue] = deque
    #: Kernels that take longer may go to the pool; a hop costs about 30 us.
    offload_seconds: float = 100e-6
    #: Whether to learn from times which kernels are slow, and how a request is best run.
    adaptive: bool = True
    check_outputs: bool = False
    #: Whether there may be programs in C.
    accelerate: bool = False
    #: Whether loops become programs in C; and from how many nodes on other regions do, if any.
    native_loops: bool = False
    native_nodes: int | None = None
    #: Of what is compiled for the device.
    limits: Limits = DEFAULT_LIMITS
    #: How many slow kernels can run at the same time.
    threads: int = 1
    #: Says what a kernel waits for, and who could end that.
    explain_wait: Callable[[Waiting], str] = _describe
    #: Says whether nodes, by their names, wait for each other; nothing if they do not.
    explain_deadlock: Callable[[Sequence[tuple[str, Waiting]]], str] = _is_none
    #: Waits for work that a device still does when its kernels have returned.
    sync_device: Callable[[], None] | None = None

    def context(
        self,
        step: StepState,
        call_frame: CallFrame | None = None,
        runner: Runner | None = None,
        call_depth: int = 0,
    ) -> StepContext:
        """What kernels on the device see of a step."""
        return StepContext(
            step, self.device, self.resources, self.functions, call_frame, runner, call_depth
        )


@dataclass(frozen=True, slots=True)
class ExecutorArgs:
    """What one run brings along; see docs/executor.md.

    Nothing has to be given: a graph without transfers, arguments and results needs no more.
    """

    #: What all executors of a step share: rendezvous, cancellation, pool, and the step's number.
    step: StepState = field(default_factory=StepState)
    #: Arguments and results; None if the graph has neither.
    call_frame: CallFrame | None = None
    #: Schedules the driver when a step starts and when an asynchronous kernel is done.
    runner: Runner | None = None
    #: How many function calls this run is inside of.
    call_depth: int = 0
    #: Told when each kernel began and ended; that of the step if none is given.
    recorder: Recorder | None = None
    #: Told of every output of every node.
    node_outputs_callback: NodeOutputsCallback | None = None
    #: Asked before and after each node.
    hook: NodeHook | None = None
    #: What is done of the step already; None if nothing is.
    begun: Unfinished | None = None
    #: Wait for the device before ``done`` is called.
    sync_on_finish: bool = False
