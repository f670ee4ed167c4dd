"""The random stream of a node, which goes on from call to call.

In:   a node and its seeds; how much of the stream is wanted.
Out:  ``NodeStream``: a part of the stream, which nobody else gets; or all of it, for a while.
Not:  draws nothing.

All kernels that compute a node share its stream.  Most reserve what they need.  A program that
draws in a loop cannot say how much that is: it borrows the stream, and says in the end how far it
has come.  Whoever wants to draw meanwhile waits, and the program can see that.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from threading import Lock
from typing import Final

import numpy as np

from penstock.core import trees
from penstock.core.trees import Tree
from penstock.core.values import Array
from penstock.errors import CancelledError
from penstock.kernels.api.attrs import Attrs
from penstock.kernels.random.philox import Philox
from penstock.state.chance import Chance, unknown_chance
from penstock.state.interrupt import Interrupt

#: A node's attributes ``seed`` and ``seed2``.
Seeds = tuple[int, int]

_WORD: Final = (1 << 64) - 1
_HIGH: Final = 64
#: Seconds after which whoever waits for a stream asks whether its step must end.
_PATIENCE: Final = 0.02


class NodeStream:
    """The stream of one node, and how far it has come."""

    def __init__(self, seeds: Seeds, chance: Chance | None) -> None:
        """Begin with seeds, or, if both are 0, with what chance gives."""
        self._seeds: Final = seeds[0] & _WORD, seeds[1] & _WORD
        self._chance: Final = None if any(self._seeds) else chance
        #: Held while ``_rest`` is replaced, and by whoever has borrowed the stream.  Innermost; of
        #: several streams those are taken first whose nodes' names come first.
        self._lock: Final = Lock()
        #: One item for each thread that waits for the lock; each adds and removes its own.
        self._waiting: Final[list[None]] = []
        #: What no call has reserved yet.
        self._rest = self._whole()

    def _whole(self) -> Philox:
        seed, seed2 = self._seeds if self._chance is None else self._chance.fixed_seeds()
        return Philox(seed, seed2 << _HIGH)

    def reserve(self, count: int) -> Philox:
        """The stream from where it is now; later calls begin ``count`` counters further."""
        if not self._lock.acquire(blocking=False):
            self._wait(None)
        try:
            stream = self._rest
            self._rest = stream.skip(count)
        finally:
            self._lock.release()
        return stream

    def state(self) -> Tree:
        """The stream's key, and where it has come to."""
        with self._lock:
            return self._rest.key, self._rest.counter

    def restore(self, state: Tree) -> None:
        """Go on from there; or, from None, begin anew."""
        if state is None:
            rest = self._whole()
        else:
            key, counter = map(trees.number, trees.parts(state, 2))
            rest = Philox(key & _WORD, counter)
        with self._lock:
            self._rest = rest

    # -- for whoever borrows it ------------------------------------------------------------------

    @property
    def is_wanted(self) -> bool:
        """Whether somebody waits for it."""
        return bool(self._waiting)

    def borrow(self, interrupt: Interrupt) -> None:
        """Keep everybody else from it; raises the reason if the step must end before that."""
        if not self._lock.acquire(blocking=False):
            self._wait(interrupt)

    def give_back(self) -> None:
        """Let others draw again."""
        self._lock.release()

    def place(self) -> Array:
        """Where a borrowed stream is: its key and its counter's words, lower first, as int64[3]."""
        key, counter = self._rest.key, self._rest.counter
        return np.array([key, counter & _WORD, counter >> _HIGH], np.uint64).view(np.int64)

    def go_on_from(self, place: Array) -> None:
        """Say where a borrowed stream has come to."""
        key, low, high = place.view(np.uint64).tolist()
        self._rest = Philox(key, low | high << _HIGH)

    def _wait(self, interrupt: Interrupt | None) -> None:
        self._waiting.append(None)
        try:
            while not self._lock.acquire(timeout=_PATIENCE):
                if interrupt is not None and interrupt.loops_end:
                    raise interrupt.reason or CancelledError("Run was cancelled.", derived=True)
        finally:
            self._waiting.pop()


@contextmanager
def borrowed(streams: Sequence[NodeStream], interrupt: Interrupt) -> Iterator[None]:
    """Have streams for oneself, in the order of their nodes' names; raises what ``borrow`` does."""
    taken: list[NodeStream] = []
    try:
        for stream in streams:
            stream.borrow(interrupt)
            taken.append(stream)
        yield
    finally:
        for stream in taken:
            stream.give_back()


def stream_of(attrs: Attrs) -> NodeStream:
    """The stream of the node that a kernel is made for."""
    return stream_of_node(attrs, attrs.node_name, (attrs.int("seed"), attrs.int("seed2")))


def stream_of_node(attrs: Attrs, node: str, seeds: Seeds) -> NodeStream:
    """The stream of a node that another one computes as well, which the kernel is made for."""
    keeper = attrs.keeper
    if keeper is None:
        return NodeStream(seeds, unknown_chance())
    return keeper.shared(
        node,
        "stream",
        seeds,
        lambda: NodeStream(seeds, keeper.chance(node) if not any(seeds) else None),
    )
