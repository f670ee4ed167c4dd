"""One partition runs by itself: values come and go through a rendezvous."""

from __future__ import annotations

import random
import threading
import weakref
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from penstock import builder, errors
from penstock.core import dtypes
from penstock.core.values import DEAD, Ref
from penstock.graph.graph import Graph
from penstock.kernels.api import registry as kernels
from penstock.runtime import Executor, ExecutorArgs
from penstock.state.rendezvous import Rendezvous, RendezvousKey
from penstock.state.step_state import StepState
from support.custom import custom_kernels
from support.sketch import executor_of

SEND = 'send_device="{0}" send_device_incarnation=1 recv_device="{0}"'


@pytest.fixture
def rendezvous() -> Iterator[Rendezvous]:
    """Yield a rendezvous, and check its laws when the test ends."""
    meeting = Rendezvous()
    yield meeting
    meeting.check()


def run(executor: Executor, rendezvous: Rendezvous, **sent: Any) -> Any:
    """Send values, run, and receive ``output``."""
    for name, value in sent.items():
        rendezvous.send(name, value)
    executor.run(ExecutorArgs(StepState(rendezvous=rendezvous)))
    return rendezvous.recv("output", timeout=5.0)


def build(define: Any) -> Graph:
    """A graph whose nodes ``define`` makes."""
    graph = builder.Graph()
    with graph.as_default():
        define()
    return graph


def test_values_travel_through_the_rendezvous(rendezvous: Rendezvous) -> None:
    """What is sent before the run is received in it, and the other way round."""

    def define() -> None:
        builder.send(builder.receive("float32", "input") * 2.0, "output")

    executor = executor_of(build(define))

    assert run(executor, rendezvous, input=np.float32(3.0)) == 6.0
    assert run(executor, rendezvous, input=np.ones(2, np.float32)).tolist() == [2.0, 2.0]


def test_simple_add(rendezvous: Rendezvous) -> None:
    """Two received values are added and sent: 1 + 1 = 2."""

    def define() -> None:
        builder.send(builder.receive("float32", "a") + builder.receive("float32", "b"), "output")

    assert run(executor_of(build(define)), rendezvous, a=np.float32(1), b=np.float32(1)) == 2.0


def test_self_add(rendezvous: Rendezvous) -> None:
    """Ten doublings make 1024 of 1, although each tensor is used twice."""

    def define() -> None:
        x = builder.receive("float32", "a")
        for _ in range(10):
            x = x + x
        builder.send(x, "output")

    assert run(executor_of(build(define)), rendezvous, a=np.float32(1)) == 1024.0


@pytest.mark.parametrize("seed", [1, 2])
def test_random_tree(seed: int, rendezvous: Rendezvous) -> None:
    """A random tree of 4,096 inputs adds them all up, whatever its form."""
    draw = random.Random(seed)

    def define() -> None:
        nodes = [builder.receive("float32", f"in{i}") for i in range(4096)]
        while len(nodes) > 1:
            left = nodes.pop(draw.randrange(len(nodes)))
            right = nodes.pop(draw.randrange(len(nodes)))
            nodes.append(left + right)
        builder.send(nodes[0], "output")

    sent = {f"in{i}": np.float32(i) for i in range(4096)}
    assert run(executor_of(build(define)), rendezvous, **sent) == 4095 * 4096 / 2


def test_concurrent_assign_add(rendezvous: Rendezvous) -> None:
    """1,024 additions to one reference variable in one step are all done."""
    if not kernels.kernels_of("AssignAdd"):
        pytest.skip("there are no variables yet")

    def define() -> None:
        graph = builder.default_graph()
        variable = graph.apply("VariableV2", shape=[], dtype="float32")
        first = graph.apply("Assign", variable, 0.0)
        with builder.control_dependencies([first]):
            added = [graph.apply("AssignAdd", variable, 1.0) for _ in range(1024)]
        with builder.control_dependencies(added):
            builder.send(graph.apply("Identity", variable), "output")

    executor = executor_of(build(define))
    for _ in range(4):
        assert run(executor, rendezvous) == 1024.0


