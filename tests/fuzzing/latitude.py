"""What the meaning of a graph leaves open, each time with a proof.

In:   a mutant, what it means, and what a way of running it gave instead.
Out:  the ``Kind`` of the reason why that is right as well; None if there is none.
Not:  takes nothing for granted: behind each excuse stands an account of the executor's own.

- *Racy*: what is ready may be taken in any order.  Each value and each error that was found is what
  the executor gives in some order, or all of it if each step has an order of its own.  Of nodes
  that fail any may be the first, or a loop that never ends may leave them no time.  Where a loop
  races in each iteration, there are more orders than can be tried: a value for which they give very
  many may be another one of the same type and shape.
- *Racy*, too: what is drawn at random.  Where the executor gives another value each time in one and
  the same order, any value of the type will do.  So it will where it does with other seeds in
  functions, if these have been opened: in TensorFlow, too, one kernel draws for all calls of a
  function, but each call has its own once it is opened.
- *Racy*, too: where an Exit is live in several iterations, its values come to one and the same
  place, and the nodes behind it take whatever lies there.  TensorFlow takes that for impossible,
  and what it gives then is nobody's meaning.
- *Racy*, at last: where functions are opened, what they do mixes with everything else.  What was
  found is what the executor gives of the opened graph in some order, and in another one it gives
  what is meant.
- *Unread*: who optimises may leave out what is only waited for, and its errors with it.  What was
  found is what the executor gives if nobody waits for the node that failed; or, if that node cannot
  be made at all, whatever stands in its place, since nobody looks at what it gives.
- *Unread*, too: who opens functions makes nodes that the executor never comes to, and one of them
  cannot be made.  Whatever stands in its place, all gives what is meant.
- *Sensitive*: who folds a batch norm into a convolution rounds elsewhere.  What was found is hardly
  further off than what the executor gives if constants and feeds differ in their last bits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np

from fuzzing.answers import DEADLINE, Outcome, Values, code_of, culprit, difference, ending, same
from fuzzing.mutant import Mutant
from fuzzing.neighbours import (
    each_alone,
    nudged,
    reading_late,
    reseeded,
    with_stand_in,
    with_ways_into_merges,
    without_waits,
    without_ways_into_merges,
)
from fuzzing.orders import kept_back, noting_exits
from fuzzing.running import DEFINITION, OPENED, Way
from fuzzing.verdict import Kind

#: How many random orders are tried, how many nodes may fail, how many other last bits there are.
_SHUFFLED, _CULPRITS, _NUDGED = 200, 100, 8
#: How many where functions are opened: there are more nodes.
_OPENED: Final = 1_000
#: After so many orders that end in a deadline no more are tried.
_HANGS: Final = 10
#: A value that comes in so many ways may come in others: a race in each iteration has 2**n ends.
_MANY: Final = 16
#: Errors of rounding add up: how often that of one last bit.
_TIMES: Final = 16
#: Runs a mutant in some way.
Run: TypeAlias = Callable[[Mutant, Way], list[Outcome]]
#: A step, a slot, and the value there; or -1, and how the step ended.
_Part: TypeAlias = tuple[int, int, Any]


class _Account(NamedTuple):
    """What came of the steps of a mutant, and how it was run."""

    mutant: Mutant
    way: Way
    steps: list[Outcome]


class Latitude:
    """What may come of one mutant; more of it is tried as long as something is not excused."""

    def __init__(self, mutant: Mutant, meant: list[Outcome], run: Run) -> None:
        self._mutant, self._meant, self._run = mutant, meant, run
        self._accounts = _Accounts(mutant, meant, run)

    def excuse(self, found: Sequence[Outcome], way: Way) -> Kind | None:
        """Why what was found may be right nevertheless."""
        if self._leaves_again() or self._accounts.allow(found, way):
            return Kind.RACY
        if way.is_optimised and self._accounts.allow_opened(found, way):
            return Kind.RACY
        if way.is_optimised and (self._is_unread(found, way) or self._is_unneeded(found, way)):
            return Kind.UNREAD
        if way.tolerance and self._is_sensitive(found):
            return Kind.SENSITIVE
        return None

    def _leaves_again(self) -> bool:
        """Whether some Exit leaves its frame more than once."""
        with noting_exits() as again:
            self._run(self._mutant, DEFINITION)
        return bool(again)

    def _is_unread(self, found: Sequence[Outcome], way: Way) -> bool:
        """Whether that comes if nobody waits for the nodes that fail, one after the other."""
        mutant, meant = self._mutant, self._meant
        for _ in range(_CULPRITS):
            without = without_waits(mutant, culprit(meant))
            if without is None:
                break
            mutant, meant = without, self._run(without, DEFINITION)
            if not difference(meant, found, way.tolerance):
                return True
        is_other = mutant is not self._mutant
        return is_other and _Accounts(mutant, meant, self._run).allow(found, way)

    def _is_unneeded(self, found: Sequence[Outcome], way: Way) -> bool:
        """Whether all agree whatever stands in the place of a node that cannot be made."""
        meant = self._meant
        return self._had_to_make(meant, found, way) or self._had_to_make(found, meant, way)

    def _had_to_make(self, failed: Sequence[Outcome], right: Sequence[Outcome], way: Way) -> bool:
        """Whether who failed had to make what cannot be made, and without it all is right."""
        name = culprit(failed)
        if not self._cannot_be_made(name):
            return False
        others = [with_stand_in(self._mutant, name, value) for value in (0, 1)]
        return all(other is not None and self._all_give(right, other, way) for other in others)

    def _cannot_be_made(self, name: str) -> bool:
        """Whether a node of that name fails that nobody has given anything yet."""
        return any(
            culprit(self._run(by_itself, DEFINITION)) in by_itself.steps[0].targets
            for by_itself in each_alone(self._mutant, name)
        )

    def _all_give(self, right: Sequence[Outcome], mutant: Mutant, way: Way) -> bool:
        """Whether a mutant means that, and a way of running it gives that."""
        ways = (DEFINITION, way)
        return not any(difference(self._run(mutant, w), right, w.tolerance) for w in ways)

    def _is_sensitive(self, found: Sequence[Outcome]) -> bool:
        """Whether that is hardly further off than what comes of other last bits."""
        others = [self._run(nudged(self._mutant, seed), DEFINITION) for seed in range(_NUDGED)]
        accounts = [self._meant, found, *others]
        if len(set(map(len, accounts))) > 1 or any(ending(a) != "OK" for a in accounts):
            return False
        values = [
            [a for step in account if isinstance(step, Values) for a in step.arrays]
            for account in accounts
        ]
        return all(map(_is_near, *values))


class _Accounts:
    """What the executor gives in one order after the other; made as far as they are asked for."""

    def __init__(self, mutant: Mutant, meant: list[Outcome], run: Run) -> None:
        self._mutant, self._run = mutant, run
        self._known = [_Account(mutant, DEFINITION, meant)]
        self._others = self._in_other_orders(meant)

    def allow(self, found: Sequence[Outcome], way: Way) -> bool:
        """Whether each value of each step, and how it ended, stands in some account."""
        missing = _parts(found)
        for account in self._all():
            missing = [part for part in missing if not _has(account.steps, part, way.tolerance)]
            if not missing:
                return True
        if all(self._varies(part) or self._is_random(part, way) for part in missing):
            return True
        return self._is_step_by_step(found, way.tolerance)

    def _is_step_by_step(self, found: Sequence[Outcome], tolerance: float) -> bool:
        """Whether an order for each step can be found, one step after the other."""
        mutant = with_ways_into_merges(self._mutant)
        late: tuple[frozenset[str], ...] = ()
        account = self._run(mutant, DEFINITION)
        for _ in found:
            if not difference(account, found, tolerance):
                return True
            step = _first_difference(account, found, tolerance)
            for by_step in _later_orders(mutant, late, step):
                account = self._run(mutant, replace(DEFINITION, kept_back=by_step))
                if not difference(account[: step + 1], found[: step + 1], tolerance):
                    late = by_step[:-1]
                    break
            else:
                return False
        return not difference(account, found, tolerance)

    def allow_opened(self, found: Sequence[Outcome], way: Way) -> bool:
        """The same for values that differ from order to order where functions are opened.

        Among these orders are some that give what was found, and some that give what is meant.
        """
        missing = [
            part
            for part in _parts(found)
            if not any(_has(account.steps, part, way.tolerance) for account in self._known)
        ]
        if any(slot < 0 for _, slot, _ in missing):
            return False
        places = {(step, slot) for step, slot, _ in missing}
        meant = [part for part in _parts(self._known[0].steps) if part[:2] in places]
        for seed in range(_OPENED):
            steps = self._run(self._mutant, replace(OPENED, order=seed))
            missing = [part for part in missing if not _has(steps, part, way.tolerance)]
            meant = [part for part in meant if not _has(steps, part, way.tolerance)]
            if not missing and not meant:
                return True
        return False

    def _all(self) -> Iterator[_Account]:
        yield from list(self._known)
        for account in self._others:
            self._known.append(account)
            yield account

    def _in_other_orders(self, meant: list[Outcome]) -> Iterator[_Account]:
        yield from self._failing_elsewhere(self._mutant, meant, frozenset())
        patient = with_ways_into_merges(self._mutant)
        eager = without_ways_into_merges(self._mutant)
        graphs = (self._mutant, patient, reading_late(patient), eager)
        for mutant in {
            (m.graph_bytes, *(tuple(s.fetches) for s in m.steps)): m for m in graphs
        }.values():
            # What cannot be made so fails from the beginning, and says nothing.
            account = self._made(mutant, DEFINITION)
            if ending(account.steps) in (ending(meant), DEADLINE):
                yield account
                yield from self._in_orders_of(mutant)

    def _in_orders_of(self, mutant: Mutant) -> Iterator[_Account]:
        for seed in range(_SHUFFLED):
            yield self._made(mutant, replace(DEFINITION, name=f"order {seed}", order=seed))
        hangs = 0
        for account in self._with_some_late(mutant):
            # Others may wait for who is kept back: that such an order hangs is no proof.
            is_hang = ending(account.steps) == DEADLINE
            hangs += is_hang
            if hangs == _HANGS:
                return
            if not is_hang:
                yield account

    def _with_some_late(self, mutant: Mutant) -> Iterator[_Account]:
        for names in kept_back(mutant):
            account = self._made(mutant, _late(names))
            yield account
            yield from self._failing_elsewhere(mutant, account.steps, names)

    def _failing_elsewhere(
        self, mutant: Mutant, found: Sequence[Outcome], late: frozenset[str]
    ) -> Iterator[_Account]:
        """What comes if nodes that fail are taken last: others fail before, or loops never end."""
        for _ in range(_CULPRITS):
            if culprit(found) in {"", *late}:
                return
            late |= {culprit(found)}
            account = self._made(mutant, _late(late))
            yield account
            found = account.steps

    def _made(self, mutant: Mutant, way: Way) -> _Account:
        return _Account(mutant, way, self._run(mutant, way))

    def _varies(self, part: _Part) -> bool:
        """Whether orders give so many values that there are sure to be others."""
        return len(self._alike(part)) >= _MANY

    def _alike(self, part: _Part) -> set[bytes]:
        """The values of the same type and shape that orders give in the same place."""
        step, slot, found = part
        known = (p for account in self._known for p in _parts(account.steps))
        values = [v for at, place, v in known if slot >= 0 and (at, place) == (step, slot)]
        return {v.tobytes() for v in values if (v.dtype, v.shape) == (found.dtype, found.shape)}

    def _is_random(self, part: _Part, way: Way) -> bool:
        """Whether there is another value of the same type each time, in one and the same order."""
        step, slot, found = part
        for account in self._known:
            outcome = account.steps[step] if step < len(account.steps) else None
            if slot >= 0 and isinstance(outcome, Values):
                mutant = reseeded(account.mutant) if way.is_optimised else account.mutant
                again = _parts(self._run(mutant, account.way))
                values = [v for at, place, v in again if (at, place) == (step, slot)]
                first = outcome.arrays[slot]
                return bool(values) and found.dtype == first.dtype and not same(first, values[0])
        return False


def _later_orders(
    mutant: Mutant, late: tuple[frozenset[str], ...], step: int
) -> Iterator[tuple[frozenset[str], ...]]:
    """Other orders of a step, or of one before it in which nobody saw what it changed."""
    for other in range(step, len(late) - 1, -1):
        before = (*late, *(frozenset() for _ in range(len(late), other)))
        yield from ((*before, names, frozenset()) for names in kept_back(mutant))


def _late(names: frozenset[str]) -> Way:
    name = f"{', '.join(sorted(names))[:80]} last"
    return replace(DEFINITION, name=name, kept_back=(names,))


# -- parts of accounts --------------------------------------------------------------------------


def _first_difference(meant: Sequence[Outcome], found: Sequence[Outcome], tolerance: float) -> int:
    """The number of the first step that came out otherwise, or is missing."""
    pairs = zip(meant, found, strict=False)
    differs = (bool(difference([want], [got], tolerance)) for want, got in pairs)
    return next(
        (number for number, is_other in enumerate(differs) if is_other), min(len(meant), len(found))
    )


def _parts(account: Sequence[Outcome]) -> list[_Part]:
    ends = [(step, -1, _end(account, step)) for step in range(len(account) + 1)]
    values = [
        (step, slot, array)
        for step, outcome in enumerate(account)
        if isinstance(outcome, Values)
        for slot, array in enumerate(outcome.arrays)
    ]
    return [*ends, *values]


def _end(account: Sequence[Outcome], step: int) -> str:
    """How a step ended; empty if there was none."""
    return code_of(account[step]) if step < len(account) else ""


def _has(account: Sequence[Outcome], part: _Part, tolerance: float) -> bool:
    step, slot, wanted = part
    if slot < 0:
        return _end(account, step) == wanted
    outcome = account[step] if step < len(account) else None
    return isinstance(outcome, Values) and same(outcome.arrays[slot], wanted, tolerance)


# -- rounding ------------------------------------------------------------------------------------


def _is_near(meant: Any, found: Any, *others: Any) -> bool:
    """Whether an array is off by no more than a few times what the others are."""
    if any(other.shape != meant.shape or other.dtype != meant.dtype for other in (found, *others)):
        return False
    if meant.dtype.kind not in "fc":
        return same(meant, found)
    is_number = np.isfinite(meant)
    if any(not np.array_equal(np.isfinite(other), is_number) for other in (found, *others)):
        return False
    exact = np.complex128 if meant.dtype.kind == "c" else np.float64
    want, got = meant[is_number].astype(exact), found[is_number].astype(exact)
    spread = np.max([np.abs(other[is_number].astype(exact) - want) for other in others], initial=0)
    return bool(np.all(np.abs(got - want) <= _TIMES * spread))
