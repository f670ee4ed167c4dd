"""``Debugger``: a step that goes on as somebody says.

In:   a session, fetches and feeds; then what to do, call by call.
Out:  where the step stands; values by name, of now and of earlier; what was fetched, in the end.
Not:  knows no terminal: ``prompt.py`` has one, and notebooks and tests need none.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Mapping
from typing import Any, Final, Self

from penstock.core.names import parse_endpoint, scopes_of
from penstock.debugger import stops
from penstock.debugger.breakpoints import (
    FILTERS,
    Breakpoint,
    Predicate,
    Seen,
    TensorFilter,
    find_filter,
)
from penstock.debugger.expressions import Expression, parse
from penstock.debugger.history import DEFAULT_BYTES, History, Recorded, split_key
from penstock.debugger.overrides import Overrides, converted
from penstock.debugger.places import call_of
from penstock.debugger.step_run import StepRun
from penstock.debugger.stepper import Stepper
from penstock.debugger.stops import Goal, Stop
from penstock.debugger.visits import Visits
from penstock.errors import FailedPreconditionError, InvalidArgumentError, NotFoundError
from penstock.graph.graph import Graph
from penstock.session.graphs import graph_of
from penstock.session.session import Session
from penstock.state.node_hook import Activation


class Debugger:
    """One request, of which a step is run under somebody's hands, or several one after the other.

    All methods are called by one thread, which waits until the step stands again.
    """

    def __init__(
        self,
        session: Session,
        fetches: Any,
        feeds: Mapping[Any, Any],
        *,
        memory: int = DEFAULT_BYTES,
        filters: Mapping[str, TensorFilter] | None = None,
        close: Callable[[], None] | None = None,
    ) -> None:
        """What ``debug`` makes."""
        self.session = session
        self.fetches = fetches
        self.feeds = feeds
        self.memory = memory
        self.graph: Graph = graph_of(session.graph)
        #: What can be asked about each output, by name.
        self.filters: Final[dict[str, TensorFilter]] = {**FILTERS, **(filters or {})}
        self.overrides: Final = Overrides()
        #: Replaced as a whole: the step's thread reads it without a lock.
        self.breakpoints: tuple[Breakpoint, ...] = ()
        self._numbers = itertools.count(1)
        #: Tensors that are shown whenever they change.
        self.watches: Final[list[str]] = []
        self.history = History(memory)
        self._visits = Visits()
        #: How many steps were begun.
        self.run_count = 0
        self._stepper: Stepper | None = None
        self._run: StepRun | None = None
        #: Called when it is closed.
        self._close = close

    # -- going on ------------------------------------------------------------------------

    def run(self) -> Stop:
        """Begin a step, or go on with it, to a breakpoint or the end."""
        return self.go(stops.to_the_end())

    def run_to_filter(self, name: str, *, exclude: str = "") -> Stop:
        """Go on to the first output that passes a filter, of a node that ``exclude`` matches not.

        Raises:
            InvalidArgumentError: there is no such filter.

        """
        excluded = re.compile(exclude).match if exclude else lambda _node: None
        return self.go(stops.to_filter(*find_filter(name, self.filters), excluded))

    def step(self, count: int = 1) -> Stop:
        """Run so many nodes."""
        return self.go(stops.steps(count))

    def cont(self, pattern: str, *, before: bool = False) -> Stop:
        """Go on to a node, by its name or a pattern, and stop when it has run."""
        return self.go(stops.to_node(pattern, is_before=before))

    def iterate(self) -> Stop:
        """Go on to the next iteration of the loop that the step stands in, or out of it.

        Raises:
            FailedPreconditionError: it stands in no loop.

        """
        at = self._visits.standing()
        if not at.iterations:
            raise FailedPreconditionError(f"{at.place} is in no loop")
        return self.go(stops.to_next_iteration(at))

    def finish(self) -> Stop:
        """Go on to the end of the function that the step stands in, or else of the loop.

        Raises:
            FailedPreconditionError: it stands in neither.

        """
        at = self._visits.standing()
        if at.depth or at.call:
            return self.go(stops.out_of_call(at))
        if at.iterations:
            return self.go(stops.out_of_loop(at))
        raise FailedPreconditionError(f"{at.place} is in no function and no loop")

    def go(self, goal: Goal) -> Stop:
        """Begin a step, or go on with it, to a goal."""
        self.start(goal)
        return self.wait()

    def start(self, goal: Goal) -> None:
        """The same without waiting.

        Raises:
            FailedPreconditionError: the step is going on already.

        """
        if self._stepper is None or self.has_ended:
            self._begin(goal)
        elif self._stepper.wait(0) is None:
            raise FailedPreconditionError("The step is going on", next_step="pause() it")
        else:
            self._stepper.go(goal)

    def wait(self, seconds: float | None = None) -> Stop:
        """Wait until the step stands.

        Raises:
            TimeoutError: it does not within that time.

        """
        assert self._stepper is not None
        stop = self._stepper.wait(seconds)
        if stop is None:
            raise TimeoutError(f"the step goes on after {seconds} seconds")
        self._visits.add(stop)
        return stop

    def pause(self) -> None:
        """Have the step stop at the next node; from any thread."""
        if self._stepper is not None:
            self._stepper.pause()

    def end(self) -> None:
        """Cancel the step, if there is one; the next ``run`` begins another."""
        if self._run is not None and not self.has_ended:
            self._run.end()
            self.wait()

    def waits_for(self) -> str:
        """What a step does that does not stand."""
        return self._run.waits_for() if self._run is not None else ""

    def _begin(self, goal: Goal) -> None:
        self.history = History(self.memory)
        self._visits = Visits()
        stepper = Stepper(
            self.history, self.overrides, goal, lambda: self.breakpoints, self._call_of
        )
        self._run = StepRun(self.session, self.fetches, self.feeds, stepper)
        self._stepper = stepper
        self.run_count += 1

    def _call_of(self, at: Activation) -> str:
        return call_of(at, self.graph.library)

    # -- where it stands -------------------------------------------------------------------

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

    @property
    def seen(self) -> Seen | None:
        """What was seen where the step stands now."""
        return self._stepper.seen if self._stepper is not None else None

    @property
    def result(self) -> Any:
        """What was fetched.

        Raises:
            FailedPreconditionError: the step has not ended.
            OpError: it failed.

        """
        if self._run is None or not self.has_ended:
            raise FailedPreconditionError("The step has not ended", next_step="run() it to the end")
        if self._run.error is not None:
            raise self._run.error
        return self._run.value

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
        is_known = self.graph.find(node) is not None
        return NotFoundError(
            f"{name} has no value yet", next_step="run to it" if is_known else self.graph.hint(node)
        )

    # -- changing things -------------------------------------------------------------------

    def set_value(self, name: str, value: Any) -> int:
        """Change a live tensor; returns how many inputs of nodes that changes.

        What a node has just given is changed for all who read it; what came earlier, for those
        that have not run yet.

        Raises:
            FailedPreconditionError: the step does not stand, or nobody is yet to read the tensor.
            InvalidArgumentError: the value has another type.

        """
        self._visits.standing()
        seen, stepper = self.seen, self._stepper
        if self.is_back or seen is None or stepper is None:
            raise FailedPreconditionError(
                "What was cannot be changed", next_step="go forward, or run again and stop there"
            )
        known = self.record(split_key(name)[0])
        given = converted(value, known.dtype, known.name)
        count = seen.give(known, given) or seen.at.live.put(*stepper.runs_as(known), given)
        if not count:
            raise FailedPreconditionError(
                f"Nobody is yet to read {known.key}",
                next_step="run again, and change it when its node has run; or override the node",
            )
        stepper.rerecord(known, given)
        return count

    def override(self, node: str, given: Any) -> None:
        """Have a node give something else from now on, in all iterations.

        Args:
            node: its name.
            given: a value; or a function, which gets what the node reads and returns what it gives.

        Raises:
            NotFoundError: the graph has no such node, and no function is inlined there.

        """
        self.check_name(node)
        self.overrides.set(node, given)

    def check_name(self, node: str) -> None:
        """Raise NotFoundError unless there is a node, or may be one inside of a call."""
        scopes = {node, *scopes_of(node)}
        is_known = any(self.graph.find(scope) is not None for scope in scopes)
        if not is_known and not any(one.node == node for one in self.history.all()):
            raise NotFoundError(f"There is no node {node}", next_step=self.graph.hint(node))

    def break_at(
        self,
        pattern: str = "*",
        condition: str | Predicate | None = None,
        *,
        passes: str = "",
        before: bool = False,
    ) -> Breakpoint:
        """Stop wherever all of this holds, from now on.

        Args:
            pattern: names of nodes, with ``*`` and ``?``.
            condition: an expression such as ``iteration > 10``; or a function that is given what
                was ``Seen``.
            passes: the name of a filter that an output passes.
            before: stop before the node runs, rather than when it has.

        Raises:
            InvalidArgumentError: there is no such filter, or the expression is none.

        """
        asked: Expression | Predicate | None = (
            parse(condition) if isinstance(condition, str) else condition
        )
        wanted = find_filter(passes, self.filters) if passes else None
        if pattern == "*" and asked is None and wanted is None:
            raise InvalidArgumentError(
                "That would stop everywhere", next_step="say at which nodes, or if what; or step"
            )
        made = Breakpoint(next(self._numbers), pattern, asked, wanted, is_before=before)
        self.breakpoints = (*self.breakpoints, made)
        return made

    def delete(self, number: int) -> None:
        """Take a breakpoint away.

        Raises:
            NotFoundError: there is none of that number.

        """
        left = tuple(one for one in self.breakpoints if one.number != number)
        if len(left) == len(self.breakpoints):
            raise NotFoundError(f"There is no breakpoint {number}")
        self.breakpoints = left

    def add_tensor_filter(self, name: str, wanted: TensorFilter) -> None:
        """Have a filter of one's own: a function of a record and its value."""
        self.filters[name] = wanted

    # -- the end ---------------------------------------------------------------------------

    def close(self) -> None:
        """Cancel the step, and close the session if it is the debugger's own."""
        self.end()
        if self._close is not None:
            self._close()
            self._close = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_raised: object) -> None:
        self.close()
