"""``ps.debug``: where a step stops, what it shows there, and what a change changes."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

import penstock as ps
from penstock import errors
from penstock.debugger.breakpoints import Seen
from penstock.debugger.debug import InteractiveDebugger
from penstock.debugger.history import Recorded
from penstock.debugger.step_run import StepRun
from penstock.debugger.stops import Moment, to_the_end
from support.debugged import LOOP, branches, doubling, logarithm
from support.functions import graph_def_with


@contextmanager
def debugging(graph: Any, fetch: Any, feeds: Any, **options: Any) -> Iterator[InteractiveDebugger]:
    """A debugger, whose step is over in the end."""
    with ps.debug(graph, fetch, feeds, **options) as debugger:
        yield debugger
    assert not [t for t in threading.enumerate() if t.name == "penstock-debug"]


def test_values_by_iteration() -> None:
    """Each iteration's value is that of arithmetic, and those of before are there as well."""
    with debugging(doubling(), "z:0", {"x": 3.0}) as debugger:
        debugger.cont("loop/mul")
        assert debugger.value("loop/mul:0") == 6
        for number in range(1, 5):
            debugger.cont("loop/mul")
            assert (debugger.stop.frame, debugger.stop.iteration) == (LOOP, number)  # type: ignore[union-attr]
            assert debugger.value("loop/mul:0") == 3 * 2 ** (number + 1)
        assert debugger.value(f"loop/mul:0@{LOOP}[1]") == 12
        values = [float(one.value) for one in debugger.records("loop/mul:0")]
        assert values == [3 * 2.0 ** (i + 1) for i in range(5)]


def test_a_run_to_the_end_is_that_of_the_session() -> None:
    """Nothing is changed by being looked at, and another run begins anew."""
    with debugging(doubling(), ["z:0"], {"x": 3.0}) as debugger:
        with pytest.raises(errors.FailedPreconditionError, match="has not ended"):
            _ = debugger.result
        for count in (1, 2):
            assert debugger.run().moment is Moment.ENDED
            assert debugger.result == [-3 * 2.0**20]
            assert debugger.run_count == count


@pytest.mark.parametrize(
    ("condition", "first"), [("iteration > 10", 11), ("value == 3 * 2 ** 6", 5)]
)
def test_a_condition_holds_for_the_first_time(condition: str, first: int) -> None:
    """It is asked in every iteration."""
    with debugging(doubling(), "z:0", {"x": 3.0}) as debugger:
        debugger.break_at("loop/mul", condition)
        stop = debugger.run()
        assert (stop.node, stop.iteration) == ("loop/mul", first)
        assert debugger.value("loop/mul") == 3 * 2.0 ** (first + 1)


def test_a_predicate_of_ones_own() -> None:
    """It sees inputs and outputs; and if it fails, the step stops and says so."""

    def is_large(seen: Seen) -> bool:
        return seen.node == "loop/mul" and bool(seen.outputs[0] > 100 > seen.inputs[0])

    with debugging(doubling(), "z:0", {"x": 3.0}) as debugger:
        debugger.break_at(condition=is_large)
        assert debugger.run().iteration == 5
        assert debugger.value("loop/mul") == 192
        debugger.delete(1)
        debugger.break_at("z", lambda _seen: 1 / 0)  # type: ignore[arg-type, return-value]
        assert "division by zero" in debugger.run().reason
        assert debugger.run().moment is Moment.ENDED


def test_the_first_value_that_is_no_number() -> None:
    """It is the logarithm's, and not the exponential's after it; a feed may be one, too."""
    with debugging(logarithm(), "y:0", {"x": [3.0, 0.0]}) as debugger:
        assert debugger.run_to_filter("has_inf_or_nan").node == "log"
        np.testing.assert_array_equal(debugger.value("log"), np.log(np.float32([2, np.nan])))
        assert debugger.run_to_filter("has_nan").node == "y"
        debugger.end()
        assert debugger.run_to_filter("has_inf").moment is Moment.ENDED
        stop = debugger.run_to_filter("has_inf_or_nan", exclude="lo")
        assert stop.node == "y"
        with pytest.raises(errors.InvalidArgumentError, match="There is no filter"):
            debugger.run_to_filter("has_everything")


