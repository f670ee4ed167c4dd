"""What a step that does not end says of itself: who waits, for what, and who could help."""

from __future__ import annotations

import re
import threading
from typing import Any

import numpy as np
import pytest

import penstock as ps
from penstock import errors
from penstock.defs.schema import Message
from support.custom import custom_kernels
from support.functions import graph_def_with
from support.graphs import graph_def
from support.loops import NESTED_LOOPS, counting_loop
from support.pythons import with_gil
from support.sketch import sketch

SOON = ps.RunOptions(timeout_in_ms=50)
LATER = ps.RunOptions(timeout_in_ms=5000)
DATAFLOW = ps.Config(tier=ps.Tier.DATAFLOW)
#: One of each resource that steps wait for, under names that are not those of its nodes.
GRAPH = """
    one = Const[value=1; dtype=int32]
    three = Const[value=3; dtype=int32]
    key = Const[value=1; dtype=int64]
    at = Const[value=0; dtype=int32]
    real = Const[value=1.0]

    queue = FIFOQueueV2[component_types=int32; capacity=2; shared_name=jobs]
    same = FIFOQueueV2[component_types=int32; capacity=2; shared_name=jobs]
    handle = Identity[T=resource](same)
    put = QueueEnqueueV2[Tcomponents=int32](handle, one)
    get = QueueDequeueV2[component_types=int32](queue)
    get_up_to = QueueDequeueUpToV2[component_types=int32](queue, three)
    size = QueueSizeV2(queue)
    close = QueueCloseV2(queue)
    other = FIFOQueueV2[component_types=int32; shared_name=others]
    put_other = QueueEnqueueV2[Tcomponents=int32](other, one)

    lonely = FIFOQueueV2[component_types=int32]
    get_lonely = QueueDequeueV2[component_types=int32](lonely)

    barrier = Barrier[component_types=float32; shapes=(); shared_name=gate]
    take = BarrierTakeMany[component_types=float32](barrier, three)
    text = Const[value=a|b; dtype=string]
    pair = Const[value=1.0|2.0]
    insert = BarrierInsertMany[component_index=0](barrier, text, pair)

    mean = ResourceConditionalAccumulator[dtype=float32; shape=; shared_name=mean]
    gradient = ResourceAccumulatorTakeGradient[dtype=float32](mean, three)
    apply = ResourceAccumulatorApplyGradient[dtype=float32](mean, key, real)

    mutex = MutexV2[shared_name=lock]
    first = MutexLock(mutex)
    second = MutexLock(mutex, ^first)
    free = ConsumeMutexLock(first, ^second)

    unstage = Unstage[dtypes=int32; shared_name=area; capacity=1]
    stage = Stage[dtypes=int32; shared_name=area; capacity=1](one)
    stage_two = Stage[dtypes=int32; shared_name=area; capacity=1](one, ^stage)

    unmap = MapUnstage[dtypes=int32; shared_name=map](key, at)
    map = MapStage[dtypes=int32; fake_dtypes=int32; shared_name=map](key, at, one)
    ordered = OrderedMapStage[dtypes=int32; fake_dtypes=int32; shared_name=map](key, at, one)
"""
STALLS = [
    (
        "get",
        "get (QueueDequeueV2), waits for an element of FIFOQueue 'jobs', which has 0 of 2 "
        "elements and is open; what could end that: put (QueueEnqueueV2)",
    ),
    (
        "get_up_to",
        "get_up_to (QueueDequeueUpToV2), waits for 3 elements of FIFOQueue 'jobs', which has 0 of "
        "2 elements and is open; what could end that: put (QueueEnqueueV2)",
    ),
    (
        "get_lonely",
        "get_lonely (QueueDequeueV2), waits for an element of FIFOQueue 'lonely', which has 0 "
        "elements and is open; no node of the graph could end that",
    ),
    (
        "take",
        "take (BarrierTakeMany), waits for 3 complete tuples of Barrier 'gate', which has 0 and "
        "0 incomplete ones; what could end that: insert (BarrierInsertMany)",
    ),
    (
        "gradient",
        "gradient (ResourceAccumulatorTakeGradient), waits for 3 gradients of Accumulator "
        "'mean', which has 0; what could end that: apply (ResourceAccumulatorApplyGradient)",
    ),
    (
        "free",
        "second (MutexLock), waits for Mutex 'lock', which is held; what could end that: free "
        "(ConsumeMutexLock)",
    ),
    (
        "unstage",
        "unstage (Unstage), waits for Staging area 'area', which has 0 of 1 tuples; "
        "what could end that: stage (Stage), stage_two (Stage)",
    ),
    (
        "stage_two",
        "stage_two (Stage), waits for Staging area 'area', which has 1 of 1 tuples; "
        "what could end that: unstage (Unstage)",
    ),
    (
        "unmap",
        "unmap (MapUnstage), waits for Staging map 'map', which has 0 tuples, 0 incomplete; "
        "what could end that: map (MapStage)",
    ),
]


def graph(more: str = "") -> Message:
    """The graph; elements of the queue for jobs are scalars."""
    proto = graph_def(GRAPH + more)
    for node in proto.node:
        if node.attr["shared_name"].s == b"jobs":
            node.attr["shapes"].list.shape.add()
    return proto


