"""Branches as Python's ``if`` and ``else``: open the right ones before each line.

In:   lines, and the path of the branch that each of them stands in.
Out:  indented lines.
Not:  knows no statements.
"""

from __future__ import annotations

from typing import Final

from penstock.graph.graph import Node
from penstock.runtime.compiler.code_buffer import CodeBuffer
from penstock.runtime.compiler.lifetimes import common_path
from penstock.runtime.compiler.loops import Irregular
from penstock.runtime.compiler.predicates import ALWAYS, NEVER, Condition, Predicate
from penstock.runtime.compiler.program import Body
from penstock.runtime.compiler.schedule import CompoundPredicate, Outcome, Path
from penstock.runtime.compiler.source import Iterations, SourceLine

#: CPython allows 100 levels of indentation.
_MAX_LEVELS: Final = 90


class Branches:
    """Lines of one body, in the branches that they belong to."""

    def __init__(
        self, text: CodeBuffer, body: Body, loops: tuple[Iterations, ...], indent: int
    ) -> None:
        self.text = text
        self.body = body
        #: The loops around the lines, outermost first.
        self.loops = loops
        self.indent = indent
        self.lines: list[SourceLine] = []
        #: The branch that is open.
        self.path: Path = ()
        #: Whether each of its blocks is an "else".
        self._elses: list[bool] = []

    @property
    def level(self) -> int:
        """How far a line is indented now."""
        return self.indent + len(self.path)

    def at_home(self) -> None:
        """A branch has been closed, and the one around it goes on; for subclasses."""

    def line(self, code: str, node: Node | None = None, label: str = "") -> None:
        """Add a line to the branch that is open; no text of a graph is part of ``code``."""
        level = self.level
        if level > _MAX_LEVELS:
            raise Irregular("branches are nested too deeply for Python")
        self.lines.append(SourceLine("    " * level + code, node, self.loops, label))

    def close_blocks(self) -> None:
        """Leave all branches."""
        self.go_to(())

    def go_to(self, path: Path) -> None:
        """Close and open branches until the right one is open."""
        shared = len(common_path(self.path, path))
        while len(self.path) > shared:
            closed, was_else = self.path[-1], self._elses.pop()
            self.path = self.path[:-1]
            at_fork = len(self.path) == shared < len(path)
            if at_fork and not was_else and _are_opposite(closed, path[shared]):
                self.line("else:")
                self._open(path[shared], is_else=True)
                shared += 1
            else:
                self.at_home()
        for step in path[shared:]:
            self.line(f"if {self._condition(step)}:")
            self._open(step, is_else=False)

    def _open(self, step: Outcome | CompoundPredicate, *, is_else: bool) -> None:
        self.path = (*self.path, step)
        self._elses.append(is_else)

    def _condition(self, step: Outcome | CompoundPredicate) -> str:
        if isinstance(step, CompoundPredicate):
            return self._predicate(step.predicate)
        return self._outcome(step.condition, is_true=step.is_true)

    def _outcome(self, condition: Condition, *, is_true: bool) -> str:
        name = self.text.name(self.body.conditions[condition])
        if condition in self.body.arrivals:
            return f"{name} is not None" if is_true else f"{name} is None"
        return f"{name} is true" if is_true else f"{name} is not true"

    def _predicate(self, predicate: Predicate) -> str:
        """A predicate as an expression; what is not known yet is not asked."""
        condition, low, high = self.body.predicates.parts(predicate)
        yes, no = self._outcome(condition, is_true=True), self._outcome(condition, is_true=False)
        if high == ALWAYS:
            return yes if low == NEVER else f"{yes} or ({self._predicate(low)})"
        if low == ALWAYS:
            return no if high == NEVER else f"{no} or ({self._predicate(high)})"
        if low == NEVER:
            return f"{yes} and ({self._predicate(high)})"
        if high == NEVER:
            return f"{no} and ({self._predicate(low)})"
        return f"({self._predicate(high)}) if {yes} else ({self._predicate(low)})"


def _are_opposite(a: Outcome | CompoundPredicate, b: Outcome | CompoundPredicate) -> bool:
    return (
        isinstance(a, Outcome)
        and isinstance(b, Outcome)
        and a.condition == b.condition
        and a.is_true != b.is_true
    )