def test_a_filter_of_ones_own() -> None:
    """A function of a record and its value, as in tfdbg."""

    def is_half(datum: Recorded, value: Any) -> bool:
        return datum.op == "Mul" and bool(np.any(value == 768))

    with debugging(doubling(), "z:0", {"x": 3.0}, filters={"is_half": is_half}) as debugger:
        stop = debugger.run_to_filter("is_half")
        assert (stop.node, stop.iteration) == ("loop/mul", 7)


def test_a_filter_that_fails_stops_the_step_and_changes_nothing() -> None:
    """It says how it failed, and the step goes on with the same values."""

    def fails(_datum: Recorded, _value: Any) -> bool:
        raise ValueError("not that")

    with debugging(doubling(1), "z:0", {"x": 3.0}, filters={"fails": fails}) as debugger:
        stop = debugger.run_to_filter("fails")
        assert stop.moment is Moment.AFTER
        assert stop.reason == "passes fails: failed with ValueError: not that"
        debugger.run()
        assert debugger.result == -6


@pytest.mark.parametrize("where", ["loop/mul:0", "loop/NextIteration_1:0", "loop/Merge_1:0"])
def test_a_changed_value_goes_on(where: str) -> None:
    """In iteration 4 it becomes 1: what is left doubles that, and nothing else."""
    node = where.partition(":")[0]
    with debugging(doubling(), "z:0", {"x": 3.0}) as debugger:
        debugger.break_at(node, "iteration == 4")
        debugger.run()
        assert debugger.set_value(where, 1.0) == 1
        assert debugger.value(where) == 1
        debugger.delete(1)
        debugger.run()
        left = 20 - 4 if "Merge" in node else 20 - 5
        assert debugger.result == -(2.0**left)


def test_a_value_that_waits_is_changed() -> None:
    """Long after it was computed, for the one who is yet to read it; not for who has."""
    graph = ps.Graph()
    with graph.as_default():
        a = ps.placeholder(ps.dtypes.float32, [], name="a")
        b = ps.ops.square(a, name="b")
        c = ps.ops.square(ps.ops.neg(b, name="n"), name="c")
        ps.ops.add(b, c, name="sum")
    with debugging(graph, "sum:0", {"a": 2.0}) as debugger:
        debugger.cont("c", before=True)
        assert debugger.set_value("b", 100.0) == 1  # the sum's
        debugger.cont("sum")
        assert debugger.value("sum") == 100 + 16
        with pytest.raises(errors.FailedPreconditionError, match="Nobody is yet to read b:0"):
            debugger.set_value("b", 3.0)
        debugger.end()
        debugger.cont("b", before=True)
        assert debugger.set_value("a", 3.0) == 1  # what is fed, under its own name
        debugger.run()
        assert debugger.result == 9 + 81


@pytest.mark.parametrize(
    ("stop_at", "changed", "factor"),
    [("loop/Less/y", "loop/Enter_1", 2.0**20), ("z", "loop/Exit_1", 1.0)],
)
def test_what_waits_across_the_border_of_a_loop(stop_at: str, changed: str, factor: float) -> None:
    """What has entered a loop, or left it, is found where it waits."""
    with debugging(doubling(), "z:0", {"x": 3.0}) as debugger:
        if changed == "loop/Enter_1":
            debugger.cont(changed)
        else:
            debugger.cont(stop_at, before=True)
        assert debugger.set_value(changed, 7.0) == 1
        debugger.run()
        assert debugger.result == -7 * factor


def test_what_waits_in_the_next_iteration() -> None:
    """Seen from the iteration that has not read it yet."""
    with debugging(doubling(), "z:0", {"x": 3.0}) as debugger:
        debugger.cont("loop/NextIteration_1")  # of iteration 0
        stop = debugger.step()
        assert (stop.node, stop.iteration) == ("loop/Merge", 1)
        assert debugger.set_value("loop/NextIteration_1", 7.0) == 1
        debugger.run()
        assert debugger.result == -7 * 2.0**19


def test_what_waits_in_the_next_iteration_is_seen_from_this_one() -> None:
    """The counter has gone on to iteration 1, and the step stands at the end of iteration 0."""
    with debugging(doubling(), "z:0", {"x": 3.0}) as debugger:
        debugger.cont("loop/NextIteration")
        assert debugger.step().node == "loop/NextIteration_1"
        assert debugger.set_value("loop/NextIteration", 18) == 1
        debugger.run()
        assert debugger.result == -3 * 2.0**3


