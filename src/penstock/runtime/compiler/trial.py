"""A request whose kernels mostly need not wait, as one function that is left when one must.

In:   a graph with kernels that can be tried (``TryKernel``), and no choices outside of loops.
Out:  ``Trial``: its function; and, when that was left, what has been done, for an executor.
Not:  decides not when a function is tried, and waits for nothing.

The statements of such a function stand in one line: when it is left at one of them, all that come
before are done, and none of those behind.  What these need is in variables of the function.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from threading import get_ident
from types import TracebackType
from typing import Any

from penstock.core.values import Value
from penstock.dataclass import dataclass
from penstock.errors import ResourceExhaustedError
from penstock.graph.graph import Graph, Node
from penstock.graph.roles import Role
from penstock.kernels.api.try_kernel import TryKernel
from penstock.runtime.compiler.build_body import NodeInfo
from penstock.runtime.compiler.compile_regions import MAX_CUT, Compiler
from penstock.runtime.compiler.loops import Irregular, LoopOrNode, LoopTree, RegularLoop
from penstock.runtime.compiler.profile import Profile
from penstock.runtime.compiler.program import Constant, FusedGroup, Program, Repeat, UnaryChain
from penstock.runtime.compiler.region import Region
from penstock.runtime.compiler.schedule import schedule
from penstock.runtime.compiler.suspended import Suspended
from penstock.runtime.unfinished import Unfinished


@dataclass(frozen=True, slots=True)
class Trial:
    """A whole request as one function, which may be left."""

    region: Region
    _program: Program
    #: All nodes and loops, sources first.
    _units: Sequence[LoopOrNode]
    #: Where each stands in the text; what is nowhere, such as an Identity, takes no time.
    _places: Mapping[LoopOrNode, int]

    def unfinished(self, left: Suspended) -> Unfinished:
        """What is to be done by somebody else when the function was left."""
        source = self.region.source
        place = source.place_of(left.__traceback__)
        assert place is not None
        done = self._done_before(self._places[place.node])
        found = _locals_of(left.__traceback__, source.filename)
        values = {}
        for node in done:
            for edge in node.out_edges:
                if not edge.is_control and edge.dst not in done:
                    values[node.name, edge.src_slot] = self._value(node, edge.src_slot, found)
        return Unfinished(frozenset(node.name for node in done), values)

    def _done_before(self, place: int) -> set[Node]:
        """The nodes that are done when the function stands at a place."""
        done: set[Node] = set()
        for unit in self._units:
            nodes = _nodes_of(unit)
            at = self._places.get(unit)
            if at is None:
                is_done = all(edge.src in done for node in nodes for edge in node.in_edges())
            else:
                is_done = at < place
            if isinstance(unit, Node) and unit.role is Role.RETVAL:
                is_done = False  # who runs the rest hands the results out
            if is_done:
                done.update(nodes)
        return done

    def _value(self, node: Node, slot: int, found: Mapping[str, Any]) -> Value:
        """An output; None if nobody uses it any more, so that the function has dropped it."""
        var = self._program.values[node.id, slot].var
        if isinstance(var, Constant):
            value: Value = var.value
            return value
        return found.get(self.region.source.names.get(var, ""))


class Trying:
    """A trial that goes on in a step."""

    def __init__(self, trial: Trial) -> None:
        self._trial = trial
        self._thread = get_ident()

    def dump_state(self) -> str:
        """See ``Activity``."""
        return self._trial.region.describe(self._thread)

    def forget_threads(self) -> None:
        """See ``Activity``; there are none."""

    def leave(self, _seconds: float) -> Sequence[str]:
        """See ``Activity``; the thread that asks is the one that tries."""
        return ()


class TrialCompiler(Compiler):
    """Compiles requests with kernels that mostly need not wait."""

    @classmethod
    def like(cls, other: Compiler) -> TrialCompiler:
        """A compiler for the same device."""
        return cls(**{field.name: getattr(other, field.name) for field in fields(other)})

    def trial(self, graph: Graph, profile: Profile, *, probes: bool) -> Trial | None:
        """The whole graph as a function; None if it is not of a kind that can be left.

        Args:
            graph: of a request.
            profile: how large values proved to be.
            probes: whether the function is to fill the profile instead.

        Raises:
            OpError: a frame is malformed, or a kernel cannot be made; the node is named.

        """
        if self.checks_outputs or len(graph) > MAX_CUT:
            return None
        levels, facts = self._look_at(graph)
        has_any = any(_can_be_tried(node, facts) for node in facts.kernels)
        if not has_any or levels.refusal or not self._is_one_region(graph, levels, facts):
            return None
        try:
            program = self._program(graph, levels, facts)
            if program.body.conditions or facts.doubtful:
                return None
            if not probes:
                self._spread_and_fuse(program, profile)
                self._fuse_unsized(program)
            region = self._region(graph, program, profile if probes else None)
        except (Irregular, ResourceExhaustedError, RecursionError):
            return None
        [units] = levels.units.values()
        return Trial(region, program, units, _places(program, levels))

    def _understands(self, unit: LoopOrNode, levels: LoopTree, facts: NodeInfo) -> bool:
        is_tried = isinstance(unit, Node) and _can_be_tried(unit, facts)
        return is_tried or super()._understands(unit, levels, facts)


def _can_be_tried(node: Node, facts: NodeInfo) -> bool:
    return isinstance(facts.kernels[node].compute, TryKernel)


def _places(program: Program, levels: LoopTree) -> dict[LoopOrNode, int]:
    """Where each unit stands among the statements."""
    places: dict[LoopOrNode, int] = {}
    for at, (statement, _path, _reads) in enumerate(schedule(program.body)):
        if isinstance(statement, (FusedGroup, UnaryChain)):
            places.update((call.node, at) for call in statement.calls)
        elif isinstance(statement, Repeat):
            places[levels.unit_of(statement.node)] = at
        elif statement.node.role is not Role.RETVAL:
            places[statement.node] = at
    return places


def _nodes_of(unit: LoopOrNode) -> Sequence[Node]:
    if not isinstance(unit, RegularLoop):
        return (unit,)
    inner = [node for part in unit.body for node in _nodes_of(part)]
    ends = [node for v in unit.variables for node in (v.merge, v.next_iteration)]
    return (*unit.enters, *ends, *unit.exits, *inner)


def _locals_of(traceback: TracebackType | None, filename: str) -> dict[str, Any]:
    """The variables of all functions of a text on the way to where it was left."""
    found: dict[str, Any] = {}
    while traceback is not None:
        if traceback.tb_frame.f_code.co_filename == filename:
            found.update(traceback.tb_frame.f_locals)
        traceback = traceback.tb_next
    return found
