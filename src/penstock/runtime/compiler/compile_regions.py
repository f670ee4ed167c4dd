"""The compiled tier's main path: from a partition to functions.

In:   a partition's graph, and what binds a kernel to a node.
Out:  ``Compiled``: one function for all of it; or the graph with regions in place of their
      nodes; or None if nothing of it is worth compiling.
Not:  runs nothing.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import Any, Final

from penstock.core.limits import DEFAULT_LIMITS, Limits
from penstock.dataclass import dataclass
from penstock.errors import ResourceExhaustedError
from penstock.graph.frames import ControlFlowInfo, build_control_flow_info
from penstock.graph.graph import Graph, Node
from penstock.graph.references import References
from penstock.graph.roles import Role
from penstock.kernels.api.bound_kernel import BoundKernel
from penstock.kernels.c.library import loaded
from penstock.runtime.compiler.build import build_program, build_whole
from penstock.runtime.compiler.build_body import NodeInfo
from penstock.runtime.compiler.clusters import Clustering
from penstock.runtime.compiler.explain import Explained, reasons_for
from penstock.runtime.compiler.fused_groups import fuse_groups, fuse_long_groups
from penstock.runtime.compiler.generate import generate
from penstock.runtime.compiler.irregular_loops import leaving_what_must_be
from penstock.runtime.compiler.loops import Irregular, LoopOrNode, LoopTree, RegularLoop
from penstock.runtime.compiler.partition_by_cost import partition_by_cost, seconds_of
from penstock.runtime.compiler.profile import Profile
from penstock.runtime.compiler.program import Program
from penstock.runtime.compiler.region import Region
from penstock.runtime.compiler.rewrite import RegionGroup, SurelyLive, outputs_of, rewrite
from penstock.runtime.compiler.sizes import spread_numbers
from penstock.runtime.compiler.source import Source
from penstock.runtime.compiler.split_batches import split_batches
from penstock.runtime.compiler.unary_chains import join_unary_chains
from penstock.runtime.compiler.units import can_be_line, is_boundary, is_constant, turns
from penstock.runtime.kernel_binder import bind_at
from penstock.runtime.outputs import checked_kernel
from penstock.runtime.walk import Path, path_through
from penstock.state.checkpoints import begin

#: Regions of more units are not cut.
MAX_CUT: Final = 5_000
#: A region of fewer nodes gains nothing.
_FEWEST: Final = 2
#: Why something is left to the executor.
_REFUSALS: Final = (Irregular, ResourceExhaustedError, RecursionError)


@dataclass(frozen=True, slots=True)
class Compiled:
    """What became of a partition."""

    #: The whole partition as one function of its arguments; None if there is more to it.
    whole: Region | None
    #: The graph for the executor, and its regions by node; the graph is the partition's own
    #: if it is one region.
    graph: Graph
    regions: Mapping[Node, Region]


@dataclass(frozen=True, slots=True, kw_only=True)
class Compiler:
    """What all partitions of a device have in common."""

    device: str
    make_kernel: Callable[[Node], BoundKernel]
    #: Whether every kernel's outputs are checked, also those of Penstock's own.
    checks_outputs: bool = False
    #: Whether there may be programs in C.
    accelerate: bool = False
    #: The devices of nodes, by id, where they are on several.
    device_of: Mapping[int, str] = field(default_factory=dict)
    #: How many arguments and results there are; None for as many as the graph has nodes for.
    ends: tuple[int, int] | None = None
    #: How long texts may be, and what is worth a thread.
    limits: Limits = DEFAULT_LIMITS
    #: What was made.
    made: list[weakref.ref[Source]] = field(default_factory=list)
    #: Kernels of nodes, which all that is made of a graph shares.  Only grows until it is given up.
    kernels: dict[Node, BoundKernel] = field(default_factory=dict)

    def give_up(self) -> None:
        """Let go of all that what was made refers to; none of it can run any more."""
        self.kernels.clear()
        for source in [made() for made in self.made]:
            if source is not None:
                source.give_up()

    def bind(self, graph: Graph) -> Path | None:
        """Make the kernels of what may be compiled later; a path through it, if it is straight.

        Raises:
            OpError: a frame is malformed, or a kernel cannot be made; the node is named.

        """
        kernels = self._bound(graph, build_control_flow_info(graph))
        if self.ends is None or not _has_ends(graph, *self.ends):
            return None
        return path_through(
            graph, kernels, self.device, self.ends[1], checks_outputs=self.checks_outputs
        )

    def compile(self, graph: Graph, profile: Profile | None = None) -> Compiled | None:
        """Compile as much of a partition as possible.

        Args:
            graph: the partition.
            profile: where a run notes what each statement costs, if all of it is one region.

        Raises:
            OpError: a frame is malformed, or a kernel cannot be made; the node is named.

        """
        levels, facts = self._look_at(graph)
        return leaving_what_must_be(
            levels, facts, lambda: self._compile(graph, levels, facts, profile)
        )

    def explain(self, graph: Graph) -> Explained:
        """The same, with the reasons why nodes are left to the executor.

        Raises:
            OpError: a frame is malformed, or a kernel cannot be made; the node is named.

        """
        levels, facts = self._look_at(graph)
        made = leaving_what_must_be(levels, facts, lambda: self._compile(graph, levels, facts))
        if made is not None and made.whole is not None:
            return Explained((made.whole,), {})
        regions, rest = ((), graph) if made is None else (made.regions.values(), made.graph)
        return Explained(tuple(regions), reasons_for(graph, rest, facts.kernels, levels))

    def compile_whole(self, graph: Graph) -> Region | None:
        """Compile a graph that no executor will see, or none of it.

        Raises:
            OpError: a frame is malformed, or a kernel cannot be made; the node is named.

        """
        levels, facts = self._look_at(graph)

        def compile_() -> Region | None:
            if not self._is_one_region(graph, levels, facts):
                return None
            region = self._whole(graph, levels, facts)
            # A kernel that asks for its device would be told the wrong one.
            return None if region.needs_context else region

        return leaving_what_must_be(levels, facts, compile_)

    def probing(self, graph: Graph, profile: Profile) -> Region:
        """A graph that is one region, noting in ``profile`` what each statement costs."""
        levels, facts = self._look_at(graph)
        return self._whole(graph, levels, facts, profile)

    def improve(self, graph: Graph, profile: Profile, threads: int) -> Compiled | None:
        """A graph that is one region, compiled again with what a profile says of it.

        Args:
            graph: what was profiled.
            profile: of one run.
            threads: how many regions can run at the same time.

        Returns:
            The same as several regions that can run side by side, or as one with chains that
            are worked off in pieces and numbers spread beside arrays; None if nothing helps.

        """
        levels, facts = self._look_at(graph)
        [units] = levels.units.values()
        own = [unit for unit in units if not is_boundary(unit) and not is_constant(unit)]
        groups = []
        # Steps side by side keep the cores busy whatever becomes of each.
        if len(own) <= MAX_CUT and not profile.has_others:
            seconds = {unit: seconds_of(unit, profile) for unit in own}
            cores = profile.cores_used
            groups = partition_by_cost(own, levels.sources, seconds, threads, cores, self.limits)
        program = self._program(graph, levels, facts)  # which proves what its parts rely on
        if groups:
            try:
                return self._regions(graph, groups, levels, facts, profile)
            except _REFUSALS:
                # What is known of the whole, such as what is live together, need not be known
                # of its parts.
                pass
        is_better = self._spread_and_fuse(program, profile)
        self._fuse_unsized(program)
        if self._has_c() and split_batches(program, profile, self.limits):
            is_better = True
        if not is_better:
            return None
        return Compiled(self._region(graph, program), graph, {})

    def _look_at(self, graph: Graph) -> tuple[LoopTree, NodeInfo]:
        """Bind all kernels, and find the loops."""
        info = build_control_flow_info(graph)
        kernels = self._bound(graph, info)
        begin("finding loops and regions")

        def can_compile(node: Node) -> bool:
            # A result that is set in a loop may be set twice: the executor tells.
            return not is_boundary(node) and can_be_line(node, kernels[node])

        return LoopTree(graph, info, can_compile), NodeInfo(
            kernels, References(kernels), set(), set()
        )

    def _bound(self, graph: Graph, info: ControlFlowInfo) -> dict[Node, BoundKernel]:
        """The kernels of all nodes that can run."""
        begin("making kernels")
        return {
            node: self.kernel_of(node, graph.function) for node in graph if node.id in info.frame_of
        }

    def kernel_of(self, node: Node, function: str) -> BoundKernel:
        """The kernel of a node, perhaps of a function's body; made when it is first needed."""
        kernel = self.kernels.get(node)
        if kernel is None:  # of two that are made at once, either will do
            device = self._device(node)
            kernel = self.kernels[node] = bind_at(self.make_kernel, node, device, function)
        return kernel

    def _device(self, node: Node) -> str:
        return self.device_of.get(node.id, self.device)

    def _compile(
        self, graph: Graph, levels: LoopTree, facts: NodeInfo, profile: Profile | None = None
    ) -> Compiled | None:
        if self._is_one_region(graph, levels, facts):
            return Compiled(self._whole(graph, levels, facts, profile), graph, {})
        groups = _worthwhile(levels, facts)
        return self._regions(graph, groups, levels, facts) if groups else None

    def _is_one_region(self, graph: Graph, levels: LoopTree, facts: NodeInfo) -> bool:
        """Whether nothing of a graph is left for the executor."""
        if len(levels.units) > 1 or len(facts.kernels) < len(graph):
            return False
        if self.ends is not None and not _has_ends(graph, *self.ends):
            return False
        [units] = levels.units.values()
        return all(is_boundary(unit) or self._understands(unit, levels, facts) for unit in units)

    def _understands(self, unit: LoopOrNode, levels: LoopTree, _facts: NodeInfo) -> bool:
        return levels.can_compile(unit)

    def _regions(
        self,
        graph: Graph,
        groups: Sequence[list[LoopOrNode]],
        levels: LoopTree,
        facts: NodeInfo,
        profile: Profile | None = None,
    ) -> Compiled:
        """The graph with a region for each group."""
        sure = SurelyLive(levels)
        made = [self._group(graph, members, levels, facts, sure, profile) for members in groups]
        new, regions = rewrite(graph, made, facts.references, levels)
        return Compiled(None, new, regions)

    def _whole(
        self, graph: Graph, levels: LoopTree, facts: NodeInfo, profile: Profile | None = None
    ) -> Region:
        """The function of a partition that needs no executor."""
        program = self._program(graph, levels, facts)
        if profile is None:
            self._fuse_unsized(program)
        else:
            self._join_rows(program)
        return self._region(graph, program, profile)

    def _region(self, graph: Graph, program: Program, profile: Profile | None = None) -> Region:
        """A program as a function."""
        source = generate(program, self._checked, profile, self.limits)
        self.made.append(weakref.ref(source))
        return Region(source, self.device, graph.function, self.device_of)

    def _program(self, graph: Graph, levels: LoopTree, facts: NodeInfo) -> Program:
        [units] = levels.units.values()
        args = {node.attrs["index"]: node for node in graph if node.role is Role.ARG}
        retvals = sorted((node for node in graph if node.role is Role.RETVAL), key=_index)
        return build_whole(
            graph.function or self.device,
            facts,
            [unit for unit in units if not is_boundary(unit)],
            [args.get(index) for index in range(max(args, default=-1) + 1)],
            retvals,
        )

    def _join_rows(self, program: Program) -> None:
        """Make rows of functions single statements, unless each kernel is to be checked."""
        if not self.checks_outputs:
            join_unary_chains(program)

    def _fuse_unsized(self, program: Program) -> None:
        """The same with all that is worth it whatever its size is."""
        if self._may_use_c():
            fuse_long_groups(program)  # which asks for the library when there are any
        self._join_rows(program)

    def _spread_and_fuse(self, program: Program, profile: Profile) -> bool:
        """Change a program as a profile says; whether that changed anything."""
        has_numbers = spread_numbers(program, profile)
        long = self.limits.long_array
        return fuse_groups(program, profile, long, in_c=self._has_c()) or has_numbers

    def _may_use_c(self) -> bool:
        return self.accelerate and not self.checks_outputs

    def _has_c(self) -> bool:
        return self._may_use_c() and loaded() is not None

    def _group(
        self,
        graph: Graph,
        members: list[LoopOrNode],
        levels: LoopTree,
        facts: NodeInfo,
        sure: SurelyLive,
        profile: Profile | None,
    ) -> RegionGroup:
        inside = set(members)
        outputs = outputs_of(members, lambda node: levels.unit_of(node) in inside)
        program, inputs = build_program(
            graph.function or self.device,
            facts,
            members,
            outputs,
            lambda edge: edge.src not in sure,
        )
        if profile is not None:
            self._spread_and_fuse(program, profile)
        self._fuse_unsized(program)
        region = self._region(graph, program)
        unsure = frozenset(
            node
            for (node, slot), result in zip(outputs, program.results, strict=True)
            if slot < 0 and result in program.may_be_dead
        )
        return RegionGroup(members, region, inputs, outputs, unsure)

    def _checked(self, node: Node, kernel: BoundKernel) -> Callable[..., Any]:
        if kernel.is_builtin and not self.checks_outputs:
            return kernel.compute
        return checked_kernel(node, kernel.compute)


