"""Loops: what is repeated, and from what on.

In:   a loop's condition and body as nodes; what its variables are before it.
Out:  what they are after it.
Not:  finds no loops; ``passes.native`` does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from penstock.dataclass import replace
from penstock.kernels.native.emitter import Emitter
from penstock.kernels.native.list_rules import Elements
from penstock.kernels.native.loop_bounds import most_iterations
from penstock.kernels.native.parts import Block, Known, Loop, Operand, Traced, UnsupportedError
from penstock.kernels.native.rules import Written, rule
from penstock.kernels.native.traced_nodes import LOOP, TracedNodes


@rule(LOOP)
def _write_loop(node: Written) -> list[Any]:
    """A loop, as it is repeated."""
    count = len(node.types)
    start = [_variable(value) for value in node.inputs[:count]]
    fixed = [_fixed(value) for value in node.inputs[count:]]
    attrs = node.attrs
    cond = TracedNodes(attrs["cond"], attrs["reads"], [attrs["test"]])
    body = TracedNodes(attrs["body"], attrs["reads"], attrs["gives"])
    with node.emitter.repeated(most_iterations(cond, body, [*start, *fixed])):
        frame = attrs["frame"].decode("utf-8", "replace")
        return _WrittenLoop(node.emitter, cond, body, fixed, frame).write(start)


def _variable(value: Any) -> Any:
    if isinstance(value, Elements | Known | Traced):
        return value
    raise UnsupportedError


def _fixed(value: Any) -> Any:
    return replace(value, is_fixed=True) if isinstance(value, Elements) else value


class _WrittenLoop:
    """One loop that is being written."""

    def __init__(
        self,
        emitter: Emitter,
        cond: TracedNodes,
        body: TracedNodes,
        fixed: Sequence[Any],
        frame: str,
    ) -> None:
        self._emitter: Final = emitter
        self._cond: Final = cond
        self._body: Final = body
        self._fixed: Final = fixed
        self._frame: Final = frame
        #: What else the body changes: which of the emitter's states.
        self._changed: list[int | str] = []

    def write(self, start: list[Any]) -> list[Any]:
        """The variables after the loop."""
        emitter = self._emitter
        start = [_settled(emitter, value) for value in start]
        for _ in range(len(start) + len(emitter.states) + 2):
            mark = emitter.mark()
            written = self._try(start)
            if isinstance(written, Loop):
                emitter.repeat(written)
                return self._rebuilt(start, written.results)
            emitter.rewind(mark)
            start = [
                begin.like(emitter, after) if isinstance(begin, Elements) else begin
                for begin, after in zip(start, written, strict=True)
            ]
        raise UnsupportedError

    def _try(self, start: list[Any]) -> Loop | list[Any]:
        """The loop; or what must be known before it begins."""
        emitter = self._emitter
        starts = [emitter.traced(one) for one in self._flat(start)]
        with emitter.inside() as body:
            variables = [Traced(one.dtype, one.shape, emitter.level) for one in starts]
            values = self._rebuilt(start, variables)
            entered = dict(emitter.states)
            ends = self._body.write(emitter, [*values, *self._fixed])
            known = [
                begin.like(emitter, end)
                if isinstance(begin, Elements) and isinstance(end, Elements)
                else begin
                for begin, end in zip(start, ends, strict=True)
            ]
            is_new = any(a is not b for a, b in zip(known, start, strict=True))
            changed = self._newly_changed(entered)
            if is_new or changed:
                self._changed += changed
                return known
            flat = [emitter.traced(one) for one in self._flat(ends)]
        _check(starts, flat)
        cond, test = self._condition(start, variables)
        results = [Traced(one.dtype, one.shape, emitter.level) for one in starts]
        return Loop(variables, starts, cond, test, body, flat, results, self._frame)

    def _newly_changed(self, before: Mapping[int | str, Operand]) -> list[int | str]:
        return [
            which
            for which, state in self._emitter.states.items()
            if which in before and state is not before[which] and which not in self._changed
        ]

    def _flat(self, values: Sequence[Any]) -> list[Operand]:
        """All arrays of which the loop's state consists."""
        flat = [part for value in values for part in _parts(value)]
        return [*flat, *(self._emitter.states[which] for which in self._changed)]

    def _rebuilt(self, like: Sequence[Any], flat: Sequence[Traced]) -> list[Any]:
        """Values of the same kinds, of arrays as ``_flat`` gives them."""
        emitter, left = self._emitter, list(flat)
        values = [_rebuilt(value, left) for value in like]
        emitter.states.update(zip(self._changed, left, strict=True))
        return [_settled(emitter, value) for value in values]

    def _condition(self, start: Sequence[Any], variables: Sequence[Traced]) -> tuple[Block, Traced]:
        emitter = self._emitter
        with emitter.inside() as cond:
            values = self._rebuilt(start, variables)
            entered = dict(emitter.states)
            (holds,) = self._cond.write(emitter, [*values, *self._fixed])
            if not isinstance(holds, Known | Traced) or holds.shape or holds.dtype != np.bool_:
                raise UnsupportedError
            if emitter.states != entered:
                raise UnsupportedError  # what is so after this could not be told
            return cond, emitter.traced(holds)


def _check(before: Sequence[Traced], after: Sequence[Traced]) -> None:
    kinds = [[(one.dtype, one.shape) for one in flat] for flat in (before, after)]
    if kinds[0] != kinds[1]:
        raise UnsupportedError  # shapes change from iteration to iteration


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
