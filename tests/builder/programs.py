"""Small programs of choices and loops, with two meanings that must agree.

In:   a ``Program``: statements over named numbers and truth values.
Out:  its results, computed at once by numpy (``interpret``), or a graph that computes them
      (``build``).
Not:  makes no programs up; ``program_strategies.py`` does.

Every operation keeps its results small, so that no order of evaluation and no library can
round or overflow differently: both meanings agree to the last bit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import numpy as np

from penstock.builder import Tensor, TensorArray, cond, constant, ops, while_loop

#: Kinds of values, and the element type of each.
DTYPES: Final = {"int": "int32", "float": "float32", "bool": "bool"}
_MODULUS: Final = 1009


@dataclass(frozen=True, slots=True)
class Literal:
    """A number or truth value that the program spells out."""

    kind: str
    value: Any


@dataclass(frozen=True, slots=True)
class Name:
    """What an earlier statement, an enclosing block or a feed has named."""

    name: str


@dataclass(frozen=True, slots=True)
class Apply:
    """An operation of the table below."""

    op: str
    args: tuple[Expr, ...]


Expr: TypeAlias = Literal | Name | Apply


@dataclass(frozen=True, slots=True)
class Let:
    """Name a value."""

    name: str
    value: Expr


@dataclass(frozen=True, slots=True)
class Choose:
    """Run one of two blocks; name its results."""

    names: tuple[str, ...]
    pred: Expr
    if_true: Block
    if_false: Block


@dataclass(frozen=True, slots=True)
class Repeat:
    """Run a block ``trips`` times (0 to 4), or until ``keep_on`` is false.

    The block sees ``counter`` and the loop's ``variables``, and its results are their next
    values.  If ``collected`` is given, its value in every turn goes into an array, and
    ``total`` names the sum of the array.
    """

    names: tuple[str, ...]
    counter: str
    trips: Expr
    variables: tuple[str, ...]
    first: tuple[Expr, ...]
    keep_on: Expr | None
    body: Block
    collected: Expr | None = None
    total: str = ""


Statement: TypeAlias = Let | Choose | Repeat


@dataclass(frozen=True, slots=True)
class Block:
    """Statements, and the values that come of them."""

    statements: tuple[Statement, ...]
    results: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class Program:
    """A block with the kinds of the values that it is fed, by name."""

    feeds: Mapping[str, str]
    block: Block


#: For each operation: kinds of arguments, kind of result, meaning in numpy and in a graph.
#: Python's operators mean the same in both, so most rows have one meaning.
OPERATIONS: Final[Mapping[str, tuple[tuple[str, ...], str, Callable[..., Any]]]] = {
    "add": (("int", "int"), "int", lambda a, b: (a + b) % _MODULUS),
    "subtract": (("int", "int"), "int", lambda a, b: (a - b) % _MODULUS),
    "multiply": (("int", "int"), "int", lambda a, b: (a * b) % _MODULUS),
    "divide": (("int",), "int", lambda a: a // 3),
    "negate": (("int",), "int", lambda a: -a),
    "mean": (("float", "float"), "float", lambda a, b: (a + b) * 0.5),
    "half difference": (("float", "float"), "float", lambda a, b: (a - b) * 0.5),
    "bounded product": (("float", "float"), "float", lambda a, b: a * b / (1 + abs(a * b))),
    "less": (("int", "int"), "bool", lambda a, b: a < b),
    "at least": (("float", "float"), "bool", lambda a, b: a >= b),
    "and": (("bool", "bool"), "bool", lambda a, b: a & b),
    "or": (("bool", "bool"), "bool", lambda a, b: a | b),
    "not": (("bool",), "bool", lambda a: ~a),
    "to float": (("int",), "float", lambda a: _convert(a, "float32")),
    "to int": (("bool",), "int", lambda a: _convert(a, "int32")),
}


def _convert(value: Any, dtype: str) -> Any:
    if isinstance(value, Tensor):
        return ops.cast(value, dtype)
    return np.dtype(dtype).type(value)


def literal_value(literal: Literal) -> Any:
    """A literal as a numpy scalar of its kind's type."""
    return np.dtype(DTYPES[literal.kind]).type(literal.value)


# -- the direct meaning ----------------------------------------------------------------

Env: TypeAlias = dict[str, Any]


def interpret(program: Program, feeds: Mapping[str, Any]) -> list[Any]:
    """The program's results."""
    return _run_block(program.block, dict(feeds))


