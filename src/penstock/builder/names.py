"""Names that nobody has yet: ``add``, ``add_1``, ``scope/add``.

In:   wanted names, scopes included.
Out:  the same names, or the first free ``name_1``, ``name_2`` …
Not:  knows no graph and no scope; a scope's name is to it a name like any other.

Names that differ only in case count as the same, as in TensorFlow, because some of what
reads graphs (file systems, for one) cannot tell them apart.
"""

from __future__ import annotations

import re
from typing import Final

from penstock.core.names import is_legal_name

#: What no name may have, in the middle of it.
_ILLEGAL: Final = re.compile(r"[^A-Za-z0-9_./>-]+")


def proposed_name(op: str) -> str:
    """The name of a node whose author gives none: that of its op or function, made legal.

    Ops of the runtime itself, such as ``_Recv``, and functions that TensorFlow traced begin with
    an underscore, which names of nodes must not.
    """
    if is_legal_name(op):
        return op
    legal = _ILLEGAL.sub("_", op).lstrip("_>/-")
    return legal if is_legal_name(legal) else "node"


class NamePool:
    """The names of one graph, nodes and scopes together."""

    def __init__(self) -> None:
        #: By folded name, the number to try next for that name.  Only grows.
        self._next: dict[str, int] = {}

    def take(self, name: str) -> None:
        """Note that ``name`` is in use; taking it twice is no error."""
        self._next.setdefault(name.casefold(), 1)

    def unique(self, name: str) -> str:
        """Take ``name``, or if it is in use the first numbered one that is not."""
        key = name.casefold()
        number = self._next.get(key)
        if number is None:
            self._next[key] = 1
            return name
        while f"{key}_{number}" in self._next:
            number += 1
        self._next[key] = number + 1
        self._next[f"{key}_{number}"] = 1
        return f"{name}_{number}"
