"""Batches in parts: some entries of all arrays at a time, one part after the other.

In:   a function, how its arguments have the batch, and the arguments.
Out:  what the function would give for all entries at once.
Not:  computes nothing itself; arguments of other shapes the function gets as they are.

The entries of a batch are what an array has along its first dimension.  The function treats each
of them alone, and what it makes of some of them may stay in a cache.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from penstock.core.values import Array

#: A batch is cut if it has so many times as many entries as are worked on together.
WORTH: Final = 4


class Argument(NamedTuple):
    """How an argument of the function must be."""

    #: Whether it has entries, of which the function gets some.
    has_entries: bool
    #: Its shape, or that of an entry; None if any will do.
    shape: tuple[int, ...] | None = None

    def fits(self, value: Any) -> bool:
        """Whether it is so."""
        if not self.has_entries:
            return self.shape is None or getattr(value, "shape", None) == self.shape
        if not isinstance(value, np.ndarray) or not value.ndim:
            return False
        return self.shape is None or value.shape[1:] == self.shape


class Batches(NamedTuple):
    """How a batch is cut."""

    #: So many entries at most are worked on together.
    at_once: int
    #: From how many entries on it is cut.
    fewest: int
    arguments: tuple[Argument, ...]

    def apply(
        self,
        function: Callable[..., Sequence[Any]],
        values: Sequence[Any],
        before_each: Callable[[], None] = lambda: None,
    ) -> Sequence[Any]:
        """``function(*values)``, perhaps for some entries after the others.

        Args:
            function: gives results that all have the batch, and those of each entry alone.
            values: its arguments.
            before_each: is called before each part.

        """
        count = self._count(values)
        if count < self.fewest:
            return function(*values)
        wholes: list[Array] = []
        # About as many each time.
        parts = -(-count // self.at_once)
        for number in range(parts):
            before_each()
            entries = slice(number * count // parts, (number + 1) * count // parts)
            results = function(*self._part(values, entries))
            if not wholes:
                wholes = [np.empty((count, *result.shape[1:]), result.dtype) for result in results]
            for whole, result in zip(wholes, results, strict=True):
                whole[entries] = result
        return wholes

    def _count(self, values: Sequence[Any]) -> int:
        """How many entries the batch has; 0 if these are not arguments that can be cut."""
        pairs = list(zip(self.arguments, values, strict=True))
        if not all(argument.fits(value) for argument, value in pairs):
            return 0
        counts = {len(value) for argument, value in pairs if argument.has_entries}
        return counts.pop() if len(counts) == 1 else 0

    def _part(self, values: Sequence[Any], entries: slice) -> list[Any]:
        """The arguments for some entries."""
        pairs = zip(self.arguments, values, strict=True)
        return [value[entries] if argument.has_entries else value for argument, value in pairs]
