"""Which subject is changed how: made from a seed, and small enough to be written down.

In:   a seed and a number.
Out:  a ``Recipe``; and the mutant that it makes, always the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from random import Random
from typing import Any, Final

from google.protobuf.message import DecodeError

import fuzzing.edges
import fuzzing.facts
import fuzzing.hostile  # noqa: F401  (these fill the tables)
from fuzzing.mutant import Mutant
from fuzzing.subjects import Subject, all_subjects
from fuzzing.table import HOSTILE, LEGAL, Mutation

#: How many of a hundred recipes have a hostile mutation.
_HOSTILE: Final = 35


@dataclass(frozen=True, slots=True)
class Recipe:
    """A subject and the mutations to make, each with a seed of its own."""

    #: By what it was made, for people.
    seed: int
    number: int
    subject: str
    mutations: tuple[tuple[str, int], ...]

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> Recipe:
        """A recipe that was written down."""
        mutations = tuple((name, seed) for name, seed in given["mutations"])
        return cls(given["seed"], given["number"], given["subject"], mutations)

    def as_json(self) -> dict[str, Any]:
        """All there is to write down."""
        return asdict(self)

    def mutant(self) -> Mutant | None:
        """What comes out; None if the subject is no graph to begin with."""
        try:
            mutant = Mutant.of(_by_name()[self.subject])
        except DecodeError:
            return None
        for name, seed in self.mutations:
            if mutant.broken is None and mutant.graph.node:
                mutant.trail += _made(mutant, name, Random(seed))
        return mutant


def _made(mutant: Mutant, name: str, draw: Random) -> list[str]:
    """Make a mutation, or another one of its table if it finds nothing to change; what was done."""
    table = HOSTILE if name in HOSTILE else LEGAL
    others = draw.sample(sorted(table), len(table))
    tried = (table[each][0](mutant, draw) for each in (name, *others))
    done = next(filter(None, tried), None)
    return [] if done is None else [done]


def recipe(seed: int, number: int) -> Recipe:
    """The recipe of some number."""
    draw = Random(f"{seed}/{number}")
    subjects = all_subjects()
    [subject] = draw.choices(subjects, [subject.weight for subject in subjects])
    count = draw.choice([1, 1, 2, 2, 3, 4, 6])
    chosen = [_one_of(LEGAL, draw) for _ in range(count)]
    if draw.randrange(100) < _HOSTILE:
        chosen[-1] = _one_of(HOSTILE, draw)
    return Recipe(
        seed, number, subject.name, tuple((name, draw.randrange(2**32)) for name in chosen)
    )


def _one_of(table: Mapping[str, tuple[Mutation, int]], draw: Random) -> str:
    [name] = draw.choices(list(table), [weight for _, weight in table.values()])
    return name


def _by_name() -> dict[str, Subject]:
    return {subject.name: subject for subject in all_subjects()}
