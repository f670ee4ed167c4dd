"""What kernels are found to cost decides which of them are worth a hop to another thread."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from penstock.runtime.executor.costs import CHEAP, KernelCosts

THRESHOLD = 1.0


def items(*measured: bool) -> Any:
    return [SimpleNamespace(id=i, is_measured=known) for i, known in enumerate(measured)]


def costs_of(*measured: bool, threshold: float = THRESHOLD, learns: bool = True) -> KernelCosts:
    return KernelCosts(items(*measured), threshold, learns=learns)


def after(*seconds: float, learns: bool = True) -> float:
    """What a kernel costs after some runs."""
    costs = costs_of(True, learns=learns)
    for one in seconds:
        costs.note(items(True)[0], costs.by_item[0], one)
    return costs.by_item[0]


def test_only_measured_kernels_have_something_to_prove() -> None:
    """Others are cheap for good; without a threshold every measured one is slow."""
    assert costs_of(True, False).by_item == [0.0, CHEAP]
    assert costs_of(True, False, threshold=0.0).by_item == [1.0, CHEAP]
    assert list(costs_of(True, False).of_nobody) == [CHEAP, CHEAP]


@pytest.mark.parametrize(
    ("seconds", "cost"),
    [
        ((0.5,), -1.0),
        ((0.5, 0.5), -2.0),
        ((0.5, 0.5, 0.5), CHEAP),
        ((3.0,), 3.0),
        ((0.5, 3.0), 3.0),
        ((3.0, 5.0), 0.9 * 3.0 + 0.1 * 5.0),
        ((3.0, 0.5), 0.9 * 3.0 + 0.1 * 0.5),
        ((1.0,), 1.0),
        ((3.0, 3.0, 13.0), 4.0),
    ],
)
def test_what_is_learnt(seconds: tuple[float, ...], cost: float) -> None:
    """Cheap runs are counted, in a row; a slow one is remembered, and fades away."""
    assert after(*seconds) == pytest.approx(cost)


def test_who_does_not_learn_takes_no_notice() -> None:
    """However long a kernel took."""
    assert after(5.0, 5.0, learns=False) == 0.0


FEW, MANY = np.zeros(9), np.zeros(1 << 16)


def test_slow_is_what_reaches_the_threshold() -> None:
    """Whatever it gets; one that nobody knows yet may be slow, too."""
    costs = costs_of(True)
    slow = [costs.is_slow(cost, [MANY]) for cost in (CHEAP, -1.0, 0.0, 0.9, 1.0, 2.0)]
    assert slow == [False] * 4 + [True] * 2
    may_be = [costs.may_be_slow(cost) for cost in (CHEAP, -1.0, 0.0, 0.9, 1.0, 2.0)]
    assert may_be == [False, False, True, False, True, True]


def test_who_does_not_learn_goes_by_sizes() -> None:
    """What gets large inputs is slow, and everything else quick."""
    costs = costs_of(True, learns=False)
    found = [costs.is_slow(0.0, [FEW, x]) for x in (FEW, MANY, MANY[1:], 3.0)]
    assert found == [False, True, False, False]
    assert not costs.is_slow(CHEAP, [MANY])
