"""A function of the library, ready to run any number of times.

In:   arguments and the caller's step.
Out:  ``done`` is told of the end, with None or the error; results are in the call frame.
Not:  instantiates nothing; asks nobody whether the function may be called.

It is one runnable, or one for each device that its nodes lie on.  These meet in a rendezvous of
their own, so that two calls of a step never mix their values up.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeAlias

from penstock.config import Tier
from penstock.core.dtypes import DType
from penstock.core.quiet import quiet
from penstock.dataclass import dataclass
from penstock.errors import CancelledError
from penstock.kernels.api.context import StepContext
from penstock.runtime.compiler.region import Region
from penstock.runtime.executor.barrier import ExecutorBarrier
from penstock.runtime.executor.executor import Executor
from penstock.runtime.executor.params import ExecutorArgs
from penstock.runtime.noted_region import run_noted
from penstock.runtime.runnable import Runnable
from penstock.runtime.step_loop import Trampoline
from penstock.state.call_frame import CallFrame
from penstock.state.rendezvous import Rendezvous

#: The devices of resources among a call's arguments, by index.
Pinned: TypeAlias = tuple[tuple[int, str], ...]
#: Called once, with None or the error, when nothing of the call runs any more.
Finished: TypeAlias = Callable[[BaseException | None], None]


@dataclass(frozen=True, slots=True)
class FunctionInstance:
    """One function for one set of attributes."""

    arg_types: tuple[DType, ...]
    ret_types: tuple[DType, ...]
    runnable: Runnable
    #: The devices of its resource arguments, by index, where it was made for these.
    pinned: Pinned = ()

    @property
    def whole(self) -> Region | None:
        """The one function that is all of it, if there is one."""
        return self.runnable.whole

    def start(self, frame: CallFrame, step: StepContext, depth: int, done: Finished) -> None:
        """Run it on behalf of a step, which is then inside of so many calls."""
        recorder = step.state.recorder
        is_recorded_by_node = recorder is not None and recorder.detail.is_by_node
        is_close = is_recorded_by_node or step.state.is_by_node
        whole = self.runnable.whole if not is_close else None
        if whole is not None:
            _run_whole(whole, step, frame, done)
            return
        tier = Tier.DATAFLOW if is_close else Tier.COMPILED
        executors = self.runnable.executors(step.interrupt, tier)
        args = ExecutorArgs(step.state, frame, step.runner, depth, recorder, hook=step.state.hook)
        if len(executors) == 1:
            executors[0].run_async(args, done)
        else:
            _run_parts(executors, args, done)


def _run_whole(region: Region, step: StepContext, frame: CallFrame, done: Finished) -> None:
    """Run a body that is one compiled function, when the step's thread comes to it."""
    args, recorder = frame.args, step.state.recorder

    def run() -> None:
        try:
            with quiet():
                results = (
                    region.run(step, *args)
                    if recorder is None
                    else run_noted(recorder, region, partial(region.run, step, *args))
                )
            for index, result in enumerate(results):
                if result is not None:
                    frame.set_retval(index, result)
        except BaseException as error:  # noqa: BLE001  (handed to the node's own done)
            done(error)
            return
        done(None)

    # Not at once: a function that calls the next one when it is done would never return.
    (step.runner or Trampoline().schedule)(run)


def _run_parts(executors: Sequence[Executor], args: ExecutorArgs, done: Finished) -> None:
    """Run the parts on several devices, which end together."""
    rendezvous, manager = Rendezvous(), args.step.cancellation_manager
    token = manager.get_cancellation_token()

    def cancel() -> None:
        rendezvous.start_abort(CancelledError("The step was cancelled", derived=True))

    def finished(error: BaseException | None) -> None:
        manager.try_deregister_callback(token)
        done(error)

    if not manager.register_callback(token, cancel):
        raise CancelledError("Function was cancelled before it was started", derived=True)
    barrier = ExecutorBarrier(len(executors), rendezvous, finished)
    own = dataclasses.replace(args, step=args.step.within(rendezvous))
    for executor in executors:
        executor.run_async(own, barrier.arrive)
