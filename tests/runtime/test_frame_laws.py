"""The check of frames and iterations finds whatever breaks one of their laws."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from penstock.runtime.executor.pending_counts import ONE_DEAD
from penstock.runtime.executor.propagate import Propagator
from penstock.runtime.executor.state import FrameState, IterationState
from support.frame_laws import check_frames
from support.hand_driver import HandDriver
from support.loops import NESTED_LOOPS, counting_loop


def in_the_middle() -> tuple[HandDriver, FrameState]:
    """A loop with three iterations alive, the first of which is slow, and more to come."""
    graph = counting_loop(3) + "slow = Neg(body)\nlate = Const() value=1\nlast = Neg(late)"
    driver = HandDriver(graph, {"limit": np.int32(9)})
    driver.run(but="slow[0]")
    (iteration,) = driver.root.iterations.values()
    return driver, iteration.children["loop"]


def first(frame: FrameState) -> IterationState:
    return next(iter(frame.iterations.values()))


def _lose_a_count(frame: FrameState) -> None:
    first(frame).outstanding -= 1


def _forget_an_iteration(frame: FrameState) -> None:
    del frame.iterations[1]


def _lose_a_running_iteration(frame: FrameState) -> None:
    del frame.iterations[0]


def _reorder(frame: FrameState) -> None:
    frame.iterations = dict(reversed(frame.iterations.items()))


def _start_too_many(frame: FrameState) -> None:
    frame.max_parallel_iterations = 2


def _keep_back_for_nothing(frame: FrameState) -> None:
    frame.max_parallel_iterations = 4


def _enter_once_more(frame: FrameState) -> None:
    frame.num_pending_inputs -= 1


def _die_twice(frame: FrameState) -> None:
    item = next(item for item in frame.info.nodes if item.name == "exit")
    frame.dead_exits = [item, item]


def _let_another_die(frame: FrameState) -> None:
    frame.dead_exits = [next(item for item in frame.info.nodes if item.name == "body")]


def _repeat_a_constant(frame: FrameState) -> None:
    frame.invariants *= 2


def _take_another_for_a_constant(frame: FrameState) -> None:
    frame.invariants = [(frame.info.nodes[0], None)]


def _count_an_inner_frame(frame: FrameState) -> None:
    first(frame).child_frames += 1


def _take_in_a_stranger(frame: FrameState) -> None:
    first(frame).child_frames += 1
    first(frame).children["other"] = FrameState(frame.info, None, None, 1)


def _keep_an_input(frame: FrameState) -> None:
    item = next(item for item in frame.info.nodes if item.name == "body")
    first(frame).inputs[item.input_start] = 1


def _deliver_once_more(frame: FrameState) -> None:
    item = next(item for item in frame.info.nodes if item.name == "merge")
    first(frame).counts[item.pending_id] += 3 * ONE_DEAD


def _deliver_before_it_is_there(frame: FrameState) -> None:
    item = next(item for item in frame.info.nodes if item.name == "slow")
    first(frame).counts[item.pending_id] += 1


def _lose_places(frame: FrameState) -> None:
    first(frame).inputs.pop()


def _be_idle(frame: FrameState) -> None:
    frame.iterations = {2: frame.iterations[2]}


BREACHES = [
    (_lose_a_count, "0 outstanding, but 1 are ready or running"),
    (_forget_an_iteration, r"iterations \[0, 2\] are not those up to the newest, 2"),
    (_lose_a_running_iteration, "slow is active in iteration 0, which is gone"),
    (_reorder, "oldest first"),
    (_start_too_many, "3 iterations, of at most 2"),
    (_keep_back_for_nothing, "kept back though one more iteration may start"),
    (_enter_once_more, "-1 of 2 Enters are to come"),
    (_die_twice, r"dead exits \['exit', 'exit'\] are not those of one iteration"),
    (_let_another_die, "dead exits .* are not the frame's"),
    (_repeat_a_constant, "came twice"),
    (_take_another_for_a_constant, "loop constants .* are not the frame's"),
    (_count_an_inner_frame, "1 inner frames, but 0 are alive"),
    (_take_in_a_stranger, "inner frame other is another one's"),
    (_keep_an_input, "body has run, and its inputs are kept"),
    (_deliver_once_more, "merge has been told more than it was to be told"),
    (_deliver_before_it_is_there, "slow is active and waits for 1 more"),
    (_lose_places, "input places"),
    (_be_idle, r"loop\[2\]: done, but not collected"),
]


@pytest.mark.parametrize(("breach", "says"), BREACHES, ids=lambda x: getattr(x, "__name__", ""))
def test_a_breach_is_found(breach: Callable[[FrameState], None], says: str) -> None:
    """Each law, broken in a state that obeys all of them, is named."""
    driver, frame = in_the_middle()
    check_frames(driver.root, driver.ready)
    breach(frame)

    with pytest.raises(AssertionError, match=says):
        check_frames(driver.root, driver.ready)


def test_a_frame_without_iterations_is_found() -> None:
    """A frame is gone together with its last iteration."""
    driver, frame = in_the_middle()
    frame.iterations.clear()

    with pytest.raises(AssertionError, match="loop: alive without an iteration"):
        check_frames(driver.root, driver.ready)


@pytest.mark.parametrize("method", ["_collect", "_collect_iterations"])
def test_a_rule_that_does_nothing_is_found(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever drives by hand sees at once that something is not collected."""
    monkeypatch.setattr(Propagator, method, lambda *_: None)
    driver = HandDriver(NESTED_LOOPS, {"outer": np.int32(4), "inner": np.int32(3)})

    with pytest.raises(AssertionError, match=r"done, but not collected|without an iteration"):
        driver.run()


def test_the_driver_checks_before_it_goes_on() -> None:
    """What is broken between two activations is found at the next one."""
    driver, frame = in_the_middle()
    item = next(item for item in frame.info.nodes if item.name == "merge")
    first(frame).inputs[item.input_start + 1] = 5

    with pytest.raises(AssertionError, match="merge has run, and its inputs are kept"):
        driver.step()
