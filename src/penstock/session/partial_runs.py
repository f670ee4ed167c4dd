"""The partial runs of one session, by the handles that their callers have.

In:   runs that are to be started.
Out:  the same, as long as something can come of them; what their steps give.
Not:  knows no request.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from threading import Lock

from penstock.core.values import Value
from penstock.errors import InvalidArgumentError, OpError
from penstock.graph.graph import Graph
from penstock.runtime.partial_run import PartialRun
from penstock.session.advise import advise
from penstock.session.fetches import copies


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

    def values(
        self,
        handle: str,
        run: PartialRun,
        fed: Mapping[str, Value],
        endpoints: Iterable[str],
        timeout: int,
        graph: Graph,
    ) -> dict[str, Value]:
        """Go on with a run: what is fed and fetched, by endpoint.

        It is forgotten if nothing more can come of it.

        Args:
            handle: the run's.
            run: what goes on.
            fed: values by endpoint.
            endpoints: what is fetched; what is fed, too, need not be computed.
            timeout: milliseconds that this may take; 0 means any time.
            graph: the session's, which errors speak of.

        Raises:
            OpError: the step's error, or why it cannot go on like that.

        """
        wanted = [name for name in endpoints if name not in fed]
        try:
            results = run.step(fed, wanted, timeout)
        except OpError as error:
            advise(error, graph)
            raise
        finally:
            if run.is_done:
                self._forget(handle)
        # The step goes on, and may yet read what was fetched.
        return copies({**fed, **dict(zip(wanted, results, strict=True))}, wanted)

    def take_all(self) -> list[PartialRun]:
        """Forget all runs, and return them."""
        with self._lock:
            runs = list(self._runs.values())
            self._runs.clear()
            return runs

    def _forget(self, handle: str) -> None:
        with self._lock:
            self._runs.pop(handle, None)