def _has_ends(graph: Graph, arg_count: int, result_count: int) -> bool:
    """Whether a graph takes only arguments that there are, once, and gives all of its results.

    It may have nodes for others that somebody wrote, which the executor tells of.
    """
    args = [_index(node) for node in graph if node.role is Role.ARG]
    results = [_index(node) for node in graph if node.role is Role.RETVAL]
    is_sound = len(set(args)) == len(args) and set(args) <= set(range(arg_count))
    return is_sound and sorted(results) == list(range(result_count))


def _worthwhile(levels: LoopTree, facts: NodeInfo) -> list[list[LoopOrNode]]:
    """The groups that are more than a single node."""

    def is_outside(unit: LoopOrNode) -> bool:
        return not levels.can_compile(unit) or (isinstance(unit, Node) and turns(unit))

    def is_pure(unit: LoopOrNode) -> bool:
        return isinstance(unit, Node) and facts.kernels[unit].is_pure

    grouping = Clustering(
        levels.sources, is_outside, mark=levels.mark, choices=levels.choices, is_pure=is_pure
    )
    grouping.expect(levels.exits())
    groups: list[list[LoopOrNode]] = []
    for frame in levels.frames():
        # Arguments are there from the start: nothing has to wait for them.
        units = [u for u in levels.units[frame] if not is_constant(u) and not is_boundary(u)]
        made = grouping.group(units)
        if not levels.is_odd(frame):
            groups += made
    return [g for g in groups if len(g) >= _FEWEST or isinstance(g[0], RegularLoop)]


def _index(node: Node) -> int:
    index: int = node.attrs["index"]
    return index
