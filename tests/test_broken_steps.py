"""Steps that go wrong, and who names each cause: ``explain``, the stall report, the NaN hunt.

Graphs whose mistakes can be seen without a run are in ``tests/checks/test_broken_graphs.py``.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

import penstock as ps
from support.sketch import sketch

#: Milliseconds after which a step that hangs is asked what it waits for.
PATIENCE = 400


@dataclasses.dataclass(frozen=True)
class Step:
    """A step with one mistake."""

    rows: str
    #: What to run; in ``explain``, of whose outcome is asked.
    node: str
    #: What is said, all of it.
    says: tuple[str, ...]
    feeds: dict[str, Any] = dataclasses.field(default_factory=dict)
    config: ps.Config = dataclasses.field(default_factory=lambda: ps.Config(tier=ps.Tier.DATAFLOW))
    #: Nodes that run beside it; in ``explain``, instead of it.
    beside: tuple[str, ...] = ()


LOOP = """
zero = Const() value=0.0
enter = Enter(zero) frame_name="loop"
merge = Merge(enter, next) N=2
limit = Placeholder() dtype=float32 shape=[]
end = Enter(limit) frame_name="loop" is_constant=True
less = Less(merge, end)
go = LoopCond(less)
switch = Switch(merge, go)
one = Const(^switch) value=1.0
sum = AddV2(switch:1, one)
exit = Exit(switch:0)
"""
COUNTER = LOOP + "next = NextIteration(sum)\n"
BRANCH = """
x = Placeholder() dtype=float32 shape=[]
limit = Placeholder() dtype=float32 shape=[]
test = Less(x, limit)
switch = Switch(x, test)
yes = Neg(switch:1)
no = Exp(switch:0)
"""
QUEUE = """
q = FIFOQueueV2() component_types=['float32'] shapes=[[]] capacity=1
x = Const() value=1.0
"""
GPU = ps.Config(allow_soft_placement=False)

EXPLAINED = {
    "a branch that is not taken": Step(
        BRANCH,
        "yes",
        ("only if 'test:0' is true, and it is false", "'x:0' = 3.0"),
        {"x": 3.0, "limit": 2.0},
    ),
    "the other branch": Step(
        BRANCH, "no", ("only if 'test:0' is false, and it is true",), {"x": 1.0, "limit": 2.0}
    ),
    "a branch within one that is not taken": Step(
        BRANCH + "again = Less(yes, limit)\ninner = Switch(yes, again)\ndeep = Exp(inner:1)",
        "deep",
        ("only if 'test:0' is true, and it is false",),
        {"x": 3.0, "limit": 2.0},
    ),
    "a branch by a constant": Step(
        "x = Const() value=1.0\nnever = Const() value=False\nswitch = Switch(x, never)\n"
        "out = Neg(switch:1)",
        "out",
        ("only if 'never:0' is true, which is the constant false",),
    ),
    "inputs of two frames": Step(
        'x = Const() value=1.0\nin = Enter(x) frame_name="ring"\nmixed = AddV2(in, x)',
        "mixed",
        ("from the loop 'ring': in (Enter) → mixed", "x (Const) → mixed"),
    ),
    "inputs of two loops": Step(
        'x = Const() value=1.0\na = Enter(x) frame_name="one"\nb = Enter(x) frame_name="two"\n'
        "mixed = AddV2(a, b)",
        "mixed",
        ("from the loop 'one': a (Enter)", "from the loop 'two': b (Enter)"),
    ),
    "a device that is not there": Step(
        "x = Const() value=1.0\nout = Neg(x) device='/device:GPU:1'",
        "out",
        ("was explicitly assigned to /device:GPU:1",),
        config=GPU,
    ),
    "a task that is not there": Step(
        "x = Const() value=1.0\nout = Neg(x) device='/job:ps/task:7'",
        "out",
        ("was explicitly assigned to /job:ps/task:7",),
        config=GPU,
    ),
    "an op without a kernel": Step(
        "x = Const() value=1.0\nout = NcclBroadcast(x) T=float32 shape=[]", "out", ("cannot run",)
    ),
    "a product that cannot be": Step(
        "a = Placeholder() dtype=float32 shape=[2,3]\nb = Placeholder() dtype=float32 shape=[4,2]\n"
        "out = MatMul(a, b)",
        "out",
        ("3", "4"),
    ),
    "a node that nobody needs": Step(
        BRANCH + "unused = Sqrt(x)\nm = Merge(yes, no) N=2",
        "unused",
        ("pruned",),
        beside=("m",),
        feeds={"x": 1.0, "limit": 2.0},
    ),
}

STALLED = {
    "a queue that nobody fills": Step(
        QUEUE + "out = QueueDequeueV2(q) component_types=['float32']",
        "out",
        (
            "out (QueueDequeueV2)",
            "an element of FIFOQueue 'q'",
            "which has 0 of 1",
            "no node of the graph could end that",
        ),
    ),
    "a queue that another step could fill": Step(
        QUEUE + "put = QueueEnqueueV2(q, x)\nout = QueueDequeueV2(q) component_types=['float32']",
        "out",
        ("an element of FIFOQueue 'q'", "put"),
    ),
    "more elements than were put in": Step(
        QUEUE + "put = QueueEnqueueV2(q, x)\nthree = Const() value=3\n"
        "out = QueueDequeueManyV2(q, three) component_types=['float32']",
        "out",
        ("out (QueueDequeueManyV2)", "'q'"),
        beside=("put",),
    ),
    "a queue that is full": Step(
        QUEUE + "put = QueueEnqueueV2(q, x)\nagain = QueueEnqueueV2(q, x, ^put)",
        "again",
        ("again (QueueEnqueueV2)", "'q'"),
    ),
    "a queue that is filled by what it gives": Step(
        QUEUE
        + "take = QueueDequeueV2(q) component_types=['float32']\nput = QueueEnqueueV2(q, take)",
        "put",
        ("deadlock take waits for put, which waits for take",),
    ),
    "two queues that wait for each other": Step(
        QUEUE + "r = FIFOQueueV2() component_types=['float32'] shapes=[[]]\n"
        "take_q = QueueDequeueV2(q) component_types=['float32']\n"
        "take_r = QueueDequeueV2(r) component_types=['float32']\n"
        "put_r = QueueEnqueueV2(r, take_q)\nput_q = QueueEnqueueV2(q, take_r)",
        "put_q",
        ("deadlock", "take_q waits for put_q", "take_r"),
        beside=("put_r",),
    ),
    "a barrier with one of two parts": Step(
        "b = Barrier() component_types=['float32','float32'] shapes=[[],[]]\n"
        "keys = Const() value=['k']\nvalues = Const() value=[1.0]\n"
        "put = BarrierInsertMany(b, keys, values) component_index=0 T=float32\n"
        "count = Const() value=1\n"
        "out = BarrierTakeMany(b, count) component_types=['float32','float32']",
        "out",
        ("out (BarrierTakeMany)",),
        beside=("put",),
    ),
    "a stage that is empty": Step(
        "out = Unstage() dtypes=['float32'] shared_name='area'", "out", ("out (Unstage)", "area")
    ),
    "too few gradients": Step(
        "a = ConditionalAccumulator() dtype=float32 shape=[]\nx = Const() value=1.0\n"
        "step = Const() value=[0]\ncount = Const() value=2\n"
        "out = AccumulatorTakeGradient(a, count) dtype=float32",
        "out",
        ("out (AccumulatorTakeGradient)",),
    ),
    "a value that nobody sends": Step(
        "out = _Recv() tensor_type=float32 tensor_name='t' send_device='/device:CPU:0' "
        "send_device_incarnation=1 recv_device='/device:CPU:0'",
        "out",
        ("out (_Recv)", "t"),
    ),
    "a lock that is taken twice": Step(
        "m = MutexV2()\none = MutexLock(m)\ntwo = MutexLock(m, ^one)\n"
        "end = ConsumeMutexLock(one, ^two)",
        "end",
        ("two (MutexLock)",),
    ),
    "a loop that never ends": Step(COUNTER, "exit", ("loop", "iteration"), {"limit": np.inf}),
    "a queue in a loop": Step(
        LOOP + QUEUE + 'inside = Enter(q) frame_name="loop" is_constant=True T=resource\n'
        "take = QueueDequeueV2(inside, ^switch) component_types=['float32']\n"
        "more = AddV2(sum, take)\nnext = NextIteration(more)\n",
        "exit",
        ("take (QueueDequeueV2)", "loop"),
        {"limit": 3.0},
    ),
    "a reader without files": Step(
        "names = FIFOQueueV2() component_types=['string'] shapes=[[]]\n"
        "r = WholeFileReaderV2()\nout = ReaderReadV2(r, names)",
        "out",
        ("out (ReaderReadV2)", "'names'"),
    ),
}

NO_NUMBERS = {
    "the logarithm of zero": Step(
        "x = Placeholder() dtype=float32 shape=[]\nlog = Log(x)\nout = Mul(log, x)",
        "out",
        ("log:0 (Log)",),
        {"x": 0.0},
    ),
    "zero by zero": Step(
        "x = Placeholder() dtype=float32 shape=[]\nnone = RealDiv(x, x)\nout = Exp(none)",
        "out",
        ("none:0 (RealDiv)",),
        {"x": 0.0},
    ),
    "an exponential that is too large": Step(
        "x = Placeholder() dtype=float32 shape=[]\nbig = Exp(x)\nless = Sub(big, big)\n"
        "out = Neg(less)",
        "out",
        ("big:0 (Exp)",),
        {"x": 1000.0},
    ),
    "a root in the third turn of a loop": Step(
        LOOP + "start = Const(^switch) value=2.5\nleft = Sub(start, sum)\nsquare = Sqrt(left)\n"
        "none = Const(^switch) value=0.0\nnothing = Mul(square, none)\n"
        "both = AddV2(sum, nothing)\nnext = NextIteration(both)\n",
        "exit",
        ("square:0@loop[2]", "(Sqrt)"),
        {"limit": 9.0},
    ),
}


def table(steps: dict[str, Step]) -> Any:
    """The rows of a table, by their names."""
    return pytest.mark.parametrize("step", steps.values(), ids=steps)


@table(EXPLAINED)
@pytest.mark.filterwarnings("ignore:Node")
def test_explain_names_the_cause(step: Step) -> None:
    """In what it calls trouble."""
    fetches = [*step.beside] or [step.node]
    found = ps.explain(sketch(step.rows), step.node, fetches, step.feeds, config=step.config)
    for text in step.says:
        assert text in found.trouble


@table(STALLED)
def test_the_stall_report_names_the_cause(step: Step) -> None:
    """What the step says of itself when its time is up is what ``watch_stalls`` reports."""
    options = ps.RunOptions(timeout_in_ms=PATIENCE)
    with (
        ps.Session(sketch(step.rows), config=step.config) as session,
        pytest.raises(ps.errors.DeadlineExceededError) as caught,
    ):
        session.run([step.node, *step.beside], step.feeds, options)
    for text in step.says:
        assert text in str(caught.value)


@table(NO_NUMBERS)
def test_the_nan_hunt_names_the_cause(step: Step) -> None:
    """The first node that made what is no number, with its iteration."""
    found = ps.find_nan(sketch(step.rows), f"{step.node}:0", step.feeds)
    assert found is not None
    for text in step.says:
        assert text in str(found)
