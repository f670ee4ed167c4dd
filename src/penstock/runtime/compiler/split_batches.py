"""Have what treats each entry of a batch alone done for some entries at a time.

In:   a program, and the shapes that its values proved to have.
Out:  the same program, in which such statements are one, if their arrays are large.
Not:  changes no value: an entry is computed as before, only sooner after what it is computed from.

What lies between two such statements is as large as a whole batch otherwise: it goes to the memory
and comes back, and pages for it are asked of the system.  Of some entries it stays in a cache.

What is read by entries, ``passes.batchwise`` says.  Products of matrices are left out: their
weights would be read for each part of the batch.  So are sums of products that the library in C
does not compute, whose order, and so whose rounding, is told by how many entries there are.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final

import numpy as np

from penstock.core import dtypes
from penstock.core.limits import Limits
from penstock.graph.graph import Edge, Node
from penstock.graph.roles import Role
from penstock.kernels.api.registry import Calling
from penstock.kernels.parallel.batches import WORTH, Argument, Batches
from penstock.passes.batchwise import Sizes, read_by_entries
from penstock.passes.graph_rewriter import value_of
from penstock.passes.tiles import is_in_tiles
from penstock.runtime.compiler.predicates import ALWAYS
from penstock.runtime.compiler.profile import Profile
from penstock.runtime.compiler.program import (
    BatchGroup,
    Body,
    Constant,
    FusedGroup,
    KernelCall,
    Nothing,
    Program,
    Statement,
    Var,
    operands_of,
    targets_of,
    variable_of,
)

#: What a statement reads: whether by entries.
_Reads = Mapping[Var, bool]
_PRODUCTS: Final = frozenset({"MatMul", "_FusedMatMul"})
#: As many entries as a batch may ever have.
_MANY: Final = 1 << 40
#: Groups of one program, at most: networks have a few.
_MOST_GROUPS: Final = 16


def split_batches(program: Program, profile: Profile, limits: Limits) -> bool:
    """Join the statements of groups, in place; whether there are any."""
    batch = _batch_of(program.body, profile, limits.entries_at_once)
    if not batch:
        return False
    shapes = _Shapes(profile, batch)
    left = {s for s in program.body.statements if shapes.reads(s) is not None}
    found = False
    for _ in range(_MOST_GROUPS):
        members, large = _members_of(program.body, shapes, left, limits.entries_at_once)
        if not large:
            break
        left.difference_update(members.statements)
        group = _group_of(program, members, shapes, limits.entries_at_once)
        if group is not None:
            _put_in_place(program.body, group)
            found = True
    return found


def _batch_of(body: Body, profile: Profile, most: int) -> int:
    """How many entries the largest array has; 0 if it is not larger than that, or has but one."""
    nodes = [statement.node for statement in body.statements]
    largest = max(nodes, key=profile.size_of, default=None)
    if largest is None or profile.size_of(largest) <= most:
        return 0
    shape = profile.shapes[largest]
    return shape[0] if shape is not None and len(shape) > 1 and shape[0] > 1 else 0


class _Shapes:
    """What a profile tells of shapes, and so of what statements read by entries."""

    def __init__(self, profile: Profile, batch: int) -> None:
        self._profile = profile
        self.batch = batch
        #: What each statement reads by entries; None for those that do not treat each alone.
        self._reads: dict[Statement, _Reads | None] = {}
        #: The shapes of what statements read.
        self.of: dict[Var, tuple[int, ...]] = {}

    def size_of(self, statement: Statement) -> int:
        """Elements of the largest array that a statement makes, or reads by entries."""
        reads = self.reads(statement) or {}
        read = [math.prod(self.of[var]) for var, has_entries in reads.items() if has_entries]
        return max(self.made_by(statement), *read)

    def made_by(self, statement: Statement) -> int:
        """Elements of what a statement makes."""
        return self._profile.size_of(statement.node)

    def reads(self, statement: Statement) -> _Reads | None:
        """What a statement reads, and whether by entries; None if entries are not alone in it."""
        if statement not in self._reads:
            self._reads[statement] = self._read_by(statement)
        return self._reads[statement]

    def _read_by(self, statement: Statement) -> _Reads | None:
        if statement.live != ALWAYS:
            return None
        if isinstance(statement, KernelCall):
            return self._of_call(statement)
        return self._of_calls(statement.calls) if isinstance(statement, FusedGroup) else None

    def _of_calls(self, calls: Sequence[KernelCall]) -> _Reads | None:
        """What calls one after the other read that none of them makes."""
        found, made = dict[Var, bool](), set[Var]()
        for call in calls:
            reads = self._of_call(call)
            if reads is None or not _agree(reads, found, made):
                return None
            found |= {var: has for var, has in reads.items() if var not in made}
            made.update(targets_of(call))
        return found

    def _of_call(self, call: KernelCall) -> _Reads | None:
        if not _may_be_cut(call):
            return None
        sizes = [self._sizes(edge) for edge in call.node.inputs if edge is not None]
        shape = self._profile.shapes.get(call.node)
        flags = read_by_entries(call.node, sizes, self.batch)
        if flags is None or not shape:
            return None
        if _depends_on_count(call.node, sizes, shape):
            return None
        found = dict[Var, bool]()
        for operand, size, flag in zip(call.inputs, sizes, flags, strict=True):
            var = variable_of(operand)
            if found.setdefault(var, flag) is not flag:
                return None
            if size is not None:
                self.of[var] = tuple(each or 0 for each in size)
        return found

    def _sizes(self, edge: Edge) -> Sizes:
        src, slot = edge.src, edge.src_slot
        while src not in self._profile.shapes and src.op.traits.hands_on:
            src, slot = src.input(0).src, src.input(0).src_slot
        if src.role is Role.CONSTANT:
            value = value_of(src)
            return None if value is None else np.shape(value)
        if src.role is Role.ARG:
            index, given = src.attrs["index"], self._profile.arguments
            return given[index] if index < len(given) else None
        return self._profile.shapes.get(src) if slot == 0 else None


def _may_be_cut(call: KernelCall) -> bool:
    """Whether a kernel may be called with some entries, as far as that is not a question of op."""
    kernel = call.kernel
    if "Conv" in call.node.op.name and call.node.output_types[0] is not dtypes.float32:
        return False
    return (
        kernel.is_builtin
        and kernel.is_pure
        and kernel.calling is Calling.PLAIN
        and call.node.op.name not in _PRODUCTS
        and call.outputs[0] is not None
        and not any(call.outputs[1:])
        # A variable is read once in a step: for all entries what it was then.
        and all(isinstance(operand, Var) for operand in call.inputs)
    )


def _depends_on_count(node: Node, sizes: Sequence[Sizes], shape: tuple[int, ...]) -> bool:
    """Whether a convolution is computed in another way, and rounded so, for fewer entries."""
    if "Conv2D" not in node.op.name:
        return False
    filters = [each or 0 for each in sizes[1] or ()]
    one, many = (is_in_tiles(node, filters, (count, *shape[1:])) for count in (1, _MANY))
    return one != many


def _agree(reads: _Reads, known: _Reads, made: Collection[Var]) -> bool:
    """Whether a statement reads by entries what others do, and all that is made by entries."""
    return all(
        has_entries if var in made else known.get(var, has_entries) is has_entries
        for var, has_entries in reads.items()
    )


class _Members:
    """Statements that can be done one after the other, without any other between them."""

    def __init__(self, body: Body, shapes: _Shapes, allowed: Collection[Statement]) -> None:
        self._shapes = shapes
        #: In their order.
        self.statements: list[Statement] = []
        #: What they read of others, and whether by entries; and what they make.
        self.reads: dict[Var, bool] = {}
        self.made: set[Var] = set()
        #: What only waits, and for members among others; and what must come after them.
        self.waiting: set[Statement] = set()
        self.later: set[Statement] = set()
        inside = set[Statement]()
        for statement in body.statements:
            sources = statement.waits
            if not self.later.isdisjoint(sources):
                self.later.add(statement)
            elif statement in allowed and self._takes(statement):
                inside.add(statement)
            elif not inside.isdisjoint(sources) or not self.waiting.isdisjoint(sources):
                (self.waiting if isinstance(statement, Nothing) else self.later).add(statement)

    def _takes(self, statement: Statement) -> bool:
        reads = self._shapes.reads(statement)
        if reads is None or not _agree(reads, self.reads, self.made):
            return False
        self.statements.append(statement)
        self.reads |= {var: has for var, has in reads.items() if var not in self.made}
        self.made.update(targets_of(statement))
        return True


def _members_of(
    body: Body, shapes: _Shapes, allowed: Collection[Statement], most: int
) -> tuple[_Members, set[Statement]]:
    """What can be done together, and those of it that make or read more elements than that."""
    first = _Members(body, shapes, allowed)
    large = {s for s in first.statements if shapes.size_of(s) > most}
    members = _Members(body, shapes, set(_between(first.statements, large)))
    return members, large.intersection(members.statements)


def _group_of(program: Program, members: _Members, shapes: _Shapes, most: int) -> BatchGroup | None:
    """Members as one statement; None if that is not worth it."""
    largest = max(map(shapes.size_of, members.statements))
    wanted = _wanted_of(members, program)
    if largest < WORTH * most or _hands_on_most(members, wanted, shapes):
        return None
    return _made_of(members, wanted, shapes, max(most // (largest // shapes.batch), 1))


def _wanted_of(members: _Members, program: Program) -> dict[Var, None]:
    """What others read of members, in the order in which it is made."""
    inside = set(members.statements)
    others = [s for s in program.body.statements if s not in inside]
    read = {variable_of(operand) for s in others for operand in operands_of(s)}
    read.update(program.results, program.body.conditions)
    made = (var for s in members.statements for var in targets_of(s))
    return dict.fromkeys(var for var in made if var in read)


def _hands_on_most(members: _Members, wanted: Collection[Var], shapes: _Shapes) -> bool:
    """Whether most of what members make is there for the whole batch all the same."""
    sizes = {s: shapes.made_by(s) for s in members.statements}
    handed_on = [size for s, size in sizes.items() if any(var in wanted for var in targets_of(s))]
    return 2 * sum(handed_on) > sum(sizes.values())


def _between(statements: Sequence[Statement], large: Collection[Statement]) -> list[Statement]:
    """Those that are large, and those between these: which read of them, and are read by them."""
    kept, read = list[Statement](), set[Var]()
    for statement in reversed(statements):
        if statement in large or not read.isdisjoint(targets_of(statement)):
            kept.append(statement)
            read.update(map(variable_of, operands_of(statement)))
    between, made = list[Statement](), set[Var]()
    for statement in reversed(kept):
        reads = map(variable_of, operands_of(statement))
        if statement in large or not made.isdisjoint(reads):
            between.append(statement)
            made.update(targets_of(statement))
    return between


def _made_of(members: _Members, wanted: Iterable[Var], shapes: _Shapes, at_once: int) -> BatchGroup:
    """Members as one statement."""
    inputs = [var for var in members.reads if not isinstance(var, Constant)]
    arguments = [_argument(shapes.of.get(var), members.reads[var]) for var in inputs]
    return BatchGroup(
        members.statements[-1].node,
        ALWAYS,
        tuple(_waits(members)),
        tuple(members.statements),
        tuple(inputs),
        tuple(wanted),
        Batches(at_once, 2 * at_once, tuple(arguments)),
    )


def _argument(shape: tuple[int, ...] | None, has_entries: bool) -> Argument:  # noqa: FBT001
    return Argument(has_entries, shape[1:] if has_entries and shape is not None else shape)


def _waits(members: _Members) -> Iterable[Statement]:
    """What a group waits for: also through what only waits."""
    inside = set(members.statements)
    found = dict[Statement, None]()
    waiting = [wait for statement in members.statements for wait in statement.waits]
    for wait in waiting:  # grows
        if wait in members.waiting:
            waiting += wait.waits
        elif wait not in inside:
            found[wait] = None
    return found


def _put_in_place(body: Body, group: BatchGroup) -> None:
    """Put a group where its last statement was, and have others wait for it."""
    inside = set(group.statements)
    ordered, later, is_placed = list[Statement](), dict[Statement, None](), False
    for statement in body.statements:
        if statement in inside:
            if statement is group.statements[-1]:
                ordered += [group, *later]
                later, is_placed = {}, True
            continue
        needs_it = not (
            inside.isdisjoint(statement.waits) and later.keys().isdisjoint(statement.waits)
        )
        statement.waits = tuple(
            dict.fromkeys(group if wait in inside else wait for wait in statement.waits)
        )
        if needs_it and not is_placed:
            later[statement] = None
        else:
            ordered.append(statement)
    body.statements[:] = ordered
