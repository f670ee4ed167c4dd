"""Where queues keep their elements: which one comes out next.

In:   elements, one at a time.
Out:  elements, one at a time, in the order that the kind of queue has.
Not:  has no lock; knows nobody who waits.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Final

from penstock.core import trees
from penstock.core.dtypes import DType
from penstock.core.trees import Tree
from penstock.kernels.data_flow.queue_state import QueueElement
from penstock.kernels.random.plain_random import Words


def _elements(state: Tree, types: Sequence[DType]) -> list[QueueElement]:
    return [trees.values(element, types) for element in trees.listed(state)]


class FifoStore(deque[QueueElement]):
    """First in, first out: a deque, since calls of its own methods take no time."""

    #: Keep an element behind all others; give the oldest one away.
    put = deque.append
    take = deque.popleft

    def available(self, *, is_closed: bool) -> int:  # noqa: ARG002
        """All of them."""
        return len(self)

    def put_back(self, elements: Sequence[QueueElement]) -> None:
        """Put elements in front of all others, in their old order."""
        self.extendleft(reversed(elements))

    def state(self) -> Tree:
        """The elements, in order."""
        return tuple(self)

    def restore(self, state: Tree, types: Sequence[DType]) -> None:
        """Keep these elements."""
        elements = _elements(state, types)
        self.clear()
        self.extend(elements)


class ShuffleStore:
    """Any element may come out, as long as enough others stay to choose from."""

    def __init__(self, min_after_dequeue: int, words: Words) -> None:
        """Keep at least so many elements; ``words`` decide which one is given away."""
        self._elements: list[QueueElement] = []
        self._min_after_dequeue: Final = min_after_dequeue
        self._words = words

    def __len__(self) -> int:
        return len(self._elements)

    def available(self, *, is_closed: bool) -> int:
        """What is above the minimum, or everything if nothing more can come."""
        size = len(self._elements)
        return size if is_closed else max(0, size - self._min_after_dequeue)

    def put(self, element: QueueElement) -> None:
        """Keep an element."""
        self._elements.append(element)

    def take(self) -> QueueElement:
        """Give away an element that was drawn by lot; the last one takes its place."""
        elements = self._elements
        drawn = next(self._words) % len(elements)
        elements[drawn], elements[-1] = elements[-1], elements[drawn]
        return elements.pop()

    def put_back(self, elements: Sequence[QueueElement]) -> None:
        """Keep elements again."""
        self._elements.extend(elements)

    def state(self) -> Tree:
        """The elements, and the random words."""
        return tuple(self._elements), self._words.state()

    def restore(self, state: Tree, types: Sequence[DType]) -> None:
        """Keep these elements, and go on with these words."""
        elements, words = trees.parts(state, 2)
        self._elements, self._words = _elements(elements, types), Words.of_state(words)


class PriorityStore:
    """The element whose first component is smallest comes out.

    Which one of equals that is follows from the way in which TensorFlow's C++ library moves the
    elements of a heap: ``heapq`` would move them otherwise.
    """

    def __init__(self) -> None:
        #: (priority, element); none comes before its parent, at half of its index.
        self._heap: list[tuple[int, QueueElement]] = []

    def __len__(self) -> int:
        return len(self._heap)

    def available(self, *, is_closed: bool) -> int:  # noqa: ARG002
        """All of them."""
        return len(self._heap)

    def put(self, element: QueueElement) -> None:
        """Keep an element."""
        entry = int(element[0]), element
        self._heap.append(entry)
        self._rise(len(self._heap) - 1, entry)

    def take(self) -> QueueElement:
        """Give away the element with the smallest priority."""
        heap = self._heap
        first, last = heap[0], heap.pop()
        if heap:
            self._rise(self._sink(), last)
        return first[1]

    def put_back(self, elements: Sequence[QueueElement]) -> None:
        """Keep elements again."""
        for element in elements:
            self.put(element)

    def state(self) -> Tree:
        """The elements, in the order of the heap."""
        return tuple(element for _, element in self._heap)

    def restore(self, state: Tree, types: Sequence[DType]) -> None:
        """Keep these elements; those of another order make a heap as well."""
        self._heap = []
        self.put_back(_elements(state, types))

    def _sink(self) -> int:
        """Move the hole at the top down to where nothing hangs below it; returns its index."""
        heap, hole = self._heap, 0
        while (child := 2 * hole + 2) < len(heap):
            if heap[child][0] > heap[child - 1][0]:
                child -= 1
            heap[hole], hole = heap[child], child
        if child == len(heap):
            heap[hole], hole = heap[child - 1], child - 1
        return hole

    def _rise(self, hole: int, entry: tuple[int, QueueElement]) -> None:
        """Put an entry into a hole, or above it, behind all that come before it."""
        heap = self._heap
        while hole and heap[parent := (hole - 1) // 2][0] > entry[0]:
            heap[hole], hole = heap[parent], parent
        heap[hole] = entry
