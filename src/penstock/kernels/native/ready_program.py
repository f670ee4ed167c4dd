"""Programs that can be called.

In:   arrays of the types and shapes that a program is for.
Out:  what it gives, or that something it needs does not hold.
Not:  writes no program.

A program runs without Python's lock, for some milliseconds at a time; then it is asked whether the
step must end.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from threading import get_ident
from typing import Any, Final

import numpy as np

from penstock.core.values import Array, Value
from penstock.errors import CancelledError
from penstock.kernels.api.long_kernel import Place, places
from penstock.kernels.c.address import address
from penstock.kernels.c.machine import ROOM, MachineProgram, Outcome
from penstock.kernels.native.assemble import Assembled, assemble, is_there
from penstock.kernels.native.parts import UnsupportedError
from penstock.kernels.native.program import Program
from penstock.state.interrupt import Interrupt

#: Nanoseconds of work, roughly, between two questions whether to go on.
BUDGET: Final = 5_000_000
#: Bytes of memory that a program keeps from call to call.
MOST_KEPT: Final = 1 << 22


class ReadyProgram:
    """A program that may be called from several threads at once."""

    def __init__(self, program: Program, kind: int | None = None) -> None:
        """Assemble it for a kind of vectors, or for the longest.

        Raises:
            UnsupportedError: that cannot be.

        """
        if not is_there(program):
            raise UnsupportedError
        self._assembled: Final = assemble(program)
        self._constants: Final = _aligned(len(self._assembled.constants))
        self._constants[:] = self._assembled.constants
        self._machine: Final = MachineProgram(self._assembled.instructions, kind)
        places = self._assembled.registers
        slots = {(one.memory, one.at): register for register, one in enumerate(places)}
        self._inputs: Final = [slots["input", slot] for slot in range(len(program.inputs))]
        self._results: Final = [
            (slots["output", slot], one.dtype, one.shape)
            for slot, one in enumerate(program.results)
        ]
        #: Memory that no call uses just now.  Taken and given back by any thread, each at once.
        self._free: Final[list[_CallMemory]] = []

    def __call__(
        self,
        values: Sequence[Value],
        interrupt: Interrupt,
        gives_up: Callable[[], bool] | None = None,
    ) -> tuple[Value, ...] | None:
        """The results; None if something does not hold that the program needs.

        Args:
            values: the inputs.
            interrupt: whether the step must end.
            gives_up: is asked now and then whether somebody else should compute all anew; so there
                are no results, either.

        Raises:
            OpError: the reason why the step must end.

        """
        try:
            frame = self._free.pop()
        except IndexError:
            frame = _CallMemory(self._assembled, self._constants)
        registers = frame.registers
        # Their memory must be there until the end.
        arrays = [np.ascontiguousarray(value) for value in values]
        for register, array in zip(self._inputs, arrays, strict=True):
            registers[register] = address(array)
        results = []
        for register, dtype, shape in self._results:
            result = np.empty(shape, dtype)
            registers[register] = address(result)
            results.append(result)
        place = frame.place
        place.value = 0
        outcome = self._machine.run(registers, place, BUDGET)
        if outcome == Outcome.PAUSED:
            outcome = self._go_on(frame, interrupt, gives_up)
        if self._assembled.bytes <= MOST_KEPT:
            self._free.append(frame)
        if outcome == Outcome.FAILED:
            return None
        return tuple([result if result.ndim else result[()] for result in results])

    def _go_on(
        self, frame: _CallMemory, interrupt: Interrupt, gives_up: Callable[[], bool] | None
    ) -> int:
        """Run what takes long, and let others see where it is."""
        thread = get_ident()
        places[thread] = lambda: self._place(frame)
        try:
            outcome: int = Outcome.PAUSED
            while outcome == Outcome.PAUSED:
                if interrupt.loops_end:
                    raise interrupt.reason or CancelledError(
                        "Loop execution was cancelled.", derived=True
                    )
                if gives_up is not None and gives_up():
                    return Outcome.FAILED
                outcome = self._machine.run(frame.registers, frame.place, BUDGET)
            return outcome
        finally:
            del places[thread]

    def _place(self, frame: _CallMemory) -> Place:
        """The loop in which a call has paused last, and its iteration."""
        number, labels, iteration = frame.place.value, list[str](), 0
        for begin, end, counter, name in reversed(self._assembled.loops):
            if begin <= number < end:
                if labels:
                    labels[-1] += f"[{iteration}]"
                iteration = ctypes.c_int64.from_address(frame.registers[counter]).value
                labels.append(name)
        return "/".join(labels), iteration


class _CallMemory:
    """Registers and memory of one call at a time."""

    __slots__ = ("_memory", "place", "registers")

    def __init__(self, assembled: Assembled, constants: Array) -> None:
        self._memory: Final = _aligned(assembled.bytes)
        begin = {"own": address(self._memory), "constant": address(constants)}
        places = [
            begin[one.memory] + one.at if one.memory in begin else 0 for one in assembled.registers
        ]
        #: Addresses.
        self.registers: Final[Any] = (ctypes.c_void_p * len(places))(*places)
        #: The instruction to go on with.
        self.place: Final = ctypes.c_int64()


def _aligned(size: int) -> Array:
    """Zeros that begin where a vector may."""
    memory = np.zeros(size + ROOM, np.uint8)
    begin = -address(memory) % ROOM
    return memory[begin : begin + size]
