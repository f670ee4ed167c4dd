"""Of two ways to compute something, the one that proves faster goes on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from penstock.kernels.onnx import contest
from penstock.kernels.onnx.contest import Contest

ARRAY = np.ones(100, np.float32)


def timed(seconds: dict[str, float], monkeypatch: pytest.MonkeyPatch) -> Callable[[Any], Any]:
    """A kernel of two ways that take so long by a clock of its own.

    If "new" is there, the first call of a way in a row takes as long as that says.
    """
    now, last = [0.0], [""]
    monkeypatch.setattr(contest, "perf_counter", lambda: now[0])

    def way(name: str) -> Callable[[Any], str]:
        def compute(_x: Any) -> str:
            now[0] += seconds[name] if last[0] == name else seconds.get("new", seconds[name])
            last[0] = name
            return name

        return compute

    between, fast, plain = Contest(), way("fast"), way("plain")
    return lambda x: between.run(fast, plain, (x,), (x,))


@pytest.mark.parametrize("better", ["fast", "plain"])
def test_the_faster_way_is_the_one_that_was_faster(
    better: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a few calls of both, the promise does not count any more."""
    kernel = timed({"fast": 2.0, "plain": 2.0, better: 1.0}, monkeypatch)
    assert [kernel(ARRAY) for _ in range(10)] == ["fast"] * 4 + ["plain"] * 3 + [better] * 3


def test_a_verdict_is_changed_when_times_are(monkeypatch: pytest.MonkeyPatch) -> None:
    """If the faster way was held up in the first calls, it gets other chances."""
    seconds = {"fast": 5.0, "plain": 2.0}
    kernel = timed(seconds, monkeypatch)
    assert [kernel(ARRAY) for _ in range(10)][7:] == ["plain"] * 3
    seconds["fast"] = 1.0
    taken = [kernel(ARRAY) for _ in range(100)]
    assert taken[-1] == "fast"
    assert taken.count("plain") < 18


def test_a_way_is_not_judged_by_its_first_call_in_a_row(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever comes back has lost memory and caches to the other way, and gets them again."""
    seconds = {"fast": 5.0, "plain": 2.0, "new": 10.0}
    kernel = timed(seconds, monkeypatch)
    assert [kernel(ARRAY) for _ in range(10)][7:] == ["plain"] * 3
    seconds["fast"] = 1.0
    assert [kernel(ARRAY) for _ in range(200)].count("fast") > 150


def test_short_work_keeps_its_verdict(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where little can be won, results do not change from call to call either."""
    kernel = timed({"fast": 5e-5, "plain": 2e-5}, monkeypatch)
    assert [kernel(ARRAY) for _ in range(200)][7:] == ["plain"] * 193


def test_other_shapes_are_another_trial(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is faster for one size may be slower for another."""
    kernel = timed({"fast": 2.0, "plain": 1.0}, monkeypatch)
    assert [kernel(ARRAY) for _ in range(8)][-1] == "plain"
    assert kernel(np.ones(101, np.float32)) == "fast"