def test_what_waits_in_a_loop_that_was_entered() -> None:
    """Seen from outside of the loop: its counter begins with another number."""
    with debugging(doubling(), "z:0", {"x": 3.0}) as debugger:
        assert debugger.cont("loop/Enter_1").iterations == ()
        assert debugger.set_value("loop/Enter", 18) == 1
        debugger.run()
        assert debugger.result == -12


def test_a_constant_of_a_loop_is_changed_for_iterations_to_come() -> None:
    """Those that are over have read what it was."""
    graph = ps.Graph()
    with graph.as_default():
        x = ps.placeholder(ps.dtypes.float32, [], name="x")
        _, y = ps.while_loop(
            lambda i, _: i < 5, lambda i, y: (i + 1, y + x), [ps.constant(0), x], name="loop"
        )
        ps.ops.neg(y, name="z")
    [enter] = [node.name for node in graph.get_operations() if _is_constant_enter(node)]
    with debugging(graph, "z:0", {"x": 1.0}) as debugger:
        debugger.break_at("loop/add_1", "iteration == 2")
        debugger.run()
        assert debugger.value("loop/add_1") == 4
        assert debugger.set_value(enter, 100.0) >= 1
        debugger.delete(1)
        debugger.run()
        assert debugger.result == -204


def _is_constant_enter(node: Any) -> bool:
    return node.type == "Enter" and bool(node.get_attr("is_constant"))


def test_another_iteration_keeps_its_value() -> None:
    """Of iterations that run side by side, only the one where the step stands is changed."""
    graph = ps.Graph()

    def body(i: ps.Tensor, y: ps.Tensor) -> tuple[ps.Tensor, ps.Tensor]:
        number = ps.ops.cast(i, DstT=ps.dtypes.float32, name="number")
        for _ in range(12):  # meanwhile, the counter is iterations ahead
            y = ps.ops.neg(y)
        return i + 1, ps.ops.add(y, number, name="sum")

    with graph.as_default():
        x = ps.placeholder(ps.dtypes.float32, [], name="x")
        _, y = ps.while_loop(lambda i, _: i < 5, body, [ps.constant(0), x], name="loop")
        ps.ops.identity(y, name="z")
    with debugging(graph, "z:0", {"x": 0.5}) as debugger:
        debugger.break_at("loop/number", "iteration == 1")
        debugger.run()
        debugger.delete(1)
        assert not debugger.records("loop/sum:0")  # so two of these numbers wait
        while debugger.step().iteration != 1:
            pass
        assert debugger.set_value("loop/number", 100.0) == 1
        debugger.run()
        assert debugger.result == 0.5 + 0 + 100 + 2 + 3 + 4


def test_an_override_reads_what_was_changed_before_it() -> None:
    """What was changed when the step stood before the node."""
    with debugging(doubling(1), "z:0", {"x": 3.0}) as debugger:
        debugger.override("loop/mul", lambda y, _two: y + 1)
        debugger.cont("loop/mul", before=True)
        debugger.set_value("loop/Identity_1", 10.0)
        debugger.run()
        assert debugger.result == -11


def test_a_value_of_another_type_is_refused() -> None:
    """The step stands as it stood."""
    with debugging(doubling(), "z:0", {"x": 3.0}) as debugger:
        debugger.cont("loop/Merge")
        with pytest.raises(errors.InvalidArgumentError, match="not compatible"):
            debugger.set_value("loop/Merge", "text")
        debugger.run()
        assert debugger.result == -3 * 2.0**20


def test_an_overridden_node_does_not_run() -> None:
    """A function gets what the node reads; a value is given each time; then it computes again."""
    read: list[float] = []

    def half(y: Any, _two: Any) -> Any:
        read.append(float(y))
        return y / 2

    with debugging(doubling(), "z:0", {"x": 1024.0}) as debugger:
        debugger.override("loop/mul", half)
        debugger.run()
        assert debugger.result == -(2.0**-10)
        assert read == [2.0 ** (10 - i) for i in range(20)]
        debugger.override("loop/mul", 5.0)
        debugger.run()
        assert debugger.result == -5
        assert debugger.overrides.remove("loop/mul")
        debugger.run()
        assert debugger.result == -(2.0**30)
        with pytest.raises(errors.NotFoundError, match="There is no node looop/mul"):
            debugger.override("looop/mul", 5.0)


