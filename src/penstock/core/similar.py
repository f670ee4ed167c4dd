"""Names that resemble a wrong one.

In:   a name that means nothing, and the names that there are.
Out:  those that may have been meant, the nearest first.
Not:  knows what they are names of.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from typing import Final

from penstock.core.forks import importing

#: So many names are compared with a wrong one: each takes microseconds, and a graph has many.
_MAX_COMPARED: Final = 10_000


def similar(name: str, names: Iterable[str], *, n: int = 3, cutoff: float = 0.6) -> list[str]:
    """At most ``n`` of the names, of those that resemble ``name`` at least by ``cutoff`` of 1."""
    with importing:
        import difflib  # noqa: PLC0415  (few names are wrong)

    return difflib.get_close_matches(name, list(islice(names, _MAX_COMPARED)), n=n, cutoff=cutoff)
