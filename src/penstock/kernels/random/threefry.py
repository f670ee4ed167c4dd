"""The random bits of Threefry2x32-20.

In:   a key of 64 bits and counters of 64 bits.
Out:  two words of 32 bits for each counter.
Not:  keeps no state, and makes no numbers of the bits.

Salmon, Moraes, Dror, Shaw: "Parallel random numbers: as easy as 1, 2, 3", SC 2011.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from penstock.core.values import Array

#: How far the second word is turned in each round; the two rows take turns.
_TURNS: Final = ((13, 15, 26, 6), (17, 29, 16, 24))
_GROUPS: Final = 5
_PARITY: Final = 0x1BD11BDA
_LOW: Final = 0xFFFFFFFF
_WORD: Final = 32


def threefry(key: int, counters: Array) -> tuple[Array, Array]:
    """The first and the second word of each of the uint64 ``counters``."""
    first, second = key & _LOW, key >> _WORD
    keys = [np.uint32(word) for word in (first, second, first ^ second ^ _PARITY)]
    a = counters.astype(np.uint32) + keys[0]
    b = (counters >> np.uint64(_WORD)).astype(np.uint32) + keys[1]
    for group in range(_GROUPS):
        for turn in _TURNS[group % 2]:
            a += b
            b = (b << np.uint32(turn) | b >> np.uint32(_WORD - turn)) ^ a
        a += keys[(group + 1) % 3]
        b += keys[(group + 2) % 3] + np.uint32(group + 1)
    return a, b
