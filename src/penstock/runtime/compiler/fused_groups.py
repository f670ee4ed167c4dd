"""Groups of element-wise statements, each as one.

In:   a program, and how large its values proved to be, if that is known.
Out:  the same program with each group as one statement.
Not:  changes no value: every element is computed as before, only sooner after the one that it
      is computed from.

What is between two statements of a group never reaches the memory: a piece of it is made and
used up while it is in the cache, and the pieces are shared out among all cores.

What is known in C becomes programs of it (``element_programs``), of arrays of any length: one call
instead of several.  Python goes through the pieces of all others (``blockwise``), which only pays
for long arrays.
"""

from __future__ import annotations

import sys
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Sequence
from typing import ClassVar, Final

from penstock.graph.graph import Node
from penstock.kernels.api.registry import Calling
from penstock.kernels.c.library import loaded
from penstock.runtime.compiler.element_programs import may_be_in_c, program_of
from penstock.runtime.compiler.profile import Profile
from penstock.runtime.compiler.program import (
    Body,
    FusedGroup,
    KernelCall,
    Nothing,
    Program,
    ProgramCall,
    Repeat,
    Sizes,
    Statement,
    Var,
    operands_of,
    variable_of,
)

_NOBODY: Final = Var("")
#: A group of fewer calls is not worth a program of unknown sizes.
SHORTEST: Final = 16
#: Calls of a program, at most; and of one of long arrays.
_MOST: Final = 20_000
_MOST_OF_LONG: Final = 14


def fuse_groups(program: Program, profile: Profile, long_array: int, *, in_c: bool) -> bool:
    """Join the statements of groups, in place; whether there are any.

    Args:
        program: what the groups are in.
        profile: how large its values proved to be.
        long_array: shorter ones are not worked on in pieces by Python.
        in_c: whether there may be programs in C.

    """
    wanted = set(program.results)
    long = {node for node in profile.shapes if profile.size_of(node) >= long_array}
    found = in_c and _fuse_in(program.body, _InC(profile, long), wanted)
    return _fuse_in(program.body, _InBlocks(long), wanted) or found


def fuse_long_groups(program: Program) -> None:
    """Join the statements of long groups as programs in C, in place, whatever their sizes are."""
    _fuse_in(program.body, _Unsized(), set(program.results))


class _Law:
    """Which calls may be a group, and what becomes of them."""

    #: How many calls a group has, at least.
    least: ClassVar[int] = 1

    def may_be(self, call: KernelCall) -> bool:
        """Whether a call may be part of a group."""
        raise NotImplementedError

    def may_join(self, _source: KernelCall, _last: KernelCall) -> bool:
        """Whether a call may be part of the group that another one ends."""
        return True

    def most(self, _last: KernelCall) -> int:
        """How many calls the group may have that a call ends."""
        return sys.maxsize

    def enters(self, _repeat: Repeat) -> bool:
        """Whether there may be groups in a loop."""
        return True

    def joined(self, group: FusedGroup) -> FusedGroup | None:
        """The statement for a group; None if it should be none, or a smaller one."""
        raise NotImplementedError


class _InBlocks(_Law):
    """Long arrays, which Python goes through piece by piece."""

    def __init__(self, long: Collection[Node]) -> None:
        self._long = long

    def may_be(self, call: KernelCall) -> bool:
        """Whether a call may be part of a group."""
        return call.node in self._long and call.kernel.is_elementwise

    def enters(self, _repeat: Repeat) -> bool:
        """Arrays in loops are not long."""
        return False

    def joined(self, group: FusedGroup) -> FusedGroup | None:
        """The group as it is."""
        return group if len(group.calls) > 1 else None


