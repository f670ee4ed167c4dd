"""A step whose feeds and fetches come and go over several calls.

In:   a step prepared for the rendezvous, then some feeds and some fetches at a time.
Out:  the fetched values.
Not:  parses no nestings; that is the session's.

All executors start at once and wait for what is fed.  Mistakes in a call leave the run as
it was; an error of the step ends it.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence

from penstock.core.names import parse_endpoint
from penstock.core.values import DEAD, Value
from penstock.errors import InvalidArgumentError, OpError
from penstock.exceptions import from_exception
from penstock.graph.graph import Graph
from penstock.graph.roles import Role
from penstock.runtime.ctrl_c import NotingCtrlC
from penstock.runtime.deadline import Alarm, timed_out
from penstock.runtime.executor.barrier import ExecutorBarrier
from penstock.runtime.executor.params import ExecutorArgs
from penstock.runtime.prepare import PreparedRequest
from penstock.runtime.step_loop import POLL_SECONDS
from penstock.state.rendezvous import Rendezvous
from penstock.state.step_state import StepState
from penstock.state.waits import Notification


class PartialRun:
    """One such step."""

    def __init__(
        self, graph: Graph, prepared: PreparedRequest, state: StepState, rendezvous: Rendezvous
    ) -> None:
        """Get ready to run ``prepared``, which takes feeds from a rendezvous, and puts fetches."""
        self._graph = graph
        self._prepared = prepared
        self._state = state
        self._rendezvous = rendezvous
        #: Held during each call, so that calls come one after another.
        self._lock = threading.Lock()
        #: What is still to be fed and fetched.
        self._pending_feeds = set(prepared.request.feeds)
        self._pending_fetches = set(prepared.request.fetches)
        self._finished = threading.Event()
        #: The step's error, set before ``_finished``.
        self._error: OpError | None = None
        #: Whether nothing more can come of this run.
        self.is_done = False

    def start(self) -> None:
        """Start all executors; they run until they wait for a feed."""
        state = self._state
        with NotingCtrlC(state.interrupt):
            executors = self._prepared.runnable.executors(state.interrupt)
        remote = self._prepared.remote
        barrier = ExecutorBarrier(len(executors) + len(remote), self._rendezvous, self._finish)
        with NotingCtrlC(state.interrupt):
            for part in remote:
                part.run_async(state, (), None, barrier.arrive)
            for executor in executors:
                executor.run_async(ExecutorArgs(state), barrier.arrive)
        if state.interrupt.escaping is not None:
            self._wait()
            state.raise_escaping()

    def _finish(self, error: OpError | None) -> None:
        self._error = error
        self._finished.set()

    def cancel(self, reason: OpError) -> None:
        """End the run; waits until nothing of it is active, or only what does not answer."""
        self._state.end(reason)
        self._close()

    def _close(self) -> None:
        """Wait for the end of the step, and give up what lives as long."""
        self._wait()
        self._state.close()
        self.is_done = True

    def dump_state(self) -> str:
        """What every unfinished node waits for."""
        return self._state.report()

    def _wait(self) -> None:
        while not self._finished.wait(POLL_SECONDS):
            self._state.look_up()

    def step(
        self, feeds: Mapping[str, Value], fetches: Sequence[str], timeout_in_ms: int
    ) -> list[Value]:
        """Feed, then fetch.

        Raises:
            InvalidArgumentError: a feed or fetch is not of this run, or comes too early or
                twice; the run goes on.
            OpError: the step's own error, or DeadlineExceededError; the run is over.

        """
        with self._lock:
            self._check(feeds, fetches)
            with Alarm(timeout_in_ms, self._expire), NotingCtrlC(self._state.interrupt):
                try:
                    values = self._exchange(feeds, fetches)
                    self._close_if_served()
                except BaseException as cause:
                    # What was taken out of the rendezvous is lost, so nobody could go on.
                    self.cancel(from_exception(cause))
                    self._state.raise_escaping()
                    if isinstance(cause, OpError):
                        raise self._state.told(cause) from cause.__cause__
                    raise
            self._state.keep_fetched(fetches)
            return values

    def _expire(self) -> None:
        self._state.end(timed_out("operation_timeout_in_ms", instead="feed what is missing"))

    def _check(self, feeds: Mapping[str, Value], fetches: Sequence[str]) -> None:
        request = self._prepared.request
        for kind, names, known, pending in (
            ("feed", feeds, request.feeds, self._pending_feeds),
            ("fetch", fetches, request.fetches, self._pending_fetches),
        ):
            for name in names:
                if name not in known:
                    raise InvalidArgumentError(
                        f"The {kind} {name} was not specified in partial_run_setup."
                    )
                if name not in pending:
                    done = "fed" if kind == "feed" else "fetched"
                    raise InvalidArgumentError(f"The {kind} {name} has already been {done}.")
        self._check_computable(fetches, self._pending_feeds - feeds.keys())

    def _check_computable(self, fetches: Sequence[str], missing: set[str]) -> None:
        """Walk back from the fetches; a feed that is still to come must not be met."""
        waiting = [self._graph.endpoint(parse_endpoint(name)) for name in fetches]
        seen = set(waiting)
        while waiting:
            node, slot = waiting.pop()
            if f"{node.name}:{slot}" in missing:
                raise InvalidArgumentError(
                    f"Fetch {node.name}:{slot} can't be computed from the feeds that have "
                    "been fed so far."
                )
            for edge in node.in_edges():
                # Who waits for a placeholder waits for its feed.
                is_fed = edge.is_control and edge.src.role is Role.PLACEHOLDER
                source = (edge.src, 0 if is_fed else edge.src_slot)
                if source not in seen:
                    seen.add(source)
                    waiting.append(source)

    def _exchange(self, feeds: Mapping[str, Value], fetches: Sequence[str]) -> list[Value]:
        for name, value in feeds.items():
            self._rendezvous.send(name, value)
            self._pending_feeds.discard(name)
        values = []
        for name in fetches:
            value = self._receive(name)
            if value is DEAD:
                raise InvalidArgumentError(f"The tensor returned for {name} was not valid.")
            self._pending_fetches.discard(name)
            values.append(value)
        return values

    def _receive(self, name: str) -> Value:
        """Wait for a value, and look up now and then."""
        arrival = Notification()
        self._rendezvous.recv_async(name, arrival)
        while not arrival.wait(POLL_SECONDS):
            self._state.look_up()
        error, value, is_dead = arrival.outcome
        if error is not None:
            raise error.copy()
        return DEAD if is_dead else value

    def _close_if_served(self) -> None:
        """When all feeds and fetches are served, wait for the rest of the step."""
        if self.is_done or self._pending_feeds or self._pending_fetches:
            return
        self._close()
