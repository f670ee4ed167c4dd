"""Values of ``--input_exprs``: literals, a little arithmetic, and arrays made by numpy.

In:   text such as ``np.ones((2, 3), np.float32) * 2``.
Out:  a value.
Not:  is no Python: what is not listed here is refused, so that nothing can be reached through it.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np

from penstock.errors import InvalidArgumentError

_BINARY: Final[Mapping[type[ast.operator], Callable[[Any, Any], Any]]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}
_UNARY: Final[Mapping[type[ast.unaryop], Callable[[Any], Any]]] = {
    ast.USub: operator.neg,
    ast.UAdd: operator.pos,
}
_MAKERS: Final = frozenset({"arange", "array", "empty", "eye", "full", "linspace", "ones", "zeros"})
_RANDOM: Final = frozenset({"normal", "rand", "randint", "randn", "random", "uniform"})
_TYPES: Final = frozenset(
    {"bool_", "complex64", "complex128", "float16", "float32", "float64", "int8", "int16", "int32",
     "int64", "uint8", "uint16", "uint32", "uint64"}
)  # fmt: skip
_METHODS: Final = frozenset({"astype", "reshape", "tolist"})
_WORDS: Final = "literals, + - * / // %, and " + ", ".join(f"np.{name}" for name in sorted(_MAKERS))


def evaluate(text: str) -> Any:
    """The value of an expression; raises InvalidArgumentError for what is none of those allowed."""
    try:
        return _value(ast.parse(text.strip(), mode="eval").body)
    except InvalidArgumentError:
        raise
    except (SyntaxError, ValueError, TypeError, ArithmeticError, RecursionError) as cause:
        raise InvalidArgumentError(f"{text!r} is no value: {cause}") from None


def _value(node: ast.expr) -> Any:
    match node:
        case ast.Constant(value):
            return value
        case ast.List(items):
            return [_value(item) for item in items]
        case ast.Tuple(items):
            return tuple(_value(item) for item in items)
        case ast.Dict(keys, values) if None not in keys:
            return {_value(k): _value(v) for k, v in zip(keys, values, strict=True) if k}
        case ast.UnaryOp(sign, operand) if type(sign) in _UNARY:
            return _UNARY[type(sign)](_value(operand))
        case ast.BinOp(left, sign, right) if type(sign) in _BINARY:
            return _BINARY[type(sign)](_value(left), _value(right))
        case ast.Attribute(ast.Name("np" | "numpy"), name) if name in _TYPES:
            return getattr(np, name)
        case ast.Call(function, args, keywords) if all(word.arg for word in keywords):
            named = {str(word.arg): _value(word.value) for word in keywords}
            return _function(function)(*map(_value, args), **named)
    raise InvalidArgumentError(
        f"'{ast.unparse(node)}' is not allowed in an expression",
        next_step=f"write {_WORDS}; or give a file by --inputs",
    )


def _function(node: ast.expr) -> Callable[..., Any]:
    """What is called: a maker of arrays, or a method of an array."""
    match node:
        case ast.Attribute(ast.Name("np" | "numpy"), name) if name in _MAKERS | _TYPES:
            return getattr(np, name)  # type: ignore[no-any-return]
        case ast.Attribute(ast.Attribute(ast.Name("np" | "numpy"), "random"), name) if (
            name in _RANDOM
        ):
            return getattr(np.random, name)  # type: ignore[no-any-return]
        case ast.Attribute(value, name) if name in _METHODS:
            array = _value(value)
            if isinstance(array, (np.ndarray, np.generic)):
                return getattr(array, name)  # type: ignore[no-any-return]
    raise InvalidArgumentError(
        f"'{ast.unparse(node)}' cannot be called in an expression", next_step=f"there are {_WORDS}"
    )
