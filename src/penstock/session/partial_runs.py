"""The partial runs of one session, by the handles that their callers have.

In:   runs that are to be started.
Out:  the same, as long as something can come of them.
Not:  feeds and fetches nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from threading import Lock
from typing import Any

from penstock.core.values import Value
from penstock.errors import InvalidArgumentError
from penstock.runtime.partial_run import PartialRun


class PartialRuns:
    """Runs by handle."""

    def __init__(self) -> None:
        #: Guards what follows; taken after the session's.
        self._lock = Lock()
        self._runs: dict[str, PartialRun] = {}
        #: How many there have ever been.
        self._count = 0

    def __len__(self) -> int:
        return len(self._runs)

    def add(self, run: PartialRun) -> str:
        """Note a run that is to be started; returns its handle."""
        with self._lock:
            self._count += 1
            handle = f"partial_run;{self._count}"
            self._runs[handle] = run
            return handle

    def start(self, handle: str, run: PartialRun) -> None:
        """Start a run; it is forgotten if that fails."""
        try:
            run.start()
        except BaseException:  # Ctrl-C, say
            self._forget(handle)
            raise

    def get(self, handle: str) -> PartialRun:
        """The run with a handle; raises InvalidArgumentError if there is none."""
        run = self._runs.get(handle)
        if run is None:
            raise InvalidArgumentError("Must run 'setup' before performing partial runs!")
        return run

    def step(
        self,
        handle: str,
        run: PartialRun,
        fed: Mapping[str, Value],
        wanted: Sequence[str],
        timeout: int,
    ) -> Sequence[Any]:
        """Go on with a run: feed and fetch; it is forgotten if nothing more can come of it."""
        try:
            return run.step(fed, wanted, timeout)
        finally:
            if run.is_done:
                self._forget(handle)

    def take_all(self) -> list[PartialRun]:
        """Forget all runs, and return them."""
        with self._lock:
            runs = list(self._runs.values())
            self._runs.clear()
            return runs

    def _forget(self, handle: str) -> None:
        with self._lock:
            self._runs.pop(handle, None)
