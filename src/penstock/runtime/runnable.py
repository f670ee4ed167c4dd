"""One partition, or one function's body, on the tier that suits it.

In:   a graph, and what its device's executors have in common.
Out:  ``Runnable``: a function, if all of the graph could be compiled; and an executor, whose
      graph has compiled regions in it or, where a run is watched node by node, has none.
Not:  runs nothing.
"""

from __future__ import annotations

import dataclasses
from threading import Lock

from penstock.config import Tier
from penstock.graph.graph import Graph, Node
from penstock.kernels.bound import BoundKernel
from penstock.kernels.registry import Calling, Cost
from penstock.runtime.compiler.compile_regions import Compiled, Compiler
from penstock.runtime.compiler.profile import Profile
from penstock.runtime.compiler.region import Region
from penstock.runtime.executor.executor import Executor, new_local_executor
from penstock.runtime.executor.params import LocalExecutorParams
from penstock.runtime.tune import Tuner


class Runnable:
    """One graph on one device, ready to run any number of times."""

    def __init__(self, params: LocalExecutorParams, graph: Graph, tier: Tier) -> None:
        """Compile what can be compiled, and get ready to run the rest.

        Raises:
            OpError: a frame is malformed, or a kernel cannot be made; the node is named.

        """
        #: What all runs on the device have in common.
        self.params = params
        self._graph = graph
        self._compiler = Compiler(
            device=params.device,
            make_kernel=params.make_kernel,
            checks_outputs=params.check_outputs,
        )
        #: Held while executors are made.  Outermost but for the graph's and a tuner's.
        self._lock = Lock()
        self._executors: dict[Tier, Executor] = {}
        #: What was compiled; None if nothing was.  Replaced once, when a profile says so.
        self._compiled = self._compiler.compile(graph) if tier is Tier.COMPILED else None
        #: What makes the one function better; None if there is none.
        self._tuner: Tuner | None = None
        if self._compiled is None or self._compiled.whole is None:
            self.executor(tier)
        else:
            self._tuner = Tuner(self._compiled.whole, self._probing, self._improve)

    @property
    def whole(self) -> Region | None:
        """All of the graph as one function; None if there is more to it."""
        compiled = self._compiled
        return compiled.whole if compiled is not None else None

    def take(self) -> Region | None:
        """The function for one step, which must report by ``note`` if it succeeds."""
        if self._tuner is None or self.whole is None:
            return None
        return self._tuner.take()

    def note(self, region: Region, seconds: float) -> None:
        """A step with ``region`` took so long."""
        if self._tuner is not None:
            self._tuner.note(region, seconds)

    def executor(self, tier: Tier = Tier.COMPILED) -> Executor:
        """What runs the graph where one function does not; made when first asked for."""
        compiled = self._compiled
        if compiled is None or compiled.whole is not None:
            tier = Tier.DATAFLOW  # they would not differ
        with self._lock:
            made = self._executors.get(tier)
            if made is None:
                made = self._executors[tier] = self._new_executor(tier)
            return made

    def _new_executor(self, tier: Tier) -> Executor:
        if tier is Tier.COMPILED and self._compiled is not None:
            params = _with_regions(self.params, self._compiled)
            return new_local_executor(params, self._compiled.graph)
        return new_local_executor(self.params, self._graph)

    def _probing(self, profile: Profile) -> Region:
        return self._compiler.probing(self._graph, profile)

    def _improve(self, profile: Profile) -> Region | None:
        better = self._compiler.improve(self._graph, profile, self.params.threads)
        if better is not None:
            self._compiled = better
        return better.whole if better is not None else None


def _with_regions(params: LocalExecutorParams, compiled: Compiled) -> LocalExecutorParams:
    """The same, where a region is a kernel like any other."""

    def make_kernel(node: Node) -> BoundKernel:
        region = compiled.regions.get(node)
        if region is None:
            return params.make_kernel(node)
        return BoundKernel(region.compute, Calling.CONTEXT, Cost.MEASURED)

    return dataclasses.replace(params, make_kernel=make_kernel)
