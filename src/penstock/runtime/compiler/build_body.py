"""Turn the units of one frame into statements.

In:   units, sources first; the kernels of their nodes.
Out:  a ``Body``; raises Irregular if a loop turns out not to be one.
Not:  knows no region: what comes from outside is for ``build`` to say.

Most control flow vanishes here.  Identity, Switch, Enter, Exit and NextIteration become
other names for their input; what is left of a Switch is the predicate under which its
consumers are live; a Merge becomes one move per input; a loop becomes a Repeat.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

import numpy as np

from penstock.graph.graph import Edge, Node
from penstock.graph.references import References
from penstock.graph.roles import Role
from penstock.kernels.api.bound_kernel import BoundKernel
from penstock.runtime.compiler.loops import Irregular, LoopOrNode, RegularLoop, is_free
from penstock.runtime.compiler.predicates import ALWAYS, NEVER, Predicate, Predicates
from penstock.runtime.compiler.program import (
    Body,
    Constant,
    Initialized,
    KernelCall,
    Move,
    Nothing,
    Operand,
    Read,
    Repeat,
    Statement,
    Test,
    Var,
    free_names,
    variable_of,
)
from penstock.state.checkpoints import checkpoint

#: Whoever waits for more statements than this waits for one that waits for them.
_FEW: Final = 4


class SymbolicValue(NamedTuple):
    """An output as its consumers see it."""

    var: Var
    #: When it is live.
    live: Predicate
    #: What must have been done for it to be there.
    waits: tuple[Statement, ...]


class NodeInfo(NamedTuple):
    """What is known of all nodes of the partition."""

    kernels: Mapping[Node, BoundKernel]
    references: References
    #: Merges of which at most one input is ever live, as far as that has been proved.
    exclusive: set[Node]
    #: Merges of which that could not be proved.
    doubtful: set[Node]


class BodyBuilder:
    """One loop body, or the code outside of loops, under construction."""

    def __init__(self, facts: NodeInfo, units: Iterable[LoopOrNode]) -> None:
        self.facts = facts
        self.units = units
        self.body = Body(Predicates())
        #: What outputs have become, by (node id, slot).
        self.values: dict[tuple[int, int], SymbolicValue] = {}
        #: When a node is live, and what must have been done for it to be done, by node id.
        self.nodes: dict[int, tuple[Predicate, tuple[Statement, ...]]] = {}
        #: The test of each condition, by the variable that it is about.
        self._tests: dict[Var, Test] = {}
        #: The predicate that each test looks at.
        self._tested: dict[Test, SymbolicValue] = {}

    # -- units -------------------------------------------------------------------------

    def add_units(self) -> None:
        """Turn all units into statements."""
        for unit in self.units:
            checkpoint()
            if isinstance(unit, RegularLoop):
                self._add_loop(unit)
            else:
                self._add_node(unit)

    def _add_node(self, node: Node) -> None:
        role = node.role
        if role is Role.MERGE:
            self._add_merge(node)
            return
        live, waits = self._gathered(node)
        self.nodes[node.id] = (live, waits)
        if role is Role.CONSTANT:
            value = self.facts.kernels[node].compute()
            self.values[node.id, 0] = SymbolicValue(Constant(node.name, value), live, waits)
        elif role is Role.SWITCH:
            # Who only waits for it is live on both sides, and so need not wait for the test.
            self._add_switch(node, live, waits)
        elif role is Role.CONTROL_TRIGGER:
            self.nodes[node.id] = (ALWAYS, waits)
        elif node.op.name != "NoOp":
            self._add_call(node, live, waits)

    def _add_call(self, node: Node, live: Predicate, waits: tuple[Statement, ...]) -> None:
        kernel = self.facts.kernels[node]
        operands = self._operands(node)
        if kernel.traits.forwards:
            self.values[node.id, 0] = self._named(node, operands[0], live, waits)
            self.nodes[node.id] = (live, self.values[node.id, 0].waits)
            return
        used = {edge.src_slot for edge in node.out_edges}
        outputs = tuple(
            Var(hint_of(node, slot)) if slot in used else None
            for slot in range(len(node.output_types))
        )
        call = KernelCall(node, live, waits, kernel, operands, outputs)
        self._add(call)
        self.nodes[node.id] = (live, (call,))
        for slot, var in enumerate(outputs):
            if var is not None:
                self.values[node.id, slot] = SymbolicValue(var, live, (call,))

    def _named(
        self, node: Node, operand: Operand, live: Predicate, waits: tuple[Statement, ...]
    ) -> SymbolicValue:
        """What an operand is under the name of a node that forwards it."""
        if isinstance(operand, Var):
            return SymbolicValue(operand, live, waits)
        move = Move(node, live, waits, operand, Var(node.name))
        self._add(move)
        return SymbolicValue(move.target, live, (move,))

    def _add_switch(self, node: Node, live: Predicate, waits: tuple[Statement, ...]) -> None:
        data, pred = self._operands(node)
        test = self._test(node, pred, live, waits)
        value = self._named(node, data, live, (*waits, test))
        is_true = self.body.predicates.is_true(test.condition)
        sides = (self.body.predicates.not_(is_true), is_true)
        for slot, side in enumerate(sides):
            both = self.body.predicates.and_(live, side)
            self.values[node.id, slot] = SymbolicValue(value.var, both, value.waits)

    def _test(
        self, node: Node, pred: Operand, live: Predicate, waits: tuple[Statement, ...]
    ) -> Test:
        """The test of a Switch's predicate; one for all Switches that have the same.

        It is made only where one of them is live: elsewhere nobody minds what the predicate is.
        """
        var, value = variable_of(pred), self._value(node.input(1))
        known = self._tests.get(var)
        if known is not None and self._is_made(known, live):
            return known
        if live == value.live:
            waits = value.waits
        is_own = isinstance(pred, Var) and value.waits and not isinstance(var, Constant)
        target = var if is_own else Var(f"{var.hint}_is_true")
        condition = self.body.predicates.new_condition()
        self.body.conditions.append(target)
        known = Test(node, live, waits, condition, pred, target)
        self._tests[var] = self._tests[target] = known
        self._tested[known] = value
        self._add(known)
        return known

    def _is_made(self, test: Test, live: Predicate) -> bool:
        """Whether a test is made under a predicate; it may become one that always is."""
        value, or_ = self._tested[test], self.body.predicates.or_
        if test.live != NEVER and or_(test.live, live) == value.live:
            # By what this predicate waits for: another Switch may have it later.
            test.live, test.waits = value.live, value.waits
        return self.body.predicates.implies(live, test.live)

    def _add_merge(self, node: Node) -> None:
        """One move for each input that may be live."""
        predicates, live = self.body.predicates, NEVER
        controls = [w for edge in node.control_inputs for w in self._control(edge)[1]]
        used = {edge.src_slot for edge in node.out_edges}
        merged, chosen = Var(node.name), Var(hint_of(node, 1))
        moves: list[Statement] = []
        is_exclusive = True
        for slot, (edge, operand) in enumerate(zip(node.inputs, self._operands(node), strict=True)):
            assert edge is not None
            value = self._value(edge)
            when, waits = value.live, (*value.waits, *controls)
            is_exclusive &= predicates.and_(live, when) == NEVER
            live = predicates.or_(live, when)
            if when == NEVER:
                continue
            if 0 in used:
                moves.append(Move(node, when, waits, operand, merged))
            if 1 in used:
                index = Constant(f"{node.name}_index", np.int32(slot))
                moves.append(Move(node, when, waits, index, chosen))
            if not used & {0, 1}:  # a control edge may wait for it all the same
                moves.append(Nothing(node, when, waits))
        if is_exclusive:
            self.facts.exclusive.add(node)
        self.note(node, is_exclusive=is_exclusive)
        for move in moves:
            self._add(move)
        done = self._few(node, live, moves)
        self.nodes[node.id] = (live, done)
        self.values[node.id, 0] = SymbolicValue(merged, live, done)
        self.values[node.id, 1] = SymbolicValue(chosen, live, done)

    def note(self, merge: Node, *, is_exclusive: bool) -> None:
        """Of two live inputs the one that comes first counts, and only the executor knows which."""
        if not is_exclusive and merge not in self.facts.exclusive:
            self.facts.doubtful.add(merge)

    # -- loops -------------------------------------------------------------------------

    def _add_loop(self, loop: RegularLoop) -> None:
        try:
            self._add_repeat(loop)
        except Irregular as reason:
            reason.loop = reason.loop or loop
            raise

    def _add_repeat(self, loop: RegularLoop) -> None:
        gathered = [self._gathered(enter) for enter in loop.enters]
        live = self._live_together(loop, [live for live, _ in gathered])
        inner = LoopBuilder(self.facts, loop)
        firsts: dict[Node, Var] = {}
        waits: dict[Statement, None] = {}
        for enter, (_, ready) in zip(loop.enters, gathered, strict=True):
            value = self._named(enter, self._operands(enter)[0], live, ready)
            firsts[enter] = value.var
            waits.update(dict.fromkeys(value.waits))
        inner.start(firsts)
        inner.add_units()
        repeat = inner.finish(live, tuple(waits), firsts)
        self._add(repeat)
        for exit_ in loop.exits:
            self.nodes[exit_.id] = (live, (repeat,))
            self.values[exit_.id, 0] = SymbolicValue(inner.exit_value(exit_), live, (repeat,))

    def _live_together(self, loop: RegularLoop, lives: Sequence[Predicate]) -> Predicate:
        """When a loop runs: when all that it hands on is live.

        A constant Enter may be live more often.  Where nothing else is, the loop is dead anyway.
        """
        together = set(lives)
        if len(together) > 1:
            variables = {variable.enter for variable in loop.variables}
            pairs = zip(loop.enters, lives, strict=True)
            together = {live for enter, live in pairs if enter in variables}
        if len(together) != 1:
            raise Irregular(f"the variables of {loop.name} are not live together")
        live = together.pop()
        if not all(self.body.predicates.implies(live, other) for other in lives):
            raise Irregular(f"a constant of {loop.name} may be dead")
        return live

    # -- edges -------------------------------------------------------------------------

    def _gathered(self, node: Node) -> tuple[Predicate, tuple[Statement, ...]]:
        """When all inputs are live, and what must have been done for them to be there."""
        live, waits = ALWAYS, {}
        and_ = self.body.predicates.and_
        for edge in node.inputs:
            assert edge is not None
            value = self._value(edge)
            live = and_(live, value.live)
            waits.update(dict.fromkeys(value.waits))
        for edge in node.control_inputs:
            other, done = self._control(edge)
            live = and_(live, other)
            waits.update(dict.fromkeys(done))
        return live, self._few(node, live, list(waits))

    def _few(
        self, node: Node, live: Predicate, waits: Sequence[Statement]
    ) -> tuple[Statement, ...]:
        """The same statements, or one that waits for them."""
        if len(waits) <= _FEW:
            return tuple(waits)
        nothing = Nothing(node, live, tuple(waits))
        self._add(nothing)
        return (nothing,)

    def _operands(self, node: Node) -> tuple[Operand, ...]:
        """What stands in a node's argument places."""
        operands: list[Operand] = [self._value(edge).var for edge in node.inputs if edge]
        for slot, source in self.facts.references.initialized(node):
            operands[slot] = Initialized(variable_of(operands[slot]), source)
        for slot, source in self.facts.references.derefs(node):
            operands[slot] = Read(variable_of(operands[slot]), source)
        return tuple(operands)

    def _value(self, edge: Edge) -> SymbolicValue:
        """What comes along a data edge."""
        value = self.values.get((edge.src.id, edge.src_slot))
        return value if value is not None else self._outside(edge)

    def _control(self, edge: Edge) -> tuple[Predicate, tuple[Statement, ...]]:
        """When the source of a control edge is live, and what it waits for."""
        known = self.nodes.get(edge.src.id)
        return known if known is not None else self._control_outside(edge)

    def _outside(self, edge: Edge) -> SymbolicValue:
        """A value that no unit makes; constants have no inputs and stand in no frame."""
        if is_free(edge.src):
            constant = Constant(edge.src.name, self.facts.kernels[edge.src].compute())
            value = self.values[edge.src.id, 0] = SymbolicValue(constant, ALWAYS, ())
            return value
        raise Irregular(f"{edge.src.name} is not in the region")

    def _control_outside(self, edge: Edge) -> tuple[Predicate, tuple[Statement, ...]]:
        if is_free(edge.src):
            return (ALWAYS, ())
        raise Irregular(f"{edge.src.name} is not in the region")

    def _add(self, statement: Statement) -> None:
        if statement.live != NEVER:
            self.body.statements.append(statement)


