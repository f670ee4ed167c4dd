"""Find loops again among Enter, Merge, Switch, LoopCond, NextIteration and Exit.

In:   a graph, the static frame of its nodes, and which nodes can be compiled by themselves.
Out:  ``LoopTree``: what stands in each frame, sources first, with every regular loop as one
      unit of the frame around it.
Not:  does not look at liveness; ``build`` does, and may still refuse a loop.

A loop is regular if it has the form that every front end makes, and everything in it can be
compiled.  The form: one LoopCond; each NextIteration leads to just one Merge, whose other input
is an Enter that is not constant; and nothing but such Merges takes an Enter that is not constant.
The executor runs the others.  Of a loop of another form it runs every node, as its nodes need not
all run in the same iterations.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from heapq import heapify, heappop, heappush
from typing import TypeAlias

from penstock.dataclass import dataclass
from penstock.errors import InternalError
from penstock.graph.frames import ControlFlowInfo, Frame
from penstock.graph.graph import Edge, Graph, Node
from penstock.graph.order import are_in_order
from penstock.graph.roles import Role


@dataclass(frozen=True, slots=True)
class LoopVariable:
    """What a loop hands from one iteration to the next."""

    merge: Node
    enter: Node
    next_iteration: Node


@dataclass(frozen=True, slots=True, eq=False)
class RegularLoop:
    """One regular loop."""

    frame: Frame
    enters: tuple[Node, ...]
    variables: tuple[LoopVariable, ...]
    condition: Node
    exits: tuple[Node, ...]
    #: Everything else in its frame, sources first.
    body: tuple[LoopOrNode, ...]

    @property
    def name(self) -> str:
        """The frame's name."""
        return self.frame.name


#: A node, or a loop that stands in this frame.
LoopOrNode: TypeAlias = "Node | RegularLoop"


def is_free(node: Node) -> bool:
    """Whether a node is a constant that waits for nothing: every region may have its value."""
    return node.role is Role.CONSTANT and not node.control_inputs


class Irregular(Exception):  # noqa: N818  (not an error: the executor takes over)
    """Something is not what this tier understands."""

    #: The loop that is to be left to the executor; None if that would not help.
    loop: RegularLoop | None = None


class Odd(Irregular):
    """A loop has a form that no front end makes."""


