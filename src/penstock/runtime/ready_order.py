"""Ready nodes in an order that a seed decides, so that nobody comes to rely on any.

In:   a seed.
Out:  a queue that gives back what was put in, in random but repeatable order.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from penstock.core.forks import importing
from penstock.runtime.executor.state import ReadyQueue, TaggedNode


class ShuffledQueue:
    """A bag from which a seeded generator draws."""

    __slots__ = ("_bag", "_draw")

    def __init__(self, seed: int) -> None:
        with importing:
            import random  # noqa: PLC0415  (hardly any session has a seed)

        self._bag: list[TaggedNode] = []
        self._draw = random.Random(seed).random

    def append(self, tagged: TaggedNode, /) -> None:
        """Put an activation in."""
        self._bag.append(tagged)

    def popleft(self) -> TaggedNode:
        """Draw one."""
        bag = self._bag
        chosen = int(self._draw() * len(bag))
        bag[chosen], bag[-1] = bag[-1], bag[chosen]
        return bag.pop()

    def clear(self) -> None:
        """Drop all."""
        self._bag.clear()

    def __len__(self) -> int:
        return len(self._bag)


def ready_queues(seed: int | None) -> Callable[[], ReadyQueue]:
    """Makes the queue of each step: first in, first out, or shuffled by ``seed``."""
    if seed is None:
        return deque
    return lambda: ShuffledQueue(seed)
