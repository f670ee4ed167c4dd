"""One process: from a prepared request to results.

What is named here runs one partition without a session:

    params = LocalExecutorParams(device=device, make_kernel=KernelBinder(device).bind)
    executor = new_local_executor(params, graph)
    executor.run(ExecutorArgs(StepState(rendezvous=rendezvous)))
"""

from penstock.runtime.bind_kernels import KernelBinder
from penstock.runtime.executor.executor import Executor, new_local_executor
from penstock.runtime.executor.params import ExecutorArgs, LocalExecutorParams
from penstock.state.step_state import StepState

__all__ = [
    "Executor",
    "ExecutorArgs",
    "KernelBinder",
    "LocalExecutorParams",
    "StepState",
    "new_local_executor",
]
