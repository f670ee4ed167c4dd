"""A step on a thread of its own, with a debugger's hook.

In:   a session, what is fetched and fed, and a ``Stepper``.
Out:  its values or its error, when it has ended; the stepper is told of that.
Not:  knows no goals and no commands.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from threading import Event, Thread
from typing import Any, Final

from penstock.config import RunOptions
from penstock.debugger.stepper import Stepper
from penstock.errors import OpError
from penstock.session.run import Run
from penstock.session.session import Session

#: A step that waits for people has no deadline: 24 days, where the session's own would count.
_NEVER_IN_MS: Final = 2**31 - 1
#: Kernels run on the step's own thread, so that nodes come in the same order each time.
_OWN_THREAD: Final = -1


class StepRun:
    """A step, which ``start`` begins.

    Ctrl-C may come to the thread that debugs at any moment, so whoever debugs knows the step before
    it begins, and it begins on a thread that Ctrl-C does not reach.
    """

    def __init__(
        self, session: Session, fetches: Any, feeds: Mapping[Any, Any], stepper: Stepper
    ) -> None:
        """Say what it is."""
        has_deadline = session.config.operation_timeout_in_ms > 0
        options = RunOptions(
            node_hook=stepper,
            inter_op_thread_pool=_OWN_THREAD,
            timeout_in_ms=_NEVER_IN_MS if has_deadline else 0,
        )
        self._begin = partial(session.run_async, fetches, feeds, options)
        self._stepper = stepper
        #: What was fetched; None as long as the step has not ended, or if it failed.
        self.value: Any = None
        #: Why it failed; None if it did not.
        self.error: BaseException | None = None
        #: None before it has begun, and if it could not.  Set once, by the thread that awaits it.
        self._run: Run | None = None
        #: Set when it has begun, or could not.
        self._has_begun = Event()
        #: Whether it is to be cancelled as soon as it has begun.  Set by whoever debugs.
        self._is_to_end = False
        self._watch = Thread(target=self._await, name="penstock-debug", daemon=True)

    def start(self) -> None:
        """Begin it.

        Raises:
            OpError: what is fetched or fed makes no sense.

        """
        self._watch.start()
        self._has_begun.wait()
        if self._run is None:
            assert self.error is not None
            raise self.error

    def _await(self) -> None:
        try:
            self._run = self._begin()
            self._has_begun.set()
            if self._is_to_end:
                self._run.cancel()
            self.value = self._run.result()
        except BaseException as error:  # noqa: BLE001  (raised again by ``Debugger.result``)
            self.error = error
        self._stepper.end(*self._outcome())
        self._has_begun.set()

    def _outcome(self) -> tuple[str, OpError | None]:
        """What is said of the end, and the error if there is one."""
        error = self.error
        if error is None:
            return "all is computed", None
        return f"{type(error).__name__}: {error}", error if isinstance(error, OpError) else None

    def waits_for(self) -> str:
        """What the step does, or waits for."""
        return self._run.dump_state() if self._run is not None else "it has not begun"

    def end(self) -> None:
        """Cancel it, and wait until it is over."""
        self._stepper.release(self._cancel)
        if self._watch.ident is None:
            self._stepper.end("it has not begun", None)
        else:
            self._watch.join()

    def _cancel(self) -> None:
        self._is_to_end = True
        if self._run is not None:
            self._run.cancel()
