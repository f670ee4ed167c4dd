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


def after(*seconds: float) -> float:
    """What a kernel costs after some runs."""
    [item] = nodes = items(True)
    costs = KernelCosts(nodes, THRESHOLD)
    for one in seconds:
        costs.note(item, costs.by_item[0], one)
    return costs.by_item[0]


def test_only_measured_kernels_have_something_to_prove() -> None:
    """Others are cheap for good; without a threshold every measured one is slow."""
    assert KernelCosts(items(True, False), THRESHOLD).by_item == [0.0, CHEAP]
    assert KernelCosts(items(True, False), 0.0).by_item == [1.0, CHEAP]
    assert list(KernelCosts(items(True, False), THRESHOLD).of_nobody) == [CHEAP, CHEAP]


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


def test_slow_is_what_reaches_the_threshold() -> None:
    """A kernel that nobody knows may be slow if it gets much."""
    costs = KernelCosts(items(True), THRESHOLD)
    few, many = np.zeros(9), np.zeros(1 << 17)
    assert [costs.is_slow(cost) for cost in (0.9, 1.0, 2.0)] == [False, True, True]
    assert [costs.may_be_slow(0.0, [few, x]) for x in (few, many, 3.0)] == [False, True, False]
    assert not costs.may_be_slow(-1.0, [many])
    assert costs.may_be_slow(2.0, [few])