SWITCH = f"""
    pred = Const() value=%s
    x = _Recv() tensor_name="x" {SEND}
    s = Switch(x, pred)
    o = _Send(s:0) tensor_name="output" {SEND}
""".format("/job:localhost/replica:0/task:0/device:CPU:0")


def test_live_side_of_a_switch_is_sent(rendezvous: Rendezvous) -> None:
    """With a false predicate, output 0 has the value."""
    assert run(executor_of(SWITCH % "False"), rendezvous, x=np.float32(7)) == 7.0


def test_dead_side_of_a_switch_is_sent_as_dead(rendezvous: Rendezvous) -> None:
    """With a true predicate, the receiver of output 0 learns that it is dead."""
    assert run(executor_of(SWITCH % "True"), rendezvous, x=np.float32(7)) is DEAD


def test_dead_values_stay_dead_behind_a_recv(rendezvous: Rendezvous) -> None:
    """A Recv that gets a dead value is alive, but what consumes its output is not."""
    rendezvous.send("x", None, is_dead=True)
    graph = """
        x = _Recv() tensor_name="x" S
        y = Neg(x)
        n = NoOp(^x)
        c = Const(^n) value=5.0
        alive = _Send(c) tensor_name="alive" S
        output = _Send(y) tensor_name="output" S
    """.replace(" S\n", " " + SEND.format("/job:localhost/replica:0/task:0/device:CPU:0") + "\n")

    assert run(executor_of(graph), rendezvous) is DEAD
    assert rendezvous.recv("alive", timeout=5.0) == 5.0


def add_four() -> None:
    a, b, c, d = (builder.receive("float32", name) for name in "abcd")
    builder.send((a + b) + (c + d), "output")


