"""Expressions that are typed at a prompt: over tensors, and over where a step is.

In:   text such as ``iteration > 10`` or ``mean(`loss:0`) * 2``.
Out:  its value, with names and tensors that the caller knows.
Not:  runs no Python but what stands in the tables below: no attribute is looked up by name, nothing
      is imported, and no text of a model is ever an expression.

The grammar is Python's, with tensors between backticks.  Each kind of node of the syntax tree is
allowed by name; ``np.`` before a function may be written, and means nothing.
"""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

import numpy as np

from penstock.dataclass import dataclass
from penstock.errors import InvalidArgumentError
from penstock.printable import printable

#: What a name, or a tensor, stands for; raises KeyError if that is nothing.
Lookup: TypeAlias = Callable[[str], Any]

_UNARY: Final[Mapping[type[ast.unaryop], Callable[[Any], Any]]] = {
    ast.USub: operator.neg, ast.UAdd: operator.pos, ast.Invert: operator.invert,
    ast.Not: operator.not_,
}  # fmt: skip
_BINARY: Final[Mapping[type[ast.operator], Callable[[Any, Any], Any]]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul,
    ast.Div: operator.truediv, ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod,
    ast.MatMult: operator.matmul, ast.Pow: np.power, ast.BitAnd: operator.and_,
    ast.BitOr: operator.or_, ast.BitXor: operator.xor,
}  # fmt: skip
_COMPARE: Final[Mapping[type[ast.cmpop], Callable[[Any, Any], Any]]] = {
    ast.Eq: operator.eq, ast.NotEq: operator.ne, ast.Lt: operator.lt, ast.LtE: operator.le,
    ast.Gt: operator.gt, ast.GtE: operator.ge, ast.In: lambda a, b: a in b,
    ast.NotIn: lambda a, b: a not in b,
}  # fmt: skip
#: Functions of numpy that only compute.
FUNCTIONS: Final[Mapping[str, Callable[..., Any]]] = {
    **{
        name: getattr(np, name)
        for name in (
            "abs", "all", "allclose", "any", "argmax", "argmin", "argsort", "array_equal", "ceil",
            "clip", "concatenate", "cos", "count_nonzero", "cumsum", "diff", "dot", "exp", "floor",
            "isfinite", "isinf", "isnan", "log", "matmul", "max", "maximum", "mean", "median",
            "min", "minimum", "ndim", "percentile", "prod", "ravel", "reshape", "round", "shape",
            "sign", "sin", "size", "sort", "sqrt", "squeeze", "stack", "std", "sum", "tanh",
            "transpose", "unique", "var", "where",
        )
    },
    "len": len, "float": float, "int": int, "bool": bool,
    "startswith": str.startswith, "endswith": str.endswith,
}  # fmt: skip
_CONSTANTS: Final = {"nan": np.nan, "inf": np.inf, "pi": np.pi, "e": np.e}
_TENSOR: Final = re.compile(r"`([^`]*)`")
#: Longer ones are nobody's.
_MAX_LENGTH: Final = 10_000


@dataclass(frozen=True, slots=True)
class Expression:
    """What was typed, understood."""

    text: str
    _tree: ast.expr
    #: The tensors, in the order in which they are written.
    tensors: tuple[str, ...]

    @property
    def names(self) -> frozenset[str]:
        """The names in it whose meaning the caller must know."""
        written = {node.id for node in ast.walk(self._tree) if isinstance(node, ast.Name)}
        return frozenset(
            written - FUNCTIONS.keys() - _CONSTANTS.keys() - {"_tensor_", "np", "numpy"}
        )

    def evaluate(self, tensor: Lookup, names: Lookup) -> Any:
        """Its value.

        Raises:
            InvalidArgumentError: a tensor or a name means nothing, or numpy refuses.

        """
        try:
            with np.errstate(all="ignore"):
                return _Evaluation(self, tensor, names).visit(self._tree)
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as cause:
            reason = cause.args[0] if isinstance(cause, KeyError) and cause.args else cause
            raise InvalidArgumentError(f"{self.text}: {reason}") from cause


def parse(text: str) -> Expression:
    """Understand an expression.

    Raises:
        InvalidArgumentError: it is none, or has something in it that is not allowed.

    """
    tensors: list[str] = []

    def number(found: re.Match[str]) -> str:
        tensors.append(found[1])
        return f"(_tensor_[{len(tensors) - 1}])"

    if len(text) > _MAX_LENGTH or "_tensor_" in text:
        raise InvalidArgumentError("This is no expression")
    try:
        tree = ast.parse(_TENSOR.sub(number, text.strip()), mode="eval").body
    except (SyntaxError, ValueError, MemoryError, RecursionError) as cause:
        raise InvalidArgumentError(
            f"{printable(text)} is no expression: {cause.args[0] if cause.args else cause}",
            next_step="write such as iteration > 10, or any(isnan(`x:0`))",
        ) from None
    found = Expression(text, tree, tuple(tensors))
    _check(found)
    return found


