"""A request, or the body of a function, on the tier that suits it.

In:   partitions, each on a device; and all of them as one function, if they can be that.
Out:  ``Runnable``: the function for the next step, a walk before there is one, or an executor for
      each partition.
Not:  runs nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from threading import Lock

from penstock.config import Tier
from penstock.graph.roles import Role
from penstock.graph.stages import Partition
from penstock.runtime.compiler.region import Region
from penstock.runtime.executor.executor import Executor
from penstock.runtime.executor.params import LocalExecutorParams
from penstock.runtime.partition_runner import PartitionRunner
from penstock.runtime.trials import Trials
from penstock.runtime.tune import Tuner
from penstock.runtime.walk import Walk
from penstock.state.checkpoints import heeding, holding
from penstock.state.interrupt import Interrupt


class Runnable:
    """Partitions that run together, any number of times."""

    def __init__(
        self,
        partitions: Sequence[Partition],
        params_of: Callable[[str], LocalExecutorParams],
        tier: Tier,
        ends: tuple[int, int],
        *,
        joined: Region | None = None,
    ) -> None:
        """Note what is to be run; ``compile`` or ``bind`` gets ready for it.

        Args:
            partitions: what is to be run, one for each device.
            params_of: what all runs on a device have in common.
            tier: whether anything is to be compiled.
            ends: how many arguments and results whoever runs the graph has for it.
            joined: all partitions as one function; None if they cannot be that, or are one.

        """
        self._partitions = partitions
        self._params_of = params_of
        self._tier = tier
        self._ends = ends
        #: Held while runners are made, which are read without.  Outermost but for the graph's.
        self._lock = Lock()
        #: One per partition; none before they are needed.
        self._runners: tuple[PartitionRunner, ...] = ()
        #: The function that is all of it, and what makes that better; None if it is none, or not
        #: compiled yet.
        self._tuner = Tuner.settled(joined) if joined is not None else None
        #: Seconds that a step took before it was compiled.  A number that is lost does no harm.
        self._first_seconds = 0.0
        #: Whether ``compile`` has done its work.  Set once, after all else.
        self.is_compiled = joined is not None

    @property
    def is_straight(self) -> bool:
        """Whether each of its nodes runs at most once."""
        return not any(node.role is Role.ENTER for part in self._partitions for node in part.graph)

    def compile(self) -> None:
        """Compile what can be compiled, and get ready to run the rest; again, that is nothing.

        Raises:
            OpError: a frame is malformed, or a kernel cannot be made; the node is named.

        """
        runners = self._made_runners() if not self.is_compiled else ()
        with holding(self._lock, "functions, which another thread makes"):
            if self.is_compiled:
                return
            for runner in runners:
                runner.compile(self._first_seconds)
            if len(runners) == 1:
                self._tuner = runners[0].tuner
            self.is_compiled = True

    def bind(self) -> None:
        """Get ready to run all nodes one by one, until it is compiled.

        Raises:
            OpError: a frame is malformed, or a kernel cannot be made; the node is named.

        """
        for runner in self._made_runners():
            runner.bind()

    @property
    def whole(self) -> Region | None:
        """All of it as one function; None if there is more to it."""
        return self._tuner.region if self._tuner is not None else None

    def take(self) -> Region | None:
        """The function for one step, or None for a step by executors.

        The step must report by ``note`` if it succeeds.
        """
        return self._tuner.take() if self._tuner is not None else None

    def walk(self) -> Walk | None:
        """One step node after node, before it is compiled; None if it takes executors."""
        path = self._runners[0].path if len(self._runners) == 1 else None
        return Walk(path) if path is not None else None

    def note(self, region: Region | Walk | None, seconds: float, interrupt: Interrupt) -> None:
        """A step with a region, a walk, or by executors took so long; ``interrupt`` is its own."""
        if isinstance(region, Walk):
            self._first_seconds = seconds
        elif self._tuner is not None:
            self._tuner.note(region, seconds, interrupt)
        elif self.trials is not None:
            self.trials.note_untried(seconds)
        else:
            self._first_seconds = seconds

    @property
    def trials(self) -> Trials | None:
        """When it is tried as one function that may be left; None if it never is."""
        return self._runners[0].trials if len(self._runners) == 1 else None

    def executors(self, interrupt: Interrupt, tier: Tier = Tier.COMPILED) -> list[Executor]:
        """What runs the partitions; without compiled regions on the dataflow tier.

        Raises:
            OpError: the reason of ``interrupt``, that of the step for which they are made.

        """
        runners = self._runners or heeding(interrupt, self._made_runners)
        return [runner.executor(interrupt, tier) for runner in runners]

    def give_up(self) -> None:
        """Let go of all that runs the partitions; they cannot be run any more."""
        if self._tuner is not None:
            self._tuner.give_up()
        for runner in self._runners:
            runner.give_up()

    def _made_runners(self) -> tuple[PartitionRunner, ...]:
        with holding(self._lock, "executors, which another thread makes"):
            if not self._runners:
                self._runners = tuple(map(self._new_runner, self._partitions))
            return self._runners

    def _new_runner(self, part: Partition) -> PartitionRunner:
        params = self._params_of(part.device)
        runner = PartitionRunner(params, part.graph, self._tier, self._ends)
        if self.is_compiled:
            runner.compile()
        return runner
