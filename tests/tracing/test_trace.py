"""What a trace says of a step: waits, dead nodes, loops, transfers, memory, regions."""

from __future__ import annotations

import sys
import threading
from collections import Counter
from typing import Any

import numpy as np
import pytest

import penstock as ps
from penstock.runtime.compiler import compile_regions
from penstock.runtime.executor.driver import ExecutorState
from penstock.tracing.recorder import Recording
from penstock.tracing.replay import UNFINISHED, trace_of
from penstock.tracing.sampler import Sampler
from penstock.tracing.trace import Activation, Sort, Trace
from penstock.tracing.watching import watching
from support.custom import custom_kernels
from support.functions import graph_def_with
from support.graphs import graph_def
from support.loops import NESTED_LOOPS, counting_loop
from support.native import WITHOUT
from support.sketch import sketch
from tracing.traced_graph import FEEDS, FETCHES, traced_graph

NODES = ps.TraceDetail.NODES
NOTHING = ps.GraphOptions.nothing()
TWO = """
x = Placeholder
y = Neg(x)
z = Add(y, y) @/device:CPU:1
out = Exp(z)
"""


def traced(graph: Any, fetch: Any, feeds: Any, **options: Any) -> ps.Trace:
    """A trace of one step, node by node."""
    with ps.Session(graph, config=ps.Config(graph_options=NOTHING, **options)) as session:
        run = ps.trace(session, fetch, feeds, detail=NODES)
        run.value  # noqa: B018  (raises the step's error)
        return run.trace


def by_name(trace: Trace) -> dict[str, list[Activation]]:
    """Activations by the names of their nodes."""
    found: dict[str, list[Activation]] = {}
    for activation in trace.activations:
        found.setdefault(activation.name, []).append(activation)
    return found


def test_values_and_errors_come_along() -> None:
    """A step that fails is recorded; whoever asks for its value gets the error."""
    graph = graph_def("x = Placeholder\ny = Neg(x)\nz = MatMul(y, y)")
    with ps.Session(graph, config=ps.Config(graph_options=NOTHING)) as session:
        assert ps.trace(session, "y:0", {"x:0": [[1.0]]}, detail=NODES).value == [[-1.0]]
        run = ps.trace(session, "z:0", {"x:0": [[1.0, 2.0]]}, detail=NODES, steps=3)
    assert isinstance(run.error, ps.errors.InvalidArgumentError)
    with pytest.raises(ps.errors.InvalidArgumentError):
        run.value  # noqa: B018
    found = by_name(run.trace)
    assert found["z"][0].error == "INVALID_ARGUMENT"
    assert not found["y"][0].error
    assert len(run.trace.steps) == 1
    assert [n.node_name for d in run.metadata.step_stats.dev_stats for n in d.node_stats].count(
        "z"
    ) == 0


def test_dead_nodes_are_seen() -> None:
    """A branch that is not taken is there by its dead nodes."""
    text = (
        "x = Placeholder\np = Placeholder[dtype=bool]\ns = Switch(x, p)\na = Neg(s)\nb = Exp(s:1)"
    )
    text += "\nm = Merge[N=2](a, b)"
    trace = traced(graph_def(text), "m:0", {"x:0": 1.0, "p:0": True})
    assert [dead.name for dead in trace.dead] == ["a"]
    assert "b" in by_name(trace)


def test_loops_and_their_iterations_are_spans() -> None:
    """Each run of an inner loop is a span of its own, and so is each of its iterations."""
    trace = traced(sketch(NESTED_LOOPS), "total:0", {"outer": 3, "inner": 2})
    loops = Counter(s.place.frame.partition("[")[0] for s in trace.spans if not s.is_iteration)
    # The last turn of the outer loop, in which the condition is false, has no inner one.
    assert loops == {"outer": 1 + 3}
    inner = [s for s in trace.spans if not s.is_iteration and s.place.frame.endswith("/inner")]
    assert sorted(s.place.frame for s in inner) == [f"outer[{i}]/inner" for i in range(3)]
    for span in trace.spans:
        within = [
            a for a in trace.activations
            if a.place.frame == span.place.frame
            and (not span.is_iteration or a.place.iteration == span.place.iteration)
        ]  # fmt: skip
        assert span.start == min(a.start for a in within)
        assert span.end == max(a.end for a in within)


