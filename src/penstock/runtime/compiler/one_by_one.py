"""Calls of kernels one after the other, as the lines of a text would be.

In:   calls, and what they read.
Out:  ``OneByOne``, which gives the result of the last one.
Not:  is fast: it stands in for a program in C, where that cannot be used.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from types import FrameType
from typing import Any, NamedTuple

from penstock.core.values import Value
from penstock.graph.graph import Node
from penstock.runtime.compiler.program import Constant, KernelCall, Var, variable_of
from penstock.state.interrupt import NEVER, Interrupt, end_loop


class _KernelCall(NamedTuple):
    """One call: values are numbered, first what is given, and then each result."""

    node: Node
    compute: Callable[..., Any]
    operands: tuple[int, ...]
    #: The values that nobody reads any more.
    doomed: tuple[int, ...]


class OneByOne:
    """Calls in their order."""

    def __init__(self, calls: Sequence[KernelCall], inputs: Sequence[Var]) -> None:
        """Take calls, each after those that it reads, and what it will be given values for."""
        # Not the statements themselves, which hold all that they wait for.
        self._given = (
            inputs,
            [
                (
                    call.node,
                    call.kernel.compute,
                    tuple(map(variable_of, call.inputs)),
                    call.outputs[0],
                )
                for call in calls
            ],
        )

    @functools.cached_property
    def _prepared(self) -> tuple[tuple[Value, ...], tuple[_KernelCall, ...]]:
        """The constants that follow what is given, and the calls."""
        inputs, calls = self._given
        read = dict.fromkeys(var for _, _, operands, _ in calls for var in operands)
        constants = [var for var in read if isinstance(var, Constant) and var not in inputs]
        number_of = {var: number for number, var in enumerate([*inputs, *constants])}
        last_reader = {var: node for node, _, operands, _ in calls for var in operands}
        made = []
        for node, compute, operands, target in calls:
            doomed = [number_of[v] for v in dict.fromkeys(operands) if last_reader[v] is node]
            numbers = tuple(number_of[var] for var in operands)
            made.append(_KernelCall(node, compute, numbers, tuple(doomed)))
            assert target is not None
            number_of[target] = len(number_of)
        return tuple(var.value for var in constants), tuple(made)

    def __call__(self, *args: Value) -> Value:
        """What the last call gives."""
        return self.heeding(NEVER, args)

    def heeding(self, interrupt: Interrupt, args: Sequence[Value]) -> Value:
        """The same, in a step that may have to end meanwhile."""
        constants, calls = self._prepared
        values: list[Any] = [*args, *constants]
        for call in calls:
            if interrupt.loops_end:
                end_loop(interrupt)
            values.append(call.compute(*[values[operand] for operand in call.operands]))
            for number in call.doomed:
                values[number] = None
        return values[-1]


def node_in(frame: FrameType) -> Node | None:
    """The node that a frame of a stack is at, if it is one of ``OneByOne``."""
    if frame.f_code is not OneByOne.heeding.__code__:
        return None
    call: _KernelCall | None = frame.f_locals.get("call")
    return None if call is None else call.node
