"""Chains of element-wise statements, in pieces that fit into the cache.

In:   a program, and how large its values proved to be.
Out:  the same program with each chain as one statement; and ``blockwise``, which runs one.
Not:  changes no value: every element is computed as before, only sooner after the one that it
      is computed from.

What is between two statements of a chain never reaches the memory: a piece of it is made and
used up while it is in the cache, and the pieces are shared out among all cores.

What is known in C becomes programs of it (``element_programs``), of arrays of any length: one call
instead of several.  Python goes through the pieces of all others, which only pays for long arrays.
"""

from __future__ import annotations

import functools
import sys
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from typing import ClassVar, Final, TypeAlias

import numpy as np

from penstock.core.values import Array, Value
from penstock.graph.graph import Node
from penstock.kernels.api.registry import Calling
from penstock.kernels.c.programs import REGISTERS
from penstock.kernels.parallel.intra_op import parallel_for
from penstock.runtime.compiler.element_programs import function_of
from penstock.runtime.compiler.profile import Profile
from penstock.runtime.compiler.program import (
    Body,
    FusedGroup,
    KernelCall,
    Program,
    Repeat,
    Statement,
    Var,
    operands_of,
    variable_of,
)

_NOBODY: Final = Var("")
#: Calls a chain, which is its first argument, with the others.
InBlocks: TypeAlias = Callable[..., Value]


@functools.cache
def blockwise(piece: int, long_array: int) -> InBlocks:
    """What makes ``chain(*args)`` piece by piece if the arguments allow it.

    Args:
        piece: elements of each piece.
        long_array: arrays of fewer elements are not worth the trouble.

    """

    def in_blocks(chain: Callable[..., Value], *args: Value) -> Value:
        size, shape = 1, ()
        for arg in args:
            if isinstance(arg, np.ndarray) and arg.size > size:
                size, shape = arg.size, arg.shape
        if size < long_array or not all(_fits(arg, shape) for arg in args):
            return chain(*args)
        made = _made_in_blocks(chain, args, size, piece)
        return chain(*args) if made is None else made.reshape(shape)

    return in_blocks


