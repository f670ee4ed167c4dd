"""In which order to eliminate the unknowns of a symmetric matrix, so that few zeros fill up.

In:   for each unknown the list of those that it meets, in order.
Out:  the unknowns, the first to be eliminated first.
Not:  sees no numbers.

The approximate minimum degree of Amestoy, Davis and Duff ("An approximate minimum degree ordering
algorithm", SIAM J. Matrix Anal. Appl. 17, 1996), with the order among equals that Davis describes
in "Direct Methods for Sparse Linear Systems" (SIAM 2006), chapter 7.  An unknown that is
eliminated becomes an element: the clique of those that it met.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

_ROOT: Final = -1


def minimum_degree(meets: Sequence[Sequence[int]]) -> list[int]:
    """All unknowns in their order.

    Args:
        meets: symmetric; an unknown stands in its own list if its diagonal element is there.
            Those of which it is not, and dense ones, come last.

    """
    return _Elimination(meets).run() if meets else []


class _Elimination:
    """The quotient graph: what is left of the unknowns, and the elements that were made."""

    def __init__(self, meets: Sequence[Sequence[int]]) -> None:
        size = self._size = len(meets)
        #: Unknowns and elements that each unknown meets.
        self._unknowns: Final = [list(some) for some in meets]
        self._elements: Final[list[list[int]]] = [[] for _ in meets]
        #: The clique of each element.
        self._cliques: Final[dict[int, list[int]]] = {}
        #: For how many unknowns one stands that cannot be told apart from it; 0 once it is
        #: represented by another.  Negative while it is in the clique that is being made.
        self._weights: Final = [1] * size + [1]
        #: What each was merged into: an element, an unknown, or the last one, which is none.
        self._parents: Final = [_ROOT] * (size + 1)
        #: Bounds of degrees, of elements the weights of their cliques.
        self._degrees: Final = [len(some) for some in meets]
        #: Unknowns by degree, of which the last is the first.
        self._by_degree: Final[list[dict[int, None]]] = [{} for _ in range(size + 1)]
        self._least = 0
        self._done = 0

    def run(self) -> list[int]:
        """Eliminate everything; returns the order."""
        self._sort_out()
        while self._done < self._size:
            self._eliminate(self._next())
        return self._order()

    def _sort_out(self) -> None:
        """Put everything into the lists by degree, but what meets nothing, or too much."""
        dense = min(self._size - 2, max(16, int(10 * math.sqrt(self._size))))
        for one, degree in enumerate(self._degrees):
            has_diagonal = one in self._unknowns[one]
            if degree == 1 and has_diagonal:
                self._done += 1
            elif degree > dense or not has_diagonal:
                self._merge(one, self._size)
                self._weights[self._size] += 1
                self._done += 1
            else:
                self._by_degree[degree][one] = None

    def _next(self) -> int:
        """Take what has the least degree out of its list."""
        while not self._by_degree[self._least]:
            self._least += 1
        return self._by_degree[self._least].popitem()[0]

    def _merge(self, one: int, other: int) -> None:
        self._parents[one], self._weights[one] = other, 0

    def _eliminate(self, pivot: int) -> None:
        weight = self._weights[pivot]
        self._done += weight
        clique = self._clique_of(pivot)
        size = sum(-self._weights[one] for one in clique)
        outside = self._outside(clique)
        buckets: dict[int, list[int]] = {}
        digests: dict[int, int] = {}
        for one in clique:
            bound, digests[one] = self._update(one, pivot, outside)
            if bound == 0:  # it meets nothing else, and is eliminated at once
                lost = -self._weights[one]
                self._merge(one, pivot)
                size, weight, self._done = size - lost, weight + lost, self._done + lost
            else:
                self._degrees[one] = min(self._degrees[one], bound)
                buckets.setdefault(digests[one], []).append(one)
        self._degrees[pivot] = size
        for one in clique:
            if self._weights[one] < 0:
                self._join_equals(buckets.pop(digests[one], []))
        self._weights[pivot] = weight
        self._finish(pivot, clique, size)

    def _clique_of(self, pivot: int) -> list[int]:
        """All that the new element holds; what it was made of is part of it from now on."""
        clique: list[int] = []
        self._weights[pivot] = -self._weights[pivot]
        sources = [(e, self._cliques.pop(e)) for e in self._elements[pivot]]
        for element, members in [*sources, (pivot, self._unknowns[pivot])]:
            for one in members:
                if self._weights[one] > 0:
                    self._weights[one] = -self._weights[one]
                    clique.append(one)
                    self._by_degree[self._degrees[one]].pop(one, None)
            if element != pivot:
                self._parents[element] = pivot
        return clique

    def _outside(self, clique: Sequence[int]) -> dict[int, int]:
        """Of each element that the clique meets, the weight of what is not in the clique."""
        outside: dict[int, int] = {}
        for one in clique:
            for element in self._elements[one]:
                if element in self._cliques:
                    rest = outside.get(element, self._degrees[element])
                    outside[element] = rest + self._weights[one]
        return outside

    def _update(self, one: int, pivot: int, outside: dict[int, int]) -> tuple[int, int]:
        """Let an unknown meet the new element; returns a bound of its degree, and a digest."""
        elements: list[int] = []
        for element in self._elements[one]:
            if element not in self._cliques:
                continue
            if outside[element] > 0:
                elements.append(element)
            else:  # the new element has all of it
                self._parents[element] = pivot
                del self._cliques[element]
        unknowns = [other for other in self._unknowns[one] if self._weights[other] > 0]
        bound = sum(outside[element] for element in elements)
        bound += sum(self._weights[other] for other in unknowns)
        digest = (sum(elements) + sum(unknowns)) % self._size
        # The first ones go to the end, which is part of the order among equals.
        self._elements[one] = [pivot, *elements[1:], *elements[:1]]
        self._unknowns[one] = unknowns[1:] + unknowns[:1]
        return bound, digest

    def _join_equals(self, bucket: list[int]) -> None:
        """Of unknowns with one digest, those that meet the same become one, the last first."""
        bucket.reverse()
        while len(bucket) > 1:
            first, *others = bucket
            met = self._met(first)
            bucket = []
            for other in others:
                if self._met(other) == met:
                    self._weights[first] += self._weights[other]
                    self._merge(other, first)
                else:
                    bucket.append(other)

    def _met(self, one: int) -> tuple[int, frozenset[int]]:
        elements, unknowns = self._elements[one], self._unknowns[one]
        return len(elements), frozenset(elements[1:]) | frozenset(unknowns)

    def _finish(self, pivot: int, clique: Sequence[int], size: int) -> None:
        """Put what is left of the clique back into the lists by degree."""
        left = [one for one in clique if self._weights[one] < 0]
        for one in left:
            weight = self._weights[one] = -self._weights[one]
            degree = min(self._degrees[one] + size - weight, self._size - self._done - weight)
            self._by_degree[degree][one] = None
            self._least = min(self._least, degree)
            self._degrees[one] = degree
        if left:
            self._cliques[pivot] = left

    def _order(self) -> list[int]:
        """The tree of what was merged into what, children before parents."""
        children: list[list[int]] = [[] for _ in self._parents]
        is_element = [weight > 0 for weight in self._weights]
        for kind in (True, False):
            for one, parent in enumerate(self._parents):
                if parent != _ROOT and is_element[one] is kind:
                    children[parent].append(one)
        order: list[int] = []
        for root, parent in enumerate(self._parents):
            if parent == _ROOT:
                _visit(root, children, order)
        return [one for one in order if one < self._size]


def _visit(root: int, children: Sequence[Sequence[int]], order: list[int]) -> None:
    """Note a tree, children before parents."""
    waiting = [(root, iter(children[root]))]
    while waiting:
        one, rest = waiting[-1]
        child = next(rest, None)
        if child is None:
            order.append(one)
            waiting.pop()
        else:
            waiting.append((child, iter(children[child])))
