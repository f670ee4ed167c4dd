"""A hook is asked before and after each node, and what it says goes on."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import penstock as ps
from penstock import errors
from penstock.core.values import DEAD
from penstock.runtime.executor.driver import ExecutorState
from penstock.runtime.executor.executor import Executor
from penstock.runtime.executor.hooked import HookedState, RecordedHookedState
from penstock.state.node_hook import Activation, Instead, NodeHook
from penstock.tracing.recorder import Recording
from support.debugged import branches, doubling
from support.functions import graph_def_with

#: Nodes as they were written, on the dataflow tier.
CONFIG = ps.Config(graph_options=ps.GraphOptions.nothing())


class Noting(NodeHook):
    """Writes down what it is told."""

    def __init__(self) -> None:
        self.seen: list[tuple[Any, ...]] = []

    def before(self, at: Activation, inputs: Sequence[Any]) -> Sequence[Any] | Instead:
        self.seen.append(("before", at.node, at.iterations, *inputs))
        return inputs

    def after(self, at: Activation, outputs: Sequence[Any]) -> Sequence[Any]:
        self.seen.append(("after", at.node, at.iterations, *outputs))
        return outputs

    def dead(self, at: Activation) -> None:
        self.seen.append(("dead", at.node, at.iterations))

    def failed(self, at: Activation, error: errors.OpError) -> None:
        self.seen.append(("failed", at.node, at.iterations, error.code))


def run(graph: Any, fetch: Any, feeds: Any, hook: NodeHook, **options: Any) -> Any:
    with ps.Session(graph, config=CONFIG) as session:
        return session.run(fetch, feeds, ps.RunOptions(node_hook=hook, **options))


def test_it_sees_what_nodes_read_and_give() -> None:
    """In each iteration, before and after."""
    hook = Noting()
    assert run(doubling(2), "z:0", {"x": 3.0}, hook) == -12
    assert [one for one in hook.seen if one[1] == "loop/mul" and one[0] != "dead"] == [
        ("before", "loop/mul", (0,), 3, 2),
        ("after", "loop/mul", (0,), 6),
        ("before", "loop/mul", (1,), 6, 2),
        ("after", "loop/mul", (1,), 12),
    ]
    assert ("before", "z", (), 12) in hook.seen


def test_dead_nodes_are_told_of() -> None:
    """And not asked about; a Switch gives DEAD on one side."""
    hook = Noting()
    assert run(branches(), "out:0", {"x": 3.0, "flag": False}, hook) == 9
    about = [one[:2] for one in hook.seen if one[1] in ("minus", "square")]
    assert sorted(about) == [("after", "square"), ("before", "square"), ("dead", "minus")]
    [switch] = [one for one in hook.seen if one[:2] == ("after", "Switch")]
    assert switch[3] == 3
    assert switch[4] is DEAD


def test_a_failed_node_is_told_of() -> None:
    """With its error, which is the step's."""
    hook = Noting()
    graph = ps.Graph()
    with graph.as_default():
        x = ps.placeholder(ps.dtypes.float32, None, name="x")
        ps.ops.matmul(x, ps.constant(np.ones((3, 2), np.float32)), name="y")
    with pytest.raises(errors.InvalidArgumentError):
        run(graph, "y:0", {"x": np.ones((2, 2))}, hook)
    assert hook.seen[-1] == ("failed", "y", (), errors.Code.INVALID_ARGUMENT)


class Changing(NodeHook):
    """Has one node read, or give, something else."""

    def __init__(self, node: str, **what: Any) -> None:
        self.node = node
        self.what = what

    def before(self, at: Activation, inputs: Sequence[Any]) -> Sequence[Any] | Instead:
        if at.node != self.node:
            return inputs
        if "instead" in self.what:
            return Instead([self.what["instead"]])
        return self.what.get("inputs", inputs)  # type: ignore[no-any-return]

    def after(self, at: Activation, outputs: Sequence[Any]) -> Sequence[Any]:
        wanted = self.what.get("outputs", outputs)
        return wanted if at.node == self.node else outputs


@pytest.mark.parametrize(
    ("what", "result"),
    [
        ({"inputs": [np.float32(5), np.float32(3)]}, -15),
        ({"outputs": [np.float32(7)]}, -7),
        ({"instead": np.float32(8)}, -8),
    ],
)
def test_what_it_says_goes_on(what: dict[str, Any], result: float) -> None:
    """Other inputs, other outputs, or outputs instead of running the node."""
    assert run(doubling(2), "z:0", {"x": 3.0}, Changing("loop/mul", **what)) == result


