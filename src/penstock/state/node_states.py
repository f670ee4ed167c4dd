"""What the kernels of a session keep in themselves from step to step: places in random streams.

In:   what keeps something, as kernels are made, with the place of its node.
Out:  the state of all of it, as a tree; all of it as it was.
Not:  resources, which have names and are elsewhere (``resources.py``).

A kernel is made when its node is first needed.  What is restored for a kernel that is not there
yet waits for it; what is there and is not restored begins anew.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from threading import Lock
from typing import Any, Final, NamedTuple, Protocol, TypeVar

from penstock.core import trees
from penstock.core.trees import Tree
from penstock.state.chance import Chance, fresh_entropy


class Keeping(Protocol):
    """What keeps something from step to step."""

    def state(self) -> Tree:
        """What it keeps."""

    def restore(self, state: Tree) -> None:
        """Keep that from now on; None is to begin anew."""


_Kept = TypeVar("_Kept", bound=Keeping)


class Place(NamedTuple):
    """Where something is kept."""

    #: A device, and the function that the node is in.
    scope: str
    node: str
    #: What of the node's.
    what: str


class NodeStates:
    """What is kept, by its place; safe to use from several threads."""

    def __init__(self) -> None:
        #: Guards what follows, but nothing of what is kept.  Innermost.
        self._lock = Lock()
        #: What all chance of the session follows from.  Replaced while nothing runs.
        self._entropy = fresh_entropy()
        self._kept: dict[Place, Keeping] = {}
        #: What was restored for kernels that are not made yet.
        self._awaited: dict[Place, Tree] = {}

    def scope(self, name: str) -> Keeper:
        """What kernels of a device, or of a function on it, are told."""
        return Keeper(self, name)

    def keep(self, place: Place, kept: Keeping) -> None:
        """Note what keeps something; if its state waits for it, it gets it."""
        with self._lock:
            self._kept[place] = kept
        self._hand_over(place, kept)

    def chance(self, place: Place) -> Chance:
        """Where a node draws from; the same for all kernels of it."""
        made = Chance(lambda: self._entropy, "\0".join(place))
        with self._lock:
            found = self._kept.setdefault(place, made)
        assert isinstance(found, Chance)  # no other thing is kept in such a place
        if found is made:
            self._hand_over(place, made)
        return found

    def _hand_over(self, place: Place, kept: Keeping) -> None:
        """Give what is new the state that waits for it, if there is one."""
        with self._lock:
            is_awaited = place in self._awaited
            state = self._awaited.pop(place, None)
        if is_awaited:
            kept.restore(state)

    def state(self) -> Tree:
        """All that is kept; while nothing runs."""
        with self._lock:
            kept, awaited = dict(self._kept), dict(self._awaited)
        found = {**awaited, **{place: one.state() for place, one in kept.items()}}
        return self._entropy.hex(), tuple((*place, found[place]) for place in sorted(found))

    def restore(self, state: Tree) -> None:
        """Keep what was kept then; while nothing runs.

        Raises:
            ValueError: the tree is none that ``state`` gave.

        """
        entropy, rows = trees.parts(state, 2)
        wanted = dict(map(_placed, trees.listed(rows)))
        self._entropy = bytes.fromhex(trees.text(entropy))
        with self._lock:
            kept = dict(self._kept)
            self._awaited = {at: tree for at, tree in wanted.items() if at not in kept}
        for place, one in kept.items():
            one.restore(wanted.get(place))


class Keeper:
    """The part of a session's ``NodeStates`` that is about one device, or a function on it."""

    def __init__(self, states: NodeStates, name: str) -> None:
        """Say of which device or function it is."""
        self._states: Final = states
        self._name: Final = name
        #: What several kernels of a node share, by the node, what it is, and of what kind.  Grows,
        #: each item at once; of two that are made at the same time, one stays.
        self._shared: Final[dict[tuple[str, str, Hashable], Any]] = {}

    def keep(self, node: str, what: str, kept: Keeping) -> None:
        """Note what keeps something of a node."""
        self._states.keep(Place(self._name, node, what), kept)

    def shared(self, node: str, what: str, kind: Hashable, make: Callable[[], _Kept]) -> _Kept:
        """What all kernels of a node share; made, and kept, for the first of them."""
        found: _Kept | None = self._shared.get((node, what, kind))
        if found is None:
            made = make()
            found = self._shared.setdefault((node, what, kind), made)
            if found is made:
                self.keep(node, what, made)
        return found

    def chance(self, node: str) -> Chance:
        """Where a node draws from."""
        return self._states.chance(Place(self._name, node, "chance"))


def _placed(row: Tree) -> tuple[Place, Tree]:
    scope, node, what, state = trees.parts(row, 4)
    return Place(trees.text(scope), trees.text(node), trees.text(what)), state
