"""Whether all ways of running a mutant agree with what it means.

In:   a mutant.
Out:  a ``Verdict``.
Not:  knows no right answers: the executor, on the graph as it is, gives them.

What the meaning leaves open is what ``latitude`` proves to be open.  Nothing else excuses a value,
an error or a step that is another one.  A deadline is no answer: who has met it, while others have
not, gets more time.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np

from fuzzing.answers import DEADLINE, Failure, Outcome, difference, ending, same
from fuzzing.latitude import Latitude
from fuzzing.mutant import Mutant
from fuzzing.running import CHECKED, DEFINITION, Way, outcomes, ways
from fuzzing.verdict import Kind, Verdict

#: How much more time there is for who has met a deadline, and if that is not enough: a compiled
#: loop may run a hundred times as fast as the executor.
_PATIENCE: Final = (8, 64)


def judge(mutant: Mutant, seed: int, watch: Callable[[Way], None]) -> Verdict:
    """Run a mutant in all ways; ``watch`` is told of each before it starts."""
    given = copy.deepcopy([step.feeds for step in mutant.steps])

    def run(mutant: Mutant, way: Way) -> list[Outcome]:
        watch(way)
        return outcomes(mutant, way)

    meant = run(mutant, DEFINITION)
    if reason := _bare(meant):
        return Verdict(Kind.FINDING, ending(meant), f"{DEFINITION.name}: {reason}")
    kind, latitude = Kind.AGREED, Latitude(mutant, meant, run)
    for way in ways(seed):
        before, (meant, found) = meant, _with_time(mutant, meant, (way, run(mutant, way)), run)
        if meant is not before:
            latitude = Latitude(mutant, meant, run)
        reason = _bare(found)
        if not reason and not _are_same(given, [step.feeds for step in mutant.steps]):
            reason = "a feed has been written into"
        if way.is_checked and difference(meant, found, way.tolerance):
            account = run(mutant, CHECKED)
            found = found if difference(account, found, way.tolerance) else meant
        if not reason and (differs := difference(meant, found, way.tolerance)):
            excuse = latitude.excuse(found, way)
            kind, reason = (kind, differs) if excuse is None else (excuse, "")
        if reason:
            return Verdict(Kind.FINDING, ending(meant), f"{way.name}: {reason}")
    is_endless = kind is Kind.AGREED and ending(meant) == DEADLINE
    return Verdict(Kind.ENDLESS if is_endless else kind, ending(meant))


def _bare(found: Sequence[Outcome]) -> str:
    """What went wrong in a way that no caller can expect."""
    for outcome in found:
        if isinstance(outcome, Failure) and not outcome.is_answer:
            return outcome.message
    return ""


def _with_time(
    mutant: Mutant,
    meant: list[Outcome],
    other: tuple[Way, list[Outcome]],
    run: Callable[[Mutant, Way], list[Outcome]],
) -> tuple[list[Outcome], list[Outcome]]:
    """What was meant and found; if one of them alone has met a deadline, what it is with time."""
    way, found = other
    for patience in _PATIENCE:
        if (ending(meant) == DEADLINE) == (ending(found) == DEADLINE):
            break
        if ending(meant) == DEADLINE:
            meant = run(mutant, replace(DEFINITION, patience=patience))
        else:
            found = run(mutant, replace(way, patience=patience))
    return meant, found


def _are_same(before: Sequence[Mapping[str, Any]], after: Sequence[Mapping[str, Any]]) -> bool:
    return all(
        same(np.asarray(old[name]), np.asarray(new[name]))
        for old, new in zip(before, after, strict=True)
        for name in old
    )
