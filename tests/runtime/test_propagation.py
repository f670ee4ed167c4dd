"""How values and deadness travel: each rule of ``propagate`` by a small graph."""

from __future__ import annotations

import random

import numpy as np
import pytest

from support.hand_driver import HandDriver
from support.loops import NESTED_LOOPS, counting_loop

#: A Switch whose side 0 is taken.
BRANCH = """
    pred = Const() value=False
    x = Const() value=1.0
    switch = Switch(x, pred)
    live = Identity(switch:0)
    dead = Identity(switch:1)
"""
TRUE, FALSE = np.True_, np.False_


def ran(graph: str) -> list[str]:
    """What ran, in alphabetical order; dead nodes with a minus sign."""
    return sorted(HandDriver(graph).run())


# -- ordinary nodes ------------------------------------------------------------------


def test_a_dead_input_kills() -> None:
    """A node with one dead data input is dead, and so is what depends on it."""
    log = ran(BRANCH + "both = Add(live, dead)\nafter = Neg(both)")
    assert "-both" in log
    assert "-after" in log


def test_a_dead_control_input_kills() -> None:
    """A node that must wait for a dead node is dead."""
    assert "-after" in ran(BRANCH + "after = Neg(live, ^dead)")


def test_an_empty_side_does_not_kill_control_successors() -> None:
    """A Switch is alive although one side is empty; who waits for it is alive."""
    assert "after" in ran(BRANCH + "after = Neg(live, ^switch)")


def test_a_node_waits_for_all_inputs_even_if_one_is_dead() -> None:
    """A dead input does not make a node ready before its other inputs have come."""
    driver = HandDriver(BRANCH + "late = Const() value=2.0\nsum = Add(dead, late)")
    driver.run(but="late")
    assert "-sum" not in driver.log
    assert "-sum" in driver.run()


def test_each_of_two_edges_between_the_same_nodes_counts() -> None:
    """A node that takes one value twice is ready once, after both edges."""
    assert ran(BRANCH + "twice = Add(live, live)").count("twice") == 1
    assert ran(BRANCH + "twice = Add(dead, dead)").count("-twice") == 1


def test_a_switch_with_a_dead_input_kills_both_sides() -> None:
    """A dead Switch has two dead sides, and its control successors die too."""
    log = ran(BRANCH + "s = Switch(dead, pred)\na = Neg(s:0)\nb = Neg(s:1)\nc = Neg(x, ^s)")
    assert {"-s", "-a", "-b", "-c"} <= set(log)


# -- Merge ---------------------------------------------------------------------------


def test_a_merge_takes_the_live_side() -> None:
    """A Merge of a live and a dead value is alive; the index says which came."""
    driver = HandDriver(BRANCH + "merge = Merge(dead, live)")
    driver.run()
    assert driver.outputs["merge"] == (1.0, 1)


def test_a_merge_does_not_wait_for_the_other_side() -> None:
    """One live value makes a Merge ready, whatever else is to come."""
    driver = HandDriver(BRANCH + "late = Const() value=2.0\nmerge = Merge(late, live)")
    driver.run(but="late")
    assert driver.outputs["merge"] == (1.0, 1)


def test_a_merge_drops_later_values() -> None:
    """The first live value wins; a later one neither changes it nor runs it again."""
    driver = HandDriver(BRANCH + "late = Const() value=2.0\nmerge = Merge(late, live)")
    driver.run(but="late")
    driver.run()
    assert driver.log.count("merge") == 1
    assert driver.outputs["merge"] == (1.0, 1)


def test_a_merge_that_waits_drops_later_values_too() -> None:
    """The first live value wins also while the Merge still waits for a control input."""
    driver = HandDriver(
        "a = Const() value=1.0\nb = Const() value=2.0\nc = NoOp()\nmerge = Merge(a, b, ^c)"
    )
    for label in "bac":
        driver.step(label)
    driver.run()
    assert driver.outputs["merge"] == (2.0, 1)


def test_a_merge_is_dead_if_all_values_are() -> None:
    """A Merge whose data inputs are all dead is dead."""
    assert "-merge" in ran(BRANCH + "other = Neg(switch:1)\nmerge = Merge(dead, other)")


