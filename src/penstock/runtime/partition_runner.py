"""One partition on the tier that suits it.

In:   a graph, and what its device's executors have in common.
Out:  a path through it, before it is compiled; a function, if all of the graph could be; and an
      executor, whose graph has compiled regions in it or, where a run is watched node by node,
      has none.
Not:  runs nothing, and knows no other partition.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from threading import Lock
from typing import Final

from penstock.config import Tier
from penstock.core.collector import collector_paused
from penstock.errors import InternalError
from penstock.graph.graph import Graph, Node
from penstock.graph.roles import Role
from penstock.kernels.api.bound_kernel import BoundKernel
from penstock.kernels.api.registry import Calling, Cost
from penstock.runtime.compiler.compile_regions import Compiled, Compiler
from penstock.runtime.compiler.native_first import native_first
from penstock.runtime.compiler.profile import Profile
from penstock.runtime.compiler.region import Region, Without
from penstock.runtime.compiler.trial import Trial, TrialCompiler
from penstock.runtime.executor.executor import Executor, new_local_executor
from penstock.runtime.executor.params import LocalExecutorParams
from penstock.runtime.native import with_programs
from penstock.runtime.node_by_node import NodeByNode
from penstock.runtime.trials import Trials
from penstock.runtime.tune import Better, Tuner, slow_step
from penstock.runtime.walk import Path
from penstock.state.checkpoints import heeding, holding
from penstock.state.interrupt import Interrupt

#: A first step, in which much is done that is done once, must take so many times as long as a slow
#: one for the others to be slow as well.
_SLOW_AT_FIRST: Final = 100


class PartitionRunner:
    """One partition, ready to run any number of times."""

    def __init__(
        self, params: LocalExecutorParams, graph: Graph, tier: Tier, ends: tuple[int, int]
    ) -> None:
        """Note what is to be run.

        Args:
            params: what all runs on the device have in common.
            graph: what is to be run.
            tier: whether anything is to be compiled.
            ends: how many arguments and results whoever runs the graph has for it.

        """
        #: What all runs on the device have in common.
        self.params = params
        self._graph = graph
        self._tier = tier
        self._compiler = Compiler(
            device=params.device,
            make_kernel=params.make_kernel,
            checks_outputs=params.check_outputs,
            accelerate=params.accelerate,
            ends=ends,
            limits=params.limits,
        )
        #: Held while executors are made, which are read without.  Outermost but for the graph's
        #: and a tuner's.
        self._lock = Lock()
        self._executors: dict[Tier, Executor] = {}
        #: All of it without programs in C, if that was needed.  Set under the lock, and once more
        #: when a profile says how it is better; read without, but to make it.
        self._without: Without | None = None
        #: The graph as it is compiled: with nodes for loops that are programs, if there are any.
        #: This and the next three are set by ``compile``, and None before.
        self._native: Graph | None = None
        #: The graph with regions for the executor; None if there are none, as long as all of
        #: it is one function.  Set once more, when a profile says so.
        self._parts: Compiled | None = None
        #: When all of it is tried as one function that is left if a kernel must wait.
        self.trials: Trials | None = None
        #: All of the partition as one function, and what makes that better; None if it is none.
        self.tuner: Tuner | None = None
        #: The way of a step through it as long as it is not compiled; None if it has none.
        self.path: Path | None = None

    def compile(self, first_seconds: float = 0.0) -> None:
        """Compile what can be compiled, and get ready to run the rest; anew if that was ended.

        Args:
            first_seconds: how long a step took that was made before; 0 if none was.

        Raises:
            OpError: a frame is malformed, or a kernel cannot be made; the node is named.

        """
        is_compiled = self._tier is Tier.COMPILED
        # What ran the first steps takes memory, and may not be needed.
        self.path = None
        self._executors.clear()
        self._native = self._with_programs() if is_compiled else None
        profile = Profile() if self._is_slow(first_seconds) else None
        compiled = self._compiled(profile) if is_compiled else None
        if compiled is not None and compiled.whole is not None:
            self.tuner = self._new_tuner(compiled.whole, profile)
            return
        self._parts = compiled
        is_wanted = is_compiled and self.params.adaptive
        self.trials = Trials(self._new_trial, self.params.limits, is_wanted=is_wanted)
        self._made_executor(self._tier_of(self._tier))

    def bind(self) -> None:
        """Get ready to run it node after node, or by an executor, made for the first step.

        Raises:
            OpError: a frame is malformed, or a kernel cannot be made; the node is named.

        """
        self.path = self._compiler.bind(self._graph)

    def _is_slow(self, first_seconds: float) -> bool:
        """Whether compiled steps will be slow, too, so that the next one may as well be probed."""
        least = _SLOW_AT_FIRST * slow_step(len(self._graph), self.params.limits)
        return self.params.adaptive and self._native is None and first_seconds > least

    def _with_programs(self) -> Graph | None:
        params = self.params
        return with_programs(self._graph, params.native_nodes) if params.native_loops else None

    def _compiled(self, profile: Profile | None) -> Compiled | None:
        """The graph with programs as one function, if that has no effects; or else as it is."""
        if self._native is not None:
            made = self._compiler.compile(self._native)
            whole = made.whole if made is not None else None
            # Where programs do not know, all is done anew.
            if whole and whole.source.only_reads:
                return Compiled(self._or_without(whole), self._native, {})
            self._native = None
        return self._compiler.compile(self._graph, profile)

    def _or_without(self, region: Region) -> Region:
        """A region which can do without programs if it has some."""
        return region if self._native is None else native_first(region, self._made_without)

    def _made_without(self) -> Without:
        """All without programs; made when a program does not know."""
        with holding(self._lock, "a function, which another thread makes"):
            if self._without is None:
                self._without = self._whole() or self._node_by_node()
            return self._without

    def _whole(self) -> Region | None:
        """All as one function, without programs and probes; None if it can be none."""
        made = self._compiler.compile(self._graph)
        return made.whole if made is not None else None

    def _node_by_node(self) -> NodeByNode:
        """All node by node: loops can be programs, and yet no text."""
        results = {n.attrs["index"]: n.input_types[0] for n in self._graph if n.role is Role.RETVAL}
        types = tuple(results[index] for index in sorted(results))
        return NodeByNode(partial(self.executor, tier=Tier.DATAFLOW), types)

    def _made_whole(self) -> Region:
        """What ``_whole`` gives, of a graph that was a function before."""
        whole = self._whole()
        if whole is None:
            raise InternalError("A graph that was a function is none any more")
        return whole

    def _new_tuner(self, whole: Region, profile: Profile | None) -> Tuner:
        limits = self.params.limits
        if not self.params.adaptive:
            return Tuner.settled(whole)
        slow = slow_step(max(len(whole.source.lines), len(self._graph)), limits)
        tuner = Tuner(whole, self._probing, self._improve, slow=slow, limits=limits)
        if profile is not None:
            tuner.begin_with_probe(profile, self._made_whole)
        return tuner

    def executor(self, interrupt: Interrupt, tier: Tier = Tier.COMPILED) -> Executor:
        """What runs the graph where one function does not; made when first asked for.

        Raises:
            OpError: the reason of ``interrupt``, that of the step for which it is made.

        """
        tier = self._tier_of(tier)
        made = self._executors.get(tier)
        return made if made is not None else heeding(interrupt, partial(self._made_executor, tier))

    def give_up(self) -> None:
        """Let go of all that runs the graph, which cannot be run any more."""
        self.path = None
        self._executors.clear()
        if self._parts is not None:
            self._parts.graph.clear()
        if self._native is not None:
            self._native.clear()
        self._compiler.give_up()

    def _tier_of(self, tier: Tier) -> Tier:
        """The same, or the other one if they do not differ."""
        return tier if self._parts is not None else Tier.DATAFLOW

    @collector_paused
    def _made_executor(self, tier: Tier) -> Executor:
        with holding(self._lock, "an executor, which another thread makes"):
            made = self._executors.get(tier)
            if made is None:
                made = self._executors[tier] = self._new_executor(tier)
            return made

    def _new_executor(self, tier: Tier) -> Executor:
        if tier is Tier.COMPILED and self._parts is not None:
            make_kernel = partial(_kernel_of, self.params.make_kernel, self._parts.regions)
            return new_local_executor(self.params, self._parts.graph, make_kernel)
        make_kernel = partial(self._compiler.kernel_of, function=self._graph.function)
        return new_local_executor(self.params, self._graph, make_kernel)

    def _new_trial(self, interrupt: Interrupt, profile: Profile, probes: bool) -> Trial | None:  # noqa: FBT001
        compiler = TrialCompiler.like(self._compiler)
        return heeding(interrupt, lambda: compiler.trial(self._graph, profile, probes=probes))

    def _probing(self, profile: Profile) -> Region:
        region = self._compiler.probing(self._native or self._graph, profile)
        if self._native is None or not isinstance(self._without, Region):
            return self._or_without(region)
        without = self._compiler.probing(self._graph, profile)
        return native_first(region, lambda: without)

    def _improve(self, profile: Profile) -> Better:
        if self._native is not None:
            if isinstance(self._without, Region):
                self._improve_without(profile)
            alone = self._compiler.improve(self._native, profile, 1)
            if alone is None or alone.whole is None:
                return Better()
            return Better(self._or_without(alone.whole))
        better = self._compiler.improve(self._graph, profile, self.params.threads)
        if better is None or better.whole is not None:
            return Better(better.whole if better is not None else None)
        self._parts = better
        whole = self._compiler.improve(self._graph, profile, 1)
        return Better(whole.whole if whole is not None else None, has_parts=True)

    def _improve_without(self, profile: Profile) -> None:
        """Compile what goes on where programs do not know with what a profile says of it."""
        better = self._compiler.improve(self._graph, profile, 1)
        if better is not None and better.whole is not None:
            with self._lock:
                self._without = better.whole


def _kernel_of(
    make_kernel: Callable[[Node], BoundKernel], regions: Mapping[Node, Region], node: Node
) -> BoundKernel:
    """The kernel of a node, where a region is a kernel like any other."""
    region = regions.get(node)
    if region is None:
        return make_kernel(node)
    return BoundKernel(
        region.compute,
        Calling.CONTEXT,
        Cost.MEASURED,
        is_pure=region.source.is_pure,
        explain=region.explain,
    )
