"""What of a step is done already when an executor begins with it.

In:   made by whoever ran the first part.
Out:  read by the executor that runs the rest.
Not:  knows neither of them.
"""

from __future__ import annotations

from collections.abc import Mapping

from penstock.core.values import Value
from penstock.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Unfinished:
    """The first part of a step, in which nothing was dead, and no loop is half done."""

    #: The names of nodes that are done; all others are to be run.
    done: frozenset[str]
    #: Outputs of these that others need, by the node's name and the slot.
    values: Mapping[tuple[str, int], Value | None]