def test_outputs_of_another_type_are_refused() -> None:
    """The node is named, as if its kernel had given them."""
    for what in ({"outputs": [np.int32(7)]}, {"instead": np.int32(7)}, {"outputs": []}):
        with pytest.raises(errors.InternalError, match="loop/mul"):
            run(doubling(2), "z:0", {"x": 3.0}, Changing("loop/mul", **what))


def test_it_is_asked_in_functions_that_are_called() -> None:
    """Where the body is not inlined, at a depth of 1."""
    proto = graph_def_with(
        "x = Placeholder[dtype=float32]()\nc = Square2[T=float32](x)",
        "Square2(x: T) -> (y: T) [T: type]\nsquare = Mul[T=$T](x, x)\nreturn y = square:z",
    )
    proto.library.function[0].attr["_noinline"].b = True
    depths: dict[str, tuple[int, str]] = {}

    class Deep(NodeHook):
        def after(self, at: Activation, outputs: Sequence[Any]) -> Sequence[Any]:
            depths[at.node] = at.call_depth, at.function
            return outputs

    assert run(proto, "c:0", {"x": 3.0}, Deep()) == 9
    assert depths["square"] == (1, "Square2")
    assert depths["c"] == (0, "")


def test_dead_transfers_are_told_of_and_not_asked_about() -> None:
    """In a loop across devices, whose last iteration is dead on one of them."""
    graph = ps.Graph()
    with graph.as_default():
        x = ps.placeholder(ps.dtypes.float32, [], name="x")

        def body(i: ps.Tensor, y: ps.Tensor) -> tuple[ps.Tensor, ps.Tensor]:
            with ps.device("/cpu:1"):
                return i + 1, y * 2.0

        _, y = ps.while_loop(lambda i, _: i < 3, body, [ps.constant(0), x], name="loop")
        ps.ops.neg(y, name="z")
    asked, dead = [], []

    class Both(NodeHook):
        def before(self, at: Activation, inputs: Sequence[Any]) -> Sequence[Any]:
            asked.append((at.op, at.node, at.iterations))
            return inputs

        def dead(self, at: Activation) -> None:
            dead.append((at.op, at.node, at.iterations))

    config = ps.Config(device_count={"CPU": 2}, graph_options=ps.GraphOptions.nothing())
    with ps.Session(graph, config=config) as session:
        assert session.run("z:0", {"x": 3.0}, ps.RunOptions(node_hook=Both())) == -24
    assert {"_Send", "_Recv"} & {op for op, *_ in dead}
    assert not set(asked) & set(dead)


def test_it_is_asked_on_the_threads_of_the_step() -> None:
    """Without a pool, that is the thread that called ``run``."""
    threads = set()

    class Where(NodeHook):
        def dead(self, at: Activation) -> None:
            del at
            threads.add(threading.get_ident())

    run(doubling(3), "z:0", {"x": 3.0}, Where(), inter_op_thread_pool=-1)
    assert threads == {threading.get_ident()}


def test_others_are_told_of_what_it_leaves() -> None:
    """``node_outputs`` and a recorder go together with it."""
    told: dict[str, Any] = {}
    recording = Recording()

    def note(node: str, _slot: int, value: Any, _is_dead: bool) -> None:
        told[node] = value

    hook = Changing("loop/mul", outputs=[np.float32(7)])
    options: dict[str, Any] = {"node_outputs": note, "recorder": recording}
    assert run(doubling(2), "z:0", {"x": 3.0}, hook, **options) == -7
    assert told["loop/mul"] == 7
    assert recording.lanes


def test_steps_without_a_hook_are_run_by_the_plain_class(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that they ask nobody whether there is one."""
    made: list[type[ExecutorState]] = []
    new = Executor._state

    def noted(self: Executor, *given: Any) -> ExecutorState:
        state = new(self, *given)
        made.append(type(state))
        return state

    monkeypatch.setattr(Executor, "_state", noted)
    with ps.Session(doubling(2), config=ps.Config(tier=ps.Tier.DATAFLOW)) as session:
        session.run("z:0", {"x": 3.0})
        session.run("z:0", {"x": 3.0}, ps.RunOptions(node_hook=NodeHook()))
        both = ps.RunOptions(node_hook=NodeHook(), recorder=Recording())
        session.run("z:0", {"x": 3.0}, both)
    assert made == [ExecutorState, HookedState, RecordedHookedState]
