"""Random words by Philox4x32-10, and numbers made of them, by the library in C.

In:   a key of 64 bits, a counter of 128 bits, and which of its values.
Out:  four words or numbers for each of them; None where there is no library.
Not:  keeps no state.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final

import numpy as np

from penstock.core.values import Array
from penstock.kernels.c.address import address
from penstock.kernels.c.filters import FLOAT
from penstock.kernels.c.library import Philox, library
from penstock.kernels.parallel.contention import contention
from penstock.kernels.parallel.intra_op import HELPERS

_FOUR: Final = 4
#: With fewer counters no other thread is asked to help.
_SHARED: Final = 1 << 13
_WORD: Final = (1 << 64) - 1
_WORDS: Final = np.dtype(np.uint32)


class Way(IntEnum):
    """What is made of the words, as in ``philox.h``."""

    WORDS = 0
    FRACTIONS = 1
    NORMAL = 2
    CUT_NORMAL = 3


def draw(
    way: Way, key: int, counter: int, count: int, *, step: int = 1, offsets: Array | None = None
) -> Array | None:
    """What some values of a counter give; None if that is for others to do.

    Args:
        way: what is made of the words.
        key: of 64 bits.
        counter: of 128 bits.
        count: how many values.
        step: how far ahead of the one before each value is.
        offsets: how far ahead of the counter each value is instead, in uint64.

    Returns:
        uint32 or float32, [4 * count]

    """
    with_c = library()
    if with_c is None:
        return None
    numbers = np.empty(_FOUR * count, _WORDS if way is Way.WORDS else FLOAT)
    philox = Philox(
        None if offsets is None else address(offsets), address(numbers),
        count, step, way, key, counter & _WORD, counter >> 64 & _WORD,
    )  # fmt: skip
    with_c.draw_numbers(philox, contention.helpers(HELPERS) if count >= _SHARED else 0)
    return numbers
