"""``Debugger``: a step that goes on as somebody says.

In:   a session, fetches and feeds; then what to do, call by call.
Out:  where the step stands; values by name, of now and of earlier; what was fetched, in the end.
Not:  knows no terminal: ``prompt.py`` has one, and notebooks and tests need none.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final, Self

from penstock.comparison.as_run import AsRun
from penstock.debugger import stops
from penstock.debugger.breakpoints import (
    FILTERS,
    Breakpoint,
    Breakpoints,
    Predicate,
    Seen,
    TensorFilter,
    find_filter,
)
from penstock.debugger.expressions import parse
from penstock.debugger.history import DEFAULT_BYTES, split_key
from penstock.debugger.overrides import Overrides, converted
from penstock.debugger.places import call_of
from penstock.debugger.remembered import Remembered
from penstock.debugger.step_run import StepRun
from penstock.debugger.stepper import Stepper
from penstock.debugger.stops import Goal, Stop
from penstock.errors import FailedPreconditionError, OpError
from penstock.session.session import Session
from penstock.state.node_hook import Activation


class Debugger(Remembered):
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
        super().__init__(AsRun(session, fetches, feeds), memory)
        self.session = session
        self.fetches = fetches
        self.feeds = feeds
        #: What can be asked about each output, by name.
        self.filters: Final[dict[str, TensorFilter]] = {**FILTERS, **(filters or {})}
        self.overrides: Final = Overrides()
        self._breakpoints = Breakpoints()
        #: Tensors that are shown whenever they change.
        self.watches: Final[list[str]] = []
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
        elif self.is_going:
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

    @property
    def is_going(self) -> bool:
        """Whether there is a step that does not stand."""
        return self._stepper is not None and self._stepper.wait(0) is None

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
        self._forget()
        self._run = self._stepper = None
        stepper = Stepper(self.history, self.overrides, self._breakpoints, goal, self._call_of)
        run = self._run = StepRun(self.session, self.fetches, self.feeds, stepper)
        self._stepper = stepper
        try:
            run.start()
        except OpError:
            self._run = self._stepper = None
            raise
        self.run_count += 1

    def _call_of(self, at: Activation) -> str:
        return call_of(at, self.graph.library)

    # -- where it stands -------------------------------------------------------------------

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

    # -- changing things -------------------------------------------------------------------

    def set_value(self, name: str, value: Any) -> int:
        """Change a live tensor; returns for how many nodes that are yet to read it.

        What a node has just given, nobody has read: that is changed for all, and counts as one.

        Raises:
            FailedPreconditionError: the step does not stand, or nobody is yet to read the tensor.
            InvalidArgumentError: the value has another type.

        """
        self._visits.standing()
        if self.is_back or self._stepper is None:
            raise FailedPreconditionError(
                "What was cannot be changed", next_step="go forward, or run again and stop there"
            )
        known = self.record(split_key(name)[0])
        count = self._stepper.change(known, converted(value, known.dtype, known.name))
        if not count:
            raise FailedPreconditionError(
                f"Nobody is yet to read {known.key}",
                next_step="run again, and change it when its node has run; or override the node",
            )
        return count

    def override(self, node: str, given: Any) -> None:
        """Have a node give something else from now on, in all iterations.

        Args:
            node: its name.
            given: a value; or a function, which gets what the node reads and returns what it gives.

        Raises:
            NotFoundError: there is no such node.

        """
        self.check_name(node)
        self.overrides.set(node, given)

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
        asked = parse(condition) if isinstance(condition, str) else condition
        wanted = find_filter(passes, self.filters) if passes else None
        return self._breakpoints.add(pattern, asked, wanted, is_before=before)

    def delete(self, number: int) -> None:
        """Take a breakpoint away.

        Raises:
            NotFoundError: there is none of that number.

        """
        self._breakpoints.delete(number)

    @property
    def breakpoints(self) -> tuple[Breakpoint, ...]:
        """Those that count."""
        return self._breakpoints.all

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
