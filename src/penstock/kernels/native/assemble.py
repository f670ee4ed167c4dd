"""Programs as instructions, whose values are in registers.

In:   a ``Program``.
Out:  ``Assembled``: its instructions; what each register is.
Not:  runs nothing, and knows no ops.

Each value has a register, and memory of its own, but for these: what is the same in another shape;
a loop's variables, which are its results; and what is written where something was that nobody
reads any more, as elements of lists are, and the next values of variables.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from penstock.core.values import Array
from penstock.dataclass import dataclass
from penstock.kernels.c.machine import ROOM, Instruction, operations
from penstock.kernels.native.parts import Block, Loop, Operation, Traced, UnsupportedError
from penstock.kernels.native.program import Program
from penstock.kernels.native.uses import Position, Uses

#: Bytes of all memory that a program has for itself.
MAX_MEMORY: Final = 1 << 26
#: Bytes of a variable that two registers exchange rather than copy.
_LARGE: Final = 256
#: Operations whose result may not be where an operand was: elements depend on several places.
_NOT_IN_PLACE: Final = (
    *("copy_", "take_", "fill_", "row", "in_range", "concatenate", "product_"),
    *("sum_", "prod_", "max_", "min_", "all_", "any_", "argmax_"),
)
_COUNTER: Final = Traced(np.dtype(np.int64), ())


@dataclass(frozen=True, slots=True)
class Place:
    """What a register is at the beginning: an address in one of four memories."""

    #: ``own``, ``constant``, ``input`` or ``output``.
    memory: str
    #: An offset in bytes, or which input or output it is.
    at: int


class LoopPlace(NamedTuple):
    """Where a loop is."""

    #: The number of its first instruction, and of the one behind it.
    begin: int
    end: int
    #: The register of its iterations, an int64.
    counter: int
    frame: str


@dataclass(frozen=True, slots=True)
class Assembled:
    """A program as instructions."""

    instructions: tuple[Instruction, ...]
    registers: tuple[Place, ...]
    #: All constants, one after the other.
    constants: Array
    #: Bytes of memory of its own.
    bytes: int
    #: Those within others come first.
    loops: tuple[LoopPlace, ...]


def assemble(program: Program) -> Assembled:
    """Make instructions of a program; raises UnsupportedError if it needs too much memory."""
    return _Assembly(program).assembled()


class _Assembly:
    """One program that becomes instructions."""

    def __init__(self, program: Program) -> None:
        self._program: Final = program
        self._uses: Final = Uses(program)
        self._instructions: Final[list[Instruction]] = []
        self._loops: Final[list[LoopPlace]] = []
        self._places: Final[list[Place]] = []
        self._bytes: Final = {"own": 0, "constant": 0}
        #: The registers of values, by their origins.
        self._register_of: Final[dict[Traced, int]] = {}
        #: The origins of values in registers that may be written to; and the block in which these
        #: are.  What was there before nobody reads any more.
        self._origin_in: Final[dict[int, Traced]] = {}
        self._home: Final[dict[int, Block]] = {}

    def assembled(self) -> Assembled:
        """All of it."""
        program = self._program
        constants = self._constants()
        for slot, value in enumerate(program.inputs):
            self._take_input(slot, value)
        self._write_block(program.block)
        for slot, value in enumerate(program.results):
            out = self._new_register(Place("output", slot))
            self._move(out, self._register(value), value.nbytes)
        self._instructions.append(Instruction("end"))
        return Assembled(
            tuple(self._instructions),
            tuple(self._places),
            constants,
            self._bytes["own"],
            tuple(self._loops),
        )

    # -- registers -------------------------------------------------------------------------------

    def _constants(self) -> Array:
        arrays = []
        for value, array in self._program.constants.items():
            if value in self._uses.is_used:
                self._register_of[value] = self._memory("constant", value)
                arrays.append((self._places[-1].at, array))
        memory = np.zeros(self._bytes["constant"], np.uint8)
        for at, array in arrays:
            memory[at : at + array.nbytes] = np.frombuffer(array.tobytes(), np.uint8)
        return memory

    def _take_input(self, slot: int, value: Traced) -> None:
        """An input is read where it is, unless somebody reads beyond its end."""
        register = self._new_register(Place("input", slot))
        self._register_of[value] = register
        if value in self._uses.needs_room:
            self._register_of[value] = self._memory("own", value)
            self._move(self._register_of[value], register, value.nbytes)

    def _new_register(self, place: Place) -> int:
        self._places.append(place)
        return len(self._places) - 1

    def _memory(self, which: str, value: Traced) -> int:
        """A register with memory for a value."""
        at = self._bytes[which]
        self._bytes[which] = -(-(at + value.nbytes + ROOM) // ROOM) * ROOM
        if self._bytes[which] > MAX_MEMORY:
            raise UnsupportedError
        return self._new_register(Place(which, at))

    def _own(self, value: Traced, block: Block) -> int:
        """The same, which belongs to a block."""
        register = self._memory("own", value)
        self._put(value, register)
        self._home[register] = block
        return register

    def _register(self, value: Traced) -> int:
        return self._register_of[self._uses.origin(value)]

    def _put(self, value: Traced, register: int) -> None:
        origin = self._uses.origin(value)
        self._register_of[origin] = register
        self._origin_in[register] = origin

    def _is_free(self, register: int, block: Block, position: Position) -> bool:
        """Whether nobody reads, after some place in a block, what is in a register."""
        if self._home.get(register) is not block:
            return False
        return self._uses.last_in(block).get(self._origin_in[register], -1) <= position

    # -- instructions ----------------------------------------------------------------------------

    def _write(self, what: str, to: int, operands: Sequence[int], count: int, numbers: Any) -> None:
        first, second, *more = (*operands, 0, 0)
        more = more[: max(len(operands) - 2, 0)]
        self._instructions.append(Instruction(what, to, first, second, count, (*more, *numbers)))

    def _move(self, to: int, from_: int, size: int) -> None:
        if to != from_ and size:
            self._write("move", to, [from_], size, ())

    def _write_block(self, block: Block, next_of: dict[Traced, int] | None = None) -> None:
        """The instructions of a block; ``next_of`` are the registers of a loop's next values."""
        for position, part in enumerate(block.parts):
            if isinstance(part, Loop):
                self._write_loop(part, block, position)
            elif part.result is None or part.result in self._uses.is_used:
                self._write_operation(part, block, position, next_of or {})

    def _write_operation(
        self, part: Operation, block: Block, position: Position, next_of: dict[Traced, int]
    ) -> None:
        operands = [self._register(one) for one in part.operands]
        if part.what == "need":
            self._write("need", 0, operands, 0, ())
            return
        result = part.result
        assert result is not None
        if part.what == "reshape":
            return  # it is where its operand is
        if part.what == "put_row":
            self._write_put(part, block, position)
            return
        to = self._target(part, block, position, next_of)
        if part.what == "concatenate":
            self._write_parts(part, to, operands)
            return
        count = part.operands[1].size if part.what == "rows" else result.size
        if part.what == "in_range":
            count = part.operands[0].size
        self._write(part.what, to, operands, count, part.numbers)

    def _target(
        self, part: Operation, block: Block, position: Position, next_of: dict[Traced, int]
    ) -> int:
        """Where a result goes: where a variable is of which it is the next value, if may be."""
        result = part.result
        assert result is not None
        register = next_of.get(self._uses.origin(result))
        is_late = not part.what.startswith(_NOT_IN_PLACE)
        if register is None or not self._is_free(register, block, position - (not is_late)):
            return self._own(result, block)
        self._put(result, register)
        return register

    def _write_put(self, part: Operation, block: Block, position: Position) -> None:
        x, element, index = part.operands
        result = part.result
        assert result is not None
        register = self._register(x)
        is_apart = self._register(element) != register
        if is_apart and self._is_free(register, block, position):
            self._put(result, register)
        else:
            to = self._own(result, block)
            self._move(to, register, x.nbytes)
            register = to
        operands = [self._register(element), self._register(index)]
        self._write("put_row", register, operands, 0, part.numbers)

    def _write_parts(self, part: Operation, to: int, operands: Sequence[int]) -> None:
        numbers = list(part.numbers)
        size = part.operands[0].dtype.itemsize
        for operand in operands:
            count = numbers.pop(0)
            own, numbers = numbers[:count], numbers[count:]
            self._write(f"copy_{size}", to, [operand], 0, own)

    def _write_loop(self, loop: Loop, block: Block, position: Position) -> None:
        starts = [self._register(start) for start in loop.starts]
        times = Counter(starts)
        for variable, start in zip(loop.variables, starts, strict=True):
            is_alone = times[start] == 1 and self._is_free(start, block, position)
            if is_alone and not self._uses.is_read_in(loop, self._origin_in[start]):
                self._put(variable, start)
                self._home[start] = loop.body
            else:
                self._move(self._own(variable, loop.body), start, variable.nbytes)
        counter = self._memory("own", _COUNTER)
        self._write("begin", counter, (), 0, ())
        begin = len(self._instructions)
        self._write_block(loop.cond)
        leave = len(self._instructions)
        self._write("unless", 0, [self._register(loop.test)], 0, ())
        self._write_block(loop.body, self._next_of(loop))
        self._turn(loop)
        self._write("again", counter, (), begin, (loop.body.cost + 10,))
        self._instructions[leave] = self._instructions[leave]._replace(
            amount=len(self._instructions)
        )
        self._loops.append(LoopPlace(begin, len(self._instructions), counter, loop.frame))
        for result in loop.results:  # where the variables are, which are the block's from now on
            self._home[self._register(result)] = block
            self._put(result, self._register(result))

    def _next_of(self, loop: Loop) -> dict[Traced, int]:
        """The variables' registers by their next values, where these are nothing else."""
        ends = [self._uses.origin(end) for end in loop.ends]
        times = Counter(ends)
        return {
            end: self._register(variable)
            for variable, end in zip(loop.variables, ends, strict=True)
            if times[end] == 1 and end not in self._register_of
        }

    def _turn(self, loop: Loop) -> None:
        """Give variables their next values, all at once."""
        pairs = [
            (self._register(variable), self._register(end), end.nbytes)
            for variable, end in zip(loop.variables, loop.ends, strict=True)
        ]
        pairs = [(to, from_, size) for to, from_, size in pairs if to != from_]
        variables = set(map(self._register, loop.variables))
        changing = {to for to, _, _ in pairs}
        times = Counter(from_ for _, from_, _ in pairs)
        kept: dict[int, int] = {}
        for _, from_, size in pairs:
            if from_ in changing and from_ not in kept:
                kept[from_] = self._memory("own", Traced(np.dtype(np.uint8), (size,)))
                self._move(kept[from_], from_, size)
        for to, from_, size in pairs:
            is_exchanged = (
                size > _LARGE
                and from_ not in variables
                and times[from_] == 1
                and self._home.get(from_) is loop.body
            )
            if is_exchanged:
                self._write("swap", to, [from_], 0, ())
            else:
                self._move(to, kept.get(from_, from_), size)


def is_there(program: Program) -> bool:
    """Whether there are instructions for all operations."""
    known = operations()
    return bool(known) and _are_known(program.block, known.keys() | {"reshape", "concatenate"})


def _are_known(block: Block, known: Any) -> bool:
    return all(
        _are_known(part.cond, known) and _are_known(part.body, known)
        if isinstance(part, Loop)
        else part.what in known
        for part in block.parts
    )
