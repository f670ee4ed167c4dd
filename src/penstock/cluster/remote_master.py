"""The server of a session, as its client calls it.

In:   methods of the master, and their requests.
Out:  its answers, or an ``OpError`` that says who did not answer, and why.
Not:  knows no graph.

Whoever waits for an answer asks now and then whether the server is still there, and can be ended.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from threading import Event
from time import monotonic, sleep
from typing import Any, Final

from penstock.cluster.cluster_spec import check_address
from penstock.cluster.heartbeat import Heartbeat
from penstock.cluster.security import Security
from penstock.cluster.services import MASTER, WORKER, Stub, new_key
from penstock.defs.schema import Message
from penstock.errors import (
    CancelledError,
    DeadlineExceededError,
    InvalidArgumentError,
    OpError,
    UnavailableError,
)
from penstock.session.run import Call

_SCHEME: Final = "grpc://"
#: How often a server is called that does not answer at first, and the first pause in seconds.
_TRIES: Final = 10
_FIRST_PAUSE: Final = 0.05
_LONGEST_PAUSE: Final = 1.0
#: Seconds after the deadline until which the server's own, longer error may come.
_SLACK: Final = 1.0
_HEARTBEAT_SECONDS: Final = 10.0


class _UnderWay:
    """A call of the server that is under way; can be ended."""

    __slots__ = ("_answered", "_cancel", "_lost", "answer", "error", "peer")

    def __init__(self, peer: str) -> None:
        self.peer = peer
        self.answer: Any = None
        self.error: OpError | None = None
        #: Why the answer is waited for no longer; counts more than the call's own error.
        self._lost: OpError | None = None
        self._answered = Event()
        self._cancel: Callable[[], object] | None = None

    def begun(self, cancel: Callable[[], object]) -> None:
        """The call was made; ``cancel`` ends it."""
        self._cancel = cancel
        if self._lost is not None:
            cancel()

    def done(self, error: OpError | None, answer: Any) -> None:
        """The call is over."""
        self.error, self.answer = error, answer
        self._answered.set()

    def cancel(self, reason: OpError | None = None) -> None:
        """Wait no longer, for a reason."""
        self._lost = reason or CancelledError("Run call was cancelled")
        if self._cancel is not None:
            self._cancel()

    def dump_state(self) -> str:
        """Whom it waits for."""
        return f"  waiting  for {self.peer}"

    def result(self) -> Any:
        """Wait for the answer; raises OpError if there is none."""
        try:
            self._answered.wait()
        except BaseException:  # Ctrl-C
            self.cancel()
            raise
        if self.error is None:
            return self.answer
        raise self._lost or self.error


class RemoteMaster:
    """The master at a target."""

    def __init__(self, target: str, security: Security) -> None:
        if not target.startswith(_SCHEME):
            raise InvalidArgumentError(
                f"'{target}' is no target of a server", next_step="write grpc://host:port"
            )
        self._address: Final = check_address(target.removeprefix(_SCHEME).rstrip("/"))
        peer = f"The server at {self._address}"
        self._channel: Final = security.channel(self._address)
        self._master: Final = Stub(self._channel, MASTER, peer, security.metadata)
        self._worker: Final = Stub(self._channel, WORKER, peer, security.metadata)
        self._heartbeat: Final = Heartbeat(_HEARTBEAT_SECONDS)

    def call(self, method: str, request: Message, timeout: int) -> Any:
        """Call a method, and wait for its answer, for so many milliseconds (0: without end)."""
        return self._master.call(method, request, timeout=_seconds(timeout))

    def tell(self, method: str, request: Message) -> None:
        """Call a method whose answer does not matter."""
        with contextlib.suppress(ValueError):  # the channel is closed
            self._master.start(method, request, lambda _error, _answer: None, timeout=_SLACK)

    def wait(
        self, method: str, request: Message, call: Call, timeout: int, *, key: str = ""
    ) -> Any:
        """Like ``call``; but ``call`` can be ended, and so does a server that is gone."""
        waiting = _UnderWay(self._master.peer)
        call.turn_to(waiting)
        watch = self._heartbeat.watch(self._master.peer, self._worker, waiting.cancel)
        try:
            seconds = _seconds(timeout)
            waiting.begun(
                self._master.start(method, request, waiting.done, timeout=seconds, key=key)
            )
            return waiting.result()
        except ValueError:
            raise CancelledError("Session has been closed.") from None
        except DeadlineExceededError as error:
            raise _timed_out(error, timeout) from None
        finally:
            Heartbeat.forget(watch)

    def first_call(self, method: str, request: Message, call: Call, timeout: int) -> Any:
        """Like ``wait``; a server that cannot be reached is called again, a number of times.

        All of these calls have one key, so that what was done once is not done again.
        """
        key = new_key()
        pause, end = _FIRST_PAUSE, monotonic() + (timeout / 1000 if timeout > 0 else float("inf"))
        for tries in range(1, _TRIES + 1):
            try:
                return self.wait(method, request, call, timeout, key=key)
            except UnavailableError as error:
                if tries == _TRIES or monotonic() + pause > end:
                    raise UnavailableError(
                        f"{error.reason} ({tries} tries)",
                        next_step="look whether a server runs there: penstock worker --help",
                    ) from None
            sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)
        raise AssertionError  # the last try returns or raises

    def close(self) -> None:
        """Close the connection."""
        self._heartbeat.close()
        self._channel.close()


def _seconds(milliseconds: int) -> float | None:
    return milliseconds / 1000 + _SLACK if milliseconds > 0 else None


def _timed_out(error: OpError, milliseconds: int) -> OpError:
    """The server's own error, if it came; ours if not even that did."""
    if error.where is not None or error.details:
        return error
    return DeadlineExceededError(
        f"The server did not answer within {milliseconds} ms: {error.reason}"
    )
