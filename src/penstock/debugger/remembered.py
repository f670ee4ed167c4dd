"""What a step has done, as far as it is remembered: where it stood, and what it had computed.

In:   stops and records, from a debugger.
Out:  one of the places is looked at, the latest unless somebody goes back; values as of then.
Not:  lets no step go on, and changes nothing.
"""

from __future__ import annotations

from typing import Any, Final

from penstock.comparison.as_run import AsRun
from penstock.core.names import parse_endpoint
from penstock.debugger.history import History, Recorded, split_key
from penstock.debugger.stops import Stop
from penstock.debugger.visits import Visits
from penstock.errors import NotFoundError


class Remembered:
    """The places and the values of one step after the other."""

    def __init__(self, nodes: AsRun, memory: int) -> None:
        """Of these nodes, with so many bytes for values."""
        self.nodes: Final = nodes
        #: The graph as it was written.
        self.graph: Final = nodes.graph
        self.memory: Final = memory
        self.history = History(memory)
        self._visits = Visits()

    def _forget(self) -> None:
        """Another step begins."""
        self.history = History(self.memory)
        self._visits = Visits()

    # -- places ----------------------------------------------------------------------------

    @property
    def stop(self) -> Stop | None:
        """The place that is looked at: the latest, unless somebody went back; None before any."""
        return self._visits.at

    @property
    def stops(self) -> list[Stop]:
        """The places where the step stood, oldest first."""
        return self._visits.all

    @property
    def is_back(self) -> bool:
        """Whether an earlier place is looked at."""
        return self._visits.is_back

    @property
    def has_ended(self) -> bool:
        """Whether there is no step any more."""
        return self._visits.has_ended

    def back(self, count: int = 1) -> Stop:
        """Look at an earlier place; its values can be looked at, and not changed.

        Raises:
            FailedPreconditionError: there is none, or nobody remembers it.

        """
        return self._visits.back(count)

    def forward(self, count: int = 1) -> Stop:
        """Look at a later place again."""
        return self._visits.back(-count)

    # -- values ----------------------------------------------------------------------------

    def value(self, name: str) -> Any:
        """The value of a tensor, as of the place that is looked at: see ``record``.

        Raises:
            NotFoundError: it has none, or nobody remembers it.

        """
        found = self.record(name)
        if found.is_dead:
            raise NotFoundError(f"{found.key} is dead", next_step=f"ask explain {found.node}")
        if found.value is None:
            raise NotFoundError(f"{found.key} is no array, but a {found.kind}")
        return found.value

    def record(self, name: str, index: int | None = None) -> Recorded:
        """What is known of a tensor, as of the place that is looked at.

        Args:
            name: ``node:slot``, or ``node``; with ``@loop[iteration]`` behind it if it is not to
                be the latest.
            index: which of its records, from 0, rather than the latest.

        Raises:
            NotFoundError: there is no such record.

        """
        stop = self.stop
        near = (stop.frame, stop.iterations) if stop is not None else ("", ())
        found = self.history.find(name, self._until, near, index)
        if found is None:
            raise self._unknown(name)
        return found

    def records(self, name: str = "") -> list[Recorded]:
        """All records, as of the place that is looked at; or those of one tensor."""
        if not name:
            return self.history.all(self._until)
        return self.history.of(split_key(name)[0], self._until)

    @property
    def _until(self) -> int | None:
        """The latest activation that counts; None if all do."""
        stop = self.stop
        return stop.number if stop is not None and self.is_back else None

    def _unknown(self, name: str) -> NotFoundError:
        if self.history.forgotten:
            return NotFoundError(
                f"{name} has no value that is remembered: {self.history.forgotten} were forgotten",
                next_step=f"allow more than {self.history.max_bytes} bytes of memory",
            )
        node = parse_endpoint(split_key(name)[0]).node
        is_known = self.nodes.find(node) is not None
        return NotFoundError(
            f"{name} has no value yet", next_step="run to it" if is_known else self.graph.hint(node)
        )

    def check_name(self, node: str) -> None:
        """Raise NotFoundError unless there is a node, or was one in a function that was called."""
        is_known = self.nodes.find(node) is not None
        if not is_known and not any(one.node == node for one in self.history.all()):
            raise NotFoundError(f"There is no node {node}", next_step=self.graph.hint(node))
