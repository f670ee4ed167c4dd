"""Mutexes: one holder at a time, across steps.

In:   a mutex; or the right to it.
Out:  the right, as a variant, once nobody else has it.
Not:  blocks no thread.
"""

from __future__ import annotations

from penstock.core import trees
from penstock.core.trees import Tree
from penstock.core.values import Value, as_value
from penstock.errors import FailedPreconditionError, InvalidArgumentError
from penstock.kernels.api.attrs import Attrs
from penstock.kernels.api.context import Done, OpKernelContext, Waiting
from penstock.kernels.api.registry import Cost, Kernel, async_kernel, context_kernel
from penstock.kernels.api.wait_queue import NOT_YET, Awaited, WaitQueue
from penstock.kernels.state.handles import make_handle, place_of, resource_of

_KIND = "mutex"
_FREEING = frozenset({"ConsumeMutexLock"})


class Mutex(Awaited):
    """A mutex, and those who wait for it; what the methods do happens under the lock of ``waits``.

    One that is held cannot be copied: who holds it would not know which one to give back.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.waits = WaitQueue("Lock acquisition cancelled.")
        self.is_held = False

    def state(self) -> Tree:
        """Nothing."""
        if self.is_held:
            raise FailedPreconditionError(f"Mutex '{self.name}' is held, and cannot be copied")
        return ()

    @classmethod
    def of_state(cls, name: str, state: Tree, there: object) -> Mutex:  # noqa: ARG003
        """A free mutex."""
        trees.parts(state, 0)
        return cls(name)

    def describe(self) -> str:
        """What it is, and whether it is free."""
        return f"Mutex '{self.name}', which is {'held' if self.is_held else 'free'}"

    def take(self) -> object:
        """The right to it, unless somebody has it."""
        if self.is_held:
            return NOT_YET
        self.is_held = True
        return MutexHold(self)

    def free(self) -> None:
        """Let others have it."""
        self.is_held = False


class MutexHold:
    """The right to a mutex; ends when it is given back, or when nobody has it any more."""

    __slots__ = ("_mutex",)

    def __init__(self, mutex: Mutex) -> None:
        self._mutex: Mutex | None = mutex

    def release(self) -> None:
        """Give the right back; a second time does nothing."""
        mutex, self._mutex = self._mutex, None
        if mutex is not None:
            mutex.waits.run(mutex.free)

    def __del__(self) -> None:
        self.release()


@context_kernel("MutexV2", cost=Cost.CHEAP)
def make_mutex(attrs: Attrs) -> Kernel:
    """A handle of the mutex."""
    return lambda context: make_handle(context, attrs, _KIND, Mutex)[0]


@async_kernel("MutexLock")
def make_mutex_lock(_attrs: Attrs) -> Kernel:
    """The right to the mutex, once it is free."""

    def lock(context: OpKernelContext, done: Done, handle: Value) -> None:
        mutex: Mutex = resource_of(context, handle, _KIND)
        context.waits_for = Waiting(mutex.describe, _FREEING, place_of(handle))
        mutex.waits.submit(mutex.take, context.cancellation_manager, done)

    return lock


@context_kernel("ConsumeMutexLock")
def make_consume_mutex_lock(_attrs: Attrs) -> Kernel:
    """Nothing; the mutex is free again."""

    def consume(_context: OpKernelContext, lock: Value) -> None:
        held = as_value(lock)
        if not isinstance(held, MutexHold):
            raise InvalidArgumentError(f"a mutex lock is wanted, got {type(held).__name__}")
        held.release()

    return consume
