"""What an asynchronous kernel calls when it is done.

In:   outputs, or an exception, from any thread.
Out:  the same, once, to the step that started the kernel.
Not:  propagates nothing; a second call, and one that comes when nobody waits, is not heard.
"""

from __future__ import annotations

from typing import Any, Protocol

from penstock.errors import OpError
from penstock.runtime.executor.inbox import Inbox
from penstock.runtime.executor.state import TaggedNode


class KernelStarter(Protocol):
    """The step that started the kernel, on one device."""

    #: Its lock guards the state of each completion.
    inbox: Inbox[Any]

    def failure(self, tagged: TaggedNode, cause: BaseException) -> OpError:
        """The error of a node, on the thread where it comes up."""

    def finished(self, tagged: TaggedNode, start: float, result: object) -> None:
        """The kernel is done, and its start had returned before."""


class Completion:
    """The ``done`` of one activation.

    A kernel that is done before its start has returned needs neither inbox nor driver: the
    driver that started it takes the result along.
    """

    __slots__ = (
        "_has_reported",
        "_inbox",
        "_is_starting",
        "_start",
        "_state",
        "_tagged",
        "is_called",
        "result",
    )

    def __init__(self, state: KernelStarter, tagged: TaggedNode, start: float) -> None:
        self._state = state
        self._inbox = state.inbox
        self._tagged = tagged
        self._start = start
        # What follows changes under the state's lock.
        self._is_starting = True
        #: Whether the kernel has reported: what it reports later is not heard.
        self._has_reported = False
        #: Whether ``result`` is there.  Once it is set, both stay; where it was set during the
        #: start, the starting thread may read them without the lock.
        self.is_called = False
        #: Outputs, or an ``OpError``.
        self.result: object = None

    def __call__(self, result: object) -> None:
        """Take the result: outputs, or an exception."""
        state, is_error = self._state, isinstance(result, BaseException)
        with self._inbox.lock:
            if self._has_reported or self._inbox.is_left:
                return
            self._has_reported = True
            if self._is_starting and not is_error:
                self.result = result
                self.is_called = True
                return
        if isinstance(result, BaseException):
            result = state.failure(self._tagged, result)
            with self._inbox.lock:
                if self._is_starting:
                    self.result = result
                    self.is_called = True
                    return
        state.finished(self._tagged, self._start, result)

    def leave(self) -> bool:
        """The kernel's start has returned; whether there is a result already."""
        with self._inbox.lock:
            self._is_starting = False
            return self.is_called
