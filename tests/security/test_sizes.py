"""Absurd numbers, wherever a graph tells an op one, end in an answer or in a sentence."""

from __future__ import annotations

import pytest

from security.sizes import attacked, cases
from support.corpus import Case
from support.op_cases import OpCase

#: Of so many attacks on a case, one is made here; ``sizes`` makes them all.
EVERY = 149


def _of_each_op() -> list[Case | OpCase]:
    """For each op one case that has it, and as few of them as that takes."""
    seen: set[str] = set()
    chosen = []
    for case in cases():
        if not seen.issuperset(case.ops):
            seen.update(case.ops)
            chosen.append(case)
    return chosen


@pytest.mark.slow
@pytest.mark.parametrize("case", _of_each_op()[::15], ids=str)
def test_absurd_numbers(case: Case | OpCase) -> None:
    """For some ops: no bare exception, no mistake of ours, no hour of work, no end of memory."""
    assert attacked(case, every=37).findings == []


@pytest.mark.parametrize("case", _of_each_op()[::60], ids=str)
def test_some_absurd_numbers(case: Case | OpCase) -> None:
    """The same for fewer."""
    assert attacked(case, every=EVERY).findings == []
