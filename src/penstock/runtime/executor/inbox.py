"""Where results come that were made elsewhere, and which thread drives.

In:   results, from any thread.
Out:  the driver takes them; whoever brings one while nobody drives must see to a driver.
Not:  calls nothing, and knows neither nodes nor kernels.

This is how the threads of a step meet: all else belongs to the driver alone, so that propagation
takes no lock per node.
"""

from __future__ import annotations

from collections import deque
from threading import Lock, get_ident
from typing import Generic, TypeVar

_Result = TypeVar("_Result")


class Inbox(Generic[_Result]):
    """The inbox of one step on one device."""

    __slots__ = ("_driver", "_results", "is_driven", "is_left", "lock")

    def __init__(self) -> None:
        #: Guards what follows, and the state of each ``Completion``.  Innermost: nothing is called
        #: under it.
        self.lock = Lock()
        self._results: deque[_Result] = deque()
        #: Whether some thread is the driver, or is about to be.
        self.is_driven = False
        #: Which thread that is; 0 if it is none, or has not begun.
        self._driver = 0
        #: Whether nobody waits any more for what comes.  Set once, while nobody drives.
        self.is_left = False

    def post(self, result: _Result) -> bool:
        """Put a result in; True if the caller must see to a driver."""
        with self.lock:
            if self.is_left:
                return False
            self._results.append(result)
            if self.is_driven:
                return False
            self.is_driven = True
            return True

    def claim(self) -> None:
        """Have a driver come, whom nobody else sees to."""
        self.is_driven = True

    # -- by the driver -------------------------------------------------------------------

    def begin(self) -> None:
        """Have this thread drive from now on."""
        self._driver = get_ident()

    def take(self) -> _Result | None:
        """The next result, if there is one."""
        return self._results.popleft() if self._results else None

    def end(self) -> bool:
        """Drive no longer, unless something has come; whether that is so."""
        with self.lock:
            if self._results:
                return False
            self.is_driven = False
            self._driver = 0
            return True

    def goes_on(self) -> bool:
        """Whether this thread is the driver, or becomes it, after something was raised."""
        with self.lock:
            if not self.is_driven:
                self.is_driven, self._driver = True, get_ident()
            return self._driver == get_ident()

    def close(self) -> None:
        """Let nobody drive any more; under the lock, while nobody does."""
        self.is_left = self.is_driven = True

    def forget_threads(self) -> None:
        """Let the thread that forked go on in the child, where no other one holds the lock."""
        self.lock = Lock()