def test_a_merge_waits_for_control_inputs() -> None:
    """A Merge that has its value still waits for all of its control inputs."""
    driver = HandDriver(BRANCH + "a = NoOp()\nb = NoOp()\nmerge = Merge(live, dead, ^a, ^b)")
    driver.run(but="b")
    assert "merge" not in driver.log
    assert "merge" in driver.run()


def test_a_dead_merge_waits_for_control_inputs() -> None:
    """Deadness of all values makes a Merge ready only when the control inputs are there."""
    driver = HandDriver(BRANCH + "a = NoOp()\nmerge = Merge(dead, switch:1, ^a)")
    driver.run(but="a")
    assert "-merge" not in driver.log
    assert driver.run().count("-merge") == 1


def test_a_dead_control_input_does_not_kill_a_merge() -> None:
    """A dead control input of a Merge counts as arrived, and kills nothing."""
    assert "merge" in ran(BRANCH + "merge = Merge(live, dead, ^dead)")


@pytest.mark.parametrize("seed", range(20))
def test_a_merge_runs_once_in_any_order(seed: int) -> None:
    """Whatever the order of four values and three control inputs, a Merge runs once, alive."""
    draw = random.Random(seed)
    driver = HandDriver(
        BRANCH
        + "c = NoOp()\nd = Neg(live)\n"
        + "merge = Merge(dead, live, switch:1, d, ^c, ^dead, ^live)\nafter = Neg(merge)"
    )
    log = driver.run(choose=draw.choice)
    assert log.count("merge") == 1
    assert log.count("after") == 1


# -- ControlTrigger ------------------------------------------------------------------


def test_a_control_trigger_is_always_alive() -> None:
    """A ControlTrigger waits for everything, live or dead, and then is alive."""
    driver = HandDriver(BRANCH + "a = NoOp()\nt = ControlTrigger(^dead, ^a)\nafter = Neg(x, ^t)")
    driver.run(but="a")
    assert "t" not in driver.log
    assert {"t", "after"} <= set(driver.run())


# -- frames --------------------------------------------------------------------------


def test_a_loop_counts() -> None:
    """The Merge of a later iteration needs only what NextIteration brings."""
    driver = HandDriver(counting_loop(), {"limit": np.int32(3)})
    log = driver.run()
    assert [label for label in log if label.startswith("merge")] == [
        f"merge[{i}]" for i in range(4)
    ]
    assert driver.outputs["exit[3]"] == 3
    assert driver.root.iterations == {}


def test_dead_next_iterations_are_swallowed() -> None:
    """The NextIteration of the last iteration is dead, and starts nothing."""
    log = HandDriver(counting_loop(), {"limit": np.int32(1)}).run()
    assert "-next[1]" in log
    assert not [label for label in log if label.endswith("[2]")]


def test_dead_exits_of_earlier_iterations_do_not_leave() -> None:
    """Exits are dead in all iterations but the last; outside, only the last one's value is seen."""
    driver = HandDriver(counting_loop() + "after = Neg(exit)", {"limit": np.int32(3)})
    log = driver.run()
    assert [label for label in log if "exit" in label] == [
        "-exit[0]",
        "-exit[1]",
        "-exit[2]",
        "exit[3]",
    ]
    assert log.count("after") == 1
    assert driver.outputs["after"] == -3


DEAD_LOOP = (
    BRANCH.replace("1.0", "1")
    + """
    enter = Enter(dead) frame_name="loop"
    ten = Const() value=10
    bound = Enter(ten) frame_name="loop" is_constant=True
    merge = Merge(enter, next)
    less = Less(merge, bound)
    cond = LoopCond(less)
    switch2 = Switch(merge, cond)
    body = Identity(switch2:1)
    sum = Add(body, body)
    next = NextIteration(sum)
    exit = Exit(switch2:0)
    after = Neg(exit)
"""
)


def test_a_dead_loop_ends_at_once() -> None:
    """A dead Enter kills the loop's Merge; the dead Exit leaves when the frame is done."""
    driver = HandDriver(DEAD_LOOP)
    log = driver.run()
    assert {"-enter", "-merge[0]", "-exit[0]", "-next[0]", "-after"} <= set(log)
    assert log.index("-exit[0]") < log.index("-after")
    assert log.count("-merge[0]") == 1
    assert not [label for label in log if label.endswith("[1]")]


