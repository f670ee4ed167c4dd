"""Why a step ended: what ended it counts, and not what came of that."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator
from functools import partial
from queue import SimpleQueue
from typing import Any

import pytest

import penstock as ps
from penstock import errors
from penstock.defs.schema import Message
from support.custom import custom_kernels
from support.functions import graph_def_with
from support.graphs import graph_def

#: Reads a variable in every iteration of an endless loop, each time after the gate has opened.
LOOP = """
    v = VarHandleOp[dtype=int32; shape=; shared_name=v; container=c]
    zero = Const[value=0; dtype=int32]
    init = AssignVariableOp[dtype=int32](v, zero)
    start = Placeholder[dtype=int32]
    most = Const[value=2147483647; dtype=int32]
    enter = Enter[T=int32; frame_name=loop](start)
    bound = Enter[T=int32; frame_name=loop; is_constant=true](most)
    handle = Enter[T=resource; frame_name=loop; is_constant=true](v)
    merge = Merge[T=int32; N=2](enter, next)
    less = Less[T=int32](merge, bound)
    cond = LoopCond(less)
    switch = Switch[T=int32](merge, cond)
    gate = ExGate(switch:1)
    read = ReadVariableOp[dtype=int32](handle, ^gate)
    sum = Add[T=int32](gate, read)
    next = NextIteration[T=int32](sum)
    exit = Exit[T=int32](switch)
"""
#: The same in a function that is called.
CALL = """
    v = VarHandleOp[dtype=int32; shape=; shared_name=v; container=c]
    zero = Const[value=0; dtype=int32]
    init = AssignVariableOp[dtype=int32](v, zero)
    start = Placeholder[dtype=int32]
    exit = StatefulPartitionedCall[Tin=int32|resource; Tout=int32; f=Reads](start, v)
"""
FUNCTION = """
    Reads(x: int32, v: resource) -> (y: int32)
    gate = ExGate(x)
    read = ReadVariableOp[dtype=int32](v, ^gate)
    sum = Add[T=int32](gate:y, read:value)
    return y = sum:z
"""
#: Something that the compiler leaves to the executor, which runs beside the loop.
BESIDE = """
    queue = FIFOQueueV2[component_types=int32; container=other]
    beside = QueueSizeV2(queue, ^exit)
    count = QueueDequeueV2[component_types=int32](queue, ^exit)
"""


def called() -> Message:
    """A graph whose function is not put where it is called."""
    proto = graph_def_with(CALL, FUNCTION)
    proto.library.function[0].attr["_noinline"].b = True
    return proto


DATAFLOW = ps.Config(tier=ps.Tier.DATAFLOW)
#: Graphs, and how they are run: as one function, with regions, node by node, with calls.
FORMS: dict[str, tuple[Callable[[], Message], ps.Config]] = {
    "whole": (lambda: graph_def(LOOP), ps.Config()),
    "regions": (lambda: graph_def(LOOP + BESIDE), ps.Config()),
    "dataflow": (lambda: graph_def(LOOP), DATAFLOW),
    "called": (called, ps.Config()),
    "called, dataflow": (called, DATAFLOW),
}


class Gate:
    """A kernel that says when it runs, and goes on when it is told to."""

    def __init__(self) -> None:
        self.is_reached = threading.Event()
        self.may_go_on = threading.Event()

    def __call__(self, x: Any) -> Any:
        self.is_reached.set()
        assert self.may_go_on.wait(20.0)
        return x


@pytest.fixture
def gate() -> Iterator[Gate]:
    """Yield the gate of ExGate's kernel; open it in the end."""
    with custom_kernels("ExGate(x: int32) -> (y: int32)") as register:
        made = Gate()
        register("ExGate", made)
        yield made
        made.may_go_on.set()


def ended_at(gate: Gate, session: ps.Session, run: Callable[[], Any], end: Any) -> BaseException:
    """What a run raises that is at the gate while ``end`` is called."""
    raised: list[BaseException] = []

    def work() -> None:
        try:
            run()
        except BaseException as error:  # noqa: BLE001
            raised.append(error)

    session.run("init")
    runner, ender = threading.Thread(target=work), threading.Thread(target=end)
    runner.start()
    assert gate.is_reached.wait(10.0)
    ender.start()
    ender.join(0.3)  # what waits for the run to end goes on beside it
    gate.may_go_on.set()
    for thread in (runner, ender):
        thread.join(10.0)
        assert not thread.is_alive()
    [error] = raised
    return error


ENDS: dict[str, Callable[[ps.Session], None]] = {
    "close": lambda session: session.close(),
    "reset": lambda _session: ps.Session.reset("", ["c"]),
}


@pytest.mark.parametrize("how", ENDS)
@pytest.mark.parametrize("form", FORMS)
def test_a_closed_session_is_the_reason(gate: Gate, form: str, how: str) -> None:
    """A step that finds its variable gone says that its session was closed."""
    make, config = FORMS[form]
    session = ps.Session(make(), config=config)
    fetches = ["exit:0", "count:0"] if form == "regions" else "exit:0"
    error = ended_at(
        gate, session, lambda: session.run(fetches, {"start": 0}), lambda: ENDS[how](session)
    )
    assert isinstance(error, errors.CancelledError), error
    assert "Session has been closed." in str(error)


