"""Small mistakes that a module might have: each a piece of its text, and what stands there instead.

In:   a module's text.
Out:  its mutants, in the order of the text.
Not:  runs nothing; changes no annotation, docstring, assertion, or text for people.

Left out, too, is what cannot be seen: None instead of False, and ``strict`` of what is complete.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

_COMPARISONS: Final[dict[type[ast.cmpop], ast.cmpop]] = {
    ast.Lt: ast.LtE(),
    ast.LtE: ast.Lt(),
    ast.Gt: ast.GtE(),
    ast.GtE: ast.Gt(),
    ast.Eq: ast.NotEq(),
    ast.NotEq: ast.Eq(),
    ast.Is: ast.IsNot(),
    ast.IsNot: ast.Is(),
    ast.In: ast.NotIn(),
    ast.NotIn: ast.In(),
}
_ARITHMETIC: Final[dict[type[ast.operator], ast.operator]] = {
    ast.Add: ast.Sub(),
    ast.Sub: ast.Add(),
    ast.Mult: ast.FloorDiv(),
    ast.Div: ast.Mult(),
    ast.FloorDiv: ast.Mult(),
    ast.Mod: ast.FloorDiv(),
    ast.Pow: ast.Mult(),
    ast.LShift: ast.RShift(),
    ast.RShift: ast.LShift(),
    ast.BitOr: ast.BitAnd(),
    ast.BitAnd: ast.BitOr(),
    ast.BitXor: ast.BitAnd(),
}
_CONDITIONS: Final = (ast.Name, ast.Attribute, ast.Call, ast.NamedExpr)
#: Functions whose arguments are for people.
_FOR_PEOPLE: Final = frozenset({"begin", "log"})
#: Names whose values are for people and for type checkers.
_FOR_OTHERS: Final = frozenset({"__slots__", "__all__"})


@dataclass(frozen=True, slots=True)
class Mutant:
    """One mistake: the bytes from ``start`` to ``end`` become ``new``."""

    line: int
    start: int
    end: int
    old: str
    new: str
    #: The lines of the statement that it is in.
    lines: tuple[int, int]
    #: What the statement defines, if it stands outside of all functions.
    defines: tuple[str, ...] = ()

    def applied(self, text: str) -> str:
        """The module with this mistake."""
        data = text.encode()
        return (data[: self.start] + self.new.encode() + data[self.end :]).decode()

    def __str__(self) -> str:
        old, new = (" ".join(part.split()) for part in (self.old, self.new))
        return f"{self.line}: {old} → {new}"


def mutants_of(text: str) -> list[Mutant]:
    """All mutants of a module."""
    finder = _Finder(text)
    finder.visit(ast.parse(text))
    return sorted(finder.found, key=lambda mutant: (mutant.start, mutant.end, mutant.new))


class _Finder(ast.NodeVisitor):
    """Walks over a module, and notes what could be otherwise."""

    def __init__(self, text: str) -> None:
        self.found: list[Mutant] = []
        self._data = text.encode()
        self._line_starts = [0]
        for line in self._data.splitlines(keepends=True):
            self._line_starts.append(self._line_starts[-1] + len(line))
        #: The innermost statement under way.
        self._statement: ast.stmt | None = None
        #: How many functions are around it.
        self._depth = 0

    def visit(self, node: ast.AST) -> None:
        """Look at one node, and at what is in it."""
        if not isinstance(node, ast.stmt):
            super().visit(node)
            return
        outer, self._statement = self._statement, node
        super().visit(node)
        self._statement = outer

    def note(self, node: ast.expr | ast.stmt, new: str) -> None:
        """One mutant: ``new`` instead of a node."""
        start, end = self._place(node.lineno, node.col_offset), self._end(node)
        statement = self._statement
        assert statement is not None
        old = self._data[start:end].decode()
        lines = statement.lineno, _header_end(statement)
        defines = () if self._depth else tuple(_defined(statement))
        self.found.append(Mutant(node.lineno, start, end, old, new, lines, defines))

    def _place(self, line: int, column: int) -> int:
        return self._line_starts[line - 1] + column

    def _end(self, node: ast.expr | ast.stmt) -> int:
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        return self._place(node.end_lineno, node.end_col_offset)

    # -- what is left alone ------------------------------------------------------------

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        """A body and defaults; no decorators and annotations."""
        for default in (*node.args.defaults, *node.args.kw_defaults):
            if default is not None:
                self.visit(default)
        self._depth += 1
        self._visit_body(node.body)
        self._depth -= 1

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        """The body of a class; that of a Protocol does nothing."""
        if not any(isinstance(base, ast.Name) and base.id == "Protocol" for base in node.bases):
            self._visit_body(node.body)

    def visit_Module(self, node: ast.Module) -> None:
        """All but the docstring."""
        self._visit_body(node.body)

    def _visit_body(self, body: list[ast.stmt]) -> None:
        for statement in body:
            is_text = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
            if not is_text:
                self.visit(statement)

    def visit_Assert(self, node: ast.Assert) -> None:
        """For type checkers, mostly."""

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        """For people, mostly."""

    def visit_Raise(self, node: ast.Raise) -> None:
        """An error that is not raised; what it says is for people."""
        self.note(node, "pass")

    def visit_If(self, node: ast.If) -> None:
        """A condition, and what depends on it; not what only type checkers see."""
        if isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            return
        self._negate(node.test)
        self.generic_visit(node)

    # -- statements ----------------------------------------------------------------------

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        """A value with a type."""
        self._visit_assigned(node.value, [node.target])

    def visit_Assign(self, node: ast.Assign) -> None:
        """A value; one that goes into an object may also be forgotten."""
        self._visit_assigned(node.value, node.targets)

    def _visit_assigned(self, value: ast.expr | None, targets: list[ast.expr]) -> None:
        names = {target.id for target in targets if isinstance(target, ast.Name)}
        if value is None or names & _FOR_OTHERS or _is_type(self._statement):
            return
        assert self._statement is not None
        if self._depth and all(isinstance(t, ast.Subscript | ast.Attribute) for t in targets):
            self.note(self._statement, "pass")
        self.visit(value)
        for target in targets:
            self.visit(target)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        """A change that is forgotten, or goes the other way."""
        self.note(node, "pass")
        if type(node.op) in _ARITHMETIC:
            other = ast.AugAssign(node.target, _ARITHMETIC[type(node.op)], node.value)
            self.note(node, ast.unparse(other))
        self.generic_visit(node)

    def visit_Expr(self, node: ast.Expr) -> None:
        """Something that is not done."""
        if not isinstance(node.value, ast.Yield | ast.YieldFrom):
            self.note(node, "pass")
        self.generic_visit(node)

    def visit_Return(self, node: ast.Return) -> None:
        """Nothing instead of an answer."""
        if node.value is not None:
            if not (isinstance(node.value, ast.Constant) and node.value.value in (None, False)):
                self.note(node.value, "None")
            self.visit(node.value)

    def visit_Delete(self, node: ast.Delete) -> None:
        """Something that stays."""
        self.note(node, "pass")

    def visit_Continue(self, node: ast.Continue) -> None:
        """A loop that goes on with this element."""
        self.note(node, "break")

    def visit_Break(self, node: ast.Break) -> None:
        """A loop that goes on."""
        self.note(node, "continue")

    # -- expressions ---------------------------------------------------------------------

    def _negate(self, test: ast.expr) -> None:
        if isinstance(test, _CONDITIONS):
            self.note(test, f"({ast.unparse(ast.UnaryOp(ast.Not(), test))})")

    def visit_While(self, node: ast.While) -> None:
        """A condition of a loop."""
        self._negate(node.test)
        self.generic_visit(node)

    def visit_IfExp(self, node: ast.IfExp) -> None:
        """A choice."""
        self._negate(node.test)
        self.generic_visit(node)

    def visit_comprehension(self, node: ast.comprehension) -> None:
        """What is left out of a collection."""
        for test in node.ifs:
            self.note(test, "True")
        self.generic_visit(node)

    def visit_Compare(self, node: ast.Compare) -> None:
        """Another comparison."""
        for index, op in enumerate(node.ops):
            ops = [*node.ops[:index], _COMPARISONS[type(op)], *node.ops[index + 1 :]]
            other = ast.Compare(node.left, ops, node.comparators)
            self.note(node, f"({ast.unparse(other)})")
        self.generic_visit(node)

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        """One for all, or all for one."""
        other: ast.boolop = ast.And() if isinstance(node.op, ast.Or) else ast.Or()
        self.note(node, f"({ast.unparse(ast.BoolOp(other, node.values))})")
        for value in node.values:
            self._negate(value)
        self.generic_visit(node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> None:
        """The opposite."""
        if isinstance(node.op, ast.Not):
            self.note(node, f"({ast.unparse(node.operand)})")
        elif isinstance(node.op, ast.USub):
            self.note(node, f"(+{ast.unparse(node.operand)})")
            return  # the number's own mutants would be the same once more
        self.generic_visit(node)

    def visit_BinOp(self, node: ast.BinOp) -> None:
        """Another operator."""
        if type(node.op) in _ARITHMETIC:
            other = ast.BinOp(node.left, _ARITHMETIC[type(node.op)], node.right)
            self.note(node, f"({ast.unparse(other)})")
        self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> None:
        """The arguments; not what is told to people."""
        self.visit(node.func)
        for argument in node.args:
            name = getattr(node.func, "id", getattr(node.func, "attr", ""))
            if name not in _FOR_PEOPLE or not isinstance(argument, ast.Constant):
                self.visit(argument)
        for keyword in node.keywords:
            if keyword.arg != "strict":
                self.visit(keyword.value)

    def visit_Constant(self, node: ast.Constant) -> None:
        """Another constant."""
        value = node.value
        if isinstance(value, bool):
            self.note(node, str(not value))
        elif isinstance(value, int | float):
            self.note(node, repr(value + 1))
        elif isinstance(value, str | bytes) and value:
            self.note(node, repr(value + (b"X" if isinstance(value, bytes) else "X")))


def _is_type(statement: ast.stmt | None) -> bool:
    """Whether a statement names a type."""
    if not isinstance(statement, ast.AnnAssign):
        call = statement.value if isinstance(statement, ast.Assign) else None
        return isinstance(call, ast.Call) and ast.unparse(call.func) in {"TypeVar", "ParamSpec"}
    return ast.unparse(statement.annotation) == "TypeAlias"


def _header_end(statement: ast.stmt) -> int:
    """The last line of a statement, or of its head if there are statements in it."""
    body = getattr(statement, "body", None)
    if body:
        return max(statement.lineno, int(body[0].lineno) - 1)
    assert statement.end_lineno is not None
    return statement.end_lineno


def _defined(statement: ast.stmt) -> Iterator[str]:
    """The names that a statement gives values, or its function or class."""
    if isinstance(statement, ast.FunctionDef | ast.ClassDef):
        yield statement.name
    for node in ast.walk(statement):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
