"""Run one partition, any number of times.

In:   a ``GraphView``, and ``ExecutorArgs`` for each step.
Out:  effects on the call frame and the rendezvous; ``done`` is called once, with None or
      the first error.
Not:  knows no session, no other partition and no device but its own; drives no step itself.
"""

from __future__ import annotations

from penstock.errors import OpError
from penstock.graph.graph import Graph
from penstock.runtime.executor.costs import KernelCosts
from penstock.runtime.executor.driver import ExecutorState
from penstock.runtime.executor.graph_view import GraphView
from penstock.runtime.executor.params import DoneCallback, ExecutorArgs, LocalExecutorParams
from penstock.runtime.step_loop import StepLoop, Trampoline


class Executor:
    """One partition, ready to run any number of steps, also at the same time."""

    def __init__(self, params: LocalExecutorParams, view: GraphView) -> None:
        self.params = params
        self.view = view
        self.costs = KernelCosts(view.items, params.offload_seconds, learns=params.adaptive)

    def run(self, args: ExecutorArgs | None = None) -> None:
        """Run one step on this thread, helped by the pool; raises the step's error."""
        args = args or ExecutorArgs()
        loop = StepLoop()
        outcome: list[OpError | None] = []
        runner = args.runner or loop.schedule

        def done(error: OpError | None) -> None:
            outcome.append(error)
            loop.stop()

        state = ExecutorState(self, args, runner, done)
        state.start()
        loop.run(period=None)
        if outcome[0] is not None:
            raise outcome[0]

    def run_async(self, args: ExecutorArgs, done: DoneCallback) -> ExecutorState:
        """Start one step; ``done`` gets None or the error, once, when all activity has ended.

        Without a runner in ``args`` the driver runs on this thread until it has to wait, and
        then wherever a kernel finishes.
        """
        state = ExecutorState(self, args, args.runner or Trampoline().schedule, done)
        state.start()
        return state


def new_local_executor(params: LocalExecutorParams, graph: Graph) -> Executor:
    """An executor for a partition that is to run on this process's own device.

    Raises OpError if a frame is malformed or a kernel cannot be made; the node is named.
    """
    view = GraphView(graph, params.device, params.make_kernel, check_outputs=params.check_outputs)
    return Executor(params, view)
