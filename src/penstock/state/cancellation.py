"""Tell everyone who waits that waiting has become pointless.

In:   callbacks, registered under tokens by whoever starts something that may block.
Out:  each is called at most once, when the step (or a parent of it) is cancelled.
Not:  stops nothing itself, and calls nothing while it holds its lock.
"""

from __future__ import annotations

from collections.abc import Callable
from threading import Condition, Lock
from typing import TypeAlias

Callback: TypeAlias = Callable[[], None]


class CancellationManager:
    """One step's, or one session's; cancelling it cancels its children too."""

    def __init__(self, parent: CancellationManager | None = None) -> None:
        #: Guards all that follows.  A parent's lock comes before its child's.
        self._changed = Condition(Lock())
        #: True once all callbacks ran.  Read without the lock; set once, never cleared.
        self.is_cancelled = False
        #: True while callbacks run.
        self.is_cancelling = False
        #: Callbacks by token.  Empty as soon as cancelling begins.
        self._callbacks: dict[int, Callback] = {}
        #: Children that are not closed.
        self._children: set[CancellationManager] = set()
        self._next_token = 0
        self._parent = parent
        if parent is not None and not parent._adopt(self):
            self.is_cancelled = True

    def get_cancellation_token(self) -> int:
        """A token that nobody else has."""
        with self._changed:
            self._next_token += 1
            return self._next_token - 1

    def register_callback(self, token: int, callback: Callback) -> bool:
        """Have ``callback`` called on cancellation; False if it is too late for that.

        After False the callback is never called: the caller must act itself.
        """
        with self._changed:
            if self.is_cancelled or self.is_cancelling:
                return False
            self._callbacks[token] = callback
            return True

    def deregister_callback(self, token: int) -> bool:
        """Take a callback back; waits for a cancellation that is under way.

        Returns:
            True if the callback will never run; False if it has run, to its end.
        """
        with self._changed:
            if not self.is_cancelled and not self.is_cancelling:
                self._callbacks.pop(token, None)
                return True
            while self.is_cancelling:
                self._changed.wait()
            return False

    def try_deregister_callback(self, token: int) -> bool:
        """Take a callback back if that needs no waiting; False may mean that it runs now."""
        with self._changed:
            if self.is_cancelled or self.is_cancelling:
                return False
            return self._callbacks.pop(token, None) is not None

    def start_cancel(self) -> None:
        """Call all callbacks, then cancel all children; only the first call does anything."""
        with self._changed:
            if self.is_cancelled or self.is_cancelling:
                return
            self.is_cancelling = True
            callbacks, self._callbacks = list(self._callbacks.values()), {}
            children, self._children = self._children, set()
        try:
            for callback in callbacks:
                callback()
            for child in children:
                child.start_cancel()
        finally:
            with self._changed:
                self.is_cancelling = False
                self.is_cancelled = True
                self._changed.notify_all()

    def close(self) -> None:
        """Leave the parent, which would otherwise keep this manager for as long as it lives."""
        if self._parent is not None:
            self._parent._disown(self)
            self._parent = None

    def _adopt(self, child: CancellationManager) -> bool:
        with self._changed:
            if self.is_cancelled or self.is_cancelling:
                return False
            self._children.add(child)
            return True

    def _disown(self, child: CancellationManager) -> None:
        with self._changed:
            self._children.discard(child)
            while self.is_cancelling:
                self._changed.wait()
