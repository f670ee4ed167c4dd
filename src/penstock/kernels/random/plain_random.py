"""Single random numbers, one after the other, from a stream.

In:   a stream of random words.
Out:  whole numbers below a limit, and fractions.
Not:  makes no arrays (random_numbers); keeps no state between steps.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np

from penstock.core import trees
from penstock.core.trees import Tree
from penstock.kernels.random.philox import Philox

_WORDS: Final = 1 << 32
_BLOCKS: Final = 16
#: How many words a block has.
_PER_BLOCK: Final = 4


class PlainRandom:
    """Draws single numbers."""

    def __init__(self, stream: Philox) -> None:
        self._words: Final = Words(stream)

    def below(self, limit: int) -> int:
        """A whole number from 0 to ``limit`` - 1, all equally likely."""
        if limit & (limit - 1) == 0:
            return next(self._words) & (limit - 1)
        # So many of the smallest words would make small numbers more likely.
        refused = (_WORDS - 1) % limit + 1
        while (word := next(self._words)) < refused:
            pass
        return word % limit

    def below_64(self, limit: int) -> int:
        """Like ``below``, out of 64 bits."""
        refused = ((1 << 64) - 1) % limit + 1
        while (word := self._low_first()) < refused and limit & (limit - 1):
            pass
        return word % limit

    def _low_first(self) -> int:
        return next(self._words) | next(self._words) << 32

    def fraction(self) -> float:
        """A float32 from 0 to 1, without 1."""
        bits = next(self._words) & 0x7FFFFF | 0x3F800000
        return float(np.uint32(bits).view(np.float32) - np.float32(1))

    def fraction_64(self) -> float:
        """A float64 from 0 to 1, without 1."""
        high, low = next(self._words), next(self._words)
        bits = (high & 0xFFFFF | 0x3FF00000) << 32 | low
        return float(np.uint64(bits).view(np.float64) - 1)


class Words(Iterator[int]):
    """The words of 32 bits of a stream, without end."""

    def __init__(self, stream: Philox, taken: int = 0) -> None:
        """Begin after so many words."""
        self._stream: Final = stream
        #: How many words were taken.
        self._taken = taken
        self._words = _words(stream, taken)

    def __next__(self) -> int:
        self._taken += 1
        return next(self._words)

    def state(self) -> Tree:
        """The stream, and how many words were taken."""
        return self._stream.key, self._stream.counter, self._taken

    @classmethod
    def of_state(cls, state: Tree) -> Words:
        """The words after those that were taken then."""
        key, counter, taken = map(trees.number, trees.parts(state, 3))
        return cls(Philox(key, counter), taken)


def _words(stream: Philox, taken: int) -> Iterator[int]:
    stream = stream.skip(taken // _PER_BLOCK)
    first = taken % _PER_BLOCK
    while True:
        yield from stream.blocks(_BLOCKS).reshape(-1)[first:].tolist()
        stream, first = stream.skip(_BLOCKS), 0