class LoopTree:
    """The frames of a graph that are not part of a regular loop, and their units."""

    def __init__(
        self, graph: Graph, info: ControlFlowInfo, can_compile: Callable[[Node], bool]
    ) -> None:
        self._info = info
        self._can_compile = can_compile
        #: Nodes that are left to the executor though they could be compiled.
        self._left: set[Node] = set()
        self._nodes: dict[Frame, list[Node]] = {frame: [] for frame in info.frames.values()}
        for node in graph:
            if node.id in info.frame_of:
                self._nodes[info.frame_of[node.id]].append(node)
        self._enters: dict[Frame, list[Node]] = {frame: [] for frame in info.frames.values()}
        for node in graph:
            if node.role is Role.ENTER and node.id in info.frame_of:
                self._enters[info.output_frame_of[node.id]].append(node)
        #: The frames inside of each, but not inside of another one there.
        self._inner: dict[Frame, list[Frame]] = {frame: [] for frame in info.frames.values()}
        for frame in info.frames.values():
            if frame.parent is not None:
                self._inner[frame.parent].append(frame)
        #: Regular loops by frame.
        self._loops: dict[Frame, RegularLoop] = {}
        #: Units that are not simply the node itself, by node id.
        self._unit_of: dict[int, LoopOrNode] = {}
        #: Frames whose loop is not regular, the root among them, with their units, sources
        #: first.
        self.units: dict[Frame, list[LoopOrNode]] = {}
        #: Why the loops of these frames are not regular.
        self.reasons: dict[Frame, str] = {}
        #: The same for loops that were forgotten.
        self._forgotten: dict[Frame, str] = {}
        #: Frames whose loops have another form, or proved not to be loops.
        self._odd: set[Frame] = set()
        #: Why all of the graph is left to the executor; empty if some of it is not.
        self.refusal = ""
        self._add_frames()

    def unit_of(self, node: Node) -> LoopOrNode:
        """The unit that stands for a node in the innermost frame that is a level."""
        return self._unit_of.get(node.id, node)

    def frame_of(self, node: Node) -> Frame:
        """The frame in which, or an Enter for which, a node is run."""
        frame = self._info.output_frame_of if node.role is Role.ENTER else self._info.frame_of
        return frame[node.id]

    def can_compile(self, unit: LoopOrNode) -> bool:
        """Whether a unit can be part of a region."""
        return isinstance(unit, RegularLoop) or (unit not in self._left and self._can_compile(unit))

    def is_odd(self, frame: Frame) -> bool:
        """Whether the nodes of a frame need not all run in the same iterations."""
        around: Frame | None = frame
        while around is not None and around not in self._odd:
            around = around.parent
        return around is not None

    def frames(self) -> list[Frame]:
        """The frames that are levels, those outside first."""
        return sorted(self.units, key=_depth)

    def exits(self) -> list[Node]:
        """What leaves loops of the executor's."""
        nodes = (node for units in self.units.values() for node in units if isinstance(node, Node))
        return [node for node in nodes if node.role is Role.EXIT]

    def forget(self, reasons: Mapping[RegularLoop, str]) -> None:
        """Leave loops to the executor, and with them those around them."""
        self._forgotten |= {loop.frame: reason for loop, reason in reasons.items()}
        self._add_frames()

    def leave(self, nodes: Iterable[Node]) -> None:
        """Leave nodes to the executor, and with them the loops around them."""
        self._left.update(nodes)
        self._add_frames()

    def _add_frames(self) -> None:
        """Find everything anew, from the inside out."""
        self._loops.clear()
        self._unit_of.clear()
        self.units.clear()
        try:
            for frame in sorted(self._info.frames.values(), key=_depth, reverse=True):
                self._add_frame(frame)
        except Irregular as reason:
            self.refusal = str(reason)

    def _add_frame(self, frame: Frame) -> None:
        units = self._sources_first(frame)
        if frame.parent is not None:
            try:
                loop = self._find_loop(frame, units)
            except Irregular as reason:
                self.reasons[frame] = str(reason)
                if isinstance(reason, Odd):
                    self._odd.add(frame)
            else:
                self._loops[frame] = loop
                self._swallow(loop)
                return
        self.units[frame] = units

    def _swallow(self, loop: RegularLoop) -> None:
        """Have the loop stand for all that is in it, also in loops inside of it."""
        for node in (*loop.enters, *self._nodes[loop.frame]):
            self._unit_of[node.id] = loop
        for unit in loop.body:
            if isinstance(unit, RegularLoop):
                self._swallow_inner(unit, loop)

    def _swallow_inner(self, inner: RegularLoop, outer: RegularLoop) -> None:
        for node in self._nodes[inner.frame]:
            self._unit_of[node.id] = outer
        for unit in inner.body:
            if isinstance(unit, RegularLoop):
                self._swallow_inner(unit, outer)

    def _find_loop(self, frame: Frame, units: list[LoopOrNode]) -> RegularLoop:
        """The loop of a frame; raises Irregular."""
        loop = self._form_of(frame, units)
        if any(inner not in self._loops for inner in self._inner[frame]):
            raise Irregular("an inner loop is irregular")
        for unit in loop.body:
            if not self.can_compile(unit):
                raise Irregular(f"{unit.name} cannot be compiled")
        return loop

    def _form_of(self, frame: Frame, units: list[LoopOrNode]) -> RegularLoop:
        """What a frame would be if everything in it could be compiled; raises Odd."""
        if frame in self._forgotten:
            raise Odd(self._forgotten[frame])
        conditions = [n for n in self._nodes[frame] if n.role is Role.LOOP_COND]
        if len(conditions) != 1:
            raise Odd(f"{len(conditions)} LoopConds")
        variables = tuple(
            self._variable(node) for node in self._nodes[frame] if node.role is Role.NEXT_ITERATION
        )
        if not variables:
            # Nothing begins another iteration, whatever the condition says.
            raise Odd("no NextIteration")
        merges = {variable.merge for variable in variables}
        self._check_enters(frame, merges)
        exits = tuple(n for n in self._nodes[frame] if n.role is Role.EXIT)
        ends = merges | {v.next_iteration for v in variables} | set(exits)
        body = tuple(unit for unit in units if unit not in ends)
        if len(merges) != len(variables):
            raise Odd("two NextIterations lead to one Merge")
        return RegularLoop(frame, tuple(self._enters[frame]), variables, conditions[0], exits, body)

    @staticmethod
    def _variable(node: Node) -> LoopVariable:
        """What a NextIteration carries on."""
        if len(node.out_edges) != 1 or node.out_edges[0].dst.role is not Role.MERGE:
            raise Odd(f"{node.name} does not lead to one Merge")
        merge = node.out_edges[0].dst
        if merge.control_inputs or len(merge.inputs) != 2:
            raise Odd(f"{merge.name} is not the Merge of a loop")
        sources = [edge.src for edge in merge.inputs if edge is not None]
        enters = [src for src in sources if src.role is Role.ENTER]
        if len(enters) != 1 or len(sources) != 2:
            raise Odd(f"{merge.name} has no Enter")
        if enters[0].attrs["is_constant"]:
            raise Odd(f"{enters[0].name} comes anew in each iteration")
        return LoopVariable(merge, enters[0], node)

    def _check_enters(self, frame: Frame, merges: set[Node]) -> None:
        """A variable's first value is of no use to anyone but its Merge."""
        for enter in self._enters[frame]:
            if not enter.attrs["is_constant"] and not all(
                edge.dst in merges for edge in enter.out_edges
            ):
                raise Odd(f"{enter.name} is used in the first iteration only")

    def _sources_first(self, frame: Frame) -> list[LoopOrNode]:
        """The units of a frame, each after those that it depends on."""
        inner = [self._loops[f] for f in self._inner[frame] if f in self._loops]
        nodes = [n for n in self._nodes[frame] if n.id not in self._unit_of]
        units: list[LoopOrNode] = [*nodes, *inner]
        if len(self._nodes) == 1 and are_in_order(nodes):
            return units
        waiting: dict[LoopOrNode, int] = {}
        users: dict[LoopOrNode, list[LoopOrNode]] = {unit: [] for unit in units}
        for unit in units:
            sources = set(self.sources(unit)) & users.keys()
            waiting[unit] = len(sources)
            for source in sources:
                users[source].append(unit)
        # Of those that could come next, the one that was made first: the order that the author
        # wrote keeps few values alive at a time.
        ready = [(_age(unit), unit) for unit in units if not waiting[unit]]
        heapify(ready)
        ordered: list[LoopOrNode] = []
        while ready:
            _, unit = heappop(ready)
            ordered.append(unit)
            for user in users[unit]:
                waiting[user] -= 1
                if not waiting[user]:
                    heappush(ready, (_age(user), user))
        if len(ordered) != len(units):
            raise _cycle(frame, set(units) - set(ordered))
        return ordered

    def sources(self, unit: LoopOrNode) -> Iterable[LoopOrNode]:
        """The units that a unit depends on, in its own frame or around it."""
        nodes = unit.enters if isinstance(unit, RegularLoop) else (unit,)
        for node in nodes:
            for edge in node.in_edges():
                yield from self._sources_along(edge)

    def choices(self, unit: LoopOrNode) -> Iterable[Iterable[LoopOrNode]]:
        """The units behind each input of a Merge, of which one is enough."""
        if isinstance(unit, RegularLoop) or unit.role is not Role.MERGE:
            return ()
        return (self._sources_along(edge) for edge in unit.inputs if edge is not None)

    def mark(self, unit: LoopOrNode) -> LoopOrNode | Frame:
        """What stands for a unit that the executor runs: for an Enter, what it enters."""
        if isinstance(unit, Node) and unit.role is Role.ENTER:
            return self._info.output_frame_of[unit.id]
        return unit

    def _sources_along(self, edge: Edge) -> Iterable[LoopOrNode]:
        src = edge.src
        if src.role is Role.EXIT and src.id not in self._unit_of:
            # What leaves a loop of the executor's depends on all that enters it, and even then
            # it need not come with what else leaves it.
            yield src
            yield from self._enters[self._info.frame_of[src.id]]
        elif src.role is not Role.NEXT_ITERATION:
            yield self.unit_of(src)


def _age(unit: LoopOrNode) -> int:
    """A number that is smaller for what was made earlier; no two units have the same."""
    return min(enter.id for enter in unit.enters) if isinstance(unit, RegularLoop) else unit.id


def _depth(frame: Frame) -> int:
    depth = 0
    while frame.parent is not None:
        frame, depth = frame.parent, depth + 1
    return depth


def _cycle(frame: Frame, units: Iterable[LoopOrNode]) -> Exception:
    """Why some units of a frame cannot be put in an order."""
    for unit in units:
        if isinstance(unit, RegularLoop) or unit.role is Role.ENTER:
            return Irregular(f"{unit.name} waits for what leaves its own loop")
        if unit.role is Role.MERGE:
            return Irregular(f"{unit.name} waits for itself, if not for another input")
    return InternalError(f"the frame {frame} has a cycle without NextIteration")


def loop_depth(units: Iterable[LoopOrNode]) -> int:
    """How many loops stand one inside the other."""
    return max(
        (1 + loop_depth(unit.body) for unit in units if isinstance(unit, RegularLoop)), default=0
    )
