"""How many inputs a node still waits for, and how many of those that came were dead.

Both counts share one integer per node: the low ``PENDING_BITS`` hold what is pending, the
rest what is dead.  So one list element is read and written per delivery.

- An ordinary node starts with its number of in-edges, data and control.  It is ready when
  nothing is pending, and dead if anything was.
- A Merge starts with 1 + 2 x its control in-edges.  The low bit says *no live data input
  yet*; the rest counts control inputs.
"""

from __future__ import annotations

from typing import Final

from penstock.errors import ResourceExhaustedError

PENDING_BITS: Final = 20
#: Masks the pending part.
PENDING: Final = (1 << PENDING_BITS) - 1
#: Added once for every dead input.
ONE_DEAD: Final = 1 << PENDING_BITS
#: Pending part of a Merge that waits only for its first live data input.
MERGE_WAITS_FOR_DATA: Final = 1


class PendingCounts:
    """The counts that every iteration of one frame starts with."""

    __slots__ = ("initial",)

    def __init__(self) -> None:
        #: One entry per node of the frame, by the node's ``pending_id``.
        self.initial: list[int] = []

    def add_ordinary(self, in_edges: int) -> int:
        """Reserve an entry for an ordinary node; returns its id."""
        return self._add(in_edges)

    def add_merge(self, control_edges: int) -> int:
        """Reserve an entry for a Merge; returns its id."""
        return self._add(1 + 2 * control_edges)

    def _add(self, count: int) -> int:
        if count > PENDING:
            raise ResourceExhaustedError(
                f"A node has {count} inputs; at most {PENDING} are supported"
            )
        self.initial.append(count)
        return len(self.initial) - 1
