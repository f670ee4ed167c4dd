"""One step: all that belongs to it and to no other.

In:   what the session lends it: where handles are kept, where slow kernels run, who watches.
Out:  what its executors, compiled regions, kernels and function calls share; and its end.
Not:  runs nothing, and waits for nothing; whoever drives the step does.

A run, a compiled run, a partial run and a call of a function are drivers of the same thing, which
is made here and nowhere else.  It begins with a number that no other step of the process has, and
ends in one of these ways:

- by itself, when nothing is ready and nothing runs;
- by an error: the executor that met it aborts the rendezvous and cancels;
- by ``end``, from any thread: a deadline, ``cancel``, a closed session, Ctrl-C;
- by what is no error, such as SystemExit on the main thread: ``Interrupt.escape``.

Whichever it was, the driver then calls ``close``, and ``raise_escaping``.  A step that is ended may
leave kernels behind, which its error names: those that nobody can tell to stop, but that do nothing
but compute; and those that were told, and do not answer.  Kernels with effects are always waited
for: a variable must not change when ``run`` has returned.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Iterable
from dataclasses import field, replace
from time import monotonic
from typing import Final, TypeAlias

from penstock.core.forks import process_lock
from penstock.dataclass import dataclass
from penstock.errors import OpError
from penstock.printable import printable
from penstock.state.cancellation import CancellationManager
from penstock.state.interrupt import Interrupt
from penstock.state.node_hook import NodeHook
from penstock.state.rendezvous import Rendezvous
from penstock.state.resources import StepContainer
from penstock.state.session_state import SessionState, TensorStore
from penstock.state.step_order import StepOrder
from penstock.tracing.recorder import Recorder

#: Has a closure run, now or later, on this thread or another; what it returns is not looked at.
Runner: TypeAlias = Callable[[Callable[[], None]], object]

#: Numbers steps throughout the process; taken under ``_step_ids_lock``, since ``next`` is not
#: atomic on every Python.
_step_ids: Final = itertools.count(1)
_step_ids_lock: Final = process_lock()
#: What more activities than this do helps nobody.
_MAX_REPORTED: Final = 10


def _new_step_id() -> int:
    with _step_ids_lock:
        return next(_step_ids)


@dataclass(frozen=False, slots=True, kw_only=True, eq=False)
class StepState:
    """What everything that goes on in one step shares.

    Its parts do not change once something runs; what they hold does, by laws of their own.
    """

    #: A number that no other step of the process has.
    id: int = field(default_factory=_new_step_id)
    #: Where what is sent and received meets; None if nothing is.
    rendezvous: Rendezvous | None = None
    #: Why the step must end, if it must.
    interrupt: Interrupt = field(default_factory=Interrupt)
    #: Wakes what waits in kernels.
    cancellation_manager: CancellationManager = field(default_factory=CancellationManager)
    #: Resources that live for this step only: stacks, tensor arrays.
    container: StepContainer = field(default_factory=StepContainer)
    #: What kernels want to keep for later steps.
    tensor_store: TensorStore = field(default_factory=TensorStore)
    #: Where it is kept if its handle is fetched; None without a session.
    session_state: SessionState | None = None
    #: Where slow kernels run; None keeps them on the step's own thread.
    pool: Runner | None = None
    #: Who records what runs, functions that are called included; None if nobody does.
    recorder: Recorder | None = None
    #: Who is asked before and after each node, likewise.
    hook: NodeHook | None = None
    #: In which order everything takes effect, one after the other; None if that is nobody's matter.
    order: StepOrder | None = None
    #: Whether denormal numbers are zeros, wherever the step runs.  Set when it is known what is
    #: fed, before anything runs.
    flush: bool = False
    #: When everything was told to end, by ``monotonic``; None before.  Set by any thread; a
    #: second one that sets it does no harm.
    _told_at: float | None = field(default=None, init=False)
    #: What was left behind, and what it does.  Only grows.
    _left: list[str] = field(default_factory=list, init=False)

    @property
    def is_by_node(self) -> bool:
        """Whether somebody is to see, or to order, each node: then nothing is compiled."""
        return self.hook is not None or self.order is not None

    def within(
        self,
        rendezvous: Rendezvous,
        *,
        interrupt: Interrupt | None = None,
        cancellation_manager: CancellationManager | None = None,
    ) -> StepState:
        """A part of the step that sends and receives, and perhaps ends, by itself."""
        return replace(
            self,
            rendezvous=rendezvous,
            interrupt=interrupt or self.interrupt,
            cancellation_manager=cancellation_manager or self.cancellation_manager,
        )

    # -- ending it early, from any thread ---------------------------------------------

    def end(self, reason: OpError) -> None:
        """End the step; the first reason counts, and says what went on."""
        self.interrupt.end(reason.with_details(self.report().split("\n")))
        self.wake()

    def wake(self) -> None:
        """Wake whatever waits, when the interrupt has its reason."""
        reason = self.interrupt.reason
        assert reason is not None
        if self._told_at is None:
            self._told_at = monotonic()
        # Those who are told may fail in turn; the others must be told all the same.
        if self.rendezvous is not None:
            with contextlib.suppress(Exception):
                self.rendezvous.start_abort(reason)
        with contextlib.suppress(Exception):
            self.cancellation_manager.start_cancel()

    def report(self) -> str:
        """What every unfinished node waits for."""
        activities = list(self.interrupt.activities.values())
        parts = [activity.dump_state() for activity in activities[:_MAX_REPORTED]]
        if len(activities) > _MAX_REPORTED:
            parts.append(f"… and {len(activities) - _MAX_REPORTED} more functions")
        return "\n".join(parts)

    # -- by its driver ------------------------------------------------------------------

    def look_up(self) -> None:
        """Do now and then what nobody can be told to do, while the driver waits.

        What the main thread met is passed on, and whatever was told to end, and has not answered
        when its time is up, is left behind.
        """
        if self.interrupt.escaping is not None:
            self.wake()
        if self._told_at is None:
            return
        seconds = monotonic() - self._told_at
        # Inner functions come last: when they are left, the nodes that called them are done.
        for activity in reversed(list(self.interrupt.activities.values())):
            self._left += activity.leave(seconds)

    def forget_threads(self) -> None:
        """Go on in the child of a fork, where no other thread holds a lock, nor does anything."""
        for activity in self.interrupt.activities.values():
            activity.forget_threads()

    def close(self) -> None:
        """Give up what lives as long as the step, when nothing of it runs any more."""
        self.interrupt.activities.clear()  # breaks a cycle: memory is freed at once
        self.container.close()
        if self.rendezvous is not None:
            self.rendezvous.leave()

    def raise_escaping(self) -> None:
        """Raise what the main thread met, if that was no error."""
        escaping = self.interrupt.escaping
        if escaping is not None:
            for line in self._left:
                escaping.add_note(printable(left_behind(line)))
            raise escaping

    def told(self, error: OpError) -> OpError:
        """The step's error, which also says what was left behind."""
        return error.with_details(map(left_behind, self._left)) if self._left else error

    def keep_fetched(self, fetches: Iterable[str]) -> None:
        """Let the session keep the tensors whose handles were among ``fetches``."""
        if self.session_state is not None:
            self.tensor_store.save_tensors(fetches, self.session_state)


def left_behind(what: str) -> str:
    """A line that says what becomes of something for which nobody waits any more."""
    return f"  left     {what}: whatever it gives will be dropped"
