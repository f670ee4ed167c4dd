"""The short way of a step that comes again and again: what does not depend on values is done once.

In:   what makes requests alike; of the first of them, what it asks for by name.
Out:  what came of a step, for the values of its feeds in the request's order.
Not:  reads no message.

Only steps that are one compiled function of this process have one: what waits for other tasks, is
watched, or has parts for executors, goes the long way.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Final, NamedTuple

from penstock.core.dtypes import DType
from penstock.core.values import Value, dtype_of
from penstock.runtime.prepare import PreparedRequest
from penstock.session.compiled_callable import CompiledCallable

#: So many are remembered, and then none.
_MAX_KNOWN: Final = 1_000


class Ran(NamedTuple):
    """What came of a run."""

    #: The fetched values, in order, with their types.
    fetched: list[tuple[Value, DType]]
    #: Whether a run like it can neither wait nor repeat anything here.
    is_straight: bool
    #: How long was waited for other tasks.
    elsewhere: float


class ShortWay:
    """Steps of one kind."""

    __slots__ = ("_call", "_fetched", "_prepared")

    def __init__(
        self,
        call: CompiledCallable,
        prepared: PreparedRequest,
        endpoints: Sequence[str],
        names: Sequence[str],
    ) -> None:
        """Find each fetch among the results.

        Args:
            call: runs the step.
            prepared: what it runs.
            endpoints: what it gives, in order.
            names: the endpoint that each fetch means.

        """
        types = dict(zip(prepared.request.fetches, prepared.fetch_types, strict=True))
        self._call: Final = call
        self._prepared: Final = prepared
        #: By fetch, its place among the results, and its type; None for that of what is fed.
        self._fetched: Final = [(endpoints.index(name), types.get(name)) for name in names]

    def run(self, values: Sequence[Value]) -> Ran:
        """Run one step; raises OpError."""
        results = self._call.results(values)
        fetched = [
            (results[place], dtype or dtype_of(results[place])) for place, dtype in self._fetched
        ]
        return Ran(fetched, self._prepared.is_straight, 0.0)


class ShortWays:
    """Those of a session.  All of this happens on the event loop alone."""

    def __init__(self) -> None:
        self._known: Final[dict[Hashable, ShortWay | None]] = {}

    def get(self, kind: Hashable, find: Callable[[], ShortWay | None]) -> ShortWay | None:
        """That of a kind of requests, found out when it first comes; None if it has none."""
        try:
            return self._known[kind]
        except KeyError:
            if len(self._known) >= _MAX_KNOWN:
                self._known.clear()
            found = self._known[kind] = find()
            return found
