"""Run one partition, any number of times.

In:   a ``GraphView``, and ``ExecutorArgs`` for each step.
Out:  effects on the call frame and the rendezvous; ``done`` is called once, with None or
      the first error.
Not:  knows no session, no other partition and no device but its own; drives no step itself.
"""

from __future__ import annotations

from collections.abc import Callable
from threading import current_thread, main_thread

from penstock.core.forks import importing
from penstock.errors import CancelledError, OpError
from penstock.graph.graph import Graph, Node
from penstock.kernels.api.bound_kernel import BoundKernel
from penstock.runtime.ctrl_c import NotingCtrlC
from penstock.runtime.executor.costs import KernelCosts
from penstock.runtime.executor.driver import ExecutorState
from penstock.runtime.executor.graph_view import GraphView
from penstock.runtime.executor.node_outputs import Telling
from penstock.runtime.executor.params import DoneCallback, ExecutorArgs, LocalExecutorParams
from penstock.runtime.step_loop import POLL_SECONDS, StepLoop, Trampoline
from penstock.state.step_state import Runner, StepState


class Executor:
    """One partition, ready to run any number of steps, also at the same time."""

    def __init__(self, params: LocalExecutorParams, view: GraphView) -> None:
        self.params = params
        self.view = view
        self.costs = KernelCosts(view.items, params.offload_seconds, learns=params.adaptive)

    def run(self, args: ExecutorArgs | None = None) -> None:
        """Run one step on this thread, helped by the pool.

        Raises:
            OpError: the step's error.
            KeyboardInterrupt: Ctrl-C was pressed; the step has ended.
            BaseException: a kernel, or a program's own handler of signals, raised it.

        """
        args = args or ExecutorArgs()
        loop = StepLoop()
        outcome: list[OpError | None] = []
        runner = args.runner or loop.schedule

        def done(error: OpError | None) -> None:
            outcome.append(error)
            loop.stop()

        with NotingCtrlC(args.step.interrupt):
            self._state(args, runner, done).start()
            _work(loop, args.step)
        args.step.raise_escaping()
        if outcome[0] is not None:
            raise outcome[0]

    def run_async(self, args: ExecutorArgs, done: DoneCallback) -> ExecutorState:
        """Start one step; ``done`` gets None or the error, once, when all activity has ended.

        Without a runner in ``args`` the driver runs on this thread until it has to wait, and
        then wherever a kernel finishes.
        """
        state = self._state(args, args.runner or Trampoline().schedule, done)
        state.start()
        return state

    def _state(self, args: ExecutorArgs, runner: Runner, done: DoneCallback) -> ExecutorState:
        # Hardly any step has an order or a hook, or is recorded.
        if (
            args.hook is None
            and args.recorder is None
            and args.node_outputs_callback is None
            and args.step.order is None
        ):
            return ExecutorState(self, args, runner, done)
        return self._watched(args, runner, done)

    def _watched(self, args: ExecutorArgs, runner: Runner, done: DoneCallback) -> ExecutorState:
        """A step that somebody looks at, or orders; the kinds of these are loaded when needed."""
        hook, told, order = args.hook, args.node_outputs_callback, args.step.order
        if order is not None:
            with importing:
                from penstock.runtime.executor.ordered import OrderedState  # noqa: PLC0415

            return OrderedState(self, args, runner, done, order)
        if told is not None:
            hook = Telling(told, hook)
        if hook is not None:
            with importing:
                from penstock.runtime.executor.hooked import hooked_state  # noqa: PLC0415

            return hooked_state(self, args, runner, done, hook)
        with importing:
            from penstock.runtime.executor.recorded import RecordedState  # noqa: PLC0415

        assert args.recorder is not None
        return RecordedState(self, args, runner, done, args.recorder)


def _work(loop: StepLoop, step: StepState) -> None:
    """Do what can be done on this thread until the executor is done, whatever signals raise."""
    # Signals come to the main thread; on others, who ends the step wakes what waits.
    period = POLL_SECONDS if current_thread() is main_thread() else None
    try:
        loop.run(poll=step.look_up, period=period)
    except BaseException:
        step.end(CancelledError("Executor's run was cancelled"))
        loop.run(poll=step.look_up)
        raise


def new_local_executor(
    params: LocalExecutorParams,
    graph: Graph,
    make_kernel: Callable[[Node], BoundKernel] | None = None,
) -> Executor:
    """An executor for a partition that is to run on this process's own device.

    Args:
        params: what all executors of the device have in common.
        graph: the partition.
        make_kernel: binds kernels, if ``params`` is not to do it.

    Raises:
        OpError: a frame is malformed or a kernel cannot be made; the node is named.

    """
    view = GraphView(
        graph,
        params.device,
        make_kernel or params.make_kernel,
        check_outputs=params.check_outputs,
        patience=params.limits.patience,
    )
    return Executor(params, view)