def test_every_transfer_is_a_flow() -> None:
    """From the Send to the Recv of the same key, which ends after the other began."""
    trace = traced(graph_def(TWO), "out:0", {"x:0": 1.0}, device_count={"CPU": 2})
    sends = [a for a in trace.activations if a.op == "_Send"]
    assert len(trace.flows) == len(sends) == 2
    for flow in trace.flows:
        source, target = trace.activations[flow.source], trace.activations[flow.target]
        assert (source.op, target.op) == ("_Send", "_Recv")
        assert source.key == target.key == flow.key
        assert flow.key.endswith(";0:0")
        assert source.place.device != target.place.device
        assert target.op_end >= source.op_start


def test_a_loop_across_devices_has_a_flow_for_each_iteration() -> None:
    """Keys tell iterations apart; the last one sends that it is dead."""
    text = """
    x = Placeholder
    limit = Const[value=3; dtype=int32]
    zero = Const[value=0; dtype=int32]
    i_enter = Enter[T=int32; frame_name=loop](zero)
    y_enter = Enter[frame_name=loop](x)
    bound = Enter[T=int32; frame_name=loop; is_constant=true](limit)
    i = Merge[N=2; T=int32](i_enter, i_next)
    y = Merge[N=2](y_enter, y_next)
    less = Less[T=int32](i, bound)
    cond = LoopCond(less)
    i_switch = Switch[T=int32](i, cond)
    y_switch = Switch(y, cond)
    i_body = Identity[T=int32](i_switch:1)
    one = Const[value=1; dtype=int32](^i_body)
    i_sum = Add[T=int32](i_body, one)
    i_next = NextIteration[T=int32](i_sum)
    square = Square(y_switch:1) @/device:CPU:1
    y_next = NextIteration(square)
    out = Exit(y_switch)
    """
    trace = traced(graph_def(text), "out:0", {"x:0": 2.0}, device_count={"CPU": 2})
    pairs = [(trace.activations[f.source], trace.activations[f.target]) for f in trace.flows]
    over = [(s, t) for s, t in pairs if "y_switch" in s.key]
    turns = sorted(s.place.iteration for s, _ in over)
    assert turns == [0, 1, 2, 3]
    assert {s.place.iteration for s, _ in over if s.is_dead} == {3}
    assert all(s.place.iteration == t.place.iteration for s, t in over)
    assert all(s.key.endswith(f":{s.place.iteration}") for s, _ in over)


def test_what_waits_says_for_what() -> None:
    """A dequeue that waits is asynchronous from its start until the element came."""
    text = """
    q = FIFOQueueV2[component_types=float32; shared_name=q]
    x = Placeholder
    put = QueueEnqueueV2[Tcomponents=float32](q, x)
    get = QueueDequeueV2[component_types=float32](q)
    """
    with ps.Session(graph_def(text)) as session:
        runs: list[ps.TracedRun] = []
        waiter = threading.Thread(
            target=lambda: runs.append(ps.trace(session, "get:0", detail=NODES))
        )
        waiter.start()
        put = None
        while put is None:  # until somebody waits: then it is taken from there
            put = session.run("put", {"x:0": 3.0}) or 0
        waiter.join()
        (run,) = runs
        assert run.value == 3.0
        late = ps.trace(session, "get:0", options=ps.RunOptions(timeout_in_ms=20), detail=NODES)
    assert isinstance(late.error, ps.errors.DeadlineExceededError)
    (get,) = by_name(late.trace)["get"]
    assert get.is_async
    assert "q" in get.waits_for
    assert get.error
    assert get.op_end - get.op_start >= 10_000_000


def test_what_a_step_did_not_wait_for_is_there() -> None:
    """A kernel that never answers, from its start to the end of the step."""
    limits = ps.Limits(patience=0.02)
    with custom_kernels("TraceSilent(x: float32) -> (y: float32)") as register:
        register("TraceSilent", lambda _context, _done, _x: None, "async")
        with ps.Session(
            graph_def("x = Placeholder\ny = TraceSilent(x)"), config=ps.Config(limits=limits)
        ) as session:
            options = ps.RunOptions(timeout_in_ms=10)
            run = ps.trace(session, "y:0", {"x:0": 1.0}, detail=NODES, options=options)
    assert isinstance(run.error, ps.errors.DeadlineExceededError)
    (silent,) = by_name(run.trace)["y"]
    assert silent.error == UNFINISHED
    assert silent.is_async
    assert silent.op_end == run.trace.steps[0][1]


def test_nodes_of_functions_say_so() -> None:
    """And those of the graph itself do not."""
    config = ps.Config(graph_options=NOTHING, device_count={"CPU": 2})
    with ps.Session(traced_graph(), config=config) as session:
        session.run("init")
        trace = ps.trace(session, list(FETCHES), FEEDS, detail=NODES).trace
    assert {a.name for a in trace.activations if a.place.function == "Twice"} >= {"a", "mul", "two"}
    assert {a.place.function for a in trace.activations} == {"", "Twice"}


