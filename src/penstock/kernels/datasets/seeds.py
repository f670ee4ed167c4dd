"""Random words for datasets, and the seeds of each time a dataset is gone through.

In:   two seeds.
Out:  words of 32 bits, bit for bit as TensorFlow draws them.
Not:  shuffles nothing.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from threading import Lock
from typing import Final

from penstock.kernels.random.philox import Philox

_WORD: Final = (1 << 64) - 1
#: So many blocks of four words are drawn at once.
_BLOCKS: Final = 16


def words(seed: int, seed2: int) -> Iterator[int]:
    """The words that follow from two seeds, without end."""
    stream = Philox(seed & _WORD, (seed2 & _WORD) << 64)
    while True:
        yield from stream.blocks(_BLOCKS).reshape(-1).tolist()
        stream = stream.skip(_BLOCKS)


class SeedGenerator:
    """Two seeds for each time: always the same, or the next two words of a stream."""

    def __init__(self, seed: int, seed2: int, *, is_fixed: bool) -> None:
        if seed == 0 and seed2 == 0:
            seed, seed2 = secrets.randbits(64), secrets.randbits(64)
        self._fixed: Final = (seed, seed2) if is_fixed else None
        #: Held while words are taken.
        self._lock = Lock()
        self._words: Final = words(seed, seed2)

    def next_seeds(self) -> tuple[int, int]:
        """The seeds for one more time."""
        if self._fixed is not None:
            return self._fixed
        with self._lock:
            return next(self._words), next(self._words)