def test_a_wrong_override_is_the_nodes_error() -> None:
    """What the function raises, and what is of the wrong type, stops the step there."""
    with debugging(doubling(), "z:0", {"x": 3.0}) as debugger:
        debugger.override("z", lambda _y: "text")
        assert (debugger.run().moment, debugger.stop.node) == (Moment.FAILED, "z")  # type: ignore[union-attr]
        debugger.run()
        with pytest.raises(errors.InvalidArgumentError, match="not compatible"):
            _ = debugger.result


def test_a_node_that_fails_is_looked_at() -> None:
    """The step stands at it, with what it reads; and then ends with its error."""
    graph = ps.Graph()
    with graph.as_default():
        x = ps.placeholder(ps.dtypes.float32, None, name="x")
        ps.ops.matmul(x, ps.constant(np.ones((3, 2), np.float32), name="w"), name="y")
    with debugging(graph, "y:0", {"x": np.ones((2, 2))}) as debugger:
        stop = debugger.run()
        assert (stop.moment, stop.node) == (Moment.FAILED, "y")
        assert isinstance(stop.error, errors.InvalidArgumentError)
        assert debugger.value("w").shape == (3, 2)
        assert debugger.run().moment is Moment.ENDED
        with pytest.raises(errors.InvalidArgumentError, match="y"):
            _ = debugger.result


def test_what_an_error_ends_does_not_stop_the_step() -> None:
    """One node fails; another one, which waits for something, is only cancelled by that."""
    graph = ps.Graph()
    with graph.as_default():
        queue = ps.ops.FIFOQueueV2(component_types=[ps.dtypes.float32], name="queue")
        taken = ps.ops.QueueDequeueV2(handle=queue, component_types=[ps.dtypes.float32])
        x = ps.placeholder(ps.dtypes.float32, None, name="x")
        fails = ps.ops.matmul(x, ps.constant(np.ones((3, 2), np.float32)), name="fails")
    fetches = [taken[0] if isinstance(taken, (list, tuple)) else taken, fails]
    with debugging(graph, fetches, {"x": np.ones((2, 2))}) as debugger:
        assert debugger.run().node == "fails"
        assert debugger.run().moment is Moment.ENDED


def waiting() -> ps.Graph:
    """``take`` waits for an element that never comes."""
    graph = ps.Graph()
    with graph.as_default():
        queue = ps.ops.FIFOQueueV2(component_types=[ps.dtypes.float32], name="queue")
        ps.ops.QueueDequeueV2(handle=queue, component_types=[ps.dtypes.float32], name="take")
    return graph


def wait_until_it_waits(debugger: InteractiveDebugger) -> None:
    """Until the step has come to the node."""
    deadline = time.monotonic() + 60
    while "take (QueueDequeueV2)" not in debugger.waits_for():
        assert time.monotonic() < deadline, debugger.waits_for()
        time.sleep(0.01)


def test_whoever_debugs_may_close_the_session() -> None:
    """The step that goes on ends, and nobody waits at its nodes for somebody to let it go on."""
    with ps.Session(waiting()) as session, debugging(session, "take:0", {}) as debugger:
        debugger.start(to_the_end())
        wait_until_it_waits(debugger)
        closing = threading.Thread(target=session.close, daemon=True)
        closing.start()
        closing.join(20)
        assert not closing.is_alive()
        stop = debugger.wait(20)
        assert stop.moment is Moment.ENDED
        assert isinstance(stop.error, errors.CancelledError)