class LoopBuilder(BodyBuilder):
    """The body of one loop."""

    def __init__(self, facts: NodeInfo, loop: RegularLoop) -> None:
        super().__init__(facts, loop.body)
        self._loop = loop
        self._names = {v.merge: Var(v.merge.name) for v in loop.variables}

    def start(self, firsts: Mapping[Node, Var]) -> None:
        """Name what the loop gets from outside and from its last iteration."""
        for enter, var in firsts.items():
            self.nodes[enter.id] = (ALWAYS, ())
            self.values[enter.id, 0] = SymbolicValue(var, ALWAYS, ())
        for variable in self._loop.variables:
            merge = variable.merge
            # It is 0 in the first iteration and 1 in all others, and they have one text.
            if any(edge.src_slot == 1 for edge in merge.out_edges):
                raise Irregular(f"{merge.name}:1 is used")
            self.nodes[merge.id] = (ALWAYS, ())
            self.values[merge.id, 0] = SymbolicValue(self._names[merge], ALWAYS, ())

    def finish(
        self, live: Predicate, waits: tuple[Statement, ...], firsts: Mapping[Node, Var]
    ) -> Repeat:
        """The loop as a statement of the body around it."""
        loop, body = self._loop, self.body
        condition = self._value(loop.condition.input(0))
        test = self._tests.get(condition.var)
        if condition.live != ALWAYS:
            raise Irregular(f"{loop.condition.name} may be dead")
        if test is None or test.live != ALWAYS:
            raise Irregular(f"{loop.condition.name} decides nothing")
        goes_on = body.predicates.is_true(test.condition)
        variables = []
        for variable in loop.variables:
            following = self._value(variable.next_iteration.input(0))
            self._check_live(variable.next_iteration, following.live, goes_on)
            operand = self._operands(variable.next_iteration)[0]
            first = firsts[variable.enter]
            variables.append((self._names[variable.merge], first, operand))
        over = body.predicates.not_(goes_on)
        for exit_ in loop.exits:
            self._check_live(exit_, self._value(exit_.input(0)).live, over)
            if not isinstance(self._operands(exit_)[0], Var):
                raise Irregular(f"{exit_.name} reads a reference")
        exits = tuple(dict.fromkeys(map(self.exit_value, loop.exits)))
        repeat = Repeat(
            loop.condition, live, waits, loop.name, body, test.condition, tuple(variables), exits
        )
        repeat.free = free_names(repeat)
        return repeat

    def _check_live(self, node: Node, live: Predicate, wanted: Predicate) -> None:
        both = live
        for edge in node.control_inputs:
            both = self.body.predicates.and_(both, self._control(edge)[0])
        if both != wanted:
            raise Irregular(f"{node.name} is not live exactly when it should be")

    def exit_value(self, exit_: Node) -> Var:
        """The name under which an Exit's value is known after the last iteration."""
        return self._value(exit_.input(0)).var


def hint_of(node: Node, slot: int) -> str:
    """What the name of an output is made from."""
    return f"{node.name}_{slot}" if len(node.output_types) > 1 else node.name