def _made_in_blocks(
    chain: Callable[..., Value], args: Sequence[Value], size: int, piece: int
) -> Array | None:
    """All elements in a row; None if the chain does not make one for each of its arguments'."""
    flat = [arg.reshape(-1) if _is_long(arg) else arg for arg in args]
    first = chain(*[_part(arg, 0, piece) for arg in flat])
    if np.shape(first) != (piece,):
        return None
    result = np.empty(size, first.dtype)
    result[:piece] = first

    def work(number: int) -> None:
        start = (number + 1) * piece
        stop = start + piece
        result[start:stop] = chain(*[_part(arg, start, stop) for arg in flat])

    parallel_for(-(-size // piece) - 1, work)
    return result


def _is_long(arg: Value) -> bool:
    return isinstance(arg, np.ndarray) and arg.size > 1


def _fits(arg: Value, shape: tuple[int, ...]) -> bool:
    """Whether an argument is the same for all elements, or one for one."""
    if not _is_long(arg):
        # Without elements it would make the result one without elements, or an error.
        return np.size(arg) == 1 and np.ndim(arg) <= len(shape)
    return arg.shape == shape and bool(arg.flags.c_contiguous)


def _part(arg: Value, start: int, stop: int) -> Array | Value:
    if not _is_long(arg):
        return arg.reshape(()) if isinstance(arg, np.ndarray) else arg
    return arg[start:stop]


def fuse_groups(program: Program, profile: Profile, long_array: int, *, in_c: bool) -> bool:
    """Join the statements of chains, in place; whether there are any.

    Args:
        program: what the chains are in.
        profile: how large its values proved to be.
        long_array: shorter ones are not worked on in pieces by Python.
        in_c: whether there may be programs in C.

    """
    wanted = set(program.results)
    long = {node for node, size in profile.sizes.items() if size >= long_array}
    found = in_c and _chain_up_body(program.body, _InC(profile, long), wanted)
    return _chain_up_body(program.body, _InBlocks(long), wanted) or found


class _InBlocks:
    """The law of chains over long arrays that Python goes through."""

    #: How many calls a chain may have.
    most: ClassVar[int] = sys.maxsize

    def __init__(self, long: Collection[Node]) -> None:
        self._long = long

    def is_long(self, call: KernelCall) -> bool:
        """Whether a call's result was a long array."""
        return call.node in self._long

    def may_be(self, call: KernelCall) -> bool:
        """Whether a call may be part of a chain."""
        return self.is_long(call) and call.kernel.is_elementwise

    def may_join(self, _source: KernelCall, _last: KernelCall) -> bool:
        """Whether a call may be part of the chain that another one ends."""
        return True

    def is_worthwhile(self, members: Sequence[KernelCall]) -> bool:
        """Whether calls should be a chain."""
        return len(members) > 1

    def enters(self, _repeat: Repeat) -> bool:
        """Whether there may be chains in a loop: its arrays are not long."""
        return False


class _InC(_InBlocks):
    """The law of chains that are programs in C: arrays of one size, of which numbers are none."""

    #: Programs have so many registers; the inputs are some of them, and each call may need one.
    most = REGISTERS // 2 - 2

    def __init__(self, profile: Profile, long: Collection[Node]) -> None:
        super().__init__(long)
        self._sizes = profile.sizes

    def may_be(self, call: KernelCall) -> bool:
        """Of scalars, Python's operators are faster."""
        is_array = self._sizes.get(call.node, 0) > 1
        return is_array and function_of(call.node, call.kernel) is not None

    def may_join(self, source: KernelCall, last: KernelCall) -> bool:
        """What is smaller than the result would be computed more than once."""
        return self._sizes[source.node] == self._sizes[last.node]

    def is_worthwhile(self, members: Sequence[KernelCall]) -> bool:
        """A long array is worth the library's threads."""
        return len(members) > 1 or self.is_long(members[0])

    def enters(self, _repeat: Repeat) -> bool:
        """Short arrays in loops are what this is for."""
        return True


def _chain_up_body(body: Body, law: _InBlocks, wanted: set[Var]) -> bool:
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
                found |= _chain_up_body(statement.body, law, {*statement.exits, *following})
    uses.update(body.conditions)
    waited_for = Counter(w for statement in body.statements for w in set(statement.waits))
    chains: dict[Statement, FusedGroup] = {}
    for last in reversed(body.statements):
        if isinstance(last, KernelCall) and _is_made_by(last, maker) and last not in chains:
            members = _members(last, maker, uses, waited_for, law)
            if law.is_worthwhile(members):
                chain = _chain_of(last, members, law)
                chains.update(dict.fromkeys(members, chain))
    if chains:
        _replace(body, chains)
    return bool(chains) or found


def _is_candidate(call: KernelCall, law: _InBlocks) -> bool:
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
    waited_for: Counter[Statement],
    law: _InBlocks,
) -> list[KernelCall]:
    """A statement and those that matter to it alone, transitively; last first.

    Nobody else uses their output or waits for them: a chain may then stand where its last
    statement was, and waits for nothing that waits for it.
    """
    members: list[KernelCall] = []
    waiting = [last]
    while waiting and len(members) < law.most:
        call = waiting.pop()
        members.append(call)
        own = Counter(variable_of(operand) for operand in call.inputs)
        for var, count in own.items():
            source = maker.get(var)
            if (
                source is not None
                and uses[var] == count
                and source.live == last.live
                and source in call.waits
                and waited_for[source] == 1
                and law.may_join(source, last)
            ):
                waiting.append(source)
    return members


def _chain_of(last: KernelCall, members: Sequence[KernelCall], law: _InBlocks) -> FusedGroup:
    order = {call: index for index, call in enumerate(_sources_first(members))}
    calls = tuple(order)
    made = {_output(call) for call in calls}
    inputs = dict.fromkeys(
        var for call in calls for var in map(variable_of, call.inputs) if var not in made
    )
    waits = dict.fromkeys(w for call in calls for w in call.waits if w not in order)
    target = _output(last)
    return FusedGroup(
        last.node, last.live, tuple(waits), calls, tuple(inputs), target,
        is_in_c=isinstance(law, _InC), is_long=law.is_long(last),
    )  # fmt: skip


def _sources_first(members: Sequence[KernelCall]) -> list[KernelCall]:
    """Members so that each comes after those that it reads: what was found last comes first."""
    made = {_output(call): call for call in members}
    ordered: dict[KernelCall, None] = {}
    waiting = [members[0]]
    while waiting:
        call = waiting[-1]
        sources = [made[v] for v in map(variable_of, call.inputs) if v in made]
        missing = [source for source in sources if source not in ordered]
        if missing:
            waiting += missing
        else:
            ordered[waiting.pop()] = None
    return list(ordered)


def _replace(body: Body, chains: dict[Statement, FusedGroup]) -> None:
    """Put chains where their last statements were, and have others wait for them."""
    statements: list[Statement] = []
    for statement in body.statements:
        chain = chains.get(statement)
        if chain is None:
            statement.waits = tuple(chains.get(w, w) for w in statement.waits)
            statements.append(statement)
        elif chain.calls[-1] is statement:
            chain.waits = tuple(chains.get(w, w) for w in chain.waits)
            statements.append(chain)
    body.statements[:] = statements
