"""The tables of mutations, and what a mutation is.

A mutation changes a mutant in place, by chance, and says in words what it did; or None if there was
nothing to change, and then it has changed nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Final, TypeAlias

from fuzzing.mutant import Mutant

Mutation: TypeAlias = "Callable[[Mutant, Random], str | None]"

#: Mutations after which types still fit, mostly; by name, with how often they are chosen.
LEGAL: Final[dict[str, tuple[Mutation, int]]] = {}
#: Mutations that nobody makes who means well.
HOSTILE: Final[dict[str, tuple[Mutation, int]]] = {}


def legal(weight: int = 2) -> Callable[[Mutation], Mutation]:
    """Put a mutation into the table of legal ones."""
    return _into(LEGAL, weight)


def hostile(weight: int = 2) -> Callable[[Mutation], Mutation]:
    """Put a mutation into the table of hostile ones."""
    return _into(HOSTILE, weight)


def _into(table: dict[str, tuple[Mutation, int]], weight: int) -> Callable[[Mutation], Mutation]:
    def register(mutation: Mutation) -> Mutation:
        table[mutation.__name__] = (mutation, weight)
        return mutation

    return register
