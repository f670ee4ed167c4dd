"""The debugger's side of a step: the step waits here until somebody lets it go on.

In:   the step's activations, on its own thread; goals, from whoever debugs.
Out:  records of all outputs; a ``Stop`` whenever a goal or a breakpoint is reached.
Not:  knows no session, and no words of commands.

Laws.  The step's thread stands in at most one stop (``_turn``), in which it waits for a goal, or
to be released.  While it stands there, whoever debugs may look at what waits at inputs, and change
it: nobody else does.  When it is released, it never stops again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from threading import Condition, Lock
from time import perf_counter
from typing import Any, Final

from penstock.comparison.as_run import FED
from penstock.core.values import DEAD, Value
from penstock.debugger.breakpoints import Breakpoints, Seen
from penstock.debugger.history import History, Recorded, kept_copy
from penstock.debugger.overrides import Overrides
from penstock.debugger.places import endpoint_of, is_hidden
from penstock.debugger.stops import Goal, Moment, Stop, to_the_end
from penstock.errors import OpError
from penstock.state.node_hook import Activation, Instead, NodeHook


class Stepper(NodeHook):
    """One step, which somebody debugs."""

    def __init__(
        self,
        history: History,
        overrides: Overrides,
        breakpoints: Breakpoints,
        goal: Goal,
        call_of: Callable[[Activation], str],
    ) -> None:
        self._history = history
        self._overrides = overrides
        self._breakpoints = breakpoints
        self._call_of = call_of
        self._start: Final = perf_counter()
        #: Only one thread of the step stops at a time.  Taken before ``_met``.
        self._turn = Lock()
        #: Guards what follows.  Innermost.
        self._met = Condition(Lock())
        #: Where the step stands; None while it goes on.
        self._stop: Stop | None = None
        #: What was seen there.
        self._seen: Seen | None = None
        #: Where it is to go; None while it stands.
        self._goal: Goal | None = goal
        #: Whether it is to go on without being asked.  Set once, by any thread.
        self._is_released = False
        #: Whether it is to stop at the next node; set by any thread.
        self._is_to_pause = False
        # What follows belongs to the step's thread; while that stands, to whoever debugs.
        #: What nodes read that have not given anything yet.
        self._inputs: dict[Activation, Sequence[Value]] = {}
        #: The number of the latest activation.
        self._number = 0
        #: What is fed, and the name under which that runs.
        self._fed: dict[str, str] = {}

    # -- the debugger's side -----------------------------------------------------------

    def wait(self, seconds: float | None = None) -> Stop | None:
        """Wait until it stands somewhere; None if it does not within that time."""
        with self._met:
            self._met.wait_for(lambda: self._stop is not None, seconds)
            return self._stop

    def go(self, goal: Goal) -> None:
        """Go on, from where it stands."""
        with self._met:
            self._stop = self._seen = None
            self._goal = goal
            self._met.notify_all()

    def pause(self) -> None:
        """Have it stop at the next node."""
        self._is_to_pause = True

    def release(self, cancel: Callable[[], None]) -> None:
        """Have it cancelled, and never stop again: not at what that makes fail either."""
        self._is_released = True
        cancel()
        with self._met:
            self._met.notify_all()

    def end(self, reason: str, error: OpError | None) -> None:
        """There is no step any more."""
        with self._met:
            self._stop = Stop(Moment.ENDED, reason, self._number, error=error)
            self._seen = None
            self._met.notify_all()

    @property
    def seen(self) -> Seen | None:
        """What was seen where it stands; None if it goes on, or has ended."""
        return self._seen

    def change(self, one: Recorded, value: Value) -> int:
        """Change a tensor, while the step stands; returns for how many that are yet to read it.

        It is recorded as something that came up later.
        """
        seen = self._seen
        if seen is None:
            return 0
        fed = self._fed.get(one.name)
        node, slot = (fed, 0) if fed is not None else (one.node, one.slot)
        count = seen.give(one, value) or seen.at.live.put(node, slot, value)
        if count:
            self._number += 1
            self._history.add(replace(one, number=self._number, value=kept_copy(value)))
        return count

    # -- the step's side -----------------------------------------------------------------

    def before(self, at: Activation, inputs: Sequence[Value]) -> Sequence[Value] | Instead:
        """See ``NodeHook``."""
        if self._is_released:
            return inputs
        if not is_hidden(at):
            self._consider(Seen(at, inputs, (), ()), Moment.BEFORE)
            inputs_now = at.live.inputs()  # they may have been changed
            self._inputs[at] = inputs_now
            outputs = self._overrides.outputs(at, inputs_now)
            if outputs is not None:
                return Instead(outputs)
        return inputs

    def after(self, at: Activation, outputs: Sequence[Value]) -> Sequence[Value]:
        """See ``NodeHook``."""
        inputs = self._inputs.pop(at, ())
        if self._is_released:
            return outputs
        given = list(outputs)
        records = self._record(at, outputs)
        if is_hidden(at):
            return outputs
        self._consider(Seen(at, inputs, given, records), Moment.AFTER)
        is_same = all(one is other for one, other in zip(given, outputs, strict=True))
        return outputs if is_same else given

    def dead(self, at: Activation) -> None:
        """See ``NodeHook``."""
        if self._is_released or is_hidden(at):
            return
        records = self._record(at, [DEAD] * len(at.output_types))
        self._consider(Seen(at, (), (), records, is_dead=True), Moment.DEAD)

    def failed(self, at: Activation, error: OpError) -> None:
        """See ``NodeHook``: what failed first is looked at, and not what that ended."""
        inputs = self._inputs.pop(at, ())
        if not (self._is_released or error.derived):
            self._stand(Seen(at, inputs, (), ()), Moment.FAILED, error.reason, error)

    def _consider(self, seen: Seen, moment: Moment) -> None:
        reason = self._reason(seen, moment)
        if reason:
            self._stand(seen, moment, reason)

    def _reason(self, seen: Seen, moment: Moment) -> str:
        """Why to stop here; empty if there is no reason."""
        if self._is_to_pause:
            self._is_to_pause = False
            return "interrupted"
        goal, asked = self._goal or to_the_end(), ""
        try:
            for one in self._breakpoints.all if goal.heeds_breakpoints else ():
                asked = f"breakpoint {one}"
                if one.holds(seen, self._tensor, is_before=moment is Moment.BEFORE):
                    return asked
            asked = goal.what
            return asked if goal.reached(seen, moment) else ""
        except Exception as cause:  # noqa: BLE001  (whatever a condition of somebody's own does)
            return f"{asked}: failed with {type(cause).__name__}: {cause}"

    def _tensor(self, name: str) -> Any:
        """The latest value of a tensor, for conditions."""
        found = self._history.find(name)
        if found is None or found.value is None:
            raise KeyError(f"{name} has no value yet")
        return found.value

    def _stand(self, seen: Seen, moment: Moment, reason: str, error: OpError | None = None) -> None:
        """Stop, until somebody says where to go."""
        at = seen.at
        stop = Stop(
            moment, reason, self._number, at.node, at.op, at.function, at.device, at.frame,
            at.iterations, at.call_depth, self._call_of(at), error,
        )  # fmt: skip
        with self._turn, self._met:
            if self._is_released:
                return
            self._stop, self._seen, self._goal = stop, seen, None
            self._met.notify_all()
            self._met.wait_for(lambda: self._is_released or self._goal is not None)

    def _record(self, at: Activation, outputs: Sequence[Value]) -> list[Recorded]:
        """Keep what a node gives; what is fed, under the name of what it is fed for."""
        self._number += 1
        records = []
        for slot, value in enumerate(outputs):
            node, own_slot = endpoint_of(at, slot)
            op = at.op if node == at.node else FED
            if op == FED:
                self._fed[f"{node}:{own_slot}"] = at.node
            kept = None if value is DEAD else kept_copy(value)
            kind = "" if value is DEAD or kept is not None else type(value).__name__
            one = Recorded(
                self._number, node, own_slot, at.output_types[slot], op, at.frame, at.iterations,
                perf_counter() - self._start, kept, value is DEAD, kind,
            )  # fmt: skip
            self._history.add(one)
            records.append(one)
        return records