def _run_block(block: Block, env: Env) -> list[Any]:
    for statement in block.statements:
        match statement:
            case Let(name, value):
                env[name] = _evaluate(value, env)
            case Choose(names, pred, if_true, if_false):
                taken = if_true if _evaluate(pred, env) else if_false
                env.update(zip(names, _run_block(taken, dict(env)), strict=True))
            case Repeat():
                _run_loop(statement, env)
    return [_evaluate(result, env) for result in block.results]


def _run_loop(loop: Repeat, env: Env) -> None:
    values = [_evaluate(first, env) for first in loop.first]
    trips = _evaluate(loop.trips, env) % 5
    total = np.int32(0)
    for turn in range(trips):
        inner = env | {loop.counter: np.int32(turn)}
        inner.update(zip(loop.variables, values, strict=True))
        if loop.keep_on is not None and not _evaluate(loop.keep_on, inner):
            break
        if loop.collected is not None:
            total += _evaluate(loop.collected, inner)
        values = _run_block(loop.body, inner)
    env.update(zip(loop.names, values, strict=True))
    if loop.collected is not None:
        env[loop.total] = total


def _evaluate(expr: Expr, env: Mapping[str, Any]) -> Any:
    match expr:
        case Literal():
            return literal_value(expr)
        case Name(name):
            return env[name]
        case Apply(op, args):
            return OPERATIONS[op][2](*[_evaluate(arg, env) for arg in args])


# -- the meaning as a graph ------------------------------------------------------------

#: Opens a block that says on which device the next nodes run.
Place: TypeAlias = Callable[[], AbstractContextManager[Any]]


def build(
    program: Program, feeds: Mapping[str, Tensor], place: Place = nullcontext
) -> list[Tensor]:
    """The program's results as tensors of the default graph."""
    return _Builder(place).block(program.block, dict(feeds))


class _Builder:
    def __init__(self, place: Place) -> None:
        self.place = place

    def block(self, block: Block, env: Env) -> list[Tensor]:
        for statement in block.statements:
            with self.place():
                match statement:
                    case Let(name, value):
                        env[name] = self.expr(value, env)
                    case Choose():
                        self.choose(statement, env)
                    case Repeat():
                        self.repeat(statement, env)
        return [self.expr(result, env) for result in block.results]

    def choose(self, choice: Choose, env: Env) -> None:
        results = cond(
            self.expr(choice.pred, env),
            lambda: self.block(choice.if_true, dict(env)),
            lambda: self.block(choice.if_false, dict(env)),
        )
        env.update(zip(choice.names, results, strict=True))

    def repeat(self, loop: Repeat, env: Env) -> None:
        trips = self.expr(loop.trips, env) % 5
        # A loop that collects nothing carries a list of no arrays.
        arrays = [] if loop.collected is None else [TensorArray("int32", trips, element_shape=())]
        first = [self.expr(value, env) for value in loop.first]

        def inside(turn: Tensor, values: Sequence[Tensor]) -> Env:
            return env | {loop.counter: turn} | dict(zip(loop.variables, values, strict=True))

        def goes_on(turn: Tensor, values: list[Tensor], _: list[TensorArray]) -> Tensor:
            if loop.keep_on is None:
                return turn < trips
            return (turn < trips) & self.expr(loop.keep_on, inside(turn, values))

        def turn_around(turn: Tensor, values: list[Tensor], arrays: list[TensorArray]) -> Any:
            inner = inside(turn, values)
            if loop.collected is not None:
                arrays = [arrays[0].write(turn, self.expr(loop.collected, inner))]
            return turn + 1, self.block(loop.body, inner), arrays

        turns, values, arrays = while_loop(goes_on, turn_around, (0, first, arrays))
        env.update(zip(loop.names, values, strict=True))
        if loop.collected is not None:
            written = arrays[0].gather(ops.range(0, turns, 1))
            env[loop.total] = ops.sum(written, 0)

    def expr(self, expr: Expr, env: Mapping[str, Tensor]) -> Tensor:
        match expr:
            case Literal(kind, value):
                return constant(value, DTYPES[kind])
            case Name(name):
                return env[name]
            case Apply(op, args):
                tensors = [self.expr(arg, env) for arg in args]
                with self.place():
                    result: Tensor = OPERATIONS[op][2](*tensors)
                return result


def statements_of(block: Block) -> Iterator[Statement]:
    """All statements of a block and of the blocks in it."""
    for statement in block.statements:
        yield statement
        match statement:
            case Choose(if_true=if_true, if_false=if_false):
                yield from statements_of(if_true)
                yield from statements_of(if_false)
            case Repeat(body=body):
                yield from statements_of(body)
