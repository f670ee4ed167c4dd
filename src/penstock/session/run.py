"""``Run``: a run under way on a thread of its own.

In:   a step, and what runs it to its end.
Out:  the result or the error, to whoever waits for it; a way to end it early.
Not:  knows neither graph nor session.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from penstock.runtime.new_step import AnyStep


class Run:
    """A run under way on a thread of its own."""

    def __init__(self, step: AnyStep, finish: Callable[[], Any]) -> None:
        self._step = step
        self._finish = finish
        self._result: Any = None
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._work, name="penstock-run", daemon=True)
        self._thread.start()

    def _work(self) -> None:
        try:
            self._result = self._finish()
        except BaseException as error:  # noqa: BLE001  (raised again by ``result``)
            self._error = error

    def __repr__(self) -> str:
        if not self.is_done():
            return "<Run: under way>"
        failed = self._error is not None
        return f"<Run: failed with {type(self._error).__name__}>" if failed else "<Run: done>"

    def cancel(self) -> None:
        """End the run early: ``result`` raises CancelledError, unless it is done already."""
        self._step.cancel()

    def is_done(self) -> bool:
        """Whether ``result`` returns at once."""
        return not self._thread.is_alive()

    def dump_state(self) -> str:
        """What every unfinished node waits for."""
        return self._step.dump_state()

    def result(self, timeout: float | None = None) -> Any:
        """Wait for the values; raises the run's error, or TimeoutError after so many seconds."""
        self._thread.join(timeout)
        if self._thread.is_alive():
            raise TimeoutError(f"the run is not done after {timeout} seconds")
        if self._error is not None:
            raise self._error
        return self._result
