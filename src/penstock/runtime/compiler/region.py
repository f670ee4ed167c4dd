"""A compiled region while it runs: call the function, and say where it failed.

In:   a ``Source`` and the step's context.
Out:  a tuple of results, None for dead ones; or the error, with node, frame and iteration,
      exactly as the executor would report it.
Not:  chooses nothing; the text is fixed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from functools import partial
from typing import Any, Protocol

from penstock.core.values import DEAD, Value
from penstock.dataclass import dataclass
from penstock.errors import Where
from penstock.kernels.api.context import OpKernelContext, StepContext
from penstock.kernels.api.long_kernel import NoProgramError, place_on
from penstock.printable import printable
from penstock.runtime.compiler.frameless import told
from penstock.runtime.compiler.source import Source, SourcePlace
from penstock.runtime.compiler.suspended import Suspended
from penstock.runtime.failure import judged
from penstock.state.interrupt import Interruptible


class Without(Protocol):
    """The same as a region computes, without programs in C; a ``Region``, as a rule."""

    def sources(self) -> list[Source]:
        """All texts that may run."""

    def run(self, step: StepContext, *args: Value) -> tuple[Value | None, ...]:
        """The results, of which None stands for what is dead; raises OpError."""


@dataclass(frozen=True, slots=True)
class Region:
    """One region, ready to run."""

    source: Source
    device: str
    #: The function whose body the region is in; empty for the graph's own.
    function: str
    #: The devices of nodes, by id, where they are on several.
    device_of: Mapping[int, str] = field(default_factory=dict)

    @property
    def needs_context(self) -> bool:
        """Whether some kernel asks for more of its step than whether to go on."""
        return self.source.needs_context

    @property
    def is_pure(self) -> bool:
        """Whether it does nothing but compute."""
        return self.source.is_pure

    @property
    def title(self) -> str:
        """What it computes, for people: its last node, and of how many it is one."""
        nodes = {line.node for line in self.source.lines if line.node is not None}
        last = next((n.node.name for n in reversed(self.source.lines) if n.node is not None), "")
        return f"{last} and {len(nodes) - 1} more" if len(nodes) > 1 else last or "nothing"

    def sources(self) -> list[Source]:
        """All texts that may run: the one that does first."""
        return [self.source]

    def without_programs(self) -> Without:
        """The same, but for nodes that stand for others."""
        return self

    def give_up(self) -> None:
        """Let go of all that the function refers to, itself among it; it cannot run any more."""
        self.source.give_up()

    def run(self, step: Interruptible, *args: Value | None) -> tuple[Value | None, ...]:
        """Run the region; None stands for what is dead.

        Args:
            step: a ``StepContext`` if ``needs_context``; an ``OpKernelContext`` if the region
                is a node for the executor.
            args: the region's parameters.

        Raises:
            OpError: a kernel's error, with its place; or the reason why the step must end.
            Suspended: a kernel must wait.
            NoProgramError: what one node stands for must be computed by others, and for these the
                step must be a ``StepContext``.

        """
        try:
            results: tuple[Any, ...] = self.source.function(step, *args)
        except (Suspended, NoProgramError):  # which are none of a kernel's
            raise
        except BaseException as cause:  # the one border of kernels
            interrupt = step.interrupt
            find_place = partial(self._place, cause, step)
            error = judged(told(cause), interrupt, find_place, is_late=interrupt.loops_end)
            if error is cause:
                raise
            raise error from error.__cause__
        return results

    def _place(self, cause: BaseException, step: Interruptible) -> Where | None:
        """The node in whose line an exception arose, in its frame and iteration."""
        place = self.source.place_of(cause.__traceback__)
        if place is None:
            return None
        if isinstance(step, OpKernelContext):
            place = place.within(step.frame.label, step.iteration)
        return self._where(place)

    def _where(self, place: SourcePlace) -> Where:
        node = place.node
        device = self.device_of.get(node.id, self.device)
        function = node.function or self.function
        return Where(node.name, node.op.name, device, place.frame, place.iteration, function)

    def explain(self, step: StepContext) -> str:
        """Where the region is that runs in a step, as a clause; empty if nobody can see it."""
        thread = self.source.thread_with(lambda run: getattr(run, "step", run) is step)
        place = self._place_now(thread) if thread is not None else None
        return f", is at {self._where(place)}" if place is not None else ""

    def describe(self, thread: int) -> str:
        """What a thread that runs the region is doing."""
        place = self._place_now(thread)
        where = f" is at {self._where(place)}" if place is not None else ""
        return printable(f"compiled code on {self.device}{where}")

    def _place_now(self, thread: int) -> SourcePlace | None:
        """Where a thread is, within a node that may take long, too; None if nobody can see it."""
        place, inside = self.source.place_now(thread), place_on(thread)
        if place is None or inside is None:
            return place
        return SourcePlace(place.node, *inside).within(place.frame, place.iteration)

    def compute(self, context: OpKernelContext, *args: Value | None) -> tuple[Value | None, ...]:
        """The region as a kernel."""
        results = self.run(context, *args)
        return tuple([DEAD if result is None else result for result in results])