def test_live_bytes_are_what_is_still_to_be_read() -> None:
    """A chain holds two values at a time, whatever was before; a constant is nobody's."""
    chain = "x = Const[value=0.0|1.0]\n" + "".join(
        f"n{i} = Neg({'x' if not i else f'n{i - 1}'})\n" for i in range(10)
    )
    trace = traced(graph_def(chain), "n9:0", {}, inter_op_parallelism_threads=1)
    (live,) = (c for c in trace.counters if c.name == "live bytes")
    values = [value for _, value in live.points]
    assert max(values) == 16
    assert values[-1] == 0
    assert sum(buffer.size for buffer in trace.buffers if buffer.maker >= 0) == 80


def test_what_a_loop_begins_with_is_not_kept() -> None:
    """The first value of a loop's variable is needed in the first iteration, and no longer."""
    graph = ps.Graph()
    with graph.as_default():
        x = ps.placeholder(ps.dtypes.float32, [3], name="x")
        _, y = ps.while_loop(
            lambda i, _: i < 5,
            lambda i, y: (i + 1, ps.ops.exp(y, name="next")),
            [ps.constant(0), ps.ops.neg(x, name="first")],
            name="loop",
        )
        ps.ops.identity(y, name="out")
    trace = traced(graph, "out:0", {"x:0": [1.0, 2.0, 3.0]}, inter_op_parallelism_threads=1)
    found = by_name(trace)
    first = trace.buffers[found["first"][0].outputs[0].buffer]
    turns = {a.place.iteration: a for name in found for a in found[name] if name == "loop/next"}
    assert first.end == turns[0].op_end
    last = trace.buffers[turns[4].outputs[0].buffer]
    assert last.end >= found["out"][0].op_end


def test_what_runs_on_the_pool_has_its_thread_and_its_time() -> None:
    """The thread of the pool, and the time of the kernel, not that until somebody heard of it."""
    meet, threads = threading.Barrier(2), list[int]()

    def both(x: Any) -> Any:
        meet.wait(10.0)
        threads.append(threading.get_ident())
        return x

    text = "x = Placeholder\na = TraceBoth(x)\nb = TraceBoth(x)\nz = Add(a, b)"
    config = ps.Config(graph_options=NOTHING, inter_op_parallelism_threads=4, offload_seconds=0.0)
    with custom_kernels("TraceBoth(x: float32) -> (y: float32)") as register:
        register("TraceBoth", both)
        with ps.Session(graph_def(text), config=config) as session:
            run = ps.trace(session, "z:0", {"x:0": 1.0}, detail=NODES)
    assert run.value == 2.0
    found = by_name(run.trace)
    pair = [found["a"][0], found["b"][0]]
    assert sorted(a.thread for a in pair) == sorted(threads)
    assert len(set(threads)) == 2
    # Each was there when the other one was.
    assert max(a.op_start for a in pair) < min(a.op_end for a in pair)
    for activation in pair:
        assert not activation.is_async
        assert activation.start == activation.op_start  # it was handed over before
        assert run.trace.threads[activation.thread]


def test_memory_that_is_handed_on_is_one_buffer() -> None:
    """Through Identity, Reshape, a function's arguments and results, and to other devices."""
    text = """
    x = Placeholder
    a = Neg(x)
    b = Identity(a)
    shape = Const[value=2|1; dtype=int32]
    c = Reshape(b, shape)
    d = PartitionedCall[Tin=float32; Tout=float32; f=Same](c)
    e = Identity(d) @/device:CPU:1
    """
    function = "Same(x: float32) -> (y: float32)\ny = Identity(x)\nreturn y = y:output"
    graph = graph_def_with(text, function)
    trace = traced(graph, "e:0", {"x:0": [1.0, 2.0]}, device_count={"CPU": 2})
    found = by_name(trace)
    buffers = {found[name][0].outputs[0].buffer for name in "abcde"}
    assert len(buffers) == 1
    assert trace.activations[trace.buffers[buffers.pop()].maker].name == "a"


def test_ready_nodes_are_counted() -> None:
    """What a node makes ready is ready until it is taken up; in the end there is nothing."""
    text = "x = Placeholder\na = Neg(x)\nb = Exp(x)\nc = Abs(x)\nz = AddN[N=3](a, b, c)"
    trace = traced(graph_def(text), "z:0", {"x:0": 1.0}, inter_op_parallelism_threads=1)
    (ready,) = (c for c in trace.counters if c.name == "ready nodes")
    assert max(value for _, value in ready.points) == 3
    assert ready.points[-1][1] == 0


