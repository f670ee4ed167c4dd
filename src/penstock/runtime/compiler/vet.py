"""The last look at generated code before it is compiled.

In:   code, the variables that the compiler has named, and the names of objects that it knows.
Out:  the code as a syntax tree, if there is nothing in it that the compiler does not write.
Not:  knows no graph, and mends nothing.

That no text of a graph is part of the code is a law of those who write it; see ``source``.  This is
a second wall: would some name get through all the same, what it smuggled in would not be run.
Generated code is a small part of Python.  It has functions without defaults and decorators,
assignments, ``if``, ``for`` and ``del``; operators, tuples, numbers and names that were given;
calls of known objects and of its own functions, by position; and the few attributes listed here.
It has no strings, no imports, no subscripts, no lambdas and no comprehensions.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Mapping
from types import NoneType
from typing import Final

from penstock.errors import InternalError

#: What every function may have among its variables besides names that were given.
LOCALS: Final = frozenset({"run", "interrupt", "_"})
_ATTRIBUTES: Final = frozenset({"interrupt", "loops_end", "step", "frame", "iteration"})
_CONSTANTS: Final = frozenset({NoneType, bool, int})
#: The parts of each kind of syntax that code may be made of.
_PARTS: Final[Mapping[type[ast.AST], tuple[str, ...]]] = {
    ast.Module: ("body",),
    ast.FunctionDef: ("args", "body"),
    ast.arguments: ("args", "vararg"),
    ast.arg: (),
    ast.Assign: ("targets", "value"),
    ast.Break: (),
    ast.Delete: ("targets",),
    ast.Expr: ("value",),
    ast.For: ("target", "iter", "body"),
    ast.If: ("test", "body", "orelse"),
    ast.Return: ("value",),
    ast.Attribute: ("value",),
    ast.BinOp: ("left", "right"),
    ast.BoolOp: ("values",),
    ast.Call: ("func", "args"),
    ast.Compare: ("left", "comparators"),
    ast.Constant: (),
    ast.IfExp: ("test", "body", "orelse"),
    ast.Tuple: ("elts",),
    ast.UnaryOp: ("operand",),
}
#: The parts that would be legal Python, and must be empty.
_EMPTY: Final[Mapping[type[ast.AST], tuple[str, ...]]] = {
    ast.FunctionDef: ("decorator_list", "returns", "type_params"),
    ast.arguments: ("posonlyargs", "kwonlyargs", "kw_defaults", "kwarg", "defaults"),
    ast.arg: ("annotation",),
    ast.Call: ("keywords",),
    ast.For: ("orelse",),
}
#: The kinds that are looked at one by one.
_CHECKED: Final = frozenset({*_EMPTY, ast.Attribute, ast.Constant})


def vetted(code: str, names: Collection[str], objects: Collection[str]) -> ast.Module:
    """The syntax tree of code that is only what the compiler writes.

    Args:
        code: whole functions.
        names: given to variables and functions.
        objects: names of what else the code may refer to, and call.

    Raises:
        InternalError: there is something else in it, or it is no Python.

    """
    try:
        tree = ast.parse(code)
    except (SyntaxError, ValueError) as cause:
        raise _refusal(getattr(cause, "lineno", None) or 0, str(cause)) from cause
    functions = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
    for node in tree.body:
        if not isinstance(node, ast.FunctionDef):
            raise _refusal(node.lineno, "a statement outside of all functions")
    _Vetting({*names, *objects, *LOCALS}, {*objects, *functions}).look_at(tree)
    return tree


class _Vetting:
    """One look, with what is known of names."""

    def __init__(self, known: set[str], callable_: set[str]) -> None:
        self._known = known
        self._callable = callable_

    def look_at(self, tree: ast.Module) -> None:
        """Raise unless all of a tree is as it may be."""
        known = self._known
        waiting: list[ast.AST] = [tree]
        while waiting:
            node = waiting.pop()
            kind = type(node)
            if isinstance(node, ast.Name):  # every other node is one
                if node.id not in known:
                    raise _refusal(node.lineno, f"the name {node.id}")
                continue
            parts = _PARTS.get(kind)
            if parts is None or (kind in _CHECKED and not self._is_lawful(node)):
                raise _refusal(getattr(node, "lineno", 0), kind.__name__)
            for part in parts:
                child = getattr(node, part)
                if type(child) is list:
                    waiting += child
                elif child is not None:
                    waiting.append(child)

    def _is_lawful(self, node: ast.AST) -> bool:
        """Whether the node itself, without its parts, is as it may be."""
        if any(getattr(node, part, None) for part in _EMPTY.get(type(node), ())):
            return False
        match node:
            case ast.arg(arg=name) | ast.FunctionDef(name=name):
                return name in self._known
            case ast.Call(func=ast.Name(id="type"), args=args):
                return len(args) == 1  # with three it would make a class
            case ast.Call(func=function):
                return isinstance(function, ast.Name) and function.id in self._callable
            case ast.Attribute(value=ast.Name() | ast.Attribute(), attr=name):
                return name in _ATTRIBUTES
            case ast.Constant(value=value):
                return type(value) in _CONSTANTS
        return not isinstance(node, ast.Attribute)


def _refusal(line: int, what: str) -> InternalError:
    return InternalError(
        f"line {line} of compiled code is not what the compiler writes: {what}",
        next_step="please report it, with the graph; Config(tier=Tier.DATAFLOW) runs it without "
        "compiled code",
    )