class _InC(_Law):
    """Programs in C for arrays of one size, of which numbers are none."""

    def __init__(self, profile: Profile, long: Collection[Node]) -> None:
        self._size_of = profile.size_of
        self._long = long

    def may_be(self, call: KernelCall) -> bool:
        """Of a few scalars, Python's operators are faster."""
        return self._size_of(call.node) > 1 and may_be_in_c(call)

    def may_join(self, source: KernelCall, last: KernelCall) -> bool:
        """What is smaller than the result would be computed more than once."""
        return self._size_of(source.node) == self._size_of(last.node)

    def most(self, last: KernelCall) -> int:
        """Between programs of long arrays, it is asked whether the step must end."""
        return _MOST_OF_LONG if last.node in self._long else _MOST

    def joined(self, group: FusedGroup) -> FusedGroup | None:
        """A long array is worth the library's threads, one call or several."""
        is_long = group.node in self._long
        if len(group.calls) == 1 and not is_long:
            return None
        return _program_call(group, Sizes.LONG if is_long else Sizes.SHORT)


class _Unsized(_Law):
    """Programs in C for what nobody has seen yet: they must be worth it for numbers, too."""

    least = SHORTEST

    def may_be(self, call: KernelCall) -> bool:
        """Whether a call may be part of a group."""
        return may_be_in_c(call)

    def most(self, _last: KernelCall) -> int:
        """How many calls the group may have that a call ends."""
        return _MOST

    def joined(self, group: FusedGroup) -> FusedGroup | None:
        """The group, if there is a library."""
        return _program_call(group, Sizes.UNKNOWN) if loaded() is not None else None


def _program_call(group: FusedGroup, sizes: Sizes) -> ProgramCall | None:
    program = program_of(group.calls)
    if program is None:
        return None
    if program.adds_alike:
        sizes = Sizes.UNKNOWN  # which looks at them
    return ProgramCall(
        group.node, group.live, group.waits, group.calls, program.inputs, group.target,
        program, sizes,
    )  # fmt: skip


def _fuse_in(body: Body, law: _Law, wanted: set[Var]) -> bool:
    uses = Counter(wanted)
    maker: dict[Var, KernelCall] = {}
    found = False
    for statement in body.statements:
        uses.update(map(variable_of, operands_of(statement)))
        if isinstance(statement, KernelCall) and _is_candidate(statement, law):
            maker[_output(statement)] = statement
        if isinstance(statement, Repeat):
            following = [variable_of(operand) for _, _, operand in statement.variables]
            uses.update(following)
            if law.enters(statement):
                found |= _fuse_in(statement.body, law, {*statement.exits, *following})
    uses.update(body.conditions)
    groups = _groups_in(body, law, maker, uses)
    if groups:
        _replace(body, groups)
    return bool(groups) or found


def _groups_in(
    body: Body, law: _Law, maker: dict[Var, KernelCall], uses: Counter[Var]
) -> dict[Statement, FusedGroup]:
    """The group of each call that is in one."""
    waiting = _Waits(body)
    groups: dict[Statement, FusedGroup] = {}
    #: Calls that are too few for a group, and so are those before them; and that were too many:
    #: nobody goes through all of them again for each part.
    too_few: set[Statement] = set()
    too_many: set[Statement] = set()
    for last in reversed(body.statements):
        is_new = last not in groups and last not in too_few
        if is_new and isinstance(last, KernelCall) and _is_made_by(last, maker):
            most = min(law.most(last), SHORTEST) if last in too_many else law.most(last)
            members = _members(last, maker, uses, waiting, law, most)
            if len(members) < law.least:
                too_few.update(members)
                continue
            group = _largest_group(last, members, waiting, law)
            if group is None or len(group.calls) < len(members):
                too_many.update(members)
            if group is not None:
                groups.update(dict.fromkeys(group.calls, group))
    return groups


class _Waits:
    """Who waits for whom; also through a statement of nothing that is there for one alone."""

    def __init__(self, body: Body) -> None:
        #: How many wait for each statement.
        self.count = Counter(w for statement in body.statements for w in statement.waits)
        own = (s for s in body.statements if isinstance(s, Nothing) and self.count[s] == 1)
        self._passed = set(own)
        for statement in body.statements:
            if statement in self._passed:
                self.count.subtract(statement.waits)
            elif not self._passed.isdisjoint(statement.waits):
                self.count.subtract(statement.waits)
                self.count.update(self.of(statement))

    def of(self, statement: Statement) -> Sequence[Statement]:
        """What a statement waits for."""
        if self._passed.isdisjoint(statement.waits):
            return statement.waits
        waits = list(statement.waits)
        for wait in waits:  # grows
            if wait in self._passed:
                waits += wait.waits
        return [wait for wait in dict.fromkeys(waits) if wait not in self._passed]