def _check(found: Expression) -> None:
    """Raise InvalidArgumentError for whatever has no meaning, before anything is run."""
    for node in ast.walk(found._tree):  # noqa: SLF001  (of this module)
        if isinstance(node, _IGNORED):
            continue
        if not hasattr(_Evaluation, f"visit_{type(node).__name__}"):
            raise InvalidArgumentError(
                f"{printable(found.text)}: {type(node).__name__} is not allowed",
                next_step="write numbers, names, tensors between backticks, operators, and "
                f"functions of numpy: {', '.join(sorted(FUNCTIONS))}",
            )


#: What is looked at together with what it is a part of.
_IGNORED: Final = (ast.expr_context, ast.unaryop, ast.operator, ast.cmpop, ast.boolop, ast.keyword)


class _Evaluation:
    """One evaluation: a method for each kind of node that is allowed."""

    def __init__(self, expression: Expression, tensor: Lookup, names: Lookup) -> None:
        self._expression = expression
        self._tensor = tensor
        self._names = names

    def visit(self, node: ast.AST) -> Any:
        return getattr(self, f"visit_{type(node).__name__}")(node)

    def visit_Constant(self, node: ast.Constant) -> Any:  # noqa: N802
        return node.value

    def visit_Name(self, node: ast.Name) -> Any:  # noqa: N802
        if node.id in _CONSTANTS:
            return _CONSTANTS[node.id]
        if node.id in FUNCTIONS:
            raise KeyError(f"{node.id} is a function: {node.id}(…)")
        return self._names(node.id)

    def visit_Attribute(self, node: ast.Attribute) -> Any:  # noqa: N802
        raise KeyError(f"there is no .{node.attr}; write {node.attr}(…) for numpy's functions")

    def visit_List(self, node: ast.List) -> Any:  # noqa: N802
        return [self.visit(item) for item in node.elts]

    def visit_Tuple(self, node: ast.Tuple) -> Any:  # noqa: N802
        return tuple(self.visit(item) for item in node.elts)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> Any:  # noqa: N802
        return _UNARY[type(node.op)](self.visit(node.operand))

    def visit_BinOp(self, node: ast.BinOp) -> Any:  # noqa: N802
        return _BINARY[type(node.op)](self.visit(node.left), self.visit(node.right))

    def visit_BoolOp(self, node: ast.BoolOp) -> Any:  # noqa: N802
        wants = isinstance(node.op, ast.And)
        value: Any = wants
        for part in node.values:
            value = self.visit(part)
            if bool(value) is not wants:
                break
        return value

    def visit_Compare(self, node: ast.Compare) -> Any:  # noqa: N802
        left, result = self.visit(node.left), None
        for kind, part in zip(node.ops, node.comparators, strict=True):
            right = self.visit(part)
            holds = _COMPARE[type(kind)](left, right)
            result = holds if result is None else np.logical_and(result, holds)
            left = right
        return result

    def visit_IfExp(self, node: ast.IfExp) -> Any:  # noqa: N802
        return self.visit(node.body if self.visit(node.test) else node.orelse)

    def visit_Subscript(self, node: ast.Subscript) -> Any:  # noqa: N802
        if isinstance(node.value, ast.Name) and node.value.id == "_tensor_":
            assert isinstance(node.slice, ast.Constant)
            assert isinstance(node.slice.value, int)
            return self._tensor(self._expression.tensors[node.slice.value])
        return self.visit(node.value)[self.visit(node.slice)]

    def visit_Slice(self, node: ast.Slice) -> slice:  # noqa: N802
        parts = (node.lower, node.upper, node.step)
        return slice(*(None if part is None else self.visit(part) for part in parts))

    def visit_Call(self, node: ast.Call) -> Any:  # noqa: N802
        called = node.func
        if isinstance(called, ast.Attribute) and isinstance(called.value, ast.Name):
            is_numpy, name = called.value.id in ("np", "numpy"), called.attr
        else:
            is_numpy, name = isinstance(called, ast.Name), getattr(called, "id", "")
        if not is_numpy or name not in FUNCTIONS:
            raise KeyError(f"there is no function {name or 'of that kind'}")
        named = {word.arg: self.visit(word.value) for word in node.keywords if word.arg}
        return FUNCTIONS[name](*map(self.visit, node.args), **named)
