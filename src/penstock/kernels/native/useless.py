"""Loops that are better left as they are.

In:   what a loop computes, and that its program was of no use.
Out:  whether that is known of a loop; how much is known.
Not:  judges nothing: who runs programs does.

Node by node a loop is several times slower than as generated text.  That is worth waiting for a
program, but not if there is none, or if it ends too early every time.
"""

from __future__ import annotations

import hashlib
from typing import Final

#: More than that is not remembered.
_MOST: Final = 10_000
#: Digests of loops.  Only grows; each access is one operation of the set, from any thread.
_known: Final[set[bytes]] = set()


def digest(cond: bytes, body: bytes) -> bytes:
    """What tells one loop from others."""
    return hashlib.sha256(b"%d:%b%b" % (len(cond), cond, body)).digest()


def note(loop: bytes) -> None:
    """Remember that the program of a loop was of no use."""
    if len(_known) < _MOST:
        _known.add(loop)


def is_known(loop: bytes) -> bool:
    """Whether a loop's program was of no use."""
    return loop in _known


def count() -> int:
    """How much is known: who has looked at loops looks again when this has grown."""
    return len(_known)


def forget() -> None:
    """Know nothing."""
    _known.clear()