def test_a_step_is_known_before_it_begins(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C that comes in this moment leaves no step that nobody ends."""
    original = StepRun.start

    def interrupted(run: StepRun) -> None:
        original(run)
        raise KeyboardInterrupt

    with debugging(waiting(), "take:0", {}) as debugger:
        monkeypatch.setattr(StepRun, "start", interrupted)
        with pytest.raises(KeyboardInterrupt):
            debugger.run()
        assert debugger.is_going
        wait_until_it_waits(debugger)
        debugger.end()
        assert isinstance(debugger.stop.error, errors.CancelledError)  # type: ignore[union-attr]


@pytest.mark.parametrize("has_thread", [False, True])
def test_a_step_that_is_ended_before_it_begins(
    monkeypatch: pytest.MonkeyPatch, has_thread: bool
) -> None:
    """Whether its thread is there already or never was."""
    may_begin = threading.Event()

    def interrupted(run: StepRun) -> None:
        begin = run._begin

        def late(*given: Any) -> Any:
            may_begin.wait(20)
            return begin(*given)

        run._begin = late  # type: ignore[assignment]
        if has_thread:
            run._watch.start()
        raise KeyboardInterrupt

    with debugging(waiting(), "take:0", {}) as debugger:
        monkeypatch.setattr(StepRun, "start", interrupted)
        with pytest.raises(KeyboardInterrupt):
            debugger.run()
        assert debugger.waits_for() == "it has not begun"
        threading.Timer(0.1, may_begin.set).start()
        debugger.end()
        assert debugger.has_ended


def test_back_shows_what_was() -> None:
    """A value that has changed since is as it was, and cannot be changed there."""
    with debugging(doubling(), "z:0", {"x": 3.0}) as debugger:
        for _ in range(4):
            debugger.cont("loop/mul")
        assert debugger.value("loop/mul") == 48
        assert debugger.back(2).iteration == 1
        assert debugger.value("loop/mul") == 12
        assert len(debugger.records("loop/mul:0")) == 2
        with pytest.raises(errors.FailedPreconditionError, match="cannot be changed"):
            debugger.set_value("loop/mul", 1.0)
        with pytest.raises(errors.FailedPreconditionError, match="no such place"):
            debugger.back(2)
        assert debugger.forward(2).iteration == 3
        debugger.set_value("loop/mul", 1.0)
        debugger.step()
        debugger.back()
        assert debugger.value("loop/mul") == 48
        debugger.forward()
        assert debugger.value("loop/mul") == 1
        debugger.back()
        assert debugger.step().iteration == 3  # it goes on from where it stands


def test_memory_is_bounded() -> None:
    """The latest values are kept, in no more bytes than were allowed; others are forgotten."""
    graph = ps.Graph()
    with graph.as_default():
        x = ps.placeholder(ps.dtypes.float32, [1000], name="x")
        for number in range(50):
            x = ps.ops.neg(x, name=f"n{number}")
    with debugging(graph, "n49:0", {"x": np.ones(1000)}, memory=50_000) as debugger:
        debugger.run()
        assert debugger.history.nbytes <= 50_000
        kept = {one.node for one in debugger.records()}
        assert kept == {f"n{number}" for number in range(40, 50)}
        assert debugger.history.forgotten == 41
        with pytest.raises(errors.NotFoundError, match="41 were forgotten"):
            debugger.value("n3:0")


def test_dead_tensors_are_dead() -> None:
    """A node that is dead stops who named it, and nobody who steps; it has no value."""
    feeds = {"x": 3.0, "flag": False}
    with debugging(branches(), "out:0", feeds) as debugger:
        stop = debugger.cont("minus")
        assert stop.moment is Moment.DEAD
        with pytest.raises(errors.NotFoundError, match="minus:0 is dead"):
            debugger.value("minus")
        debugger.end()
        debugger.break_at("minus", "value > 100")  # of which it has none
        assert debugger.run().moment is Moment.ENDED
        debugger.delete(1)
        debugger.break_at("*", "is_dead")
        assert debugger.run().node == "minus"
        debugger.end()
        debugger.delete(2)
        seen = []
        while debugger.step().moment is not Moment.ENDED:
            seen.append(debugger.stops[-1].node)
        assert "minus" not in seen
        assert "square" in seen
        assert debugger.result == 9


def test_iterate_and_finish() -> None:
    """To the next iteration, and out of the loop with its result."""
    with debugging(doubling(3), "z:0", {"x": 3.0}) as debugger:
        with pytest.raises(errors.FailedPreconditionError, match="There is no step"):
            debugger.iterate()
        debugger.step()
        with pytest.raises(errors.FailedPreconditionError, match="in no loop"):
            debugger.iterate()
        debugger.cont("loop/Less")
        assert [debugger.iterate().iteration for _ in range(3)] == [1, 2, 3]
        assert debugger.iterate().op == "Exit"
        debugger.end()
        debugger.cont("loop/Less")
        assert debugger.finish().op == "Exit"
        assert debugger.step().node == "z"
        assert debugger.value("loop/Exit_1") == 24


@pytest.mark.parametrize("is_inlined", [True, False])
def test_into_functions_and_out(is_inlined: bool) -> None:
    """A function is stepped into, wherever its nodes are, and ``finish`` leaves it."""
    proto = graph_def_with(
        """
        x = Placeholder[dtype=float32]()
        c = Cube[T=float32](x)
        y = Neg(c:0)
        """,
        """
        Cube(x: T) -> (y: T) [T: type]
        square = Mul[T=$T](x, x)
        cube = Mul[T=$T](square:z, x)
        return y = cube:z
        """,
    )
    proto.library.function[0].attr["_noinline"].b = not is_inlined
    prefix = "c/" if is_inlined else ""
    with debugging(proto, "y:0", {"x": 3.0}) as debugger:
        stop = debugger.step()
        assert (stop.node, stop.function) == (f"{prefix}square", "Cube")
        assert (stop.depth, stop.call) == ((0, "c") if is_inlined else (1, ""))
        debugger.set_value(stop.node, 10.0)
        assert debugger.finish().node == ("y" if is_inlined else "c")
        debugger.run()
        assert debugger.result == -30


def test_a_step_that_waits_can_be_ended() -> None:
    """It says what it waits for; and the session's own deadline does not count."""
    graph = ps.Graph()
    with graph.as_default():
        queue = ps.ops.FIFOQueueV2(component_types=[ps.dtypes.float32], name="queue")
        ps.ops.QueueDequeueV2(handle=queue, component_types=[ps.dtypes.float32], name="take")
    config = ps.Config(operation_timeout_in_ms=300)
    with ps.Session(graph, config=config) as session, debugging(session, "take:0", {}) as debugger:
        debugger.start(to_the_end())
        with pytest.raises(TimeoutError):
            debugger.wait(0.6)
        assert "take" in debugger.waits_for()
        debugger.end()
        assert isinstance(debugger.stops[-1].error, errors.CancelledError)


def test_pause_stops_a_step_that_goes_on() -> None:
    """Wherever it is, at its next node."""
    with debugging(doubling(10**7), "z:0", {"x": 0.0}) as debugger:
        debugger.start(to_the_end())
        with pytest.raises(TimeoutError):
            debugger.wait(0.05)
        debugger.pause()
        assert debugger.wait(30).reason == "interrupted"
        debugger.step()


def test_a_session_elsewhere_is_refused() -> None:
    """Its steps run at tasks, which no hook reaches."""
    session = ps.Session(doubling(1))
    session.target = "grpc://localhost:1"
    with pytest.raises(errors.InvalidArgumentError, match="tasks"):
        ps.debug(session, "z:0")


def test_a_session_keeps_its_variables() -> None:
    """A step of a session that is given reads what an earlier step has written."""
    graph = ps.Graph()
    with graph.as_default():
        v = ps.Variable(np.float32(2), name="v")
        ps.ops.square(v.read_value(), name="y")
        init = ps.global_variables_initializer()
    with ps.Session(graph, config=ps.Config(graph_options=ps.GraphOptions.nothing())) as session:
        session.run(init)
        with debugging(session, "y:0", {}) as debugger:
            debugger.run()
            assert debugger.result == 4
        assert session.run("y:0") == 4


def test_what_is_fetched_may_be_a_structure() -> None:
    """As in a session; and so are mistakes."""
    with debugging(doubling(1), {"z": "z:0"}, {"x": 3.0}) as debugger:
        debugger.run()
        assert debugger.result == {"z": -6}
    with debugging(doubling(1), "nothing:0", {}) as debugger:
        assert debugger.run().moment is Moment.ENDED
        with pytest.raises(errors.OpError, match="nothing"):
            _ = debugger.result
    with debugging(doubling(1), "z:0", {"x": "text"}) as debugger:
        with pytest.raises(errors.InvalidArgumentError, match="x:0"):
            debugger.run()
        assert debugger.stop is None
