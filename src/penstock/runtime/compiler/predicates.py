"""Liveness predicates: under which outcomes of which conditions a node is live.

In:   conditions (Switch predicates, inputs that may be dead), in the order in which they
      become known.
Out:  predicates over them, combined by ``and_``, ``or_`` and ``not_``.
Not:  knows no graph.

A predicate is a number: a node of one reduced ordered binary decision diagram, so that
equal predicates are the same number, however they came about.  A Merge of both branches
of a condition is therefore seen to be live whenever the condition is.

Law: a condition is only ever combined with a predicate under which it is known.  As
conditions are ordered by when they become known, a diagram that is read from its root asks
no condition before it is known.
"""

from __future__ import annotations

from typing import Final, NewType

from penstock.errors import ResourceExhaustedError

Predicate = NewType("Predicate", int)
#: A condition's number, in the order in which conditions become known.
Condition = NewType("Condition", int)

NEVER: Final = Predicate(0)
ALWAYS: Final = Predicate(1)
#: A diagram of more nodes is given up: the region stays on the dataflow tier.
MAX_NODES: Final = 200_000


class Predicates:
    """All predicates of one loop body, or of the code outside of loops."""

    __slots__ = ("_by_parts", "_max_nodes", "_parts", "_questions", "_results", "count")

    def __init__(self, max_nodes: int = MAX_NODES) -> None:
        self._max_nodes = max_nodes
        #: How many conditions there are.
        self.count = 0
        #: (condition, where it is false, where it is true) by predicate; the two constants
        #: ask a condition that comes after all others.
        last = Condition(2**62)
        self._parts: list[tuple[Condition, Predicate, Predicate]] = [
            (last, NEVER, NEVER),
            (last, ALWAYS, ALWAYS),
        ]
        self._by_parts: dict[tuple[Condition, Predicate, Predicate], Predicate] = {}
        self._results: dict[tuple[Predicate, Predicate, Predicate], Predicate] = {}
        self._questions: dict[Predicate, int] = {NEVER: 0, ALWAYS: 0}

    def new_condition(self) -> Condition:
        """A condition that becomes known after all others."""
        self.count += 1
        return Condition(self.count - 1)

    def is_true(self, condition: Condition) -> Predicate:
        """The predicate that is the condition itself."""
        return self._make(condition, NEVER, ALWAYS)

    def not_(self, a: Predicate) -> Predicate:
        """Where ``a`` is false."""
        return self._choose(a, NEVER, ALWAYS)

    def and_(self, a: Predicate, b: Predicate) -> Predicate:
        """Where both are true."""
        if a == b or b == ALWAYS:
            return a
        return b if a == ALWAYS else self._choose(a, b, NEVER)

    def or_(self, a: Predicate, b: Predicate) -> Predicate:
        """Where at least one is true."""
        if a == b or b == NEVER:
            return a
        return b if a == NEVER else self._choose(a, ALWAYS, b)

    def implies(self, a: Predicate, b: Predicate) -> bool:
        """Whether ``b`` is true wherever ``a`` is."""
        return a == b or b == ALWAYS or self._choose(a, b, ALWAYS) == ALWAYS

    def parts(self, a: Predicate) -> tuple[Condition, Predicate, Predicate]:
        """The first condition asked, and the predicates if it is false and if it is true."""
        return self._parts[a]

    def questions(self, a: Predicate) -> int:
        """How often ``a`` asks something if it is written out as a tree."""
        known = self._questions.get(a)
        if known is None:
            _, low, high = self._parts[a]
            known = self._questions[a] = 1 + self.questions(low) + self.questions(high)
        return known

    def under(self, a: Predicate, given: Predicate) -> Predicate:
        """A predicate that equals ``a`` wherever ``given`` is true, and asks no more than it.

        ``given`` must be true for something.
        """
        if given == ALWAYS or a in (NEVER, ALWAYS):
            return a
        condition, low, high = self._parts[a]
        first, given_low, given_high = self._parts[given]
        if first < condition:
            # What a does not ask: only the sides that can happen count.
            if given_low == NEVER:
                return self.under(a, given_high)
            if given_high == NEVER:
                return self.under(a, given_low)
            return self.under(a, self.or_(given_low, given_high))
        if first > condition:
            return self._make(condition, self.under(low, given), self.under(high, given))
        if given_low == NEVER:
            return self.under(high, given_high)
        if given_high == NEVER:
            return self.under(low, given_low)
        return self._make(condition, self.under(low, given_low), self.under(high, given_high))

    def _make(self, condition: Condition, low: Predicate, high: Predicate) -> Predicate:
        if low == high:
            return low
        key = (condition, low, high)
        known = self._by_parts.get(key)
        if known is None:
            if len(self._parts) >= self._max_nodes:
                raise ResourceExhaustedError("branches are too entangled to be compiled")
            known = self._by_parts[key] = Predicate(len(self._parts))
            self._parts.append(key)
        return known

    def _choose(self, a: Predicate, then: Predicate, other: Predicate) -> Predicate:
        """``then`` where ``a`` is true, ``other`` where it is false."""
        if a == ALWAYS or then == other:
            return then
        if a == NEVER:
            return other
        if then == ALWAYS and other == NEVER:
            return a
        key = (a, then, other)
        known = self._results.get(key)
        if known is None:
            first = min(self._parts[a][0], self._parts[then][0], self._parts[other][0])
            sides = [self._side(p, first) for p in (a, then, other)]
            low = self._choose(*(side[0] for side in sides))
            high = self._choose(*(side[1] for side in sides))
            known = self._results[key] = self._make(first, low, high)
        return known

    def _side(self, a: Predicate, condition: Condition) -> tuple[Predicate, Predicate]:
        first, low, high = self._parts[a]
        return (low, high) if first == condition else (a, a)
