"""A sequence that never changes, of which changed copies are cheap.

In:   items.
Out:  new sequences that share all but a few nodes with the old one.
Not:  knows no tensors; is never written into, so threads and branches need no locks.

The last items, up to 32 of them, are a list by themselves, since most changes are at the end.  The
others are the leaves of a tree in which each node is a list of up to 32; a change copies the nodes
between the root and one leaf.  No list is changed once it is part of a vector; lists it is, because
to copy one and change the copy takes half of a tuple's time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Any, Final, Generic, TypeAlias, TypeVar

_T = TypeVar("_T")
_Node: TypeAlias = list[Any]

_BITS: Final = 5
_WIDTH: Final = 1 << _BITS


class PersistentVector(Generic[_T]):
    """Items by index; every change makes another vector."""

    __slots__ = ("_root", "_shift", "_tail", "_tail_at", "size")

    def __init__(
        self,
        root: _Node | None = None,
        shift: int = _BITS,
        tail: list[_T] | None = None,
        tail_at: int = 0,
    ) -> None:
        #: The topmost node of the tree, whose leaves are full.
        self._root: _Node = root or []
        #: Bits of an index below those that choose a child of the root.
        self._shift = shift
        #: The last items, at least one if there are any, and the index of the first of them.
        self._tail: list[_T] = tail or []
        self._tail_at = tail_at
        #: Number of items.
        self.size: Final = tail_at + len(self._tail)

    @classmethod
    def of(cls, items: Iterable[_T]) -> PersistentVector[_T]:
        """A vector of these items."""
        nodes: list[Any] = list(items)
        tail_at = _tail_of(len(nodes))
        tail, nodes, shift = nodes[tail_at:], nodes[:tail_at], 0
        while shift < _BITS or len(nodes) > _WIDTH:
            shift += _BITS
            nodes = [nodes[at : at + _WIDTH] for at in range(0, len(nodes), _WIDTH)]
        return cls(nodes, shift, tail, tail_at)

    def get(self, index: int) -> _T:
        """The item at an index from 0 to ``size - 1``."""
        at = index - self._tail_at
        if at >= 0:
            return self._tail[at]
        node: Any = self._root
        for shift in range(self._shift, -1, -_BITS):
            node = node[(index >> shift) & (_WIDTH - 1)]
        item: _T = node
        return item

    def __iter__(self) -> Iterator[_T]:
        level: Iterator[Any] = iter(self._root)
        for _ in range(0, self._shift, _BITS):
            level = chain.from_iterable(level)
        return chain(level, self._tail)

    def pushed(self, item: _T) -> PersistentVector[_T]:
        """A vector with one more item at its end."""
        tail = self._tail
        if len(tail) < _WIDTH:
            return PersistentVector(self._root, self._shift, [*tail, item], self._tail_at)
        return self.put(self.size, item)

    def popped(self) -> PersistentVector[_T]:
        """A vector without the last item, which there must be."""
        tail = self._tail
        if len(tail) > 1:
            return PersistentVector(self._root, self._shift, tail[:-1], self._tail_at)
        return self.resize(self.size - 1, tail[0])

    def last(self) -> _T:
        """The last item, which there must be."""
        return self._tail[-1]

    def put(self, index: int, item: _T) -> PersistentVector[_T]:
        """A vector with another item at ``index``, or with one more if that is ``size``."""
        tail, tail_at, root, shift = self._tail, self._tail_at, self._root, self._shift
        at = index - tail_at
        if at < 0:
            return PersistentVector(_put(root, shift, index, item), shift, tail, tail_at)
        if at == len(tail) < _WIDTH:
            return PersistentVector(root, shift, [*tail, item], tail_at)
        if at == _WIDTH:
            root, shift = _with_leaf(root, shift, tail_at, tail)
            return PersistentVector(root, shift, [item], index)
        changed = tail[:]
        changed[at] = item
        return PersistentVector(root, shift, changed, tail_at)

    def put_many(self, indices: Iterable[int], items: Iterable[_T]) -> PersistentVector[_T]:
        """A vector with other items at ``indices``, of which the last one counts."""
        changes = dict(zip(indices, items, strict=True))
        if len(changes) * _WIDTH < self.size:
            changed = self
            for index, item in changes.items():
                changed = changed.put(index, item)
            return changed
        listed = list(self)
        for index, item in changes.items():
            listed[index] = item
        return PersistentVector.of(listed)

    def resize(self, size: int, item: _T) -> PersistentVector[_T]:
        """A vector of ``size`` items: the first ones, and ``item`` wherever one is missing."""
        tail, tail_at, root, shift = self._tail, self._tail_at, self._root, self._shift
        new_at = _tail_of(size)
        if new_at == tail_at:
            tail = tail[: size - tail_at] + [item] * (size - self.size)
            return PersistentVector(root, shift, tail, tail_at)
        if size < self.size:
            leaf: Any = root
            for level in range(shift, 0, -_BITS):
                leaf = leaf[(new_at >> level) & (_WIDTH - 1)]
            root = _cut(root, shift, new_at) if new_at else []
            while shift > _BITS and len(root) <= 1:
                root, shift = (root[0] if root else []), shift - _BITS
            return PersistentVector(root, shift, leaf[: size - new_at], new_at)
        root, shift = _with_leaf(root, shift, tail_at, tail + [item] * (_WIDTH - len(tail)))
        while new_at > _WIDTH << shift:
            root, shift = [root], shift + _BITS
        root = _pad(root, shift, new_at, item)
        return PersistentVector(root, shift, [item] * (size - new_at), new_at)


def _tail_of(size: int) -> int:
    """The index of the first item that is in no tree."""
    return (size - 1) // _WIDTH * _WIDTH if size else 0


def _with_leaf(root: _Node, shift: int, index: int, leaf: _Node) -> tuple[_Node, int]:
    """A tree that had ``index`` items, with one more leaf, which is full; and its bits."""
    if index == _WIDTH << shift:
        root, shift = [root], shift + _BITS
    return _put(root, shift, index, leaf, _BITS), shift


def _put(node: _Node, shift: int, index: int, item: Any, lowest: int = 0) -> _Node:
    slot = (index >> shift) & (_WIDTH - 1)
    if shift > lowest:
        item = _put(node[slot] if slot < len(node) else [], shift - _BITS, index, item, lowest)
    if slot == len(node):
        return [*node, item]
    changed = node[:]
    changed[slot] = item
    return changed


def _cut(node: _Node, shift: int, size: int) -> _Node:
    """The first ``size`` items below a node: at least one leaf, and only whole ones."""
    slot = (size - 1) >> shift
    if shift == _BITS:
        return node[: slot + 1]
    return [*node[:slot], _cut(node[slot], shift - _BITS, size - (slot << shift))]


def _pad(node: _Node, shift: int, size: int, item: Any) -> _Node:
    """A node's items and then ``item`` up to ``size``; equal full nodes are one object."""
    if not shift:
        return node + [item] * (size - len(node))
    if node:
        last = min(size - ((len(node) - 1) << shift), 1 << shift)
        node = [*node[:-1], _pad(node[-1], shift - _BITS, last, item)]
    whole, rest = size >> shift, size & ((1 << shift) - 1)
    if whole > len(node):
        node = node + [_pad([], shift - _BITS, 1 << shift, item)] * (whole - len(node))
    if rest and len(node) == whole:
        node = [*node, _pad([], shift - _BITS, rest, item)]
    return node
