"""Tell everyone who waits that waiting has become pointless.

In:   callbacks, registered under tokens by whoever starts something that may block.
Out:  each is called at most once, when the step (or a parent of it) is cancelled.
Not:  stops nothing itself, and calls nothing while it holds its lock.
"""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock
from typing import TypeAlias

from penstock.errors import InternalError
from penstock.state.callbacks import call_all

Callback: TypeAlias = Callable[[], None]


class CancellationManager:
    """One step's, or one session's; cancelling it cancels its children too.

    Its life is idle, then cancelling (callbacks run), then cancelled, and never goes back.
    """

    def __init__(self, parent: CancellationManager | None = None) -> None:
        #: Guards all that follows.  Innermost: nothing is called under it, not even a parent
        #: or a child.
        self._lock = Lock()
        #: True once all callbacks ran.  Read without the lock; set once, never cleared.
        self.is_cancelled = False
        #: True while callbacks run; never together with ``is_cancelled``.
        self.is_cancelling = False
        #: Callbacks by token.  Empty unless idle.
        self._callbacks: dict[int, Callback] = {}
        #: Children that are not closed.  Empty unless idle.
        self._children: set[CancellationManager] = set()
        #: The next token; all smaller ones are given out.
        self._next_token = 0
        #: Who tells this one; None if nobody does, or after ``close``.
        self._parent = parent
        if parent is not None and not parent._adopt(self):  # noqa: SLF001  (of one class)
            self.is_cancelled = True

    def get_cancellation_token(self) -> int:
        """A token that nobody else has."""
        with self._lock:
            self._next_token += 1
            return self._next_token - 1

    def register_callback(self, token: int, callback: Callback) -> bool:
        """Have ``callback`` called on cancellation; False if it is too late for that.

        After False the callback is never called: the caller must act itself.
        """
        with self._lock:
            if self._is_too_late():
                return False
            self._callbacks[token] = callback
            return True

    def try_deregister_callback(self, token: int) -> bool:
        """Take a callback back; False if it was called, or may be called right now.

        It never waits, so that it may be called while holding a lock that the callback takes.
        """
        with self._lock:
            return not self._is_too_late() and self._callbacks.pop(token, None) is not None

    def start_cancel(self) -> None:
        """Call all callbacks, then cancel all children; only the first call does anything.

        Raises:
            Exception: the first that a callback raised; all were called all the same.

        """
        with self._lock:
            if self._is_too_late():
                return
            self.is_cancelling = True
            callbacks, self._callbacks = self._callbacks, {}
            children, self._children = self._children, set()
        try:
            call_all([*callbacks.values(), *(child.start_cancel for child in children)])
        finally:
            with self._lock:
                # In this order a reader without the lock never sees an idle manager here.
                self.is_cancelled = True
                self.is_cancelling = False

    def close(self) -> None:
        """Leave the parent, which would otherwise keep this manager for as long as it lives.

        It does not wait: a cancellation of the parent that is under way may still come.
        """
        parent, self._parent = self._parent, None
        if parent is not None:
            parent._disown(self)  # noqa: SLF001  (of one class)

    def check(self) -> None:
        """Raise InternalError unless the laws of this class hold."""
        with self._lock:
            if self._is_too_late() and (self._callbacks or self._children):
                raise InternalError("cancelled, yet callbacks or children are still there")
            if self.is_cancelled and self.is_cancelling:
                raise InternalError("cancelled, and cancelling at the same time")
            if any(not 0 <= token < self._next_token for token in self._callbacks):
                raise InternalError("a callback has a token that was never given out")

    def _is_too_late(self) -> bool:
        return self.is_cancelled or self.is_cancelling

    def _adopt(self, child: CancellationManager) -> bool:
        with self._lock:
            if self._is_too_late():
                return False
            self._children.add(child)
            return True

    def _disown(self, child: CancellationManager) -> None:
        with self._lock:
            self._children.discard(child)
