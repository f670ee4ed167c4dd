"""Turns at something that only one may use at a time, which may take long.

In:   those who want it, each with what cancels its wait.
Out:  their callbacks, one after the other; whoever has had the turn gives it back.
Not:  blocks nobody; does not know what it is.  How one waits is said in ``state/waits.py``.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from threading import get_ident
from typing import Final

from penstock.errors import CancelledError
from penstock.state.cancellation import CancellationManager
from penstock.state.waits import Monitor, Wait

#: Called once: with None if it is one's turn, else with the error.
OnTurn = Callable[[CancelledError | None], object]


class Turns(Monitor[Wait]):
    """First come, first served."""

    def __init__(self) -> None:
        super().__init__()
        # All that follows is guarded by the monitor's lock.
        #: Whether somebody has the turn.
        self._is_taken = False
        #: Who waits, in order of arrival.  None of them is settled.
        self._waiting: deque[Wait] = deque()
        #: The threads that are in ``give_back``.
        self._giving: Final[set[int]] = set()

    def take_at_once(self) -> bool:
        """Have the turn, unless that means to wait; returns whether one has it."""
        with self._lock:
            if self._is_taken or self._waiting:
                return False
            self._is_taken = True
            return True

    def take(self, manager: CancellationManager, on_turn: OnTurn) -> None:
        """Have ``on_turn`` called, now or later; after None it must come to ``give_back``."""
        self._submit(Wait(on_turn), manager)

    def give_back(self) -> None:
        """Let the next one begin, on this thread; so it is the last thing that one does.

        Whoever begins may be done at once and give the turn back here again: it returns to the
        call that goes on, so that the stack does not grow with the number of those who wait.
        """
        with self._lock:
            self._is_taken = False
            thread = get_ident()
            if not self._waiting or thread in self._giving:
                return
            self._giving.add(thread)
        raised: BaseException | None = None
        while (following := self._next(thread)) is not None:
            try:
                following.tell()
            except BaseException as error:  # noqa: BLE001  (raised below: others wait for the rest)
                raised = raised or error
        if raised is not None:
            raise raised

    def _next(self, thread: int) -> Wait | None:
        """Whose turn it is now; None if nobody wants it, or it is another thread's to say."""
        with self._lock:
            if self._is_taken or not self._waiting:
                self._giving.discard(thread)
                return None
            following = self._waiting.popleft()
            self._is_taken = True
            following.settle(None)
            return following

    def _add(self, wait: Wait) -> list[Wait]:
        if self._is_taken or self._waiting:
            self._waiting.append(wait)
            return []
        self._is_taken = True
        wait.settle(None)
        return [wait]

    def _cancel(self, wait: Wait) -> list[Wait]:
        if wait.is_settled:
            return []
        self._waiting.remove(wait)
        wait.settle(CancelledError("The step was cancelled", derived=True))
        return [wait]