def _is_candidate(call: KernelCall, law: _Law) -> bool:
    return (
        call.kernel.calling is Calling.PLAIN
        and len(call.outputs) == 1
        and call.outputs[0] is not None
        and all(isinstance(operand, Var) for operand in call.inputs)
        and law.may_be(call)
    )


def _output(call: KernelCall) -> Var:
    [output] = call.outputs
    assert output is not None
    return output


def _is_made_by(call: KernelCall, maker: dict[Var, KernelCall]) -> bool:
    return len(call.outputs) == 1 and maker.get(call.outputs[0] or _NOBODY) is call


def _members(
    last: KernelCall,
    maker: dict[Var, KernelCall],
    uses: Counter[Var],
    waiting: _Waits,
    law: _Law,
    most: int,
) -> list[KernelCall]:
    """A statement and those that matter to it alone, transitively; each after all its readers.

    Nobody else uses their output or waits for them: a group may then stand where its last
    statement was, and waits for nothing that waits for it.
    """
    members = [last]
    read: dict[Var, int] = defaultdict(int)
    waited: dict[Statement, int] = defaultdict(int)
    for call in members:  # grows
        for operand in call.inputs:
            read[variable_of(operand)] += 1
        for wait in waiting.of(call):
            waited[wait] += 1
        for var in dict.fromkeys(map(variable_of, call.inputs)):
            source = maker.get(var)
            if (
                source is not None
                and len(members) < most
                and uses[var] == read[var]
                and source.live == last.live
                and waiting.count[source] == waited[source]
                and law.may_join(source, last)
            ):
                members.append(source)
    return members


def _largest_group(
    last: KernelCall, members: Sequence[KernelCall], waiting: _Waits, law: _Law
) -> FusedGroup | None:
    """The group of as many of the members as may be one; None if it is none."""
    while True:
        group = law.joined(_group_of(last, members, waiting))
        if group is not None or len(members) <= law.least:
            return group
        fewest = SHORTEST if len(members) > SHORTEST else law.least
        members = members[: max(len(members) // 2, fewest)]


def _group_of(last: KernelCall, members: Sequence[KernelCall], waiting: _Waits) -> FusedGroup:
    order = {call: index for index, call in enumerate(_sources_first(members))}
    calls = tuple(order)
    made = {_output(call) for call in calls}
    inputs = dict.fromkeys(
        var for call in calls for var in map(variable_of, call.inputs) if var not in made
    )
    waits = dict.fromkeys(w for call in calls for w in waiting.of(call) if w not in order)
    return FusedGroup(last.node, last.live, tuple(waits), calls, tuple(inputs), _output(last))


def _sources_first(members: Sequence[KernelCall]) -> list[KernelCall]:
    """Members so that each comes after those that it reads, these in their order."""
    made = {_output(call): call for call in members}

    def sources(call: KernelCall) -> Iterator[KernelCall]:
        return (made[var] for var in map(variable_of, call.inputs) if var in made)

    ordered: dict[KernelCall, None] = {}
    waiting = [(members[0], sources(members[0]))]
    while waiting:
        left = waiting[-1][1]
        missing = next((source for source in left if source not in ordered), None)
        if missing is not None:
            waiting.append((missing, sources(missing)))
        else:
            ordered[waiting.pop()[0]] = None
    return list(ordered)


def _replace(body: Body, groups: dict[Statement, FusedGroup]) -> None:
    """Put groups where their last statements were, and have others wait for them."""
    statements: list[Statement] = []
    for statement in body.statements:
        group = groups.get(statement)
        if group is None:
            statement.waits = tuple(groups.get(w, w) for w in statement.waits)
            statements.append(statement)
        elif group.calls[-1] is statement:
            group.waits = tuple(groups.get(w, w) for w in group.waits)
            statements.append(group)
    body.statements[:] = statements