def test_abort_ends_a_run_that_waits(rendezvous: Rendezvous) -> None:
    """An abort from another thread fails the run, and every later receive."""
    executor = executor_of(build(add_four))
    outcome: list[errors.OpError | None] = []
    finished = threading.Event()

    def done(error: errors.OpError | None) -> None:
        outcome.append(error)
        finished.set()

    executor.run_async(ExecutorArgs(StepState(rendezvous=rendezvous)), done)
    jobs = [
        lambda name=name: rendezvous.send(name, np.float32(1))  # type: ignore[misc]
        for name in "abc"
    ]
    threads = [threading.Thread(target=job) for job in jobs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not finished.is_set()
    threading.Thread(target=rendezvous.start_abort, args=(errors.AbortedError("stop"),)).start()

    assert finished.wait(5.0)
    assert isinstance(outcome[0], errors.AbortedError)
    with pytest.raises(errors.AbortedError, match="stop"):
        rendezvous.recv("output", timeout=5.0)


def test_abort_from_another_thread_ends_a_blocking_run(rendezvous: Rendezvous) -> None:
    """``run`` itself is woken by an abort."""
    executor = executor_of(build(add_four))
    timer = threading.Timer(0.01, rendezvous.start_abort, [errors.AbortedError("stop")])
    timer.start()

    with pytest.raises(errors.AbortedError):
        executor.run(ExecutorArgs(StepState(rendezvous=rendezvous)))
    timer.join()


def test_wrong_type_in_a_recv_is_internal(rendezvous: Rendezvous) -> None:
    """A received value of another type fails the run, and the rendezvous with it."""

    def define() -> None:
        builder.send(builder.receive("float32", "a") + 1.0, "output")

    with pytest.raises(errors.InternalError, match="does not match declared output type float32"):
        run(executor_of(build(define)), rendezvous, a=np.float64(1))
    with pytest.raises(errors.InternalError):
        rendezvous.recv("output", timeout=5.0)


def test_wrong_type_of_a_reference_is_internal(rendezvous: Rendezvous) -> None:
    """A kernel whose reference has another type fails the run, and the rendezvous with it."""

    def define() -> None:
        ref = builder.default_graph().apply("ExBadRef")
        builder.send(builder.default_graph().apply("Identity", ref), "output")

    with custom_kernels("ExBadRef() -> (o: ref float32)") as register:
        register("ExBadRef", lambda: Ref("bad", dtypes.float64, np.float64(1)))
        with pytest.raises(errors.InternalError, match="float64_ref"):
            run(executor_of(build(define)), rendezvous)
        with pytest.raises(errors.InternalError):
            rendezvous.recv("output", timeout=5.0)


def test_without_a_rendezvous_a_recv_is_internal() -> None:
    """A partition with transfers cannot run without a rendezvous."""
    with pytest.raises(errors.InternalError, match="rendezvous"):
        executor_of(build(add_four)).run(ExecutorArgs())


def test_an_empty_graph_is_done_at_once() -> None:
    """A partition without nodes is done, without an error."""
    outcome: list[errors.OpError | None] = []
    executor_of(Graph()).run(ExecutorArgs())
    executor_of(Graph()).run_async(ExecutorArgs(), outcome.append)
    assert outcome == [None]


def test_one_executor_runs_many_steps_at_once() -> None:
    """Steps of one executor, on eight threads, do not see each other."""

    def define() -> None:
        builder.send(builder.receive("float32", "input") * 2.0 + 1.0, "output")

    executor = executor_of(build(define))
    wrong: list[Any] = []

    def work(start: int) -> None:
        for number in range(start, start + 50):
            got = run(executor, Rendezvous(), input=np.float32(number))
            if got != 2 * number + 1:
                wrong.append((number, got))

    threads = [threading.Thread(target=work, args=(1000 * i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


@pytest.mark.parametrize("arity", [1, 2, 3])
@pytest.mark.parametrize("calling", ["plain", "context"])
def test_inputs_are_freed_when_their_last_reader_has_run(arity: int, calling: str) -> None:
    """What a kernel was given is gone as soon as it is done, though its step goes on."""
    made: list[weakref.ref[Any]] = []
    alive: list[int] = []

    def make() -> Any:
        array = np.ones(3, np.float32)
        made.append(weakref.ref(array))
        return array

    def take(*given: Any) -> Any:
        return np.float32(len(given))

    def count(x: Any) -> Any:
        alive.append(sum(one() is not None for one in made))
        return x

    def called(compute: Any) -> Any:
        return compute if calling == "plain" else lambda _context, *given: compute(*given)

    names = [f"x{i}" for i in range(arity)]
    rows = [f"{name} = ExMake()" for name in names]
    rows += [f"y = ExTake({', '.join(names)})", "z = ExCount(y)"]
    signature = ", ".join(f"{name}: float32" for name in names)
    ops = (
        "ExMake() -> (y: float32)",
        f"ExTake({signature}) -> (y: float32)",
        "ExCount(x: float32) -> (y: float32)",
    )
    with custom_kernels(*ops) as register:
        for op, compute in zip(("ExMake", "ExTake", "ExCount"), (make, take, count), strict=True):
            register(op, called(compute), calling)
        executor_of("\n".join(rows)).run(ExecutorArgs())
    assert len(made) == arity
    assert alive == [0]


@pytest.mark.parametrize("life", [7, -2])
def test_a_transfer_is_with_one_life_of_the_sender(life: int, rendezvous: Rendezvous) -> None:
    """What an earlier instance of the device has sent is not what a Recv waits for."""
    cpu = "/job:localhost/replica:0/task:0/device:CPU:0"
    facts = f'send_device="{cpu}" send_device_incarnation={life} recv_device="{cpu}"'
    executor = executor_of(
        f"""
        x = _Recv() tensor_name="x" {facts}
        y = Neg(x)
        s = _Send(y) tensor_name="y" {facts}
        """
    )

    def key(incarnation: int, name: str) -> str:
        return str(RendezvousKey(cpu, incarnation, cpu, name))

    outcome: list[errors.OpError | None] = []
    rendezvous.send(key(8, "x"), np.float32(5))
    executor.run_async(ExecutorArgs(StepState(rendezvous=rendezvous)), outcome.append)
    assert outcome == []
    assert rendezvous.waiting() == [key(life, "x")]

    rendezvous.send(key(life, "x"), np.float32(3))
    assert outcome == [None]
    assert rendezvous.recv(key(life, "y"), timeout=5.0) == -3.0
