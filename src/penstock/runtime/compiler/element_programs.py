"""Which element-wise calls can be one program in C, and that program.

In:   calls of kernels over float32.
Out:  the function that numpy calls for all of them, which keeps what is between them in the cache.
Not:  chooses no groups (``fused_groups`` and ``unary_chains`` do); changes no value: functions of
      C are those that the kernels are, and arithmetic is exact but for its one rounding.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from penstock.core import dtypes
from penstock.core.values import Value
from penstock.graph.graph import Node
from penstock.kernels.api.bound_kernel import BoundKernel
from penstock.kernels.api.registry import Calling
from penstock.kernels.c.functions import FUNCTIONS
from penstock.kernels.c.programs import (
    OF_ONE,
    OF_TWO,
    Compiled,
    Step,
    compile_steps,
    function_named,
)
from penstock.kernels.parallel.intra_op import HELPERS, parallel_equal
from penstock.runtime.compiler.program import (
    Constant,
    FusedGroup,
    KernelCall,
    UnaryChain,
    Var,
    variable_of,
)

#: Ops whose kernels round once, or not at all: the function of C that does the same.
_EXACT: Final = {
    **{op: op for op in ("Neg", "Abs", "Square", "Sqrt", "Rsqrt", "Reciprocal", "Relu", "Relu6")},
    **{op: op for op in ("Add", "Sub", "Mul", "Maximum", "Minimum", "SquaredDifference")},
    "Inv": "Reciprocal",
    "AddV2": "Add",
    "Div": "Div",
    "RealDiv": "Div",
}
#: Results of so many elements are worth waking a thread, and fall into so many parts.
_LONG: Final = 1 << 18
_PARTS: Final = 2 * (HELPERS + 1)


def function_of(node: Node, kernel: BoundKernel) -> str | None:
    """The function of C that a kernel is; None if there is none."""
    types = {*node.input_types, *node.output_types}
    if types != {dtypes.float32} or not kernel.is_builtin or kernel.calling is not Calling.PLAIN:
        return None
    op = node.op.name
    if op in FUNCTIONS:
        return op if kernel.compute is function_named(op) else None
    return _EXACT.get(op)


def program_of_group(group: FusedGroup) -> Compiled | None:
    """The program of a group, whose inputs follow those of the group; None without a library.

    Numbers that are the same in every step are part of it.
    """
    inputs, numbers = inputs_of_program(group), list(filter(_is_number, group.inputs))
    places = {var: place for place, var in enumerate([*inputs, *numbers])}
    return compile_steps(
        f"elements_of_{len(group.calls)}",
        len(inputs),
        [float(var.value) for var in numbers if isinstance(var, Constant)],
        _steps(group.calls, places),
    )


def inputs_of_program(group: FusedGroup) -> list[Var]:
    """The variables that the program of a group takes."""
    return [var for var in group.inputs if not _is_number(var)]


def _is_number(var: Var) -> bool:
    return isinstance(var, Constant) and np.ndim(var.value) == 0


def _steps(calls: Sequence[KernelCall], places: dict[Var, int]) -> list[Step]:
    """Steps for calls; registers are used again when nobody reads them any more."""
    uses = Counter(variable_of(operand) for call in calls for operand in call.inputs)
    free: list[int] = []
    used = len(places)
    temporary: set[Var] = set()
    steps = []
    for call in calls:
        operands = [variable_of(operand) for operand in call.inputs]
        registers = [places[var] for var in operands]
        for var in operands:
            uses[var] -= 1
            if not uses[var] and var in temporary:
                free.append(places[var])
        if not free:
            free.append(used)
            used += 1
        function, [target] = function_of(call.node, call.kernel), call.outputs
        assert function is not None
        assert target is not None
        places[target] = free.pop()
        temporary.add(target)
        steps.append(Step(function, places[target], registers[0], registers[-1]))
    return steps


def program_of_row(row: UnaryChain) -> Compiled | None:
    """The program of functions of one number in a row; None unless all of them are known in C."""
    functions = [function_of(call.node, call.kernel) for call in row.calls]
    steps = [Step(name, 1, 1, 1) for name in functions if name is not None]
    if len(steps) < len(functions):
        return None
    steps[0] = Step(steps[0].function, 1, 0, 0)
    return compile_steps(f"row_of_{len(steps)}", 1, (), steps)


def in_c(program: Compiled, chain: Callable[..., Value], *args: Value) -> Value:
    """What a program gives; what it complains about, the chain of kernels does for its node."""
    try:
        result: Any = program.function(*args)
    except Exception:  # noqa: BLE001
        return chain(*args)
    return result


def in_c_in_parts(program: Compiled, chain: Callable[..., Value], *args: Value) -> Value:
    """The same for long arrays: where some are repeated along others, several threads do parts.

    The library shares what lies side by side alone.
    """
    try:
        result = _in_parts(program.function, args)
    except Exception:  # noqa: BLE001
        return chain(*args)
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