@pytest.mark.parametrize("seed", range(6))
def test_a_merge_of_two_dead_enters_runs_once(seed: int) -> None:
    """Each dead Enter is enough to kill the Merge; the second one finds it dead already."""
    driver = HandDriver(
        BRANCH
        + """
        one = Enter(dead) frame_name="loop"
        two = Enter(dead) frame_name="loop"
        three = Enter(live) frame_name="loop" is_constant=True
        merge = Merge(one, two, never)
        never = NextIteration(merge)
        exit = Exit(merge)
        after = Neg(exit)
    """
    )
    log = driver.run(choose=random.Random(seed).choice)
    assert log.count("-merge[0]") == 1
    assert log.count("-after") == 1
    assert driver.root.iterations == {}


def test_a_dead_exit_waits_for_the_frame() -> None:
    """A dead Exit is seen outside only when every Enter of the frame has fired."""
    driver = HandDriver(DEAD_LOOP)
    driver.run(but="ten")
    assert "-after" not in driver.log
    assert "-after" in driver.run()


def test_a_frame_is_made_by_a_dead_enter_too() -> None:
    """The frame of a dead Enter exists, so that live Enters find it."""
    driver = HandDriver(DEAD_LOOP)
    driver.run(but="ten")
    (iteration,) = driver.root.iterations.values()
    assert list(iteration.children) == ["loop"]
    assert iteration.child_frames == 1


def test_a_constant_enter_reaches_every_iteration() -> None:
    """A loop constant that comes late is delivered to all iterations, past and to come."""
    graph = (
        counting_loop()
        + """
        c = Const() value=5
        constant = Enter(c) frame_name="loop" is_constant=True
        use = Add(body, constant)
    """
    )
    driver = HandDriver(graph, {"limit": np.int32(3)})
    driver.run(but="c")  # bound waits as well, hence only iteration 0 is there
    driver = HandDriver(graph, {"limit": np.int32(3)})
    driver.run(but="constant")
    assert not [label for label in driver.log if label.startswith("use")]
    driver.run()
    assert [driver.outputs[f"use[{i}]"] for i in range(3)] == [5, 6, 7]
    assert "-use[3]" in driver.log


def test_a_dead_constant_enter_kills_in_every_iteration() -> None:
    """A dead loop constant kills its consumers in every iteration."""
    graph = (
        counting_loop()
        + """
        pred = Const() value=False
        branch = Switch(zero, pred)
        constant = Enter(branch:1) frame_name="loop" is_constant=True
        use = Add(merge, constant)
    """
    )
    log = HandDriver(graph, {"limit": np.int32(2)}).run()
    assert [label for label in log if "use" in label] == ["-use[0]", "-use[1]", "-use[2]"]


def test_dead_exits_of_an_iteration_are_forgotten_when_the_next_begins() -> None:
    """Deadness is held for the newest iteration only: a value that leaves later is alive."""
    driver = HandDriver(counting_loop(), {"limit": np.int32(2)})
    driver.run(but="sum")
    (iteration,) = driver.root.iterations.values()
    (frame,) = iteration.children.values()
    assert [item.name for item in frame.dead_exits] == ["exit"]
    driver.step("sum[0]")
    driver.step("next[0]")
    assert frame.dead_exits == []


@pytest.mark.parametrize("parallel", [1, 2, 3, 7])
def test_no_more_iterations_are_alive_than_allowed(parallel: int) -> None:
    """While the work of iteration 0 is slow, so many are alive as the loop's window allows."""
    graph = counting_loop(parallel) + "slow = Neg(body)"
    driver = HandDriver(graph, {"limit": np.int32(20)})
    driver.run(but="slow[0]")
    assert driver.most_alive["loop"] == parallel
    assert f"merge[{parallel - 1}]" in driver.log
    assert f"merge[{parallel}]" not in driver.log
    driver.run()
    assert driver.outputs["exit[20]"] == 20
    assert driver.most_alive["loop"] == parallel


