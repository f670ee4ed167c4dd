"""Executors by the public door: every parameter has a default, and does what it says."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import penstock as ps
from penstock import errors
from penstock.kernels.api.bound_kernel import BoundKernel
from penstock.kernels.api.registry import Calling, Cost
from support.functions import graph_def_with

CPU = "/job:localhost/replica:0/task:0/device:CPU:"


def square_of_input() -> ps.Graph:
    graph = ps.Graph()
    with graph.as_default():
        x = ps.receive("float32", "input")
        ps.send(x * x, "output")
    return graph


def answer_of(executor: ps.Executor, value: float = 3.0) -> Any:
    rendezvous = ps.Rendezvous()
    rendezvous.send("input", np.float32(value))
    executor.run(ps.ExecutorArgs(ps.StepState(rendezvous=rendezvous)))
    return rendezvous.recv("output", timeout=5.0)


@pytest.mark.parametrize("form", ["graph", "message", "bytes", "file"])
def test_a_graph_in_any_form(form: str, tmp_path: Any) -> None:
    """What a session can be opened on, an executor can be made of."""
    graph = square_of_input()
    proto = graph.as_graph_def()
    path = tmp_path / "model.pb"
    path.write_bytes(proto.SerializeToString())
    forms = {
        "graph": graph,
        "message": proto,
        "bytes": proto.SerializeToString(),
        "file": str(path),
    }
    assert answer_of(ps.new_local_executor(forms[form])) == 9.0


def test_names_that_the_runtime_makes() -> None:
    """The partition graphs of a run can be run by hand, though names begin with underscores."""
    graph = ps.Graph()
    with graph.as_default():
        x = ps.placeholder("float32", name="x")
        y = ps.ops.neg(x, name="y")
    metadata = ps.RunMetadata()
    config = ps.Config(tier=ps.Tier.DATAFLOW, graph_options=ps.GraphOptions.nothing())
    with ps.Session(graph, config=config) as session:
        options = ps.RunOptions(output_partition_graphs=True)
        session.run(y, {x: np.float32(2)}, options=options, run_metadata=metadata)
    [part] = metadata.partition_graphs
    assert any(node.name.startswith("_") for node in part.node)
    frame = ps.CallFrame([ps.dtypes.float32], [ps.dtypes.float32])
    frame.set_args([np.float32(5)])
    ps.new_local_executor(part).run(ps.ExecutorArgs(call_frame=frame))
    assert frame.consume_retvals(allow_dead=False) == [-5.0]


@pytest.mark.parametrize(
    ("wanted", "full"),
    [("", "0"), ("/cpu:1", "1"), ("/device:CPU:7", "7"), ("/job:localhost", "0"), (CPU + "2", "2")],
)
def test_a_device_by_part_of_its_name(wanted: str, full: str) -> None:
    """What the name leaves open is taken from the first CPU."""
    executor = ps.new_local_executor(square_of_input(), device=wanted)
    assert executor.params.device == CPU + full
    assert answer_of(executor) == 9.0


def test_another_process_is_refused() -> None:
    """An executor runs here, and cannot be one of another process."""
    with pytest.raises(errors.InvalidArgumentError, match="/job:worker unknown device"):
        ps.new_local_executor(square_of_input(), device="/job:worker")
    with pytest.raises(errors.InvalidArgumentError, match="Malformed device"):
        ps.new_local_executor(square_of_input(), device="first cpu")


def test_what_tensorflow_takes_first_comes_by_keyword_here() -> None:
    """Parameters in the place of the graph are refused with a word on the order."""
    executor = ps.new_local_executor(square_of_input())
    with pytest.raises(TypeError, match="takes the graph first"):
        ps.new_local_executor(executor.params)


def test_resources_are_shared_by_those_who_are_given_the_same() -> None:
    """One executor assigns a variable that another one reads; a third has its own."""
    graph, reader = ps.Graph(), ps.Graph()
    with graph.as_default():
        handle = ps.ops.var_handle_op(dtype="float32", shape=[], shared_name="v")
        ps.ops.assign_variable_op(handle, ps.constant(7.0))
    with reader.as_default():
        handle = ps.ops.var_handle_op(dtype="float32", shape=[], shared_name="v")
        ps.send(ps.ops.read_variable_op(handle, dtype="float32"), "output")
    writer = ps.new_local_executor(graph)
    writer.run()
    rendezvous = ps.Rendezvous()
    shared = ps.new_local_executor(reader, resources=writer.params.resources)
    shared.run(ps.ExecutorArgs(ps.StepState(rendezvous=rendezvous)))
    assert rendezvous.recv("output", timeout=5.0) == 7.0
    with pytest.raises(errors.FailedPreconditionError, match="Could not find variable"):
        ps.new_local_executor(reader).run(ps.ExecutorArgs(ps.StepState(rendezvous=rendezvous)))
    resources = ps.ResourceManager()
    assert ps.new_local_executor(graph, resources=resources).params.resources is resources


def test_functions_run_on_the_same_device() -> None:
    """A function of the graph's library is called as in a session."""
    proto = graph_def_with(
        "x = _Arg[index=0]\ny = AddTwice(x)\nout = _Retval[index=0](y)",
        """
        AddTwice(x: float32) -> (y: float32)
        sum = AddV2(x, x)
        return y = sum:z
        """,
    )
    frame = ps.CallFrame([ps.dtypes.float32], [ps.dtypes.float32])
    frame.set_args([np.float32(2)])
    ps.new_local_executor(proto, device="/cpu:3").run(ps.ExecutorArgs(call_frame=frame))
    assert frame.consume_retvals(allow_dead=False) == [4.0]


