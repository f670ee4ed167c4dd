"""Names of nodes and tensors: ``scope/op``, ``scope/op:1``, ``^scope/op``.

In:   strings from graphs and callers.
Out:  ``Endpoint`` (node name and output slot), or a verdict on a name's legality.
Not:  knows no graph; whether the node exists is for others to say.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

#: The slot of control edges.
CONTROL_SLOT: Final = -1

# A name may go on after ">" in pieces that begin like a name of their own.
_TAIL = r"[A-Za-z0-9_./\-]*"
_PIECES = rf"{_TAIL}(?:>[A-Za-z0-9.]{_TAIL})*"
_PUBLIC: Final = re.compile(rf"[A-Za-z0-9.]{_PIECES}")
_INTERNAL: Final = re.compile(rf"[A-Za-z0-9._]{_PIECES}")
# A longer number is part of a name; Python refuses to read one of thousands of digits.
_SLOT: Final = re.compile(r"(.*):([0-9]{1,1000})", re.DOTALL)


class Endpoint(NamedTuple):
    """One output of a node; slot -1 is the control output."""

    node: str
    slot: int

    def __str__(self) -> str:
        if self.slot == CONTROL_SLOT:
            return f"^{self.node}"
        return self.node if self.slot == 0 else f"{self.node}:{self.slot}"


def parse_endpoint(text: str) -> Endpoint:
    """Split an input string.  The colon rule comes first, as in TensorFlow."""
    if ":" in text:
        match = _SLOT.fullmatch(text)
        if match is not None:
            return Endpoint(match[1], int(match[2]))
    if text.startswith("^"):
        return Endpoint(text[1:], CONTROL_SLOT)
    return Endpoint(text, 0)


def is_legal_name(name: str) -> bool:
    """Whether a user may call a node so."""
    return _PUBLIC.fullmatch(name) is not None


def is_legal_internal_name(name: str) -> bool:
    """Whether the runtime itself may call a node so: a leading underscore is allowed."""
    return _INTERNAL.fullmatch(name) is not None


def scopes_of(name: str) -> list[str]:
    """The path prefixes of a name: ``a`` and ``a/b`` for ``a/b/c``."""
    parts = name.split("/")
    return ["/".join(parts[:end]) for end in range(1, len(parts))]


def first_free(name: str, taken: set[str]) -> str:
    """``name``, or the first of ``name_1``, ``name_2`` … that is not taken."""
    candidate, number = name, 0
    while candidate in taken:
        number += 1
        candidate = f"{name}_{number}"
    return candidate
