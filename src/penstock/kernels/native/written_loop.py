"""Loops, written as one operation each.

In:   a loop's condition and body as nodes; what its variables are before it.
Out:  what they are after it.
Not:  finds no loops; ``passes.native`` does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np

from penstock.kernels.native.emitter import Emitter, Known, Operand, Traced, UnsupportedError
from penstock.kernels.native.list_rules import Elements
from penstock.kernels.native.loop_bounds import most_iterations
from penstock.kernels.native.rules import Written, rule
from penstock.kernels.native.traced_nodes import LOOP, TracedNodes


@rule(LOOP)
def _write_loop(node: Written) -> list[Any]:
    """A loop as one operation; it ends early where the nodes must do all again."""
    count = len(node.types)
    start = [_variable(value) for value in node.inputs[:count]]
    fixed = [_fixed(value) for value in node.inputs[count:]]
    attrs = node.attrs
    cond = TracedNodes(attrs["cond"], attrs["reads"], [attrs["test"]])
    body = TracedNodes(attrs["body"], attrs["reads"], attrs["gives"])
    with node.emitter.repeated(most_iterations(cond, body, [*start, *fixed])):
        return _WrittenLoop(node.emitter, cond, body, fixed).write(start)


def _variable(value: Any) -> Any:
    if isinstance(value, Elements | Known | Traced):
        return value
    raise UnsupportedError


def _fixed(value: Any) -> Any:
    return replace(value, is_fixed=True) if isinstance(value, Elements) else value


class _WrittenLoop:
    """One loop that is being written."""

    def __init__(
        self, emitter: Emitter, cond: TracedNodes, body: TracedNodes, fixed: Sequence[Any]
    ) -> None:
        self._emitter: Final = emitter
        self._cond: Final = cond
        self._body: Final = body
        self._fixed: Final = fixed
        #: Arrays of tensors from which the body reads.
        self._cleared: list[int] = []

    def write(self, start: list[Any]) -> list[Any]:
        """The variables after the loop."""
        start = [_settled(self._emitter, value) for value in start]
        for _ in range(len(start) + len(self._emitter.cleared) + 2):
            written = self._try(start)
            if isinstance(written, str):
                return self._finish(start, written)
            start = written
        raise UnsupportedError

    def _try(self, start: list[Any]) -> str | list[Any]:
        """The text of the body; or what must be known before the loop begins."""
        emitter = self._emitter
        with emitter.inside() as text:
            head, values = self._enter(start)
            ends = self._body.write(emitter, [*values, *self._fixed])
            known = [
                begin.like(emitter, end)
                if isinstance(begin, Elements) and isinstance(end, Elements)
                else begin
                for begin, end in zip(start, ends, strict=True)
            ]
            is_new = any(a is not b for a, b in zip(known, start, strict=True))
            changed = self._newly_cleared()
            if not (is_new or changed):
                spent = emitter.number(emitter.cost + 20, np.dtype(np.int64))
                emitter.fuel = emitter.same("subtract", emitter.fuel, spent)
                flat = self._flat(ends)
                self._check(self._flat(start), flat)
                return self._region(head, text, flat)
        self._cleared += changed
        return [
            begin.like(emitter, after) if isinstance(begin, Elements) else begin
            for begin, after in zip(start, known, strict=True)
        ]

    def _newly_cleared(self) -> list[int]:
        before = self._entered
        return [
            number
            for number, mask in self._emitter.cleared.items()
            if number in before and mask is not before[number] and number not in self._cleared
        ]

    def _enter(self, start: Sequence[Any]) -> tuple[str, list[Any]]:
        """The names of the variables in a region, and what they stand for."""
        emitter = self._emitter
        flat = [Traced(emitter.new_name(), one.dtype, one.shape) for one in self._flat(start)]
        left = list(flat)
        values = [_rebuilt(value, left) for value in start]
        emitter.ok, emitter.fuel = left.pop(0), left.pop(0)
        emitter.cleared.update(zip(self._cleared, left, strict=True))
        self._entered = dict(emitter.cleared)
        self._ok = emitter.ok
        values = [_settled(emitter, value) for value in values]
        names = ", ".join(f"{one.name}: {one.type}" for one in flat)
        return f"^bb0({names}):\n", values

    def _flat(self, values: Sequence[Any]) -> list[Operand]:
        """All arrays of which the loop's state consists."""
        flat = [part for value in values for part in _parts(value)]
        emitter = self._emitter
        return [*flat, emitter.ok, emitter.fuel, *(emitter.cleared[n] for n in self._cleared)]

    def _check(self, before: Sequence[Operand], after: Sequence[Operand]) -> None:
        kinds = [[(one.dtype, one.shape) for one in flat] for flat in (before, after)]
        if kinds[0] != kinds[1]:
            raise UnsupportedError  # shapes change from iteration to iteration

    def _region(self, head: str, text: Any, results: Sequence[Operand]) -> str:
        traced = [self._emitter.traced(one) for one in results]
        names = ", ".join(one.name for one in traced)
        types = ", ".join(one.type for one in traced)
        return f'{{\n{head}{text()}\n"stablehlo.return"({names}) : ({types}) -> ()\n}}'

    def _finish(self, start: Sequence[Any], body: str) -> list[Any]:
        emitter = self._emitter
        flat = [emitter.traced(one) for one in self._flat(start)]
        types = ", ".join(one.type for one in flat)
        result = emitter.new_name()
        names = ", ".join(one.name for one in flat)
        emitter.line(
            f'{result}:{len(flat)} = "stablehlo.while"({names}) ({self._condition(start)}, {body})'
            f" : ({types}) -> ({types})"
        )
        left = [Traced(f"{result}#{slot}", one.dtype, one.shape) for slot, one in enumerate(flat)]
        values = [_rebuilt(value, left) for value in start]
        emitter.ok, emitter.fuel = left.pop(0), left.pop(0)
        emitter.cleared.update(zip(self._cleared, left, strict=True))
        emitter.need(emitter.compare("GT", emitter.fuel, emitter.number(0, emitter.fuel.dtype)))
        return [_settled(emitter, value) for value in values]

    def _condition(self, start: Sequence[Any]) -> str:
        emitter = self._emitter
        with emitter.inside() as text:
            head, values = self._enter(start)
            (holds,) = self._cond.write(emitter, [*values, *self._fixed])
            if not isinstance(holds, Known | Traced) or holds.shape or holds.dtype != np.bool_:
                raise UnsupportedError
            if emitter.ok is not self._ok or emitter.cleared != self._entered:
                raise UnsupportedError  # what goes wrong here could not be told
            has_fuel = emitter.compare("GT", emitter.fuel, emitter.number(0, emitter.fuel.dtype))
            goes_on = emitter.same("and", emitter.same("and", holds, emitter.ok), has_fuel)
            return self._region(head, text, [goes_on])


def _settled(emitter: Emitter, value: Any) -> Any:
    return value.settled(emitter) if isinstance(value, Elements) else value


def _parts(value: Any) -> list[Operand]:
    if not isinstance(value, Elements):
        return [value]
    parts = value.content, value.written, value.count, *(value.pending or ())
    return [part for part in parts if part is not None]


def _rebuilt(value: Any, left: list[Traced]) -> Any:
    """A value of the same kind, of the next of some arrays."""
    if not isinstance(value, Elements):
        return left.pop(0)
    content, written, count = (
        None if part is None else left.pop(0)
        for part in (value.content, value.written, value.count)
    )
    pending = value.pending and (left.pop(0), left.pop(0))
    return replace(value, content=content, written=written, count=count, pending=pending)