@pytest.mark.parametrize("parallel", [0, -1, -(1 << 31)])
def test_a_window_of_none_counts_as_one(parallel: int) -> None:
    """A loop goes on whatever its Enters say (TensorFlow dies of 0)."""
    driver = HandDriver(counting_loop(parallel) + "slow = Neg(body)", {"limit": np.int32(3)})
    driver.run(but="slow[0]")
    assert "merge[1]" not in driver.log
    driver.run()
    assert driver.outputs["exit[3]"] == 3
    assert driver.most_alive["loop"] == 1


def test_parallel_iterations_of_one_is_one_after_the_other() -> None:
    """With a window of one, no node of an iteration runs before the last one is done."""
    driver = HandDriver(counting_loop(1) + "slow = Neg(body)", {"limit": np.int32(5)})
    draw = random.Random(3)
    iterations = [label for label in driver.run(choose=draw.choice) if label.endswith("]")]
    numbers = [int(label.rpartition("[")[2][:-1]) for label in iterations]
    assert numbers == sorted(numbers)


def test_an_early_slow_iteration_holds_the_window_back() -> None:
    """Turns that are done stay until those before them are: the window counts them."""
    driver = HandDriver(counting_loop(3) + "slow = Neg(body)", {"limit": np.int32(9)})
    driver.run(but="slow[0]")
    (iteration,) = driver.root.iterations.values()
    (frame,) = iteration.children.values()
    assert list(frame.iterations) == [0, 1, 2]
    assert [frame.iterations[i].outstanding for i in range(3)] == [1, 0, 0]
    assert len(frame.deferred) == 1
    driver.step("slow[0]")
    assert list(frame.iterations) == [3]
    assert not frame.deferred


def test_a_loop_keeps_no_iterations() -> None:
    """After 3,000 iterations nothing of the loop is left, and never were many alive."""
    driver = HandDriver(counting_loop(), {"limit": np.int32(3000)})
    driver.run()
    assert driver.outputs["exit[3000]"] == 3000
    assert driver.root.iterations == {}
    assert driver.most_alive["loop"] <= 10


def test_a_frame_waits_for_all_of_its_enters() -> None:
    """A frame whose loop is done stays until its last Enter has fired."""
    graph = (
        counting_loop()
        + """
        late = Const() value=1.0
        unused = Enter(late) frame_name="loop"
        sink = Neg(unused)
    """
    )
    driver = HandDriver(graph, {"limit": np.int32(2)})
    driver.run(but="late")
    (iteration,) = driver.root.iterations.values()
    assert iteration.child_frames == 1
    assert "sink[0]" in driver.run()
    assert driver.root.iterations == {}


def test_nested_loops() -> None:
    """Each iteration of an outer loop has an inner frame of its own."""
    driver = HandDriver(NESTED_LOOPS, {"outer": np.int32(4), "inner": np.int32(3)})
    driver.run()
    assert driver.outputs["total[4]"] == 3 * (0 + 1 + 2 + 3)
    assert driver.root.iterations == {}
    assert "j[3][9]" in driver.log


@pytest.mark.parametrize("seed", range(10))
def test_nested_loops_in_any_order(seed: int) -> None:
    """The order of ready nodes does not matter to nested loops."""
    driver = HandDriver(NESTED_LOOPS, {"outer": np.int32(4), "inner": np.int32(2)})
    driver.run(choose=random.Random(seed).choice)
    assert driver.outputs["total[4]"] == 12
    assert driver.root.iterations == {}


def test_frames_have_names_and_numbers() -> None:
    """A dynamic frame is named by the iterations around it; its number follows from the name."""
    driver = HandDriver(NESTED_LOOPS, {"outer": np.int32(3), "inner": np.int32(1)})
    driver.run(but="j[2]")
    (root,) = driver.root.iterations.values()
    outer = root.children["outer"]
    inner = outer.iterations[2].children["inner"]
    assert (driver.root.name, driver.root.label, driver.root.id) == ("", "", 0)
    assert (outer.name, outer.label) == (";0;outer", "outer")
    assert (inner.name, inner.label) == (";0;outer;2;inner", "outer[2]/inner")
    assert inner.id != outer.id
    assert inner.id == inner.id > 0  # the same whenever it is asked for