def test_kernels_of_ones_own() -> None:
    """``make_kernel`` is asked for every node, and may ask the session's for the rest."""
    plain = ps.new_local_executor(square_of_input())
    asked: list[str] = []

    def make_kernel(node: Any) -> BoundKernel:
        asked.append(node.op.name)
        if node.op.name == "Mul":
            return BoundKernel(lambda x, y: x + y + 1, Calling.PLAIN, Cost.CHEAP)
        return plain.params.make_kernel(node)

    executor = ps.new_local_executor(square_of_input(), make_kernel=make_kernel)
    assert sorted(asked) == ["Mul", "_Recv", "_Send"]
    assert answer_of(executor) == 7.0


def test_options_of_kernels_count() -> None:
    """What a session's configuration says of kernels, it says here as well."""
    config = ps.Config(check_outputs=True, offload_seconds=0.5, allow_files=False)
    graph = ps.Graph()
    with graph.as_default():
        ps.send(ps.ops.read_file("/etc/hostname"), "output")
    params = ps.new_local_executor(square_of_input(), config=config).params
    assert (params.check_outputs, params.offload_seconds) == (True, 0.5)
    with pytest.raises(errors.PermissionDeniedError):
        ps.new_local_executor(graph, config=config).run(
            ps.ExecutorArgs(ps.StepState(rendezvous=ps.Rendezvous()))
        )


def test_an_executor_keeps_the_graph_as_it_was() -> None:
    """Nodes that are added later are not run."""
    graph = square_of_input()
    executor = ps.new_local_executor(graph)
    with graph.as_default():
        ps.send(ps.receive("float32", "never"), "nowhere")
    assert answer_of(executor) == 9.0


def test_partitions_joined_by_hand() -> None:
    """The partition graphs of a session's run, joined by one rendezvous, give its answer again."""
    graph = ps.Graph()
    with graph.as_default():
        with ps.device("/cpu:0"):
            x = ps.placeholder("float32", [], name="x")
        with ps.device("/cpu:1"):
            y = ps.ops.neg(x)
        with ps.device("/cpu:0"):
            z = y * x
    metadata = ps.RunMetadata()
    config = ps.Config(device_count={"CPU": 2}, graph_options=ps.GraphOptions.nothing())
    with ps.Session(graph, config=config) as session:
        options = ps.RunOptions(output_partition_graphs=True)
        assert session.run(z, {x: np.float32(3)}, options, metadata) == -9.0
    parts = metadata.partition_graphs
    assert len(parts) == 2
    assert {node.op for part in parts for node in part.node} >= {"_Send", "_Recv"}
    rendezvous, frame = ps.Rendezvous(), ps.CallFrame([ps.dtypes.float32], [ps.dtypes.float32])
    frame.set_args([np.float32(4)])
    outcome, done = [], threading.Event()
    barrier = ps.ExecutorBarrier(2, rendezvous, lambda error: (outcome.append(error), done.set()))
    with ThreadPoolExecutor(2) as threads:
        submit = threads.submit
        step = ps.StepState(rendezvous=rendezvous, pool=submit)
        args = ps.ExecutorArgs(step, call_frame=frame, runner=submit)
        for part in parts:
            executor = ps.new_local_executor(part, device=part.node[0].device)
            executor.run_async(args, barrier.arrive)
        assert done.wait(10.0)
    assert outcome == [None]
    assert frame.consume_retvals(allow_dead=False) == [-16.0]
    rendezvous.check()


def nested_loops() -> ps.Graph:
    """Two iterations of an outer loop; in each an inner one doubles 1 twice."""
    graph = ps.Graph()

    def outer(i: Any, total: Any) -> Any:
        inner = ps.while_loop(
            lambda j, _y: j < 2,
            lambda j, y: (j + 1, ps.ops.mul(y, 2, name="double")),
            [ps.constant(0), ps.constant(1)],
            name="inner",
        )
        return i + 1, total + inner[1]

    with graph.as_default():
        ps.while_loop(lambda i, _t: i < 2, outer, [ps.constant(0), ps.constant(0)], name="outer")
    return graph