def test_a_reset_ends_loops_by_closing(gate: Gate) -> None:
    """A loop that runs between the two halves of a reset finds its variable, and is closed."""
    session = ps.Session(graph_def(LOOP))
    ended = threading.Event()

    class Slow:
        """A resource that takes its time when it is told of the reset."""

        def end_waits(self) -> None:
            gate.may_go_on.set()
            ended.wait(0.2)

    def reset() -> None:
        session._environment.resources.create("c", "slow", "Slow", Slow())
        ps.Session.reset("", ["c"])

    error = ended_at(gate, session, lambda: session.run("exit:0", {"start": 0}), reset)
    ended.set()
    assert isinstance(error, errors.CancelledError), error
    assert "Session has been closed." in str(error)


#: Nodes that wait, what fills or holds what they wait for, and TensorFlow's words for the end;
#: where it goes on waiting, our own.
WAITS = {
    "FIFOQueue": "Dequeue operation was cancelled",
    "PaddingFIFOQueue": "Dequeue operation was cancelled",
    "RandomShuffleQueue": "Dequeue operation was cancelled",
    "PriorityQueue": "Dequeue operation was cancelled",
    "dequeue many": "Dequeue operation was cancelled",
    "dequeue up to": "Dequeue operation was cancelled",
    "enqueue": "Enqueue operation was cancelled",
    "enqueue many": "Enqueue operation was cancelled",
    "read": "Dequeue operation was cancelled",
    "barrier": "Dequeue operation was cancelled",
    "accumulator": "TakeGrad operation was cancelled",
    "sparse accumulator": "TakeGrad operation was cancelled",
    "mutex": r"Lock acquisition cancelled\.",
    "area": "Staging area operation was cancelled",
    "full area": "Staging area operation was cancelled",
    "map": "Staging map operation was cancelled",
}
QUEUE = "component_types=int32; container=c; capacity=1"
TEXTS = {
    **{
        kind: f"q = {kind}V2[{QUEUE}]\nwait = QueueDequeueV2[component_types=int32](q)"
        for kind in ("FIFOQueue", "PaddingFIFOQueue")
    },
    "RandomShuffleQueue": f"""
        q = RandomShuffleQueueV2[{QUEUE}; min_after_dequeue=0]
        wait = QueueDequeueV2[component_types=int32](q)
    """,
    "PriorityQueue": """
        q = PriorityQueueV2[shapes=; container=c]
        wait = QueueDequeueV2[component_types=int64](q)
    """,
    "dequeue many": f"""
        q = FIFOQueueV2[{QUEUE}]
        wait = QueueDequeueManyV2[component_types=int32](q, two)
    """,
    "dequeue up to": f"""
        q = FIFOQueueV2[{QUEUE}]
        wait = QueueDequeueUpToV2[component_types=int32](q, two)
    """,
    "enqueue": f"""
        q = FIFOQueueV2[{QUEUE}]
        first = QueueEnqueueV2[Tcomponents=int32](q, one)
        wait = QueueEnqueueV2[Tcomponents=int32](q, one)
    """,
    "enqueue many": f"""
        q = FIFOQueueV2[{QUEUE}]
        pair = Const[value=1|2; dtype=int32]
        wait = QueueEnqueueManyV2[Tcomponents=int32](q, pair)
    """,
    "read": """
        q = FIFOQueueV2[component_types=string; container=c]
        reader = IdentityReaderV2[container=c]
        wait = ReaderReadV2(reader, q)
    """,
    "barrier": """
        b = Barrier[component_types=float32; shapes=(); container=c]
        wait = BarrierTakeMany[component_types=float32](b, one)
    """,
    "accumulator": """
        a = ResourceConditionalAccumulator[dtype=float32; shape=; container=c]
        wait = ResourceAccumulatorTakeGradient[dtype=float32](a, one)
    """,
    "sparse accumulator": """
        a = SparseConditionalAccumulator[dtype=float32; shape=2; container=c]
        wait = SparseAccumulatorTakeGradient[dtype=float32](a, one)
    """,
    "mutex": """
        m = MutexV2[container=c]
        first = MutexLock(m)
        wait = MutexLock(m, ^first)
        free = ConsumeMutexLock(first, ^wait)
    """,
    "area": "wait = Unstage[dtypes=int32; container=c]",
    "full area": """
        first = Stage[dtypes=int32; container=c; shared_name=s; capacity=1](one)
        wait = Stage[dtypes=int32; container=c; shared_name=s; capacity=1](one)
    """,
    "map": """
        key = Const[value=1; dtype=int64]
        at = Const[value=0; dtype=int32]
        wait = MapUnstage[dtypes=int32; container=c](key, at)
    """,
}
CONSTANTS = "one = Const[value=1; dtype=int32]\ntwo = Const[value=2; dtype=int32]\n"


