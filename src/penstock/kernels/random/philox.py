"""The random bits behind all random ops: Philox4x32-10.

In:   a key of 64 bits and a counter of 128 bits.
Out:  four words of 32 bits for each value of the counter.
Not:  makes no numbers of the bits (random_numbers), keeps no state (random_ops).

Salmon, Moraes, Dror, Shaw: "Parallel random numbers: as easy as 1, 2, 3", SC 2011.
Everything TensorFlow draws follows from it, bit by bit.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from penstock.core.values import Array
from penstock.dataclass import dataclass
from penstock.kernels.c.philox import Way, draw

_MULTIPLIERS: Final = (np.uint64(0xD2511F53), np.uint64(0xCD9E8D57))
#: What the two halves of the key grow by from round to round.
_STEPS: Final = (0x9E3779B9, 0xBB67AE85)
_ROUNDS: Final = 10
_HALF: Final = np.uint64(32)
_LOW: Final = np.uint64(0xFFFFFFFF)
_MASK: Final = 0xFFFFFFFF
_WORD: Final = (1 << 64) - 1
#: Counters are worked on in pieces that fit into a processor's cache.
_PIECE: Final = 1 << 13


@dataclass(frozen=True, slots=True)
class Philox:
    """A stream of random bits."""

    key: int
    counter: int

    def blocks(self, count: int) -> Array:
        """The words of the next ``count`` counters, as uint32[count, 4]."""
        words = draw(Way.WORDS, self.key, self.counter, count)
        return self._filled(np.arange(count, dtype=np.uint64)) if words is None else _by_four(words)

    def blocks_at(self, offsets: Array) -> Array:
        """The words of the counters that stand so far ahead, as uint32[len(offsets), 4]."""
        words = draw(Way.WORDS, self.key, self.counter, len(offsets), offsets=offsets)
        return self._filled(offsets) if words is None else _by_four(words)

    def numbers(self, way: Way, count: int, step: int = 1) -> Array | None:
        """What C makes of the words of counters a step apart, as float32[4 * count]; or None."""
        return draw(way, self.key, self.counter, count, step=step)

    def _filled(self, offsets: Array) -> Array:
        words = np.empty((len(offsets), 4), np.uint32)
        for start in range(0, len(offsets), _PIECE):
            piece = slice(start, start + _PIECE)
            self._fill(words[piece], offsets[piece])
        return words

    def _fill(self, words: Array, offsets: Array) -> None:
        low = np.uint64(self.counter & _WORD) + offsets
        high = np.uint64(self.counter >> 64 & _WORD) + (low < offsets)
        a, b, c, d = low & _LOW, low >> _HALF, high & _LOW, high >> _HALF
        first, second = self.key & _MASK, self.key >> 32 & _MASK
        for _ in range(_ROUNDS):
            p, q = a * _MULTIPLIERS[0], c * _MULTIPLIERS[1]
            a = (q >> _HALF) ^ b ^ np.uint64(first)
            c = (p >> _HALF) ^ d ^ np.uint64(second)
            b, d = q & _LOW, p & _LOW
            first, second = first + _STEPS[0] & _MASK, second + _STEPS[1] & _MASK
        for column, word in enumerate((a, b, c, d)):
            words[:, column] = word

    def skip(self, count: int) -> Philox:
        """The stream from ``count`` counters later on."""
        return Philox(self.key, (self.counter + count) % (1 << 128))


def _by_four(words: Array) -> Array:
    return words.reshape((-1, 4))


#: Turns a seed into key and counter, so that similar seeds give unrelated streams.
_SEED_KEY: Final = 0x02461E293EC8F720


def from_seed(first: int, second: int) -> Philox:
    """The stream that stateless ops draw from: the seed is itself sent through Philox."""
    mixed = Philox(_SEED_KEY, (first & _WORD) | (second & _WORD) << 64)
    a, b, c, d = mixed.blocks(1)[0].tolist()
    return Philox(a | b << 32, (c | d << 32) << 64)
