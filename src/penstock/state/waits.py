"""One cancellable wait: somebody cannot go on until something comes, and is told once.

In:   waits; states that say, under their lock, which waits are settled; what cancels them.
Out:  every wait's callback is called exactly once, with what it was settled with.
Not:  blocks nobody but who asks for it; does not know what is waited for.

The law, whether elements, values, gradients or a mutex are waited for:

1. A wait is open, then settled, and stays so.  It is settled under the lock of its monitor, by
   whoever comes first: who serves it, who cancels it, who gives the state up.  The others find
   it settled and leave it alone.
2. Whoever settles it tells it, after the lock is released: it stops listening to cancellation,
   and then its callback is called.  One callback that raises keeps no other from being called.
3. Only a wait that is not settled at once listens to cancellation.  It begins when it stands in
   line already, so that a cancellation, whenever it comes, finds it there or is noticed.
4. A monitor's lock is innermost: under it no other lock is taken, that of a cancellation
   manager included, and nobody is called but the state.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import partial
from threading import Event, Lock
from typing import Any, Final, Generic, TypeVar

from penstock.errors import InternalError
from penstock.state.callbacks import call_all
from penstock.state.cancellation import CancellationManager


class Wait:
    """Somebody who waits, or would have to."""

    __slots__ = ("_done", "_listening", "is_settled", "outcome", "wanted")

    #: What ``done`` gets.  Set just before ``is_settled``, and not there as long as it is open.
    outcome: tuple[Any, ...]

    def __init__(self, done: Callable[..., object], wanted: Any = None) -> None:
        """Before it is added to a monitor.

        Args:
            done: is called once, with the outcome, outside of all locks of this module.
            wanted: what the wait is for; means something to the monitor alone.

        """
        self._done = done
        self.wanted = wanted
        #: Whether it was served, refused or cancelled.  Becomes True once, under the lock of the
        #: monitor; who reads True may read the outcome.
        self.is_settled = False
        #: Where it is registered, and as what; None as long as it does not listen.
        self._listening: tuple[CancellationManager, int] | None = None

    def settle(self, *outcome: Any) -> None:
        """Decide what ``done`` gets.  Needs the monitor's lock; whoever calls this must tell.

        Raises:
            InternalError: it is settled already.

        """
        if self.is_settled:
            raise InternalError("a wait was settled twice")
        self.outcome = outcome
        self.is_settled = True

    def tell(self) -> None:
        """Listen no longer, and call ``done``; by whoever settled it, outside of the lock."""
        if self._listening is not None:
            self.stop_listening()
        self._done(*self.outcome)

    def listen(self, manager: CancellationManager, cancel: Callable[[], None]) -> bool:
        """Have ``cancel`` called on cancellation; False if it is too late for that."""
        token = manager.get_cancellation_token()
        self._listening = manager, token
        return manager.register_callback(token, cancel)

    def stop_listening(self) -> None:
        """Cancellation is no longer of interest."""
        if self._listening is not None:
            # Without waiting: a cancellation that is under way finds the wait settled.
            manager, token = self._listening
            manager.try_deregister_callback(token)


_AnyWait = TypeVar("_AnyWait", bound=Wait)


class Monitor(ABC, Generic[_AnyWait]):
    """A state that one thread looks at at a time, and for whose changes others wait."""

    def __init__(self) -> None:
        #: Guards the state, and ``is_settled`` of its waits.  Innermost.
        self._lock: Final = Lock()

    @abstractmethod
    def _add(self, wait: _AnyWait) -> list[Wait]:
        """Serve a wait, or let it stand in line; returns all that is settled by that.

        Needs the lock, like ``_cancel``.
        """

    @abstractmethod
    def _cancel(self, wait: _AnyWait) -> list[Wait]:
        """Settle a wait that stands in line, unless it is settled; returns like ``_add``."""

    def _submit(self, wait: _AnyWait, manager: CancellationManager | None) -> None:
        """Serve a wait now, or when the state allows it, or until ``manager`` cancels it."""
        with self._lock:
            settled = self._add(wait)
        if manager is not None and not wait.is_settled:
            # Before others are told: that may take long, or raise.
            settled += self._listen(wait, manager)
        if settled:
            tell_all(settled)

    def _change(self, change: Callable[[], list[Wait]]) -> None:
        """Change the state; ``change`` returns the waits that are settled by that."""
        with self._lock:
            settled = change()
        tell_all(settled)

    def _listen(self, wait: _AnyWait, manager: CancellationManager) -> list[Wait]:
        """Let a wait listen; returns what is settled by that, if it is too late."""
        listens = wait.listen(manager, partial(self._change, partial(self._cancel, wait)))
        with self._lock:
            if not listens:
                return self._cancel(wait)
            is_settled = wait.is_settled
        if is_settled:
            # By another thread, which may have looked before there was anything to stop.
            wait.stop_listening()
        return []


def tell_all(settled: Sequence[Wait]) -> None:
    """Tell everyone; then raise the first exception that one of the callbacks raised."""
    if len(settled) == 1:
        settled[0].tell()
    elif settled:
        call_all([wait.tell for wait in settled])


class Notification:
    """What a thread gives as ``done``, and then waits for."""

    __slots__ = ("_arrived", "outcome")

    def __init__(self) -> None:
        self._arrived: Final = Event()
        #: What ``done`` got.  Set before ``wait`` returns True.
        self.outcome: tuple[Any, ...] = ()

    def __call__(self, *outcome: Any) -> None:
        """Take the outcome; called once."""
        self.outcome = outcome
        self._arrived.set()

    def wait(self, seconds: float | None = None) -> bool:
        """Block until it has come, or the time is up; returns whether it has."""
        return self._arrived.wait(seconds)
