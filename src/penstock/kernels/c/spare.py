"""Room between pixels, so that those of a tile stay in the first cache together.

In:   how far apart neighbouring places see, and how many are worked on at a time.
Out:  how many numbers to leave between pixels; none, if they may stay where they are.
Not:  copies nothing.

A line of memory can be in a few places of the first cache only, which are the same again after
4,096 bytes.  The pixels of a tile are read side by side: if all of them begin at the same place,
each number of one pushes out those of others, and a product takes almost twice as long.
"""

from __future__ import annotations

import functools
from collections import Counter
from typing import Final

#: Bytes of a line, and those after which lines have the same places again.
_LINE: Final = 64
_PERIOD: Final = 4_096
#: How many lines these are, less one for weights: in first caches of 32 KiB in eight ways, as most
#: are that come with long vectors; some have more.
_WAYS: Final = 7
#: Three lines of float32: for pixels that all begin at one place, which then take turns.
_SPARE: Final = 48
#: With fewer products of each number, the copy takes longer than it saves.
_WORTH_A_COPY: Final = 64


def spare_numbers(step: int, at_once: int, uses: float) -> int:
    """How many float32 to leave between pixels.

    Args:
        step: bytes from place to place.
        at_once: so many places are read side by side.
        uses: how many products there are with each number.

    """
    return _SPARE if uses >= _WORTH_A_COPY and _collide(step, at_once) else 0


@functools.lru_cache(maxsize=1024)
def _collide(step: int, at_once: int) -> bool:
    """Whether more lines in which pixels begin have one place of the cache than stay there."""
    lines = {place * step // _LINE for place in range(at_once)}
    taken = Counter(line % (_PERIOD // _LINE) for line in lines)
    return max(taken.values()) > _WAYS