@pytest.mark.parametrize("detail", [ps.TraceDetail.REGIONS, NODES])
def test_calls_of_a_callable_are_recorded(detail: ps.TraceDetail) -> None:
    """By the recorder that its options have: each call is a step."""
    recording = Recording(detail)
    with ps.Session(graph_def("x = Placeholder\ny = Neg(x)\nz = Exp(y)")) as session:
        call = session.make_callable("z:0", ["x:0"], ps.RunOptions(recorder=recording))
        assert [call(0.0), call(0.0)] == [1.0, 1.0]
    trace = trace_of(recording)
    assert len(trace.steps) == 2
    wanted = Sort.PYTHON if detail is ps.TraceDetail.REGIONS else Sort.NODE
    assert {a.sort for a in trace.activations} == {wanted}


# -- compiled regions ----------------------------------------------------------------------------


def test_a_request_that_is_one_function_is_one_region() -> None:
    """As it is compiled: nothing about its nodes, unless somebody looks."""
    with ps.Session(sketch(counting_loop()), config=ps.Config(graph_options=WITHOUT)) as session:
        run = ps.trace(session, "exit:0", {"limit": 5}, detail=ps.TraceDetail.REGIONS)
        assert run.value == 5
    (region,) = run.trace.activations
    assert region.sort is Sort.PYTHON
    assert "more" in region.name
    (start, end) = run.trace.steps[0]
    assert start <= region.start <= region.end <= end


def test_regions_stand_among_nodes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where only parts are compiled, both are activations."""
    original = compile_regions.can_be_line
    monkeypatch.setattr(
        compile_regions, "can_be_line", lambda n, *r, **k: n.name != "b" and original(n, *r, **k)
    )
    text = "x = Placeholder\na = Neg(x)\na2 = Exp(a)\nb = Abs(a2)\nc = Neg(b)\nc2 = Exp(c)"
    with ps.Session(graph_def(text)) as session:
        run = ps.trace(session, "c2:0", {"x:0": 1.0}, detail="regions")
    sorts = Counter(a.sort for a in run.trace.activations if a.op == "_Region" or a.name == "b")
    assert sorts[Sort.PYTHON] >= 1
    assert sorts[Sort.NODE] == 1


def slow_loop() -> Any:
    """A loop that takes long enough to be looked at: a hundred products of matrices."""
    graph = ps.Graph()
    with graph.as_default():
        x = ps.placeholder(ps.dtypes.float32, [200, 200], name="x")
        _, y = ps.while_loop(
            lambda i, _: i < 100,
            lambda i, y: (i + 1, ps.ops.mat_mul(y, x, name="product")),
            [ps.constant(0), x],
            name="loop",
        )
        ps.ops.identity(y, name="y")
    return graph


def test_samples_say_which_node_a_region_is_at() -> None:
    """In which iteration of which loop; most looks meet what takes most time."""
    with ps.Session(slow_loop(), config=ps.Config(accelerate=False)) as session:
        feeds = {"x:0": np.zeros((200, 200), np.float32)}
        run = ps.trace(session, "y:0", feeds, steps=5, interval=2e-4)
    looks = Counter(sample.name for sample in run.trace.samples)
    assert looks.most_common(1)[0][0] == "loop/product"
    at = next(s for s in run.trace.samples if s.name == "loop/product")
    assert at.op == "MatMul"
    assert at.place.frame.startswith("loop")
    assert 0 <= at.place.iteration < 100
    assert len(run.trace.steps) == 5


def test_a_region_of_onnx_runtime_is_seen_within_python() -> None:
    """By its name and time; on request with the nodes that it stands for."""
    pytest.importorskip("onnxruntime")
    graph = ps.Graph()
    rng = np.random.default_rng(1)
    with graph.as_default():
        y = x = ps.placeholder(ps.dtypes.float32, [64, 512], name="x")
        for layer in range(3):
            weights = ps.constant(rng.normal(size=(512, 512)).astype(np.float32))
            y = ps.ops.relu(ps.ops.mat_mul(y, weights, name=f"product{layer}"))
        ps.ops.identity(y, name="y")
    feeds = {x: rng.normal(size=(64, 512)).astype(np.float32)}
    with ps.Session(graph, config=ps.Config(limits=ps.Limits(region_products=0))) as session:
        plain = ps.trace(session, "y:0", feeds, detail="regions")
        close = ps.trace(session, "y:0", feeds, detail="inside")
    regions = [a for a in plain.trace.activations if a.sort is Sort.ONNX]
    assert regions
    around = [a for a in plain.trace.activations if a.sort is Sort.PYTHON]
    assert any(a.op_start <= regions[0].op_start <= regions[0].op_end <= a.op_end for a in around)
    inside = Counter(a.op for a in close.trace.activations if a.sort is Sort.INSIDE)
    assert inside["MatMul"] == 3
    # Sums of 512 products in other orders; what cancels is as inexact as the largest is.
    largest = float(np.abs(close.value).max())
    np.testing.assert_allclose(plain.value, close.value, rtol=1e-5, atol=1e-6 * largest)
    names = [n.node_name for d in close.metadata.step_stats.dev_stats for n in d.node_stats]
    assert not {name for name in names if name.startswith("product")}


def test_nothing_is_left_when_a_trace_is_done() -> None:
    """The interpreter's switch interval is as before, no thread is watched, none is left."""
    interval, names = sys.getswitchinterval(), {t.name for t in threading.enumerate()}
    with ps.Session(sketch(counting_loop())) as session:
        for detail in ps.TraceDetail:
            ps.trace(session, "exit:0", {"limit": 3}, detail=detail)
    assert sys.getswitchinterval() == interval
    assert not watching
    assert "penstock sampler" not in {t.name for t in threading.enumerate()} - names


