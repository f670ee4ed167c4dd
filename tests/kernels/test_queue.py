"""Queues in sessions: types, shapes, batches, waiting and being cancelled."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from penstock import Config, RunOptions, Session, errors
from penstock.core.limits import Limits
from support.sketch import sketch

GRAPH = """
    x = Placeholder() dtype=float32
    n = Placeholder() dtype=int32
    i = Placeholder() dtype=int32
    q = FIFOQueueV2() component_types=['float32'] shapes=[[2]] capacity=3
    put = QueueEnqueueV2(q, x)
    put_many = QueueEnqueueManyV2(q, x)
    put_int = QueueEnqueueV2(q, i)
    put_two = QueueEnqueueV2(q, x, x)
    take = QueueDequeueV2(q) component_types=['float32']
    take_int = QueueDequeueV2(q) component_types=['int32']
    take_many = QueueDequeueManyV2(q, n) component_types=['float32']
    take_up_to = QueueDequeueUpToV2(q, n) component_types=['float32']
    size = QueueSizeV2(q)
    close = QueueCloseV2(q)
    close_now = QueueCloseV2(q) cancel_pending_enqueues=True
    is_closed = QueueIsClosedV2(q)
"""


class Runner:
    """A session on a graph, with terse feeds."""

    def __init__(self, text: str = GRAPH, untried_steps: int = 2) -> None:
        limits = Limits(untried_steps=untried_steps)
        self.session = Session(sketch(text), config=Config(limits=limits))

    def __call__(self, fetch: str, x: Any = None, n: Any = None, i: Any = None) -> Any:
        given = {"x:0": (x, np.float32), "n:0": (n, np.int32), "i:0": (i, np.int32)}
        feeds = {k: dtype(v) for k, (v, dtype) in given.items() if v is not None}
        return self.session.run(fetch, feeds)

    def start(self, *args: Any, **kwargs: Any) -> Callable[[], Any]:
        """Run in a thread; returns what waits for the result, or raises the error."""
        box: list[Any] = []

        def run() -> None:
            try:
                box.append(self(*args, **kwargs))
            except errors.OpError as error:
                box.append(error)

        thread = threading.Thread(target=run)
        thread.start()

        def result() -> Any:
            thread.join(30)
            assert not thread.is_alive(), "the run hangs"
            if isinstance(box[0], errors.OpError):
                raise box[0]
            return box[0]

        return result


@pytest.fixture(params=[0, 2**31], ids=["tried", "untried"])
def run(request: pytest.FixtureRequest) -> Runner:
    """Runs nodes of the graph above, trying each as one function that may be left, or never."""
    return Runner(untried_steps=request.param)


def test_elements_stay_from_run_to_run(run: Runner) -> None:
    """Queues live as long as their session, and give elements in order."""
    run("put", x=[1, 2])
    run("put_many", x=[[3, 4], [5, 6]])

    assert run("size:0") == 3
    assert run("take:0").tolist() == [1, 2]
    assert run("take_many:0", n=2).tolist() == [[3, 4], [5, 6]]


@pytest.mark.parametrize(
    ("fetch", "feeds", "text"),
    [
        ("put", {"x": [1]}, "Shape mismatch in tuple component 0. Expected \\[2\\], got \\[1\\]"),
        ("put_many", {"x": [[1]]}, "Expected \\[1,2\\], got \\[1,1\\]"),
        ("put_many", {"x": 1}, "Shape mismatch in tuple component 0"),
        ("put_int", {"i": [1, 2]}, "have: resource, int32-> expected: resource, float->"),
        ("put_two", {"x": [1, 2]}, "have: resource, float, float-> expected: resource, float->"),
        ("take_int:0", {}, "have: resource->int32 expected: resource->float"),
        ("take_many:0", {"n": -1}, "requested -1 < 0 elements"),
    ],
)
def test_misfits_are_refused(run: Runner, fetch: str, feeds: Any, text: str) -> None:
    """Types, numbers of components and shapes must be those of the queue."""
    with pytest.raises(errors.InvalidArgumentError, match=text):
        run(fetch, **feeds)


def test_no_elements_need_no_waiting(run: Runner) -> None:
    """A batch of none comes at once, even from an empty or a closed queue."""
    assert run("take_many:0", n=0).shape == (0, 2)
    run("close")
    assert run("take_up_to:0", n=0).shape == (0, 2)
    run("put_many", x=np.zeros((0, 2)))


def test_closed_queue(run: Runner) -> None:
    """Nothing more goes in; the rest comes out; then there is no more."""
    run("put", x=[1, 2])
    run("close")

    assert run("is_closed:0")
    with pytest.raises(errors.CancelledError, match="is closed"):
        run("put", x=[1, 2])
    with pytest.raises(errors.OutOfRangeError, match="requested 3, current size 1"):
        run("take_many:0", n=3)
    assert run("take_up_to:0", n=3).tolist() == [[1, 2]]
    with pytest.raises(errors.OutOfRangeError, match="closed and has insufficient elements"):
        run("take:0")


def test_run_waits_for_another_run(run: Runner) -> None:
    """A run that takes waits until another one puts, and the other way round."""
    taken = run.start("take_many:0", n=4)
    put = run.start("put_many", x=np.arange(10).reshape(5, 2))

    assert taken().tolist() == np.arange(8).reshape(4, 2).tolist()
    put()
    assert run("size:0") == 1


def test_timeout_gives_elements_back(run: Runner) -> None:
    """A run that times out while it waits loses nothing."""
    run("put", x=[1, 2])
    with pytest.raises(errors.DeadlineExceededError):
        run.session.run("take_many:0", {"n:0": np.int32(2)}, RunOptions(timeout_in_ms=50))

    assert run("size:0") == 1
    assert run("take:0").tolist() == [1, 2]


def test_closing_the_session_ends_the_wait(run: Runner) -> None:
    """Whoever waits when the session closes is told that it was cancelled."""
    taken = run.start("take:0")
    run.session.close()

    with pytest.raises(errors.CancelledError):
        taken()


def test_closing_with_cancellation_iterations_away_who_waits(run: Runner) -> None:
    """Elements that found room stay, the waiting run is cancelled."""
    put = run.start("put_many", x=np.zeros((5, 2)))
    while run("size:0") < 3:
        pass
    run("close_now")

    with pytest.raises(errors.CancelledError, match="Enqueue operation was cancelled"):
        put()
    assert run("size:0") == 3


def test_padding_fills_up_to_the_longest() -> None:
    """Batches of vectors of different lengths are padded with zeros or empty strings."""
    run = Runner("""
        x = Placeholder() dtype=float32
        s = Placeholder() dtype=string
        n = Const() value=2
        q = PaddingFIFOQueueV2() component_types=['float32','string'] shapes=[[None],[None]]
        put = QueueEnqueueV2(q, x, s)
        take = QueueDequeueManyV2(q, n) component_types=['float32','string']
    """)
    run.session.run("put", {"x:0": np.float32([1, 2]), "s:0": np.array([b"a"], object)})
    run.session.run("put", {"x:0": np.float32([3]), "s:0": np.array([b"b", b"c"], object)})

    numbers, texts = run.session.run(["take:0", "take:1"])

    assert numbers.tolist() == [[1, 2], [3, 0]]
    assert texts.tolist() == [[b"a", b""], [b"b", b"c"]]


@pytest.mark.parametrize(
    ("node", "text"),
    [
        ("FIFOQueueV2() component_types=['int32']", "has component types float but requested"),
        ("FIFOQueueV2() component_types=['float32'] capacity=7", "has capacity 5 but requested"),
        ("FIFOQueueV2() component_types=['float32'] capacity=5 shapes=[[]]", "component shapes"),
        ("PaddingFIFOQueueV2() component_types=['float32'] shapes=[[]]", "Expected FIFOQueue"),
    ],
)
def test_shared_queues_must_agree(node: str, text: str) -> None:
    """Two nodes with one shared name must describe the same queue."""
    capacity = "" if "capacity" in node else "capacity=5"
    session = Session(
        sketch(f"""
        a = FIFOQueueV2() component_types=['float32'] capacity=5 shared_name='s'
        b = {node} {capacity} shared_name='s'
        size_a = QueueSizeV2(a)
        size_b = QueueSizeV2(b)
    """)
    )
    session.run("size_a:0")

    with pytest.raises(errors.InvalidArgumentError, match=text):
        session.run("size_b:0")


@pytest.mark.parametrize(
    ("node", "text"),
    [
        ("FIFOQueueV2() component_types=['int32'] shapes=[[],[]]", "Different number of component"),
        ("FIFOQueueV2() component_types=['int32'] shapes=[[None]]", "is not fully defined"),
        ("PaddingFIFOQueueV2() component_types=['int32']", "Shapes must be provided for all"),
        (
            "RandomShuffleQueueV2() component_types=['int32'] capacity=2 min_after_dequeue=2",
            "min_after_dequeue 2 must be < capacity 2",
        ),
    ],
)
def test_impossible_queues_are_refused(node: str, text: str) -> None:
    """Attributes that contradict each other are found before anything is queued."""
    session = Session(sketch(f"q = {node}\nsize = QueueSizeV2(q)"))

    with pytest.raises(errors.InvalidArgumentError, match=text):
        session.run("size:0")
