"""Work on a thread beside the caller's, who may go before it is done.

In:   work that does nothing but compute.
Out:  what it returns or raises, to a caller who has waited long enough.
Not:  stops nothing: work that is left goes on, and what it gives is dropped.

No library function can be told to stop.  A caller who may have to go has such work done here.
"""

from __future__ import annotations

import contextvars
from collections.abc import Callable
from queue import SimpleQueue
from threading import Lock, Thread, current_thread, main_thread
from typing import Any, Final, Generic, TypeVar

from penstock.core.denormals import settle
from penstock.core.forks import end_stray, generation, in_children
from penstock.errors import CancelledError
from penstock.state.checkpoints import heeded
from penstock.state.interrupt import Interrupt

_Result = TypeVar("_Result")

#: Threads that have nothing to do end if there are so many others.
_MOST_SPARE: Final = 4
#: Seconds between two looks at whether to leave what is prepared.
_PERIOD: Final = 0.05


class Beside(Generic[_Result]):
    """One piece of work under way."""

    __slots__ = ("_error", "_is_done", "_result", "_work")

    def __init__(self, work: Callable[[], _Result]) -> None:
        """Start the work; it sees the context variables of the caller."""
        self._work = work
        #: Held until the work is done; then what follows is there.
        self._is_done = Lock()
        self._is_done.acquire()
        self._result: Any = None
        self._error: BaseException | None = None
        _spare_worker().give(contextvars.copy_context(), self)

    def do(self) -> None:
        """Do the work, on the other thread."""
        try:
            self._result = self._work()
        except BaseException as error:  # noqa: BLE001  (raised again by ``result``)
            self._error = error
        self._is_done.release()

    def wait(self, seconds: float) -> bool:
        """Wait for the end; whether it came within so many seconds."""
        if not self._is_done.acquire(timeout=seconds):
            return False
        self._is_done.release()
        return True

    def result(self) -> _Result:
        """What the work returned, when it is done; raises what it raised."""
        if self._error is not None:
            raise self._error
        result: _Result = self._result
        return result


def prepared_beside(work: Callable[[], _Result]) -> _Result:
    """Do a part of a preparation that asks nobody, and changes nothing but what is its own.

    It is done beside whoever may have to go before; on the main thread Ctrl-C ends it.

    Raises:
        OpError: the reason of the interrupt that is heeded, which leaves the work.
        BaseException: what the work raised; or Ctrl-C.

    """
    interrupt = heeded()
    if interrupt is None:
        return work()
    if not interrupt.may_be_left:
        return _done_here(work, interrupt)
    beside = Beside(work)
    try:
        while not beside.wait(_PERIOD):
            interrupt.check()
    except BaseException:
        interrupt.end(CancelledError("Run call was cancelled"))
        raise
    return beside.result()


def _done_here(work: Callable[[], _Result], interrupt: Interrupt) -> _Result:
    if current_thread() is not main_thread():
        return work()
    interrupt.ctrl_c_raises = True
    try:
        return work()
    finally:
        interrupt.ctrl_c_raises = False


class _Worker:
    """A thread that does one piece of work after the other."""

    def __init__(self) -> None:
        self._given: SimpleQueue[tuple[contextvars.Context, Beside[Any]]] = SimpleQueue()
        Thread(target=self._live, name="penstock-beside", daemon=True).start()

    def give(self, context: contextvars.Context, work: Beside[Any]) -> None:
        """Have the thread do something; it has nothing else to do."""
        self._given.put((context, work))

    def _live(self) -> None:
        settle()
        while True:
            context, work = self._given.get()
            before = generation()
            context.run(work.do)
            end_stray(before)
            del context, work  # what has been computed is the caller's alone
            if len(_spare) >= _MOST_SPARE:
                return
            _spare.append(self)


#: Workers with nothing to do.  Each operation on it is atomic.
_spare: Final[list[_Worker]] = []


def _spare_worker() -> _Worker:
    try:
        return _spare.pop()
    except IndexError:
        return _Worker()


in_children(_spare.clear)
