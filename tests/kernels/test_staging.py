"""Staging areas, barriers, mutexes and accumulators in sessions: waiting, order, closing."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from penstock import RunOptions, Session, errors
from support.sketch import sketch

STAGE = """
    x = Placeholder() dtype=float32
    i = Placeholder() dtype=int32
    put = Stage(x) dtypes=['float32'] capacity=2 shared_name='s'
    take = Unstage() dtypes=['float32'] capacity=2 shared_name='s'
    peek = StagePeek(i) dtypes=['float32'] capacity=2 shared_name='s'
    size = StageSize() dtypes=['float32'] capacity=2 shared_name='s'
    clear = StageClear() dtypes=['float32'] capacity=2 shared_name='s'
"""
ACCUMULATOR = """
    x = Placeholder() dtype=float32
    step = Placeholder() dtype=int64
    n = Placeholder() dtype=int32
    a = ResourceConditionalAccumulator() dtype=float32 shape=[2]
    add = ResourceAccumulatorApplyGradient(a, step, x)
    take = ResourceAccumulatorTakeGradient(a, n) dtype=float32
    count = ResourceAccumulatorNumAccumulated(a)
"""


class Runner:
    """A session on a graph, with terse feeds."""

    def __init__(self, text: str) -> None:
        self.session = Session(sketch(text))

    def __call__(self, fetch: str, timeout: int = 0, **given: Any) -> Any:
        feeds = {f"{name}:0": value for name, value in given.items()}
        options = RunOptions(timeout_in_ms=timeout) if timeout else None
        return self.session.run(fetch, feeds, options=options)

    def start(self, fetch: str, **given: Any) -> Callable[[], Any]:
        """Run in a thread; returns what waits for the result."""
        box: list[Any] = []
        thread = threading.Thread(target=lambda: box.append(self(fetch, **given)))
        thread.start()

        def result() -> Any:
            thread.join(30)
            assert not thread.is_alive(), "the run hangs"
            return box[0]

        return result


def test_stage_keeps_order() -> None:
    """Values leave a staging area in the order in which they came."""
    run = Runner(STAGE)
    run("put", x=np.float32(1))
    run("put", x=np.float32(2))
    assert run("size:0") == 2
    assert run("peek:0", i=np.int32(1)) == 2
    assert [run("take:0"), run("take:0"), run("size:0")] == [1, 2, 0]


def test_unstage_waits() -> None:
    """Unstage of an empty area waits for the next value."""
    run = Runner(STAGE)
    result = run.start("take:0")
    run("put", x=np.float32(7))
    assert result() == 7


def test_full_area_waits_for_room() -> None:
    """Stage into a full area ends when something is taken out, or everything is cleared."""
    run = Runner(STAGE)
    run("put", x=np.float32(1))
    run("put", x=np.float32(2))
    result = run.start("put", x=np.float32(3))
    run("clear")
    result()
    assert run("take:0") == 3


def test_unstage_can_be_cancelled() -> None:
    """A run that waits for a value ends at its deadline, and takes nothing later."""
    run = Runner(STAGE)
    with pytest.raises(errors.DeadlineExceededError):
        run("take:0", timeout=50)
    run("put", x=np.float32(1))
    assert run("size:0") == 1


def test_accumulator_takes_the_mean() -> None:
    """Gradients are averaged, and those for steps that are over are dropped."""
    run = Runner(ACCUMULATOR)
    zero = np.int64(0)
    run("add", x=np.float32([1, 2]), step=zero)
    run("add", x=np.float32([3, 4]), step=zero)
    assert run("take:0", n=np.int32(2)).tolist() == [2, 3]
    run("add", x=np.float32([5, 6]), step=zero)
    assert run("count:0") == 0


def test_accumulator_waits_for_enough() -> None:
    """A taker waits until there are as many gradients as it wants."""
    run = Runner(ACCUMULATOR)
    result = run.start("take:0", n=np.int32(2))
    for value in (2, 4):
        run("add", x=np.float32([value, value]), step=np.int64(0))
    assert result().tolist() == [3, 3]


def test_accumulator_refuses_other_shapes() -> None:
    """A gradient has the accumulator's shape."""
    run = Runner(ACCUMULATOR)
    with pytest.raises(errors.InvalidArgumentError, match="Shape mismatch"):
        run("add", x=np.float32([1]), step=np.int64(0))
