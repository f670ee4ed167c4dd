"""Put the statements of a body in an order, and say in which branch each stands.

In:   a body.
Out:  statements with their paths: the outcomes of conditions, outermost first, that lead
      to the branch in which a statement is written.
Not:  writes no text, and looks into no loop inside the body.

Any order that respects what statements wait for would be right.  This one stays in a branch
as long as something in it can be done, then tries the opposite branch, and otherwise keeps
the order in which statements were made.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from heapq import heappop, heappush
from typing import Final, NamedTuple, TypeAlias

from penstock.errors import InternalError, ResourceExhaustedError
from penstock.runtime.compiler.predicates import ALWAYS, NEVER, Condition, Predicate, Predicates
from penstock.runtime.compiler.program import (
    Body,
    Nothing,
    Statement,
    Var,
    operands_of,
    variable_of,
)

#: A predicate that is asked as a whole may ask so many questions: Python's parser has limits,
#: and written out as a tree, what is shared in a diagram doubles time and again.
MAX_QUESTIONS: Final = 100


class Outcome(NamedTuple):
    """A condition that came out one way."""

    condition: Condition
    is_true: bool


class CompoundPredicate(NamedTuple):
    """A predicate that is no sequence of outcomes: an "or" of several."""

    predicate: Predicate


#: The branch that a statement stands in, from the outside in.
Path: TypeAlias = "tuple[Outcome | CompoundPredicate, ...]"


class ScheduledStatement(NamedTuple):
    """A statement in its branch."""

    statement: Statement
    path: Path
    #: What the statement reads, and what its branch asks.
    reads: tuple[Var, ...]


class ScheduledIteration(NamedTuple):
    """One iteration of a loop body: what is done before it is known whether the loop goes on."""

    before: list[ScheduledStatement]
    after: list[ScheduledStatement]


def schedule(body: Body) -> list[ScheduledStatement]:
    """All statements of a body in order, without those that do nothing."""
    return _Scheduler(body, body.statements, ALWAYS).run()


def in_order(statements: Iterable[Statement]) -> list[ScheduledStatement]:
    """Statements in their order, in no branch."""
    return [ScheduledStatement(statement, (), _read_by(statement)) for statement in statements]


def _read_by(statement: Statement) -> tuple[Var, ...]:
    return tuple(map(variable_of, operands_of(statement)))


def schedule_iteration(body: Body, goes_on: Condition) -> ScheduledIteration:
    """The same for a loop body; what needs the condition to be true comes after it."""
    predicates = body.predicates
    going = predicates.is_true(goes_on)
    first: dict[Statement, None] = {}
    waiting = [s for s in body.statements if not predicates.implies(s.live, going)]
    while waiting:
        statement = waiting.pop()
        if statement not in first:
            first[statement] = None
            waiting.extend(statement.waits)
    before = [s for s in body.statements if s in first]
    after = [s for s in body.statements if s not in first]
    return ScheduledIteration(
        _Scheduler(body, before, ALWAYS).run(), _Scheduler(body, after, going).run()
    )


def path_of(predicates: Predicates, live: Predicate) -> Path:
    """The outcomes that make a predicate true.

    Raises:
        ResourceExhaustedError: it is too large for an expression.

    """
    path: list[Outcome | CompoundPredicate] = []
    while live != ALWAYS:
        condition, low, high = predicates.parts(live)
        if low == NEVER:
            path.append(Outcome(condition, True))  # noqa: FBT003  (a field)
            live = high
        elif high == NEVER:
            path.append(Outcome(condition, False))  # noqa: FBT003
            live = low
        else:
            if predicates.questions(live) > MAX_QUESTIONS:
                raise ResourceExhaustedError("branches are too entangled to be compiled")
            path.append(CompoundPredicate(live))
            break
    return tuple(path)


def _conditions_in(predicates: Predicates, path: Path) -> Iterable[Condition]:
    """Every condition that a path asks."""
    for step in path:
        if isinstance(step, Outcome):
            yield step.condition
            continue
        waiting, seen = [step.predicate], {NEVER, ALWAYS}
        while waiting:
            predicate = waiting.pop()
            if predicate not in seen:
                seen.add(predicate)
                condition, low, high = predicates.parts(predicate)
                yield condition
                waiting += [low, high]


class _Scheduler:
    """One schedule under construction."""

    def __init__(self, body: Body, statements: Sequence[Statement], given: Predicate) -> None:
        predicates = body.predicates
        #: The path of each predicate, and what is asked along it.
        self._paths: dict[Predicate, tuple[Path, tuple[Var, ...]]] = {}
        for live in {statement.live for statement in statements}:
            path = path_of(predicates, predicates.under(live, given))
            asked = tuple(body.conditions[c] for c in _conditions_in(predicates, path))
            self._paths[live] = (path, asked)
        self._statements = statements
        self._users: dict[Statement, list[int]] = {s: [] for s in statements}
        self._waiting = [0] * len(statements)
        for index, statement in enumerate(statements):
            sources = [s for s in statement.waits if s in self._users]
            self._waiting[index] = len(sources)
            for source in sources:
                self._users[source].append(index)
        #: Statements that can be done, by path; no heap is empty.
        self._ready: dict[Path, list[int]] = {}
        #: The paths of ``_ready`` by each beginning that they have.
        self._beginnings: dict[Path, dict[Path, None]] = {}

    def run(self) -> list[ScheduledStatement]:
        """Order everything."""
        placed: list[ScheduledStatement] = []
        path: Path = ()
        self._make_ready([i for i, count in enumerate(self._waiting) if not count])
        while self._ready:
            path = self._next_path(path)
            index = self._take(path)
            statement = self._statements[index]
            reads = _read_by(statement) + self._paths[statement.live][1]
            placed.append(ScheduledStatement(statement, path, reads))
            self._make_ready(self._done(index))
        if any(self._waiting):
            raise InternalError("statements wait for each other")
        return placed

    def _done(self, index: int) -> list[int]:
        """The statements that waited for this one only."""
        freed = []
        for user in self._users[self._statements[index]]:
            self._waiting[user] -= 1
            if not self._waiting[user]:
                freed.append(user)
        return freed

    def _make_ready(self, indices: list[int]) -> None:
        """Let statements be taken; those that do nothing are done at once."""
        waiting = list(indices)
        for index in waiting:  # which may grow
            statement = self._statements[index]
            if isinstance(statement, Nothing):
                waiting += self._done(index)
            else:
                self._push(index, self._paths[statement.live][0])

    def _push(self, index: int, path: Path) -> None:
        heap = self._ready.get(path)
        if heap is None:
            heap = self._ready[path] = []
            for end in range(len(path) + 1):
                self._beginnings.setdefault(path[:end], {})[path] = None
        heappush(heap, index)

    def _take(self, path: Path) -> int:
        heap = self._ready[path]
        index = heappop(heap)
        if not heap:
            del self._ready[path]
            for end in range(len(path) + 1):
                paths = self._beginnings[path[:end]]
                del paths[path]
                if not paths:
                    del self._beginnings[path[:end]]
        return index

    def _next_path(self, path: Path) -> Path:
        """Where to go on: here, opposite, deeper, or as little further out as possible."""
        if path in self._ready:
            return path
        for end in range(len(path), -1, -1):
            if end < len(path):
                opposite = _opposite(path, end)
                if opposite in self._beginnings:
                    return next(iter(self._beginnings[opposite]))
                if path[:end] in self._ready:
                    return path[:end]
            if path[:end] in self._beginnings:
                return next(iter(self._beginnings[path[:end]]))
        raise InternalError("nothing is ready")


def _opposite(path: Path, end: int) -> Path:
    """The branch on the other side of the condition at ``end``."""
    step = path[end]
    if isinstance(step, CompoundPredicate):
        return (*path[:end], step)  # nothing is there: the path itself is not ready
    return (*path[:end], Outcome(step.condition, not step.is_true))