def test_callbacks_learn_frame_and_iteration() -> None:
    """Each output of an inner loop comes with the iterations of both loops."""
    seen: list[Any] = []

    def watch(node: str, slot: int, value: Any, is_dead: bool, at: ps.NodeOutputContext) -> None:
        if node.endswith("double"):
            assert (slot, is_dead, at.op, at.device, at.step_id) == (0, False, "Mul", CPU + "0", 5)
            seen.append((at.frame, at.iteration, int(value), at.frame_iter))

    executor = ps.new_local_executor(nested_loops())
    executor.run(ps.ExecutorArgs(ps.StepState(id=5), node_outputs_callback=watch))
    outer, inner = "outer/while_context", "outer/inner/while_context"
    assert sorted(seen) == [
        (
            f"{outer}[{turn}]/{inner}",
            j,
            2 ** (j + 1),
            ps.FrameAndIter.of((outer, turn), (inner, j)),
        )
        for turn in range(2)
        for j in range(2)
    ]


def test_callbacks_of_four_arguments_are_called_with_four() -> None:
    """Whoever could be called without a context still is, in whichever way it is written."""
    graph = ps.Graph()
    with graph.as_default():
        ps.constant(1.0, name="one")
    executor = ps.new_local_executor(graph)
    seen: list[tuple[Any, ...]] = []

    def with_default(a: Any, b: Any, c: Any, d: Any, kept: Any = seen) -> None:
        kept.append((a, b, c, d))

    for callback in (with_default, lambda *args: seen.append(args), CallableObject(seen)):
        executor.run(ps.ExecutorArgs(node_outputs_callback=callback))
    assert seen == [("one", 0, 1.0, False)] * 3


class CallableObject:
    """A callback that is an object."""

    def __init__(self, seen: list[tuple[Any, ...]]) -> None:
        self.seen = seen

    def __call__(self, name: str, slot: int, value: Any, is_dead: bool) -> None:
        self.seen.append((name, slot, value, is_dead))


def test_what_a_callback_raises_is_the_nodes_error() -> None:
    """The step fails, and says which node was being told of."""
    graph = ps.Graph()
    with graph.as_default():
        ps.constant(1.0, name="one")

    def refuse(*_args: Any) -> None:
        raise ValueError("not that")

    with pytest.raises(errors.InvalidArgumentError, match="not that") as caught:
        ps.new_local_executor(graph).run(ps.ExecutorArgs(node_outputs_callback=refuse))
    assert caught.value.node_name == "one"


def test_a_recv_is_ended_by_the_rendezvous_and_not_by_the_manager() -> None:
    """As in TensorFlow's sessions, whoever cancels a step aborts its rendezvous as well."""
    outcome: list[Any] = []
    args = ps.ExecutorArgs(ps.StepState(rendezvous=ps.Rendezvous()))
    ps.new_local_executor(square_of_input()).run_async(args, outcome.append)
    args.step.cancellation_manager.start_cancel()
    assert outcome == []
    assert args.step.rendezvous is not None
    args.step.rendezvous.start_abort(errors.CancelledError("enough"))
    assert [type(error) for error in outcome] == [errors.CancelledError]
    assert "enough" in str(outcome[0])


# -- Ctrl-C ------------------------------------------------------------------------------------


class _HandlerError(BaseException):
    """What a program's own handler of signals raises."""


def _raise(_number: int, _frame: Any) -> None:
    raise _HandlerError


def endless() -> ps.Graph:
    graph = ps.Graph()
    with graph.as_default():
        ps.while_loop(lambda i: i >= 0, lambda i: i * 1, [ps.constant(1)])
    return graph


@pytest.mark.parametrize("make_graph", [square_of_input, endless])
@pytest.mark.parametrize(
    ("handler", "raised"),
    [(signal.default_int_handler, KeyboardInterrupt), (_raise, _HandlerError)],
)
def test_ctrl_c_ends_the_step(
    make_graph: Callable[[], ps.Graph], handler: Any, raised: type[BaseException]
) -> None:
    """Nothing of it goes on, whoever handles the signal; the next step is not disturbed."""
    executor = ps.new_local_executor(make_graph())
    step = ps.StepState(rendezvous=ps.Rendezvous())
    before = signal.signal(signal.SIGINT, handler)
    timer = threading.Timer(0.05, signal.raise_signal, [signal.SIGINT])
    try:
        timer.start()
        with pytest.raises(raised):
            executor.run(ps.ExecutorArgs(step))
        assert signal.getsignal(signal.SIGINT) is handler
    finally:
        timer.join()
        signal.signal(signal.SIGINT, before)
    assert not step.interrupt.activities
    with pytest.raises(errors.OpError):
        step.rendezvous.send("input", np.float32(3))
    if make_graph is square_of_input:
        assert answer_of(executor) == 9.0