def stalled(
    session: ps.Session, target: Any, feeds: Any = None, options: ps.RunOptions | None = None
) -> str:
    """What a deadline says of a run that does not end; a busy machine gets more time for it."""
    session.make_callable(target, list(feeds or ()))
    for given in (options or SOON, LATER):
        with pytest.raises(errors.DeadlineExceededError, match="Timed out waiting") as caught:
            session.run(target, feeds, given)
        if "\n\n" not in str(caught.value):  # somebody said something
            break
    return str(caught.value)


@pytest.mark.parametrize("tier", ps.Tier)
@pytest.mark.parametrize(("target", "text"), STALLS, ids=[target for target, _ in STALLS])
def test_a_wait_says_for_what_and_who_could_end_it(target: str, text: str, tier: ps.Tier) -> None:
    """The resource by its own name, how full it is, and the nodes that work on the same one."""
    with ps.Session(graph(), config=ps.Config(tier=tier)) as session:
        assert f"  running  {text}\n" in f"{stalled(session, target)}\n"


def test_a_full_queue_says_who_could_take() -> None:
    """What waits for room is told who dequeues, under whichever handle."""
    with ps.Session(graph()) as session:
        session.run("put")
        session.run("put")
        text = stalled(session, "put")
    assert "put (QueueEnqueueV2), waits for room in FIFOQueue 'jobs', which has 2 of 2" in text
    assert "what could end that: get (QueueDequeueV2), get_up_to (QueueDequeueUpToV2)" in text


def test_who_waits_for_the_rest_says_how_many_there_are() -> None:
    """Elements that are reserved already are not among those in the queue."""
    with ps.Session(graph()) as session:
        session.run("put")
        assert "waits for 3 elements of FIFOQueue 'jobs'" in stalled(session, "get_up_to")
        assert session.run("size:0") == 1


@pytest.mark.parametrize("how", ["cancel", "close"])
def test_a_cancelled_run_says_the_same(how: str) -> None:
    """Not only deadlines tell what a step waited for when it was ended."""
    session = ps.Session(graph())
    run = session.run_async("get:0")
    while "waits for" not in run.dump_state():
        threading.Event().wait(0.001)
    run.cancel() if how == "cancel" else session.close()
    with pytest.raises(errors.CancelledError) as caught:
        run.result(10.0)
    assert "FIFOQueue 'jobs', which has 0 of 2 elements" in str(caught.value)
    session.close()


def test_other_nodes_of_one_kind_are_counted() -> None:
    """Of many nodes that could help, some are named."""
    rows = [f"put_{i} = QueueEnqueueV2[Tcomponents=int32](queue, one)" for i in range(9)]
    with ps.Session(graph("\n".join(rows))) as session:
        text = stalled(session, "get")
    assert "put (QueueEnqueueV2), put_0 (QueueEnqueueV2), put_1 (QueueEnqueueV2) and 7 more" in text


def test_functions_that_could_help_are_named() -> None:
    """A function that puts elements into some queue may be the one that is missing."""
    function = """
        Feeder(q: resource, x: int32) -> (y: int32)
        into = QueueEnqueueV2[Tcomponents=int32](q, x)
        return y = x
        control into = into
    """
    with ps.Session(graph_def_with(GRAPH, function)) as session:
        assert "put (QueueEnqueueV2), the function Feeder" in stalled(session, "get")


def test_what_is_inside_of_a_function_is_told() -> None:
    """The caller waits for the function, and in the function something waits for a queue."""
    function = """
        Taker(q: resource) -> (y: int32)
        inner = QueueDequeueV2[component_types=int32](q)
        return y = inner:components:0
    """
    call = "\ncall = StatefulPartitionedCall[Tin=resource; Tout=int32; f=Taker](queue)"
    proto = graph_def_with(GRAPH + call, function)
    proto.library.function[0].attr["_noinline"].b = True
    with ps.Session(proto) as session:
        # The function is prepared within the step.
        text = stalled(session, "call:0", options=ps.RunOptions(timeout_in_ms=500))
    assert "call (StatefulPartitionedCall), waits for the function Taker" in text
    assert ", function Taker:\n  running  inner (QueueDequeueV2), waits for an element" in text


def test_a_receiver_says_its_key_and_its_sender() -> None:
    """A value that does not come from another device: which node is to send it, and from where."""
    text = """
        q = FIFOQueueV2[component_types=int32] @/cpu:0
        slow = QueueDequeueV2[component_types=int32](q) @/cpu:0
        more = FIFOQueueV2[component_types=int32] @/cpu:1
        also = QueueDequeueV2[component_types=int32](more) @/cpu:1
        sum = Add[T=int32](slow, also) @/cpu:1
    """
    cpu = "/job:localhost/replica:0/task:0/device:CPU:"
    with ps.Session(graph_def(text), config=ps.Config(device_count={"CPU": 2})) as session:
        told = stalled(session, "sum:0")
    [line] = [line for line in told.splitlines() if "waits for node slow" in line]
    assert "  running  slow/_" in line
    assert f" (_Recv), waits for node slow on {cpu}0; the key is {cpu}0;" in line
    assert re.fullmatch(rf".*;{cpu}1;edge_\d+_slow;0:0", line)


