"""Chance: where ops draw from whose seed nobody has given.

In:   what a session has drawn from the system, once; a node's place; how many bytes.
Out:  bytes that nobody can foresee who does not know what the session has drawn.
Not:  makes no numbers of them; there is no other way to the system's randomness for a kernel.

What a node draws follows from the session's draw, the node's name, and how often the node has
drawn: so it is known from two numbers, and does not depend on the order in which nodes run.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from threading import Lock
from typing import Final

from penstock.core import trees
from penstock.core.forks import importing
from penstock.core.trees import Tree

_ENTROPY_BYTES: Final = 32


def fresh_entropy() -> bytes:
    """What nobody can foresee."""
    return os.urandom(_ENTROPY_BYTES)


class Chance:
    """What one node draws from; safe to use from several threads."""

    def __init__(self, entropy: Callable[[], bytes], place: str = "") -> None:
        """``entropy`` tells what the session has drawn, which may change between steps."""
        self._entropy: Final = entropy
        self._place: Final = place.encode("utf-8", "surrogatepass")
        #: Guards ``_drawn``.  Innermost.
        self._lock = Lock()
        #: How often something was drawn.
        self._drawn = 0

    def take(self, count: int) -> bytes:
        """So many bytes, others each time."""
        with self._lock:
            number = self._drawn
            self._drawn += 1
        return self._bytes(b"drawn %d" % number, count)

    def seed(self) -> int:
        """A number of 64 bits, another one each time."""
        return int.from_bytes(self.take(8), "little")

    def fixed_seeds(self) -> tuple[int, int]:
        """Two numbers of 64 bits, the same ones each time."""
        found = self._bytes(b"fixed", 16)
        return int.from_bytes(found[:8], "little"), int.from_bytes(found[8:], "little")

    def state(self) -> Tree:
        """How often something was drawn."""
        return self._drawn

    def restore(self, state: Tree) -> None:
        """Go on as after so many draws; None is as before the first."""
        with self._lock:
            self._drawn = 0 if state is None else trees.number(state)

    def _bytes(self, what: bytes, count: int) -> bytes:
        with importing:
            import hashlib  # noqa: PLC0415  (brings OpenSSL, and few graphs draw)

        source = hashlib.shake_256(self._entropy())
        source.update(b"%d " % len(self._place) + self._place + what)
        return source.digest(count)


def unknown_chance() -> Chance:
    """What draws for a kernel that belongs to no session."""
    entropy = fresh_entropy()
    return Chance(lambda: entropy)
