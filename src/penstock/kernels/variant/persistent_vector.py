"""A sequence that never changes, of which changed copies are cheap.

In:   items.
Out:  new sequences that share all but a few nodes with the old one.
Not:  knows no tensors; is never written into, so threads and branches need no locks.

The items are the leaves of a tree in which each node is a list of up to 32; a change
copies the nodes between the root and one leaf.  No list is changed once it is part of a
tree; lists it is, because to copy one and change the copy takes half of a tuple's time.
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

    __slots__ = ("_root", "_shift", "size")

    def __init__(self, root: _Node | None = None, shift: int = 0, size: int = 0) -> None:
        #: The topmost node.
        self._root: _Node = [] if root is None else root
        #: Bits of an index below those that choose a child of the root.
        self._shift = shift
        #: Number of items.
        self.size: Final = size

    @classmethod
    def of(cls, items: Iterable[_T]) -> PersistentVector[_T]:
        """A vector of these items."""
        nodes: list[Any] = list(items)
        size, shift = len(nodes), -_BITS
        while shift < 0 or len(nodes) > 1:
            shift += _BITS
            nodes = [nodes[at : at + _WIDTH] for at in range(0, len(nodes), _WIDTH)]
            if not nodes:
                return cls()
        return cls(nodes[0], shift, size)

    def get(self, index: int) -> _T:
        """The item at an index from 0 to ``size - 1``."""
        node: Any = self._root
        for shift in range(self._shift, -1, -_BITS):
            node = node[(index >> shift) & (_WIDTH - 1)]
        item: _T = node
        return item

    def __iter__(self) -> Iterator[_T]:
        level: Iterator[Any] = iter(self._root)
        for _ in range(0, self._shift, _BITS):
            level = chain.from_iterable(level)
        return level

    def put(self, index: int, item: _T) -> PersistentVector[_T]:
        """A vector with another item at ``index``, or with one more if that is ``size``."""
        root, shift = self._root, self._shift
        if index == _WIDTH << shift:
            root, shift = [root], shift + _BITS
        size = self.size
        if index >= size:
            size = index + 1
        return PersistentVector(_put(root, shift, index, item), shift, size)

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
        root, shift = self._root, self._shift
        if size == 0:
            return PersistentVector()
        if size > self.size:
            while size > _WIDTH << shift:
                root, shift = ([root] if root else []), shift + _BITS
            return PersistentVector(_pad(root, shift, size, item), shift, size)
        root = _cut(root, shift, size)
        while shift and len(root) == 1:
            root, shift = root[0], shift - _BITS
        return PersistentVector(root, shift, size)


def _put(node: _Node, shift: int, index: int, item: Any) -> _Node:
    slot = (index >> shift) & (_WIDTH - 1)
    if shift:
        item = _put(node[slot] if slot < len(node) else [], shift - _BITS, index, item)
    if slot == len(node):
        return [*node, item]
    changed = node[:]
    changed[slot] = item
    return changed


def _cut(node: _Node, shift: int, size: int) -> _Node:
    """The first ``size`` items below a node, at least one."""
    if not shift:
        return node[:size]
    slot = (size - 1) >> shift
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
