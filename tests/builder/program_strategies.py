"""Made-up programs: choices in loops in choices, up to three deep.

In:   hypothesis' choices.
Out:  programs in which every name is bound before it is used, and feeds for them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
from hypothesis import strategies as st

from builder.programs import (
    DTYPES,
    OPERATIONS,
    Apply,
    Block,
    Choose,
    Expr,
    Let,
    Literal,
    Name,
    Program,
    Repeat,
    Statement,
)

KINDS: Final = tuple(DTYPES)
MAX_DEPTH: Final = 3
#: What every program is fed.
FEEDS: Final = {"m": "int", "n": "int", "u": "float", "v": "float", "p": "bool", "q": "bool"}

_VALUES: Final[Mapping[str, st.SearchStrategy[Any]]] = {
    "int": st.integers(-20, 20),
    "float": st.integers(-64, 64).map(lambda sixteenths: sixteenths / 16),
    "bool": st.booleans(),
}


def programs() -> st.SearchStrategy[Program]:
    """Programs over ``FEEDS``."""
    return _programs()


def feeds() -> st.SearchStrategy[dict[str, Any]]:
    """Values for ``FEEDS``, as numpy scalars."""
    return st.fixed_dictionaries(
        {name: _VALUES[kind].map(np.dtype(DTYPES[kind]).type) for name, kind in FEEDS.items()}
    )


@st.composite
def _programs(draw: st.DrawFn) -> Program:
    maker = _Maker(draw)
    kinds = draw(st.lists(st.sampled_from(KINDS), min_size=1, max_size=3))
    return Program(FEEDS, maker.block(dict(FEEDS), kinds, MAX_DEPTH))


class _Maker:
    """Draws the parts of one program; ``kinds`` maps the names in sight to their kinds."""

    def __init__(self, draw: st.DrawFn) -> None:
        self.draw = draw
        #: How many names the program has invented.
        self.invented = 0

    def new_name(self, prefix: str) -> str:
        self.invented += 1
        return f"{prefix}{self.invented}"

    def block(self, kinds: dict[str, str], results: list[str], depth: int) -> Block:
        count = self.draw(st.integers(0, 3))
        statements = [self.statement(kinds, depth) for _ in range(count)]
        return Block(tuple(statements), tuple(self.expr(kinds, kind) for kind in results))

    def statement(self, kinds: dict[str, str], depth: int) -> Statement:
        """A statement; the names it binds are added to ``kinds``."""
        form = self.draw(st.sampled_from(["let", "choose", "repeat"])) if depth else "let"
        if form == "let":
            kind = self.draw(st.sampled_from(KINDS))
            value = self.expr(kinds, kind)
            name = self.new_name("x")
            kinds[name] = kind
            return Let(name, value)
        bound = self.draw(st.lists(st.sampled_from(KINDS), min_size=1, max_size=3))
        make = self.choose if form == "choose" else self.repeat
        return make(kinds, bound, depth - 1)

    def choose(self, kinds: dict[str, str], bound: list[str], depth: int) -> Choose:
        pred = self.expr(kinds, "bool")
        if_true = self.block(dict(kinds), bound, depth)
        if_false = self.block(dict(kinds), bound, depth)
        names = self.bind(kinds, bound, "c")
        return Choose(names, pred, if_true, if_false)

    def repeat(self, kinds: dict[str, str], bound: list[str], depth: int) -> Repeat:
        first = tuple(self.expr(kinds, kind) for kind in bound)
        trips = self.expr(kinds, "int")
        inner = dict(kinds)
        counter = self.new_name("i")
        inner[counter] = "int"
        variables = self.bind(inner, bound, "w")
        keep_on = self.expr(inner, "bool") if self.draw(st.booleans()) else None
        collected = self.expr(inner, "int") if self.draw(st.booleans()) else None
        body = self.block(inner, bound, depth)
        names = self.bind(kinds, bound, "r")
        total = self.new_name("t")
        if collected is not None:
            kinds[total] = "int"
        return Repeat(names, counter, trips, variables, first, keep_on, body, collected, total)

    def bind(self, kinds: dict[str, str], bound: list[str], prefix: str) -> tuple[str, ...]:
        names = tuple(self.new_name(prefix) for _ in bound)
        kinds.update(zip(names, bound, strict=True))
        return names

    def expr(self, kinds: Mapping[str, str], kind: str, depth: int = 2) -> Expr:
        """An expression of ``kind``; mostly of names, the newest as likely as the oldest."""
        form = self.draw(st.sampled_from(["name", "apply", "literal"]))
        if form == "literal" or (form == "apply" and depth == 0):
            return Literal(kind, self.draw(_VALUES[kind]))
        if form == "name":
            return Name(self.draw(st.sampled_from([n for n, k in kinds.items() if k == kind])))
        op = self.draw(st.sampled_from([op for op, row in OPERATIONS.items() if row[1] == kind]))
        return Apply(op, tuple(self.expr(kinds, arg, depth - 1) for arg in OPERATIONS[op][0]))