def test_a_thread_is_looked_at_as_long_as_it_is_watched() -> None:
    """Of two who watch it the inner one is told; when both are done, nobody looks."""
    looked = threading.Event()
    notes: dict[str, list[Any]] = {"outer": [], "inner": []}

    def place_now(thread: int) -> tuple[str, str, str, int]:
        assert thread == me
        looked.set()
        return "n", "Op", "", 0

    def wait_for_a_look() -> None:
        for _ in range(2):  # the one that is under way may be of before
            looked.clear()
            assert looked.wait(10)

    me = threading.get_ident()
    with Sampler(place_now, 1e-4) as sampler:
        with sampler.watch(me, notes["outer"].append):
            with sampler.watch(me, notes["inner"].append):
                wait_for_a_look()
            told = len(notes["outer"])
            assert told == 0
            wait_for_a_look()
            wait_for_a_look()
            assert notes["outer"]
        assert not sampler._watched
        looked.clear()
        assert not looked.wait(0.01)


def test_a_program_is_seen_and_opened() -> None:
    """With its time; on request node by node, the iterations of its loop included."""
    graph = ps.Graph()
    with graph.as_default():
        x = ps.placeholder(ps.dtypes.float32, [8], name="x")
        _, y = ps.while_loop(
            lambda i, _: i < 50,
            lambda i, y: (i + 1, ps.ops.tanh(y * 0.5 + x)),
            [ps.constant(0), x],
            name="loop",
        )
        ps.ops.identity(y, name="y")
    feeds = {"x:0": np.ones(8, np.float32)}
    with ps.Session(graph) as session:
        found = {d: ps.trace(session, "y:0", feeds, detail=d) for d in ("regions", "inside")}
    sorts = {d: Counter(a.sort for a in run.trace.activations) for d, run in found.items()}
    assert sorts["regions"] == {Sort.PYTHON: 1, Sort.PROGRAM: 1}
    assert sorts["inside"][Sort.PROGRAM] == 0
    assert Counter(a.op for a in found["inside"].trace.activations)["Tanh"] == 50
    np.testing.assert_allclose(found["regions"].value, found["inside"].value, rtol=1e-6)


# -- what is not recorded -------------------------------------------------------------------------


def test_who_records_nothing_runs_the_plain_driver() -> None:
    """Its code has no word of recorders: hooks that are off are not there."""
    for name in ("_run_ready", "_activate", "_take_completions", "_observe", "_drive"):
        code = getattr(ExecutorState, name).__code__
        words = {*code.co_names, *code.co_varnames, *code.co_freevars}
        assert not {w for w in words if "record" in w or "stats" in w}


@pytest.mark.parametrize("wrong", [{"detail": "all"}, {"steps": 0}, {"interval": 0.0}])
def test_what_makes_no_sense_is_refused(wrong: Any) -> None:
    """Before anything is run."""
    with pytest.raises(ps.errors.InvalidArgumentError):
        ps.trace(graph_def("x = Placeholder\ny = Neg(x)"), "y:0", {"x:0": 1.0}, **wrong)
