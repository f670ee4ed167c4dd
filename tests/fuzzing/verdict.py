"""What became of a mutant."""

from __future__ import annotations

import enum
from dataclasses import dataclass


class Kind(enum.Enum):
    """Whether all ways of running a mutant agree; see ``latitude`` for why they need not."""

    #: All ways give the same values, or the same code.
    AGREED = enum.auto()
    #: What comes depends on an order, or is random.
    RACY = enum.auto()
    #: An error of what nobody reads, which the optimiser leaves out with it.
    UNREAD = enum.auto()
    #: Rounding makes much of a last bit.
    SENSITIVE = enum.auto()
    #: A wait or a loop without end, in all ways.
    ENDLESS = enum.auto()
    #: Something to be looked at.
    FINDING = enum.auto()


@dataclass(frozen=True, slots=True)
class Verdict:
    """What became of a mutant, and what there is to say about it."""

    kind: Kind
    #: How the definition ended: the code, or OK.
    ending: str
    #: What is wrong, if something is.
    reason: str = ""
