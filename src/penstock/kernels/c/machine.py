"""Programs of instructions, loops among them, which C runs from the first to the last.

In:   instructions, whose operands are registers; what the registers are.
Out:  the registers' memory is changed as the instructions say.
Not:  checks nothing: a wrong number in an instruction is a wrong place in memory.  Knows no ops.

What there is, ``machine.c`` and ``operations.c`` tell by name.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Mapping, Sequence
from enum import IntEnum
from typing import Any, Final, NamedTuple

import numpy as np

from penstock.kernels.c.library import loaded

#: Bytes behind each array that functions of vectors read or write.
ROOM: Final = 64
#: As in ``machine.h``.
_CONTROLS: Final = ("end", "unless", "begin", "again", "need", "swap", "move")
_INSTRUCTION: Final = np.dtype(
    [*((name, np.int32) for name in ("code", "to", "first", "second")),
     ("amount", np.int64), ("numbers", np.intp)]
)  # fmt: skip


class Outcome(IntEnum):
    """How a run has ended, as in ``machine.c``."""

    DONE = 0
    #: Something that the program needs does not hold.
    FAILED = 1
    #: It can go on where it is.
    PAUSED = 2


class Instruction(NamedTuple):
    """One of them; what its fields mean, ``machine.c`` and ``operations.c`` say."""

    what: str
    to: int = 0
    first: int = 0
    second: int = 0
    amount: int = 0
    numbers: tuple[int, ...] = ()


class MachineProgram:
    """Instructions in memory."""

    def __init__(self, instructions: Sequence[Instruction], kind: int | None = None) -> None:
        """Put them there; ``kind`` is that of vectors, None for the longest.

        Raises:
            RuntimeError: there is no library.
            KeyError: there is no such instruction.

        """
        library = _library()
        if library is None:
            raise RuntimeError("there is no library of kernels in C")
        self._kind: Final = library.penstock_kinds() - 1 if kind is None else kind
        codes = operations(self._kind)
        flat = [number for one in instructions for number in one.numbers]
        self._numbers: Final = np.array([*flat, 0], np.int64)
        at, place = self._numbers.ctypes.data, 0
        rows = []
        for one in instructions:
            rows.append((codes[one.what], *one[1:5], at + place * self._numbers.itemsize))
            place += len(one.numbers)
        self._instructions: Final = np.array(rows, _INSTRUCTION)
        self._address: Final = self._instructions.ctypes.data
        self._run: Final = library.penstock_machine

    def run(self, registers: Any, place: ctypes.c_int64, budget: int) -> int:
        """Go on from an instruction, which becomes the next one; returns an ``Outcome``.

        Args:
            registers: an array of addresses; what of it is written to must be nobody else's.
            place: the number of the instruction.
            budget: about so many nanoseconds of work in loops.

        """
        outcome: int = self._run(self._kind, self._address, registers, ctypes.byref(place), budget)
        return outcome


@functools.cache
def operations(kind: int = 0) -> Mapping[str, int]:
    """The codes of all instructions by their names; none if there is no library."""
    library = _library()
    found = {name: code for code, name in enumerate(_CONTROLS)}
    while library is not None:
        name = library.penstock_operation(kind, len(found) - len(_CONTROLS))
        if name is None:
            return found
        found[name.decode()] = len(found)
    return {}


@functools.cache
def _library() -> Any:
    """The library, if it has the same structures."""
    library = loaded()
    if library is None:
        return None
    library.penstock_machine_layout.restype = ctypes.c_int64
    if library.penstock_machine_layout() != _INSTRUCTION.itemsize * 256 + len(_CONTROLS):
        return None
    library.penstock_operation.argtypes = ctypes.c_int, ctypes.c_int64
    library.penstock_operation.restype = ctypes.c_char_p
    library.penstock_machine.argtypes = (
        *(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p),
        *(ctypes.POINTER(ctypes.c_int64), ctypes.c_int64),
    )
    return library
