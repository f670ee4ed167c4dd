"""Loops, told again as a condition and a body.

In:   a graph under rewriting; which nodes may be in such a loop.
Out:  ``LoopForm`` for each innermost loop of the usual form.
Not:  changes nothing.

Only what a While would give is such a loop: each variable has one Enter, Merge, Switch and
NextIteration; the condition depends on nothing that the Switches let through; whatever else is in
the frame does, so that it computes exactly as often as the body runs.  What in it only has others
wait, as functions that were put in place of their calls do at both ends, is told of, and does not
count.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import field

from penstock.dataclass import dataclass
from penstock.graph.graph import Edge, Graph, Node
from penstock.graph.order import sources_first
from penstock.graph.roles import CONTROL_FLOW, Role


@dataclass(frozen=True, slots=True)
class Variable:
    """One variable of a loop."""

    enter: Node
    merge: Node
    switch: Node
    next_iteration: Node
    #: None if nobody asks for its last value.
    exit: Node | None


@dataclass(frozen=True, slots=True)
class LoopForm:
    """A loop, told again."""

    name: str
    variables: list[Variable]
    #: What the loop reads and does not change: its Enters.
    fixed: list[Node]
    #: The LoopCond.
    test: Node
    #: What the condition needs, and what else the body does, each in an order in which it can run.
    cond: list[Node]
    body: list[Node]
    #: NoOps in it, which have others wait; and what its Enters wait for.
    idle: list[Node]
    awaited: list[Node]

    def nodes(self) -> list[Node]:
        """All nodes of the loop."""
        own = [(v.enter, v.merge, v.switch, v.next_iteration, v.exit) for v in self.variables]
        borders = [node for group in own for node in group if node is not None]
        return [*borders, *self.fixed, self.test, *self.cond, *self.body, *self.idle]

    def among(self, copies: Mapping[Node, Node]) -> LoopForm:
        """The same loop in a copy of its graph."""

        def copied(nodes: Iterable[Node]) -> list[Node]:
            return [copies[node] for node in nodes]

        variables = [
            Variable(
                copies[v.enter],
                copies[v.merge],
                copies[v.switch],
                copies[v.next_iteration],
                None if v.exit is None else copies[v.exit],
            )
            for v in self.variables
        ]
        parts = self.cond, self.body, self.idle, self.awaited
        return LoopForm(
            self.name, variables, copied(self.fixed), copies[self.test], *map(copied, parts)
        )


class NoSuchFormError(Exception):
    """A frame is no loop of the usual form."""


def find_loops(graph: Graph, may_go: Callable[[Node], bool]) -> Iterator[LoopForm]:
    """The innermost loops that have the form, and of which all nodes may go."""
    frames: dict[bytes, list[Node]] = {}
    for node in graph:
        if node.role is Role.ENTER:
            frames.setdefault(node.attrs["frame_name"], []).append(node)
    for name, enters in frames.items():
        try:
            yield _LoopFrame(name.decode("utf-8", "replace"), enters, may_go).form()
        except NoSuchFormError:
            continue


def _need(condition: object) -> None:
    if not condition:
        raise NoSuchFormError


@dataclass(frozen=True, slots=True)
class _LoopFrame:
    """The nodes of one frame."""

    name: str
    enters: list[Node]
    may_go: Callable[[Node], bool]
    members: dict[Node, None] = field(default_factory=dict)

    def form(self) -> LoopForm:
        """The loop; raises NoSuchFormError."""
        self._collect()
        fixed = [node for node in self.enters if node.attrs["is_constant"]]
        variables = [self._variable(node) for node in self.enters if not node.attrs["is_constant"]]
        tests = [node for node in self.members if node.role is Role.LOOP_COND]
        _need(len(tests) == 1 and variables)
        known = {*fixed, *tests, *(node for v in variables for node in _nodes(v))}
        inside = [node for node in self.members if node not in known]
        _need(all(_is_idle(node) or self._may_be_inside(node) for node in inside))
        _need(all(v.switch.input(1).src is tests[0] for v in variables))
        _need(all(edge.dst.role is Role.SWITCH for edge in tests[0].out_edges))
        order = sources_first(inside)
        _need(len(order) == len(inside))
        switches = {v.switch for v in variables}
        behind = _behind(switches, order)
        cond = _needed_by(tests[0], {*order})
        _need(not cond & behind)
        _need(all(node in behind or node in cond for node in order))
        for variable in variables:
            src = variable.next_iteration.input(0).src
            _need(src in switches or src in behind)
        return LoopForm(
            self.name,
            variables,
            fixed,
            tests[0],
            [node for node in order if node in cond and not _is_idle(node)],
            [node for node in order if node not in cond and not _is_idle(node)],
            [node for node in order if _is_idle(node)],
            [edge.src for node in self.enters for edge in node.control_inputs],
        )

    def _may_be_inside(self, node: Node) -> bool:
        return node.role not in CONTROL_FLOW and self.may_go(node)

    def _collect(self) -> None:
        """All that comes after the Enters, up to the Exits."""
        waiting = list(self.enters)
        self.members.update(dict.fromkeys(waiting))
        for node in waiting:  # grows
            if node.role is Role.EXIT:
                continue
            for edge in node.out_edges:
                if edge.dst not in self.members:
                    self.members[edge.dst] = None
                    waiting.append(edge.dst)
        for node in self.members:
            if node.role is Role.ENTER:
                _need(node in self.enters)
                continue
            _need(None not in node.inputs)
            _need(all(edge.src in self.members for edge in node.in_edges()))
            _need(node.role is not Role.CONSTANT or node.control_inputs)

    def _variable(self, enter: Node) -> Variable:
        merge = _only(enter, Role.MERGE)
        _need(len(merge.inputs) == 2 and not merge.control_inputs)
        sources = {edge.src.role: edge.src for edge in merge.in_edges()}
        _need(sources.get(Role.ENTER) is enter and Role.NEXT_ITERATION in sources)
        _need(all(edge.src_slot <= 0 for edge in merge.out_edges))
        step = sources[Role.NEXT_ITERATION]
        _need([edge.dst for edge in step.out_edges] == [merge])
        switches = [e.dst for e in merge.out_edges if e.dst.role is Role.SWITCH and e.dst_slot == 0]
        _need(len(switches) == 1 and not switches[0].control_inputs)
        _need(switches[0].op.name == "Switch" and merge.op.name == "Merge")
        ends = [edge.dst for edge in switches[0].out_edges if edge.src_slot == 0]
        _need(len(ends) <= 1 and all(node.role is Role.EXIT for node in ends))
        exit_ = ends[0] if ends else None
        _need(exit_ is None or not exit_.control_inputs)
        return Variable(enter, merge, switches[0], step, exit_)


def _is_idle(node: Node) -> bool:
    return node.op.name == "NoOp"


def _nodes(variable: Variable) -> list[Node]:
    own = variable.enter, variable.merge, variable.switch, variable.next_iteration, variable.exit
    return [node for node in own if node is not None]


def _only(node: Node, role: Role) -> Node:
    """The only reader of a node."""
    _need(len(node.out_edges) == 1)
    dst = node.out_edges[0].dst
    _need(dst.role is role and not node.out_edges[0].is_control)
    return dst


def _behind(starts: set[Node], order: list[Node]) -> set[Node]:
    """What depends on some nodes."""
    found: set[Node] = set()
    for node in order:
        for edge in node.in_edges():
            # Who only waits for a Switch, or reads its other output, runs once more.
            if edge.src in found or (edge.src in starts and edge.src_slot == 1):
                found.add(node)
    return found


def _needed_by(test: Node, inside: set[Node]) -> set[Node]:
    """What the condition is computed from; it may wait for nothing else."""
    waiting = [test]
    found: set[Node] = set()
    for node in waiting:  # grows
        for edge in node.in_edges():
            src: Node = edge.src
            _need(src in inside or src.role in (Role.MERGE, Role.ENTER))
            if src in inside and src not in found:
                found.add(src)
                waiting.append(src)
    return found


def outside(form: LoopForm) -> list[Edge]:
    """What the loop reads: the variables as they begin, then what stays the same."""
    return [v.enter.input(0) for v in form.variables] + [node.input(0) for node in form.fixed]
