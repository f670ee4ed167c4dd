"""Element-wise calls as one program in C.

In:   calls of kernels over float32, of which only the last one's result is read by others.
Out:  the function that numpy calls for all of them, which keeps what is between them in the cache;
      and how it is called while a step runs.
Not:  chooses no calls (``fused_groups`` does); changes no value: functions of C are those that the
      kernels are, and arithmetic is exact but for its one rounding.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeGuard

import numpy as np

from penstock.core import dtypes
from penstock.core.values import Value
from penstock.kernels.api.registry import Calling
from penstock.kernels.c.functions import FUNCTIONS, MOST_INPUTS, leaky_choice
from penstock.kernels.c.programs import (
    CONSTANT,
    OF_ONE,
    OF_TWO,
    REGISTERS,
    Compiled,
    Step,
    compile_steps,
    function_named,
)
from penstock.kernels.parallel.intra_op import HELPERS, parallel_equal
from penstock.runtime.compiler.one_by_one import OneByOne
from penstock.runtime.compiler.program import (
    Constant,
    ElementProgram,
    KernelCall,
    Var,
    variable_of,
)
from penstock.state.interrupt import Interruptible

#: Ops whose kernels round once, or not at all: the function of C that does the same.
_EXACT: Final = {
    **{op: op for op in ("Neg", "Abs", "Square", "Sqrt", "Rsqrt", "Reciprocal", "Relu", "Relu6")},
    **{op: op for op in ("Add", "Sub", "Mul", "Maximum", "Minimum", "SquaredDifference")},
    "Inv": "Reciprocal",
    "AddV2": "Add",
    "Div": "Div",
    "RealDiv": "Div",
}
#: The op that chooses between a number and a multiple of it, by two functions that are exact.
_LEAKY: Final = "LeakyRelu"
#: Ops that add up any number of arrays of one shape, first to last.
_SUMS: Final = frozenset({"AddN", "AccumulateNV2"})
#: The most constants that are registers all the time.
_MOST_HELD: Final = 8
#: Results of so many elements are worth waking a thread, and fall into so many parts.
_LONG: Final = 1 << 18
_PARTS: Final = 2 * (HELPERS + 1)
#: Functions of single elements that are called without asking whether the step must end, some
#: milliseconds; and those of arrays of several shapes, of which some might do with fewer.
_AT_ONCE: Final = 1 << 26
_AT_MOST: Final = 1 << 20


def may_be_in_c(call: KernelCall) -> bool:
    """Whether a call can be part of a program."""
    name = call.node.op.name
    if name not in _EXACT and name not in FUNCTIONS and name not in _SUMS and name != _LEAKY:
        return False
    kernel, types = call.kernel, {*call.node.input_types, *call.node.output_types}
    if types != {dtypes.float32} or not kernel.is_builtin or kernel.calling is not Calling.PLAIN:
        return False
    if name in _SUMS:  # whose inputs must have one shape: that of arrays is no constant's
        return len(call.inputs) > 1 and not any(isinstance(v, Constant) for v in call.inputs)
    return name not in FUNCTIONS or kernel.compute is function_named(name)


def program_of(calls: Sequence[KernelCall]) -> ElementProgram | None:
    """The program of calls; None without a library, or if it would be too large.

    Args:
        calls: each after those that it reads; the last one gives the result.

    """
    made = {call.outputs[0] for call in calls}
    read = dict.fromkeys(var for call in calls for var in map(variable_of, call.inputs))
    inputs = [var for var in read if var not in made and not _is_number(var)]
    # What depends on no input has a shape of its own, which nobody would look at.
    is_fixed = any(all(_is_number(variable_of(each)) for each in call.inputs) for call in calls)
    if is_fixed or len(inputs) > MOST_INPUTS:
        return None
    functions = _functions_of(calls)
    operands = dict.fromkeys(var for function in functions for var in function.operands)
    bits = {var: np.float32(var.value).tobytes() for var in operands if _is_number(var)}
    constants = {each: number for number, each in enumerate(dict.fromkeys(bits.values()))}
    held = len(constants) if len(constants) <= _MOST_HELD else 0
    steps = _steps(functions, inputs, {var: constants[bits[var]] for var in bits}, held)
    if max(step.target for step in steps) >= REGISTERS:
        return None
    numbers = np.frombuffer(b"".join(constants), np.float32).tolist()
    name = f"elements_of_{len(calls)}"
    compiled = compile_steps(name, len(inputs), numbers, steps, held=held)
    if compiled is None:
        return None
    adds_alike = any(call.node.op.name in _SUMS for call in calls)
    return ElementProgram(compiled, tuple(inputs), len(steps), adds_alike)


def _is_number(var: Var) -> TypeGuard[Constant]:
    """Whether something is a number that is the same in every step."""
    return isinstance(var, Constant) and np.ndim(var.value) == 0


class _Function(NamedTuple):
    """One function of one or two variables."""

    name: str
    operands: tuple[Var, ...]
    target: Var


def _functions_of(calls: Sequence[KernelCall]) -> list[_Function]:
    """What calls are, in an order in which few results wait for others."""
    functions: dict[Var, _Function] = {}
    target = Var("")
    for call in calls:
        (total, *others), [made] = map(variable_of, call.inputs), call.outputs
        assert made is not None
        target, name = made, _EXACT.get(call.node.op.name, call.node.op.name)
        if call.node.op.name in _SUMS:  # each is added as soon as it is there
            name = "Add"
            for other in others[:-1]:
                partial = Var("sum")
                functions[partial] = _Function(name, (total, other), partial)
                total = partial
            others = others[-1:]
        if call.node.op.name == _LEAKY:
            alpha = Constant("alpha", np.float32(call.node.attrs["alpha"]))
            multiple = Var("multiple")
            functions[multiple] = _Function("Mul", (total, alpha), multiple)
            name, others = leaky_choice(alpha.value), [multiple]
        functions[target] = _Function(name, (total, *others), target)
    if len(functions) == len(calls):
        return list(functions.values())
    ordered: dict[Var, _Function] = {}
    waiting = [target]
    while waiting:
        function = functions[waiting[-1]]
        missing = [v for v in function.operands if v in functions and v not in ordered]
        if missing:
            waiting.append(missing[0])
        else:
            ordered[waiting.pop()] = function
    return list(ordered.values())


def _steps(
    functions: Sequence[_Function], inputs: Sequence[Var], numbers: Mapping[Var, int], held: int
) -> list[Step]:
    """Steps for functions; registers are used again when nobody reads them any more.

    Args:
        functions: each after those that it reads.
        inputs: the first registers.
        numbers: those of constants, which are the next registers if they are held.
        held: how many these are; if none, they are put into registers where they are read.

    """
    places = {var: place for place, var in enumerate(inputs)}
    if held:
        places |= {var: len(inputs) + number for var, number in numbers.items()}
    uses = Counter(var for function in functions for var in function.operands)
    kept, free, fresh = set(places), list[int](), itertools.count(len(inputs) + held)
    steps = []
    for function in functions:
        for var in dict.fromkeys(function.operands):
            if var not in places:
                places[var] = free.pop() if free else next(fresh)
                steps.append(Step(CONSTANT, places[var], numbers[var], 0))
        registers = [places[var] for var in function.operands]
        for var in function.operands:
            uses[var] -= 1
        for var in dict.fromkeys(function.operands):
            if var not in kept and (var in numbers or not uses[var]):
                free.append(places.pop(var))
        target = free.pop() if free else next(fresh)
        places[function.target] = target
        steps.append(Step(function.name, target, registers[0], registers[-1]))
    return steps


# -- while a step runs ---------------------------------------------------------------------------


def in_c(program: Compiled, kernels: Callable[..., Value], *args: Value) -> Value:
    """What a program gives; what it complains about, the kernels do for their nodes."""
    try:
        result: Any = program.function(*args)
    except Exception:  # noqa: BLE001
        return kernels(*args)
    return result


def in_c_if_short(
    program: ElementProgram, kernels: OneByOne, run: Interruptible, *args: Any
) -> Value:
    """The same for arrays whose sizes nobody knew; long ones are left to the kernels.

    Not all of it may be as large as its result: that may be more work than the kernels have.
    """
    shape, size, most = args[0].shape, args[0].size, _AT_ONCE
    for arg in args:
        if arg.shape != shape:
            size, most = _size_of_all(args), 0 if program.adds_alike else _AT_MOST
            break
    if size * program.steps > most:
        return kernels.heeding(run.interrupt, args)
    return in_c(program.compiled, kernels, *args)


def _size_of_all(args: Sequence[Any]) -> int:
    """How many elements a result has."""
    try:
        return np.broadcast(*args).size
    except ValueError:  # which the kernels tell in their own words
        return 0


def in_c_in_parts(program: Compiled, kernels: Callable[..., Value], *args: Value) -> Value:
    """The same for long arrays: where some are repeated along others, several threads do parts.

    The library shares what lies side by side alone.
    """
    try:
        result = _in_parts(program.function, args)
    except Exception:  # noqa: BLE001
        return kernels(*args)
    return result


def _in_parts(function: np.ufunc, args: Sequence[Any]) -> Any:
    shape = np.broadcast_shapes(*(np.shape(arg) for arg in args))
    axis = next((axis for axis, size in enumerate(shape) if size > 1), None)
    is_long = math.prod(shape) >= _LONG and axis is not None
    if not is_long or all(np.size(arg) == 1 or arg.shape == shape for arg in args):
        return function(*args)
    assert axis is not None
    result, count = np.empty(shape, np.float32), min(_PARTS, shape[axis])
    step, after = -(-shape[axis] // count), len(shape) - axis

    def part(number: int) -> None:
        some = slice(number * step, (number + 1) * step)
        whole, rest = (slice(None),) * axis, (slice(None),) * (after - 1)

        def of(arg: Any) -> Any:
            if np.ndim(arg) < after or arg.shape[-after] == 1:
                return arg
            return arg[(..., some, *rest)]

        function(*map(of, args), result[(*whole, some)])

    parallel_equal(-(-shape[axis] // step), part)
    return result


assert {*_EXACT.values(), *FUNCTIONS} <= {*OF_ONE, *OF_TWO}