def test_a_partial_run_says_which_feed_is_missing() -> None:
    """What waits in a partial run is what the client has not fed."""
    session = ps.Session(graph_def("x = Placeholder\ny = Placeholder\nz = Add(x, y)"))
    handle = session.partial_run_setup(["z:0"], ["x", "y"])
    session.partial_run(handle, [], {"x": 1.0})
    run = session._under_way.partial_runs.get(handle)
    told = run.dump_state()
    session.close()
    assert "(_Recv), waits for y:0, which the client feeds" in told
    assert "waiting  z (Add)" in told


@pytest.mark.parametrize("config", [ps.Config(), DATAFLOW], ids=["compiled", "dataflow"])
@with_gil
def test_an_endless_loop_says_frame_and_iteration(config: ps.Config) -> None:
    """On either tier, alone or beside something else."""
    beside = """
        q = FIFOQueueV2() component_types=["int32"]
        put = QueueEnqueueV2(q, exit)
    """
    for text, target in ((counting_loop(), "exit:0"), (counting_loop() + beside, "put")):
        with ps.Session(sketch(text), config=config) as session:
            told = stalled(session, target, {"limit": 2**31 - 1})
        assert "loop, iteration " in told
    with ps.Session(sketch(NESTED_LOOPS), config=config) as session:
        told = stalled(session, "total:0", {"outer": 9, "inner": 2**27})
    assert "outer[1]/inner, iteration " in told


def test_an_endless_while_says_its_functions_and_iteration() -> None:
    """A loop that is left to its kernel counts its turns, too."""
    functions = """
        Always(x: int32) -> (go: bool)
        yes = Const[value=True; dtype=bool]
        return go = yes:output

        Next(x: int32) -> (y: int32)
        one = Const[value=1; dtype=int32]
        sum = Add[T=int32](x, one:output)
        return y = sum:z
    """
    text = "x = Placeholder[dtype=int32]\ny = While[T=int32; cond=Always; body=Next](x)"
    config = ps.Config(disable_functional_ops_lowering=True)
    with ps.Session(graph_def_with(text, functions), config=config) as session:
        # Bodies of functions are prepared when the step comes to them.
        told = stalled(session, "y:0", {"x": 0}, ps.RunOptions(timeout_in_ms=1000))
    assert "y (While), waits for iteration " in told
    assert "of the functions Always and Next" in told


def test_a_slow_kernel_is_named_on_the_thread_that_drives() -> None:
    """A kernel that neither waits nor is elsewhere is what the step is at."""
    begun, go = threading.Event(), threading.Event()

    def slow(_context: Any, x: Any) -> Any:
        begun.set()
        assert go.wait(10.0)
        return x

    with custom_kernels("ExSlow(x: float32) -> (y: float32) stateful") as register:
        register("ExSlow", slow, "context")
        with ps.Session(graph_def("x = Placeholder\ny = ExSlow(x)"), config=DATAFLOW) as session:
            run = session.run_async("y:0", {"x": 1.0})
            assert begun.wait(10.0)
            assert "  running  y (ExSlow)\n" in f"{run.dump_state()}\n"
            go.set()
            assert run.result(10.0) == 1.0


def test_a_users_kernel_may_say_what_it_waits_for() -> None:
    """``context.waits_for`` is what a report says of an asynchronous kernel."""
    kept: list[Any] = []

    def ask(context: Any, done: Any, _x: Any) -> None:
        context.waits_for = "the answer of example.org"
        kept.append(done)

    with custom_kernels("ExAsk(x: float32) -> (y: float32)") as register:
        register("ExAsk", ask, "async")
        with ps.Session(graph_def("x = Placeholder\ny = ExAsk(x)")) as session:
            run = session.run_async("y:0", {"x": 1.0})
            while not kept:
                threading.Event().wait(0.001)
            assert "y (ExAsk), waits for the answer of example.org" in run.dump_state()
            kept[0](np.float32(2))
            assert run.result(10.0) == 2.0


@pytest.mark.parametrize("tier", list(ps.Tier))
def test_a_lock_for_a_dead_node_is_open(tier: ps.Tier) -> None:
    """Nobody has it any more, so that the next one gets it; TensorFlow does so, too."""
    text = """
        p = Placeholder() dtype=bool
        one = Const() value=1.0
        s = Switch(one, p)
        m = MutexV2() shared_name="m"
        lock = MutexLock(m)
        neg = Neg(s:1)
        free = ConsumeMutexLock(lock, ^neg)
        then = Neg(s, ^lock)
        again = MutexLock(m, ^then)
        y = Neg(one, ^again)
    """
    options = ps.RunOptions(timeout_in_ms=20_000)
    config = ps.Config(tier=tier, graph_options=ps.GraphOptions.nothing())
    with ps.Session(sketch(text), config=config) as session:
        assert session.run(["y:0", "free"], {"p:0": False}, options)[0] == -1
