"""Functions of single elements as programs in C, which numpy calls as it does its own functions.

In:   what each step does, with which registers.
Out:  a ``numpy.ufunc`` of float32: it broadcasts, takes any layout, and lets Python's lock go.
Not:  knows no ops; None where there is no library.

numpy makes a function of any loop in C by ``PyUFunc_FromFuncAndData``, a part of its public
interface that Python code can reach, too: the table of that interface is an attribute of a module.
The loop gets a pointer of ours along with the arrays, which here is the program.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from penstock.kernels.c.library import loaded
from penstock.kernels.c.numpy_tables import table_of
from penstock.kernels.parallel.contention import contention
from penstock.kernels.parallel.intra_op import HELPERS

#: What a step can do, in the order of ``Function`` in ``elements.h``.
OF_ONE: Final = (
    *("Neg", "Abs", "Square", "Sqrt", "Rsqrt", "Reciprocal", "Relu", "Relu6"),
    *("Exp", "Tanh", "Sigmoid", "Erf", "Erfc", "Log", "Log1p", "Expm1"),
    *("Softplus", "Elu", "Selu"),
)
OF_TWO: Final = (
    *("Add", "Sub", "Mul", "Div", "Maximum", "Minimum", "SquaredDifference"),
    *("ReluGrad", "Relu6Grad", "TanhGrad", "SigmoidGrad"),
    *("SoftplusGrad", "EluGrad", "SeluGrad"),
)
#: Takes, instead of a register, the number of a constant.
CONSTANT: Final = "Constant"
_NUMBERS: Final = {name: number for number, name in enumerate((*OF_ONE, *OF_TWO, CONSTANT))}
#: As in ``elements.h``.
REGISTERS: Final = 32
#: Picoseconds that an element takes, roughly: to read and write it, and for each function.
_MOVED: Final = 100
_TAKEN: Final = {
    "Sqrt": 150,
    "Rsqrt": 250,
    "Exp": 200,
    "Tanh": 250,
    "Sigmoid": 300,
    "Erf": 450,
    "Erfc": 700,
    "Log": 300,
    "Log1p": 450,
    "Expm1": 300,
    "Softplus": 700,
    "Elu": 250,
    "Selu": 250,
    "SoftplusGrad": 300,
}
_TAKEN_BY_OTHERS: Final = 40
#: Picoseconds that are worth being a piece, and from which on others help.
_PIECE: Final = 15_000_000
_SHARED: Final = 40_000_000
#: Elements of a piece are whole blocks, and whole lines of memory.
_BLOCK: Final = 1024

#: The place of ``PyUFunc_FromFuncAndData`` in numpy's table, and what it is given: loops, what they
#: get along, types, how many, inputs, outputs, identity, name, description, and a zero.
_FROM_LOOPS: Final = 1
_POINTER, _INT = ctypes.c_void_p, ctypes.c_int
_FromLoops: Final = ctypes.PYFUNCTYPE(
    ctypes.py_object,
    *(_POINTER, _POINTER, _POINTER, _INT, _INT, _INT, _INT, ctypes.c_char_p, ctypes.c_char_p, _INT),
)
_FLOAT, _NO_IDENTITY = 11, -1


class Step(NamedTuple):
    """One function of one or two registers; or ``CONSTANT``, whose first is no register."""

    function: str
    target: int
    first: int
    #: The same as the first for a function of one number.
    second: int


#: As in ``elements.h``.
_STEP: Final = np.dtype([(name, np.int32) for name in ("function", "target", "first", "second")])


class _ProgramInMemory(ctypes.Structure):
    """As in ``elements.h``."""

    _fields_ = (
        *((name, ctypes.c_void_p) for name in ("steps", "constants")),
        *((name, ctypes.c_int64) for name in ("count", "inputs", "held_constants", "registers")),
        *((name, ctypes.c_int64) for name in ("many", "piece", "kind")),
    )


class Compiled(NamedTuple):
    """A function, and what must live as long as it."""

    function: np.ufunc
    memory: tuple[Any, ...]


def compile_steps(
    name: str,
    inputs: int,
    constants: Sequence[float],
    steps: Sequence[Step],
    kind: int | None = None,
    *,
    held: int | None = None,
) -> Compiled | None:
    """The function that a program computes; None if there is no library.

    Args:
        name: what numpy calls it.
        inputs: how many arrays it takes, which are the first registers.
        constants: float32.
        steps: what the other registers become; the last one gives the result.
        kind: of vectors; None for the longest.
        held: so many of the constants are the next registers; None for all of them.

    """
    library = library_of_loops()
    if library is None:
        return None
    held = len(constants) if held is None else held
    registers = max(inputs + held, *(step.target + 1 for step in steps))
    if registers > REGISTERS:
        raise ValueError(f"a program of {registers} registers has more than {REGISTERS}")
    made = np.array([(_NUMBERS[step.function], *step[1:]) for step in steps], _STEP)
    numbers = np.array([*constants, 0], np.float32)
    taken = _MOVED + sum(_TAKEN.get(step.function, _TAKEN_BY_OTHERS) for step in steps)
    program = _ProgramInMemory(
        steps=made.ctypes.data, constants=numbers.ctypes.data,
        count=len(steps), inputs=inputs, held_constants=held, registers=registers,
        many=_SHARED // taken, piece=max(_PIECE // taken // _BLOCK, 1) * _BLOCK,
        kind=library.penstock_kinds() - 1 if kind is None else kind,
    )  # fmt: skip
    return numpy_function(name, library.penstock_elements, program, (inputs, 1), made, numbers)


def numpy_function(
    name: str, loop: Any, what: ctypes.Structure, counts: tuple[int, int], *kept: Any
) -> Compiled:
    """A function of numpy that is a loop of the library; there must be a library.

    Args:
        name: what numpy calls it.
        loop: a function of the library.
        what: that the loop does, which it is told.
        counts: of inputs and of results, all of float32.
        kept: what must live as long.

    """
    loops = (_POINTER * 1)(ctypes.cast(loop, _POINTER))
    data = (_POINTER * 1)(ctypes.addressof(what))
    types = ctypes.create_string_buffer(bytes([_FLOAT]) * sum(counts), sum(counts))
    called = name.encode()
    make, table = _from_loops()
    function = make(loops, data, types, 1, *counts, _NO_IDENTITY, called, b"", 0)
    return Compiled(function, (*kept, what, loops, data, types, called, table))


@functools.cache
def function_named(name: str) -> np.ufunc | None:
    """A function by its name in ``OF_ONE`` or ``OF_TWO``; None if there is no library."""
    inputs = 1 if name in OF_ONE else 2
    return lasting(compile_steps(name.lower(), inputs, (), [Step(name, inputs, 0, inputs - 1)]))


def lasting(made: Compiled | None) -> np.ufunc | None:
    """A function that is used as long as the process lives; None if there is none."""
    if made is None:
        return None
    _kept.append(made)
    return made.function


#: What functions that live as long as the process need.
_kept: Final[list[Compiled]] = []


@functools.cache
def library_of_loops() -> Any:
    """The library, which is told how many threads it has from now on."""
    library = loaded()
    if library is None or _from_loops() is None or not _has_same_structures(library):
        return None
    lent = ctypes.c_int.in_dll(library, "penstock_lent")

    def lend() -> None:
        lent.value = contention.helpers(HELPERS)

    contention.tell(lend)
    return library


def _has_same_structures(library: Any) -> bool:
    ask = library.penstock_elements_layout
    ask.restype = ctypes.c_int64
    sizes = ctypes.sizeof(_ProgramInMemory) * 256 + _STEP.itemsize
    same: bool = ask() == REGISTERS * 65536 + sizes + (max(_NUMBERS.values()) << 24)
    return same


@functools.cache
def _from_loops() -> Any:
    """What makes functions, and the table that it is in; None if numpy has none."""
    table = table_of("_UFUNC_API")
    return None if table is None else (_FromLoops(table[_FROM_LOOPS]), table)
