"""Orders of a step: one that notes what happens, and one that demands what was noted.

In:   what executors ask and tell (``state/step_order.py``).
Out:  events; or an error that says where a step left the order, and why.
Not:  runs nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from random import Random
from threading import RLock
from typing import Final

from penstock.errors import AbortedError, OpError
from penstock.printable import printable
from penstock.replays.digests import digest_of_outcome
from penstock.replays.events import Event, named
from penstock.state.step_order import NodeRun, Outcome, Participant

_LINE: Final = "\n"


class NotedOrder:
    """Lets everything happen as it comes, or as a seed says, and notes it."""

    def __init__(self, seed: int | None = None) -> None:
        #: See ``StepOrder``.  Guards what follows.
        self.lock = RLock()
        self.events: list[Event] = []
        #: What has done more than compute, perhaps.
        self.effects: set[NodeRun] = set()
        self._count = 0
        self._random = None if seed is None else Random(seed)

    def join(self, participant: Participant) -> int:  # noqa: ARG002
        """An executor begins; returns its number."""
        self._count += 1
        return self._count - 1

    def leave(self, number: int) -> None:
        """Nobody cares."""

    def choose(
        self,
        number: int,  # noqa: ARG002
        ready: Collection[NodeRun],
        came: Collection[NodeRun],
    ) -> NodeRun | None:
        """What came, and then what is ready, each in its order; or by lot."""
        if self._random is not None and (ready or came):
            return self._random.choice([*came, *ready])
        return next(iter(came), None) or next(iter(ready), None)

    def begins(self, node_run: NodeRun, *, has_effects: bool) -> None:
        """Note it."""
        if has_effects:
            self.effects.add(node_run)
        self.events.append(Event(node_run, is_end=False))

    def ends(self, node_run: NodeRun, outcome: Outcome) -> None:
        """Note it."""
        self.events.append(Event(node_run, is_end=True, digest=digest_of_outcome(outcome)))


class DemandedOrder:
    """Has everything happen as it was noted; ends the step where that cannot be."""

    def __init__(self, events: Sequence[Event]) -> None:
        #: See ``StepOrder``.  Guards what follows.
        self.lock = RLock()
        self._events: Final = events
        #: How many events have happened.
        self._at = 0
        #: Executors by number; None for those that have ended.
        self._participants: list[Participant | None] = []
        #: Why the step left the order; None as long as it has not.  Set once.
        self.divergence: OpError | None = None

    def join(self, participant: Participant) -> int:
        """An executor begins; returns its number."""
        self._participants.append(participant)
        return len(self._participants) - 1

    def leave(self, number: int) -> None:
        """An executor has ended; what it was to do, it never will."""
        self._participants[number] = None
        following = self._following()
        if following is not None and following.node_run.executor == number:
            self._diverge(f"{following}, but executor {number} has ended")

    def choose(
        self, number: int, ready: Collection[NodeRun], came: Collection[NodeRun]
    ) -> NodeRun | None:
        """What comes next, if it is there; whose turn it is, is woken."""
        following = self._following()
        if following is None:
            extra = next(iter([*ready, *came]), None)
            if extra is not None:
                self._diverge(f"nothing more, but {named(extra)} is ready")
            return None
        wanted = following.node_run
        if wanted.executor != number:
            self._pass_on(following)
            return None
        if wanted in (came if following.is_end else ready):
            return wanted
        if not following.is_end or not self._may_come():
            others = ", ".join(map(named, [*ready][:5])) or "nothing"
            self._diverge(f"{following}, but it is not ready; ready: {others}")
        return None

    def begins(self, node_run: NodeRun, *, has_effects: bool) -> None:  # noqa: ARG002
        """The next event happens."""
        self._at += 1

    def ends(self, node_run: NodeRun, outcome: Outcome) -> None:
        """The next event happens."""
        if digest_of_outcome(outcome) != self._events[self._at].digest:
            does = "gives something else"
            if isinstance(outcome, OpError):
                does = f"fails: {printable(outcome.message.partition(_LINE)[0])}"
            self._diverge(f"{named(node_run)} gives what it gave, but it {does}")
        self._at += 1

    def check_end(self) -> None:
        """Raise AbortedError if the step has left the order, or has not come to its end."""
        following = self._following()
        if self.divergence is None and following is not None:
            self._diverge(f"{following}, but the step has ended")
        if self.divergence is not None:
            raise self.divergence

    # -- what comes next -----------------------------------------------------------------------

    def _following(self) -> Event | None:
        return self._events[self._at] if self._at < len(self._events) else None

    def _pass_on(self, event: Event) -> None:
        """Wake the executor whose turn it is."""
        number = event.node_run.executor
        if number < len(self._participants):
            participant = self._participants[number]
            if participant is None:
                self._diverge(f"{event}, but executor {number} has ended")
            else:
                participant.wake()
        elif not self._may_come():
            self._diverge(f"{event}, but executor {number} never begins")

    def _may_come(self) -> bool:
        """Whether anything is still to come of what has begun."""
        return any(one is not None and one.is_waiting for one in self._participants)

    def _diverge(self, why: str) -> None:
        """End the step: it cannot go on in the order."""
        if self.divergence is not None:
            return
        self.divergence = AbortedError(
            f"The replay left the recorded order at event {self._at + 1} of {len(self._events)}, "
            f"which says that {why}",
            next_step="the graph, the libraries, or what lies outside of the session (files, "
            "Python functions, the time) differ from those of the recording",
        )
        for participant in self._participants:
            if participant is not None:
                participant.end_step(self.divergence)
                participant.wake()