def graph_of(kind: str) -> Message:
    """A graph in which something waits; elements of its queue are scalars."""
    proto = graph_def(CONSTANTS + TEXTS[kind])
    for node in proto.node:
        if node.op in ("FIFOQueueV2", "PaddingFIFOQueueV2"):
            node.attr["shapes"].list.shape.add()
    return proto


#: What a step says when its node waits, and no longer merely runs.
WAITING = re.compile(r"running  wait \(\w+\), waits for")


def waiting_in(session: ps.Session, target: str) -> ps.Run:
    """A run that waits in a node called ``wait``."""
    run = session.run_async(target)
    while not WAITING.search(run.dump_state()):
        assert not run.is_done(), run.result()
        threading.Event().wait(0.001)
    # It has said what it waits for, and is about to.
    threading.Event().wait(0.005)
    return run


def target_of(kind: str) -> str:
    """What to run for a wait."""
    return "free" if kind == "mutex" else "wait"


@pytest.mark.parametrize("tier", ps.Tier)
@pytest.mark.parametrize("how", ["reset", "clear"])
@pytest.mark.parametrize("kind", TEXTS)
def test_a_container_that_is_reset_ends_waits_in_its_own_words(
    kind: str, how: str, tier: ps.Tier
) -> None:
    """Who waits for something in the container is cancelled, and named, each time."""
    for _ in range(10):
        session = ps.Session(graph_of(kind), config=ps.Config(tier=tier))
        if "first" in TEXTS[kind] and kind != "mutex":
            session.run("first")
        run = waiting_in(session, target_of(kind))
        if how == "reset":
            ps.Session.reset("", ["c"])
        else:
            session.resources.cleanup(["c"])
        with pytest.raises(errors.CancelledError, match=WAITS[kind]) as caught:
            run.result(10.0)
        assert caught.value.node_name == "wait"
        session.close()


@pytest.mark.parametrize("kind", TEXTS)
def test_what_was_dropped_lets_nobody_wait(kind: str) -> None:
    """A step that found its resource before the reset, and waits after it, is cancelled, too."""
    with ps.Session(graph_of(kind)) as session:
        if "first" in TEXTS[kind] and kind != "mutex":
            session.run("first")
        waiting_in(session, target_of(kind)).cancel()
        session.resources.end_waits(["c"])
        with pytest.raises(errors.CancelledError, match=WAITS[kind]):
            session.run_async(target_of(kind)).result(10.0)


def outcome_of(run: Callable[[], Any]) -> Callable[[], Any]:
    """Start a call on a thread; returns what waits for its result, or its error."""
    outcome: SimpleQueue[Any] = SimpleQueue()

    def work() -> None:
        try:
            outcome.put(run())
        except errors.OpError as error:
            outcome.put(error)

    threading.Thread(target=work).start()
    return lambda: outcome.get(timeout=10.0)


def test_a_partial_run_hears_of_a_reset_in_the_same_words() -> None:
    """The fetch that waits for a queue raises the queue's error, whatever closes afterwards."""
    text = f"{CONSTANTS}{TEXTS['FIFOQueue']}\nx = Placeholder[dtype=int32]"
    proto = graph_def(f"{text}\ny = Add[T=int32](wait, x)")
    for _ in range(20):
        session = ps.Session(proto)
        handle = session.partial_run_setup(["y:0"], ["x"])
        result = outcome_of(partial(session.partial_run, handle, ["y:0"], {"x": 1}))
        ps.Session.reset("", ["c"])
        error = result()
        assert isinstance(error, errors.CancelledError), error
        waited = "Dequeue operation was cancelled" in str(error)
        # It had not begun; or it began after the reset, with a queue of its own.
        late = ("Session has been closed.", "PRun cancellation")
        assert waited or any(words in str(error) for words in late)


def test_other_containers_are_only_closed() -> None:
    """Where nothing was reset, the reason is that the session was closed."""
    session = ps.Session(graph_of("FIFOQueue"))
    run = waiting_in(session, "wait")
    ps.Session.reset("", ["another"])
    with pytest.raises(errors.CancelledError, match=r"Session has been closed\."):
        run.result(10.0)


def test_two_devices_tell_one_reason() -> None:
    """Partitions that hear of the close are not further roots beside the one that waited."""
    text = f"""
        q = FIFOQueueV2[{QUEUE}] @/cpu:0
        wait = QueueDequeueV2[component_types=int32](q) @/cpu:0
        other = FIFOQueueV2[component_types=int32; container=d] @/cpu:1
        beside = QueueDequeueV2[component_types=int32](other) @/cpu:1
        sum = Add[T=int32](wait, beside) @/cpu:1
    """
    for _ in range(20):
        session = ps.Session(graph_def(text), config=ps.Config(device_count={"CPU": 2}))
        run = waiting_in(session, "sum:0")
        ps.Session.reset("", ["c"])
        with pytest.raises(errors.CancelledError, match="Dequeue operation was") as caught:
            run.result(10.0)
        assert "root error" not in str(caught.value)
        assert caught.value.node_name == "wait"
