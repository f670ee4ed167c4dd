"""Turn a group of units into a program.

In:   units of one frame, sources first; the kernels of their nodes.
Out:  ``Program``; raises Irregular if a loop turns out not to be one.
Not:  chooses no order and writes no text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Final

import numpy as np

from penstock.graph.graph import Edge, Node
from penstock.graph.roles import Role
from penstock.runtime.compiler.build_body import BodyBuilder, NodeInfo, SymbolicValue, hint_of
from penstock.runtime.compiler.loops import LoopOrNode, is_free
from penstock.runtime.compiler.predicates import ALWAYS, NEVER, Condition, Predicate
from penstock.runtime.compiler.program import (
    Constant,
    Move,
    Operand,
    Program,
    Statement,
    Var,
    variable_of,
)

#: Arguments are called after what they stand for, its slot, and their own index.
_FED: Final = re.compile(r"_arg_(.+)_\d+_\d+")


def build_program(
    name: str,
    facts: NodeInfo,
    units: Sequence[LoopOrNode],
    outputs: Sequence[tuple[Node, int]],
    may_be_dead: Callable[[Edge], bool],
) -> tuple[Program, tuple[Edge, ...]]:
    """The program of a group, and the edges that its parameters stand for.

    Args:
        name: for error messages.
        facts: kernels and references of the partition.
        units: sources first.
        outputs: what the rest of the partition needs of the group: (node, slot), where the
            slot is -1 if all that matters is that the node is done.
        may_be_dead: whether what comes along an edge into the group may be dead.

    """
    region = _RegionBuilder(facts, units, may_be_dead)
    region.add_units()
    results = [region.result(node, slot) for node, slot in outputs]
    region.note_rivals(outputs)
    program = region.program(name, results, is_whole=False)
    return program, tuple(region.param_edges)


def build_whole(
    name: str,
    facts: NodeInfo,
    units: Sequence[LoopOrNode],
    args: Sequence[Node | None],
    retvals: Sequence[Node],
) -> Program:
    """The program of a partition that is one region: from arguments to results.

    Args:
        name: for error messages.
        facts: kernels and references of the partition.
        units: sources first, without arguments and results.
        args: ``_Arg`` nodes by index; None for an argument that nobody uses.
        retvals: ``_Retval`` nodes by index.

    """
    region = _RegionBuilder(facts, units, _never)
    region.add_args(args)
    region.add_units()
    results = [region.returned(node) for node in retvals]
    return region.program(name, results, is_whole=True)


def _never(_edge: Edge) -> bool:
    return False


class _RegionBuilder(BodyBuilder):
    """The code outside of loops: it has parameters."""

    def __init__(
        self, facts: NodeInfo, units: Sequence[LoopOrNode], may_be_dead: Callable[[Edge], bool]
    ) -> None:
        super().__init__(facts, units)
        self._may_be_dead = may_be_dead
        self.params: list[Var] = []
        #: The edges that parameters stand for, one of several from the same output.
        self.param_edges: list[Edge] = []

    def add_args(self, args: Sequence[Node | None]) -> None:
        """Let arguments be parameters."""
        for node in args:
            self.params.append(Var(_what_is_fed(node.name) if node is not None else "unused"))
            if node is None:
                continue
            self.nodes[node.id] = (ALWAYS, ())
            self.values[node.id, 0] = SymbolicValue(self.params[-1], ALWAYS, ())

    def _outside(self, edge: Edge) -> SymbolicValue:
        if is_free(edge.src):
            return super()._outside(edge)
        return self._add_param(edge)

    def _control_outside(self, edge: Edge) -> tuple[Predicate, tuple[Statement, ...]]:
        if not self._may_be_dead(edge):
            return (ALWAYS, ())
        value = self._add_param(edge)
        self.nodes[edge.src.id] = (value.live, value.waits)
        return self.nodes[edge.src.id]

    def _add_param(self, edge: Edge) -> SymbolicValue:
        var = Var(hint_of(edge.src, edge.src_slot))
        self.params.append(var)
        self.param_edges.append(edge)
        live = ALWAYS
        if self._may_be_dead(edge):
            condition = self.body.predicates.new_condition()
            self.body.conditions.append(var)
            self.body.arrivals.add(Condition(condition))
            live = self.body.predicates.is_true(condition)
        value = SymbolicValue(var, live, ())
        if edge.src_slot >= 0:
            self.values[edge.src.id, edge.src_slot] = value
        return value

    def program(self, name: str, results: Sequence[tuple[Var, bool]], *, is_whole: bool) -> Program:
        """What has been built, returning ``results``: variables, and if they are sure."""
        return Program(
            name,
            self.body,
            tuple(self.params),
            is_whole,
            tuple(var for var, _ in results),
            frozenset(var for var, is_sure in results if not is_sure),
            self.values,
        )

    def result(self, node: Node, slot: int) -> tuple[Var, bool]:
        """What to return for an output, or for a node that must be done; and if it is sure."""
        if slot < 0:
            live, waits = self.nodes[node.id]
            value = SymbolicValue(Constant("done", np.True_), live, waits)
        else:
            value = self.values[node.id, slot]
        return self._returned(node, value.var, value)

    def note_rivals(self, outputs: Sequence[tuple[Node, int]]) -> None:
        """Note the Merges outside of which two inputs may come from here: at once, not in turn."""
        lives: dict[Node, Predicate] = {}
        inside = set(self.units)
        for node, slot in outputs:
            for edge in node.out_edges if slot >= 0 else ():
                merge = edge.dst
                if edge.src_slot != slot or merge.role is not Role.MERGE or merge in inside:
                    continue
                live, before = self.values[node.id, slot].live, lives.get(merge, NEVER)
                self.note(merge, is_exclusive=self.body.predicates.and_(live, before) == NEVER)
                lives[merge] = self.body.predicates.or_(live, before)

    def returned(self, retval: Node) -> tuple[Var, bool]:
        """What to return for a ``_Retval``; and if it is sure to be live."""
        live, waits = self._gathered(retval)
        operand = self._operands(retval)[0]
        return self._returned(retval, operand, SymbolicValue(variable_of(operand), live, waits))

    def _returned(self, node: Node, operand: Operand, value: SymbolicValue) -> tuple[Var, bool]:
        if value.live == ALWAYS and isinstance(operand, Var):
            return operand, True
        move = Move(node, value.live, value.waits, operand, Var(f"{node.name}_result"))
        self._add(move)
        return move.target, value.live == ALWAYS


def _what_is_fed(name: str) -> str:
    """The name of a fed node, from the argument that ``prune`` made for it."""
    fed = _FED.fullmatch(name)
    return fed[1] if fed is not None else name
