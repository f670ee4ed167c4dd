"""What kernels cost, as far as steps have shown, and which of them are worth a thread.

In:   how long each measured kernel took.
Out:  whether the next run of it is to be on the pool.
Not:  changes no answer: where a kernel runs has no say in what it computes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from penstock.runtime.executor.graph_view import NodeItem

#: A kernel that gets so many elements may be slow, as long as nobody knows.
_LARGE: Final = 1 << 16
#: A kernel found cheap this many times in a row is not measured again.
_SETTLED_AFTER: Final = 3
#: The cost of a kernel that is known to be cheap.
CHEAP: Final = -float(_SETTLED_AFTER)


class KernelCosts:
    """Costs of one partition's kernels, shared by all of its steps."""

    __slots__ = ("_learns", "_threshold", "by_item", "of_nobody")

    def __init__(self, items: Sequence[NodeItem], threshold: float, *, learns: bool) -> None:
        """``threshold`` is in seconds: what takes longer may go to the pool.

        Who does not learn takes what gets large inputs for slow, and everything else for quick.
        """
        unknown = 0.0 if threshold > 0 else 1.0
        self._threshold = threshold
        self._learns = learns
        #: Mean seconds of each measured kernel; below zero if it is known to be cheap, and
        #: counting down to ``CHEAP`` on the way there.  Written by any driver: a lost update only
        #: delays a verdict.
        self.by_item = [unknown if item.is_measured else CHEAP for item in items]
        #: The same for steps without a pool, which have no use for a verdict.
        self.of_nobody: Sequence[float] = (CHEAP,) * len(items)

    def note(self, item: NodeItem, cost: float, seconds: float) -> None:
        """Learn from one measured run of a kernel, which began when it cost ``cost``."""
        threshold = self._threshold
        if not self._learns:
            return
        if cost < threshold and seconds < threshold:
            cost = min(cost, 0.0) - 1.0
        elif cost > 0.0:
            cost = 0.9 * cost + 0.1 * seconds
        else:
            cost = seconds
        self.by_item[item.id] = cost

    def is_slow(self, cost: float, inputs: Sequence[Any]) -> bool:
        """Whether a kernel is worth a hop to another thread."""
        if self._learns or cost != 0.0:
            return cost >= self._threshold
        return any(map(_is_large, inputs))

    def may_be_slow(self, cost: float) -> bool:
        """Whether a kernel may take long, as far as anybody can tell."""
        return cost >= self._threshold or cost == 0.0


def _is_large(value: object) -> bool:
    return isinstance(value, np.ndarray) and value.size >= _LARGE
