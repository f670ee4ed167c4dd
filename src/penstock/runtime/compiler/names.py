"""Python names for what the graph calls something.

In:   names of nodes, such as ``gradients/dense/MatMul_grad/MatMul``.
Out:  identifiers that are not taken: the last part of the name, and a number if need be.
Not:  knows nothing of what the names are for.

Names come from strangers, so nothing of them is kept but ASCII letters, digits and underscores,
forty at most, and an identifier begins with a letter: it is no keyword, no builtin and no dunder.
"""

from __future__ import annotations

import builtins
import keyword
import re
from collections.abc import Iterable
from typing import Final

_NOT_IN_NAMES: Final = re.compile(r"\W", re.ASCII)
_RESERVED: Final = frozenset({*keyword.kwlist, *keyword.softkwlist, *dir(builtins)})
_LONGEST: Final = 40


class Names:
    """The names of one text."""

    __slots__ = ("_numbers", "_reserved", "taken")

    def __init__(self, reserved: Iterable[str]) -> None:
        self._reserved = {*_RESERVED, *reserved}
        #: The names that were given.
        self.taken: set[str] = set()
        #: The number that each stem was last given.
        self._numbers: dict[str, int] = {}

    def new(self, hint: str, prefix: str = "") -> str:
        """A name that nobody has, made from a hint."""
        stem = prefix + _NOT_IN_NAMES.sub("_", hint.rpartition("/")[2][:_LONGEST])
        if not stem[:1].isalpha():
            stem = f"n{stem}" if stem.startswith("_") else f"n_{stem}"
        name = stem
        while name in self.taken or name in self._reserved:
            self._numbers[stem] = number = self._numbers.get(stem, 0) + 1
            name = f"{stem}_{number}"
        self.taken.add(name)
        return name
