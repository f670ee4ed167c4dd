"""The last look at generated code before it is compiled.

In:   code, the variables that the compiler has named, and the names of objects that it knows.
Out:  nothing, if there is nothing in it that the compiler does not write; or else an error.
Not:  knows no graph, and mends nothing.

That no text of a graph is part of the code is a law of those who write it; see ``source``.  This is
a second wall: would some text get through all the same, what it smuggled in would not be run.
Generated code is a small part of Python.  It has functions without defaults and decorators,
assignments, ``if``, ``for`` and ``del``; operators, tuples, numbers and names that were given;
calls of known objects and of its own functions, by position; and the few attributes listed here.
It has no strings, no imports, no subscripts, no lambdas and no comprehensions.

Each line is a statement of its own, or begins a block.  Tens of thousands of lines have some dozens
of *shapes*: what is left if names are only told apart as variables and as what may be called.  So
every word of the code is looked up, and the syntax tree of every shape is walked, once per process.
"""

from __future__ import annotations

import ast
import keyword
import re
from collections.abc import Collection, Mapping
from types import NoneType
from typing import Final

from penstock.advice import RunUncompiled
from penstock.errors import InternalError

#: What every function may have among its variables besides names that were given.
LOCALS: Final = frozenset({"run", "interrupt", "_"})
#: Attributes that code may ask for; no variable is called so.
ATTRIBUTES: Final = frozenset({"interrupt", "loops_end", "step", "frame", "iteration"})
#: What stands in shapes for a variable, for what may be called, and for a number.
_VARIABLE, _CALLABLE, _NUMBER = "v", "f", "0"
_TYPE: Final = "type"
_NAMES: Final = frozenset({_VARIABLE, _CALLABLE, _TYPE, "interrupt"})
_WORD: Final = re.compile(r"(\w+)", re.ASCII)
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
    ast.Pass: (),
    ast.Return: ("value",),
    ast.Attribute: ("value",),
    ast.BinOp: ("left", "right"),
    ast.BoolOp: ("values",),
    ast.Call: ("func", "args"),
    ast.Compare: ("left", "comparators"),
    ast.Constant: (),
    ast.IfExp: ("test", "body", "orelse"),
    ast.Name: (),
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
#: Functions begin at the margin, and nothing else stands there.
_FUNCTION: Final = re.compile(r"^def (\w+)", re.ASCII | re.MULTILINE)
_MISPLACED: Final = re.compile(r"^(?! |def |$)|^ +def ", re.MULTILINE)
#: Shapes that are as they may be; only grows, up to a bound, and losing one does no harm.
_lawful: Final[set[str]] = {""}
_MAX_KNOWN: Final = 20_000


def vet(
    code: str,
    names: Collection[str],
    objects: Collection[str],
    *,
    lawful: set[str] = _lawful,
    max_lawful: int = _MAX_KNOWN,
) -> None:
    """Refuse code that is not what the compiler writes.

    Args:
        code: lines of whole functions.
        names: given to variables and functions.
        objects: names of what else the code may refer to, and call.
        lawful: shapes that need no second look; new ones are added.
        max_lawful: how many of them are kept.

    Raises:
        InternalError: there is something else in it, or it is no Python.

    """
    if not code.isascii() or not code.replace("\n", "").isprintable():
        raise _refusal("a character that no line has")
    if _MISPLACED.search(code):
        raise _refusal("something outside of all functions, or a function inside another")
    functions = _FUNCTION.findall(code)
    words = _WORD.split(code)
    classes = _Classes(names, {*objects, *(name for name in functions if name in names)})
    words[1::2] = map(classes.__getitem__, words[1::2])
    shapes = {line.lstrip(" ") for line in "".join(words).split("\n")}
    for shape in shapes - lawful:
        if not _is_lawful_line(shape):
            raise _refusal(shape)
        if len(lawful) < max_lawful:
            lawful.add(shape)


class _Classes(dict[str, str]):
    """What stands in a shape for each word of the code."""

    def __init__(self, names: Collection[str], callables: Collection[str]) -> None:
        super().__init__(dict.fromkeys((*names, *LOCALS), _VARIABLE))
        self.update(dict.fromkeys(callables, _CALLABLE))
        self.update((word, word) for word in (*keyword.kwlist, *ATTRIBUTES, _TYPE))

    def __missing__(self, word: str) -> str:
        if word.isdecimal():
            return _NUMBER
        raise _refusal(f"the name {word}")


def _is_lawful_line(shape: str) -> bool:
    """Whether a line by itself, of which only the shape is left, is as it may be."""
    text = f"{shape} pass" if shape.endswith(":") else shape
    if shape == "else:":
        text = f"if {_VARIABLE}: pass\n{text}"
    try:
        waiting: list[ast.AST] = [ast.parse(text)]
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    while waiting:
        node = waiting.pop()
        parts = _PARTS.get(type(node))
        if parts is None or not _is_lawful(node):
            return False
        for part in parts:
            child = getattr(node, part)
            if isinstance(child, list):
                waiting += child
            elif child is not None:
                waiting.append(child)
    return True


def _is_lawful(node: ast.AST) -> bool:
    """Whether a part of a shape, without its own parts, is as it may be."""
    if any(getattr(node, part, None) for part in _EMPTY.get(type(node), ())):
        return False
    match node:
        case ast.Name(id=name) | ast.arg(arg=name):
            return name in _NAMES
        case ast.FunctionDef(name=name):
            return name == _CALLABLE
        case ast.Call(func=ast.Name(id=name), args=args):
            return name == _CALLABLE or (name == _TYPE and len(args) == 1)  # three make a class
        case ast.Attribute(value=ast.Name() | ast.Attribute(), attr=name):
            return name in ATTRIBUTES
        case ast.Constant(value=value):
            return type(value) in _CONSTANTS
    return not isinstance(node, (ast.Call, ast.Attribute))


def _refusal(what: str) -> InternalError:
    return InternalError(
        f"compiled code has something that the compiler does not write: {what}",
        next_step=RunUncompiled(),
    )
