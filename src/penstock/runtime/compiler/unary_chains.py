"""Long rows of functions of one number, each applied to what the one before gave.

In:   a program.
Out:  the same program with each such row as one statement; and, while it runs, ``apply_all``.
Not:  changes no value.

A line for each of thousands of functions takes Python longer to compile than to run, and each
has to ask again whether it may put its result where its input was.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable
from itertools import groupby, repeat
from typing import Any, Final

import numpy as np

from penstock.core.values import Value
from penstock.kernels.api.registry import Calling
from penstock.runtime.compiler.program import (
    Body,
    KernelCall,
    Program,
    Repeat,
    Statement,
    UnaryChain,
    Var,
    operands_of,
    variable_of,
)

#: Shorter rows are written function by function.
SHORTEST: Final = 16


#: Arrays of more elements take so long that Ctrl-C should be heard in between.
_SHORT: Final = 4096
#: Functions in a row, each with how often it comes in succession.
FunctionRuns = tuple[tuple[Callable[..., Any], int], ...]


def runs_of(functions: Iterable[Callable[..., Any]]) -> FunctionRuns:
    """Functions as ``apply_all`` takes them."""
    return tuple((function, sum(1 for _ in same)) for function, same in groupby(functions))


def apply_all(x: Value, runs: FunctionRuns) -> Value:
    """The last function of the ... of the first function of ``x``."""
    result, done = runs[0][0](x), 1
    is_array = type(result) is np.ndarray  # that nobody else has seen
    is_short = is_array and result.size <= _SHORT
    for function, count in runs:
        left, done = count - done, 0
        if is_short:  # a deque that keeps nothing calls without Python's loop
            deque(map(function, repeat(result, left), repeat(result)), 0)
            continue
        for _ in range(left):
            result = function(result, result) if is_array else function(result)
    return result


def join_unary_chains(program: Program) -> None:
    """Join the statements of long rows, in place."""
    _join_in(program.body, set(program.results))


def _join_in(body: Body, wanted: set[Var]) -> None:
    uses = Counter(wanted)
    uses.update(body.conditions)
    waiting: Counter[Statement] = Counter()
    for statement in body.statements:
        uses.update(map(variable_of, operands_of(statement)))
        waiting.update(statement.waits)
        if isinstance(statement, Repeat):
            following = [variable_of(operand) for _, _, operand in statement.variables]
            _join_in(statement.body, {*statement.exits, *following})
    rows: dict[Statement, list[KernelCall]] = {}
    for statement in body.statements:
        if isinstance(statement, KernelCall) and _is_candidate(statement):
            before = _before(statement, rows, uses, waiting)
            row = rows.pop(before) if before is not None else []
            row.append(statement)
            rows[statement] = row
    joined: dict[Statement, list[KernelCall]] = {}
    for row in rows.values():
        if len(row) >= SHORTEST:
            joined.update(dict.fromkeys(row, row))
    if joined:
        _replace(body, joined)


def _is_candidate(call: KernelCall) -> bool:
    compute = call.kernel.compute
    return (
        isinstance(compute, np.ufunc)
        and (compute.nin, compute.nout) == (1, 1)
        and call.kernel.is_builtin
        and call.kernel.calling is Calling.PLAIN
        and isinstance(call.inputs[0], Var)
        and call.outputs[0] is not None
        and call.node.input_types == call.node.output_types
    )


def _before(
    call: KernelCall,
    rows: dict[Statement, list[KernelCall]],
    uses: Counter[Var],
    waiting: Counter[Statement],
) -> KernelCall | None:
    """The end of the row that a call goes on with."""
    if len(call.waits) != 1:
        return None
    [source] = call.waits
    if source not in rows or not isinstance(source, KernelCall) or source.live != call.live:
        return None
    [var] = source.outputs
    is_next = var is not None and call.inputs == (var,) and uses[var] == 1
    return source if is_next and waiting[source] == 1 else None


def _replace(body: Body, joined: dict[Statement, list[KernelCall]]) -> None:
    """Put rows where their last calls were, and have others wait for them."""
    made: dict[Statement, UnaryChain] = {}
    for row in joined.values():
        last = row[-1]
        if last not in made:
            [target], [first] = last.outputs, row[0].inputs
            assert target is not None
            made[last] = UnaryChain(last.node, last.live, row[0].waits, tuple(row), first, target)
    statements: list[Statement] = []
    for statement in body.statements:
        row_of = made.get(statement)
        if row_of is None and statement in joined:
            continue
        kept = row_of or statement
        kept.waits = tuple(made.get(w, w) for w in kept.waits)
        statements.append(kept)
    body.statements[:] = statements
