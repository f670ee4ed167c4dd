"""One process: from a prepared request to results.

What is named here runs one graph on one device without a session; see docs/executor.md.
"""

from penstock.runtime.executor.executor import Executor
from penstock.runtime.executor.params import ExecutorArgs, LocalExecutorParams
from penstock.runtime.kernel_binder import KernelBinder
from penstock.runtime.local_executor import new_local_executor

__all__ = [
    "Executor",
    "ExecutorArgs",
    "KernelBinder",
    "LocalExecutorParams",
    "new_local_executor",
]
