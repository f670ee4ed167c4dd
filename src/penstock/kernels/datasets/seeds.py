"""Random words for datasets, and the seeds of each time a dataset is gone through.

In:   two seeds.
Out:  words of 32 bits, bit for bit as TensorFlow draws them.
Not:  shuffles nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from threading import Lock
from typing import Final

from penstock.core import trees
from penstock.core.trees import Tree
from penstock.kernels.random.philox import Philox
from penstock.state.chance import Chance

_WORD: Final = (1 << 64) - 1
#: So many blocks of four words are drawn at once.
_BLOCKS: Final = 16


def words(seed: int, seed2: int, start: int = 0) -> Iterator[int]:
    """The words that follow from two seeds, without end, from the so-manieth on."""
    stream = Philox(seed & _WORD, (seed2 & _WORD) << 64).skip(start // 4)
    if start % 4:
        yield from stream.blocks(1)[0, start % 4 :].tolist()
        stream = stream.skip(1)
    while True:
        yield from stream.blocks(_BLOCKS).reshape(-1).tolist()
        stream = stream.skip(_BLOCKS)


class SeedGenerator:
    """Two seeds for each time: always the same, or the next two words of a stream."""

    def __init__(
        self, seed: int, seed2: int, *, is_fixed: bool, chance: Chance | None = None
    ) -> None:
        """Zeros, where ``chance`` is given, are seeds that are drawn from it."""
        if chance is not None and seed == 0 and seed2 == 0:
            seed, seed2 = chance.seed(), chance.seed()
        self._fixed: Final = (seed, seed2) if is_fixed else None
        #: Held while words are taken.
        self._lock = Lock()
        self._seeds: Final = (seed, seed2)
        self._words = words(seed, seed2)
        #: How many words were taken.
        self._taken = 0

    def next_seeds(self) -> tuple[int, int]:
        """The seeds for one more time."""
        if self._fixed is not None:
            return self._fixed
        with self._lock:
            self._taken += 2
            return next(self._words), next(self._words)

    def state(self) -> Tree:
        """The seeds, whether they are always the same, and how many words were taken."""
        return *self._seeds, self._fixed is not None, self._taken

    @classmethod
    def of_state(cls, name: str, state: Tree, there: object) -> SeedGenerator:  # noqa: ARG003
        """The generator that had a state."""
        seed, seed2, is_fixed, taken = trees.parts(state, 4)
        seeds = trees.number(seed, trees.LEAST), trees.number(seed2, trees.LEAST)
        made = cls(*seeds, is_fixed=trees.flag(is_fixed))
        made.go_on_after(trees.number(taken))
        return made

    @property
    def taken(self) -> int:
        """How many words were taken so far."""
        return self._taken

    def go_on_after(self, taken: int) -> None:
        """Let the next seeds be those after so many words."""
        with self._lock:
            self._words, self._taken = words(*self._seeds, taken), taken
