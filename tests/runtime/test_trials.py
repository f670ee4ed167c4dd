"""Requests with kernels that may have to wait: tried as one function, which may be left."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from penstock import Config, Session, errors
from penstock.core.limits import Limits
from penstock.kernels.c.library import library
from penstock.runtime.compiler.profile import Profile
from penstock.runtime.compiler.trial import Trial
from penstock.runtime.trials import Trials
from penstock.state.interrupt import Interrupt
from support.loops import counting_loop
from support.sketch import sketch

QUEUES = """
    x = Placeholder() dtype=float32
    q = FIFOQueueV2() component_types=['float32'] shapes=[[]] capacity=8
    put = QueueEnqueueV2(q, x)
    size = QueueSizeV2(q)
    close = QueueCloseV2(q)
    r = FIFOQueueV2() component_types=['float32'] shapes=[[]] capacity=2
    put_r = QueueEnqueueV2(r, x)
    take_r = QueueDequeueV2(r) component_types=['float32']
"""
#: Three waits, one after the other, and between them whatever may be half done: a loop, a chain of
#: functions, other names for values, effects, and nodes that only wait.
STEPS = (
    QUEUES
    + counting_loop()
    + """
    v = VarHandleOp() dtype=int32 shape=[] shared_name="v"
    none = Const() value=0
    start = AssignVariableOp(v, none)
    read = ReadVariableOp(v) dtype=int32
    unit = Const() value=1
    ten = Const() value=10
    hundred = Const() value=100
    a = QueueDequeueV2(q) component_types=['float32']
    first = AssignAddVariableOp(v, unit, ^a)
    a1 = Sqrt(a)
    a2 = Neg(a1)
    a3 = Square(a2)
    other = Identity(a3)
    b = QueueDequeueV2(q, ^first) component_types=['float32']
    second = AssignAddVariableOp(v, ten, ^b)
    ab = Sub(other, b)
    wait = NoOp(^second)
    c = QueueDequeueV2(q, ^wait) component_types=['float32']
    third = AssignAddVariableOp(v, hundred, ^c)
    abc = Mul(ab, c)
    count = Cast(exit) SrcT=int32 DstT=float32
    all = Add(abc, count, ^third)
    into = QueueEnqueueV2(r, all)
    done = Identity(all, ^into)
"""
)


@pytest.fixture
def ends(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """How trials ended, one after the other."""
    seen: list[str] = []
    done, left = Trials.note_done, Trials.note_left

    def note_done(self: Trials, seconds: float) -> None:
        seen.append("done")
        done(self, seconds)

    def note_left(self: Trials) -> None:
        seen.append("left")
        left(self)

    monkeypatch.setattr(Trials, "note_done", note_done)
    monkeypatch.setattr(Trials, "note_left", note_left)
    return seen


def session_of(text: str, **limits: Any) -> Session:
    """A session that tries each request from its first step on."""
    return Session(sketch(text), config=Config(limits=Limits(**{"untried_steps": 0, **limits})))


@pytest.fixture
def session() -> Iterator[Session]:
    """Yield one on the steps above, with a variable that is 0."""
    with session_of(STEPS) as made:
        made.run("start")
        yield made


def started(work: Callable[[], Any]) -> Callable[[], Any]:
    """Start work on a thread; returns what waits for its result, or raises its error."""
    box: list[Any] = []

    def run() -> None:
        try:
            box.append(work())
        except errors.OpError as error:
            box.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()

    def result() -> Any:
        thread.join(30)
        assert box, "the run hangs"
        if isinstance(box[0], errors.OpError):
            raise box[0]
        return box[0]

    return result


def wait_until(condition: Callable[[], bool]) -> None:
    """Wait for something that is about to happen."""
    deadline = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.001)


@pytest.mark.parametrize("there", [0, 1, 2, 3])
def test_a_step_goes_on_where_its_function_was_left(
    session: Session, ends: list[str], there: int
) -> None:
    """Wherever it must wait: each effect happens once, and the answer is the same."""
    values = [4.0, 1.5, 2.0]
    for x in values[:there]:
        session.run("put", {"x:0": np.float32(x)})
    ends.clear()
    step = started(lambda: session.run("done:0", {"limit:0": np.int32(5)}))
    wait_until(lambda: bool(ends))
    for place, x in enumerate(values[there:], there):
        wait_until(lambda: session.run("size:0") == 0)
        done_so_far = (0, 1, 11)[place]
        wait_until(lambda: int(session.run("read:0")) == done_so_far)  # noqa: B023
        session.run("put", {"x:0": np.float32(x)})
    assert step() == (4.0 - 1.5) * 2.0 + 5
    assert session.run("read:0") == 111
    assert session.run("take_r:0") == (4.0 - 1.5) * 2.0 + 5
    assert ends[0] == ("done" if there == 3 else "left")


def test_programs_before_and_after_the_place_where_a_function_is_left(ends: list[str]) -> None:
    """What the second function has made of chains is done, or is to be done, as a whole."""
    graph = """
        x = Placeholder() dtype=float32
        half = Const() value=0.5
        q = FIFOQueueV2() component_types=['float32'] shapes=[[5]]
        put = QueueEnqueueV2(q, x)
        a = Mul(x, half)
        b = Square(a)
        c = Sub(b, half)
        taken = QueueDequeueV2(q, ^c) component_types=['float32']
        d = Mul(taken, c)
        e = Tanh(d)
        g = Mul(x, x)
        h = Neg(g)
        f = Add(e, h)
        other = Mul(x, half)
        last = Sub(other, half)
    """
    x = np.linspace(-2, 2, 5, dtype=np.float32)
    want = np.tanh(x * ((x / 2) ** 2 - np.float32(0.5))) - x * x
    with session_of(graph) as session:
        call = session.make_callable(["f:0", "last:0"], ["x:0"])
        for _ in range(3):
            session.run("put", {"x:0": x})
            np.testing.assert_allclose(call(x)[0], want, rtol=1e-5)
        ends.clear()
        step = started(lambda: call(x))
        wait_until(lambda: bool(ends))
        session.run("put", {"x:0": x})
        got, last = step()
    np.testing.assert_allclose(got, want, rtol=1e-5)
    np.testing.assert_array_equal(last, x / 2 - np.float32(0.5))
    assert ends[0] == "left"


def test_what_must_wait_for_room_is_left(session: Session, ends: list[str]) -> None:
    """The last statement may be the one that waits."""
    for x in (7, 8):
        session.run("put_r", {"x:0": np.float32(x)})
    for x in (4.0, 1.5, 2.0):
        session.run("put", {"x:0": np.float32(x)})
    ends.clear()
    step = started(lambda: session.run("done:0", {"limit:0": np.int32(0)}))
    wait_until(lambda: bool(ends))
    assert [session.run("take_r:0") for _ in range(3)] == [7, 8, 5]
    assert step() == 5
    assert ends[0] == "left"


def test_nobody_waits_for_what_comes_later_in_the_text(ends: list[str]) -> None:
    """Nodes that nothing orders need not wait for each other, whatever their order as text is."""
    text = QUEUES + "".join(
        f"""
        y{n} = QueueDequeueV2(r) component_types=['float32']
        put{n} = QueueEnqueueV2(r, x)
        """
        for n in range(4)
    )
    text += "sum = AddN(y0, y1, y2, y3) N=4 T=float32\nall = NoOp(^put0, ^put1, ^put2, ^put3)"
    with session_of(text + "\nend = Identity(sum, ^all)") as session:
        step = started(lambda: session.run("end:0", {"x:0": np.float32(3)}))
        assert step() == 12
        assert ends == ["left"]


@pytest.mark.parametrize("untried", [0, 1000])
@pytest.mark.parametrize("there", [0, 1])
def test_errors_name_the_same_node(untried: int, there: int) -> None:
    """Of what fails in the function, and of what fails after it was left."""
    text = (
        QUEUES
        + """
        a = QueueDequeueV2(q) component_types=['float32']
        b = Reshape(a, two)
        two = Const() value=[2]
        end = Neg(b)
    """
    )
    with session_of(text, untried_steps=untried) as session:
        for _ in range(there):
            session.run("put", {"x:0": np.float32(1)})
        step = started(lambda: session.run("end:0"))
        if not there:
            time.sleep(0.02)
            session.run("put", {"x:0": np.float32(1)})
        with pytest.raises(errors.InvalidArgumentError, match=r"{{node b}}"):
            step()
        session.run("close")
        with pytest.raises(errors.OutOfRangeError, match=r"(?s)is closed and has.*{{node a}}"):
            session.run("end:0")


def test_a_step_that_waits_can_be_ended(session: Session, ends: list[str]) -> None:
    """A session that is closed ends what was left, and what it took is not lost to others."""
    session.run("put", {"x:0": np.float32(4)})
    ends.clear()
    step = started(lambda: session.run("done:0", {"limit:0": np.int32(5)}))
    wait_until(lambda: ends == ["left"])
    session.close()
    with pytest.raises(errors.CancelledError):
        step()


def test_choices_are_left_to_the_executor(ends: list[str]) -> None:
    """What lies on one side of a Switch is no part of a function that may be left."""
    text = (
        QUEUES
        + """
        p = Placeholder() dtype=bool
        s = Switch(x, p)
        t = QueueDequeueV2(q, ^yes) component_types=['float32']
        yes = Identity(s:1)
        m = Merge(s, t)
    """
    )
    with session_of(text) as session:
        assert session.run("m:0", {"x:0": np.float32(2), "p:0": np.bool_(False)}) == 2
        assert ends == []


def test_many_threads_lose_and_double_nothing(ends: list[str]) -> None:
    """Whoever takes gets what somebody put, each element once."""
    text = QUEUES + "a = QueueDequeueV2(q) component_types=['float32']\nb = Neg(a)\n"
    count, taken = 300, list[float]()
    with session_of(text) as session:

        def put(first: int) -> None:
            for number in range(first, count, 2):
                session.run("put", {"x:0": np.float32(number)})

        def take() -> None:
            for _ in range(count // 2):
                taken.append(-float(session.run("b:0")))

        for wait in [started(lambda n=n: put(n)) for n in (0, 1)] + [started(take), started(take)]:
            wait()
    assert sorted(taken) == list(range(count))
    assert "done" in ends


# -- when it is tried ---------------------------------------------------------------------------


class Counted:
    """Trials of a function that nobody runs, and for what it was made each time."""

    def __init__(self, untried_steps: int, made: Any = object()) -> None:  # noqa: B008
        self.probing: list[bool] = []
        self.made = made
        limits = Limits(untried_steps=untried_steps, slow_trial=1.0)
        self.trials = Trials(self.make, limits, is_wanted=True)

    def make(self, _interrupt: Interrupt, _profile: Profile, probes: bool) -> Trial | None:
        """Make it."""
        self.probing.append(probes)
        made: Trial | None = self.made
        return made

    def probe(self) -> Trials:
        """Let the first function do its only step."""
        assert self.trials.take(Interrupt()) is not None
        self.trials.note_done(9.0)
        return self.trials

    def steps_until_tried(self) -> int:
        """How many steps begin on the executor before the next one that does not."""
        for number in range(1000):
            if self.trials.take(Interrupt()) is not None:
                return number
        return -1


def test_a_request_that_has_to_wait_is_tried_more_and_more_seldom() -> None:
    """After 1, 2, 4 and at most 64 steps; and from the start once it was done."""
    counted = Counted(3)
    assert counted.steps_until_tried() == 3
    pauses = []
    for _ in range(9):
        counted.trials.note_left()
        pauses.append(counted.steps_until_tried())
    assert pauses == [1, 2, 4, 8, 16, 32, 64, 64, 64]
    counted.trials.note_done(0.0)
    assert counted.steps_until_tried() == 0
    counted.trials.note_left()
    assert counted.steps_until_tried() == 1
    assert counted.probing == [True, False]


def test_slow_steps_are_for_the_executor() -> None:
    """Three in a row end all trials, if the executor is as fast; one may be slow by chance."""
    counted = Counted(0)
    trials = counted.probe()
    for _ in range(6):
        trials.note_untried(0.4)
    for seconds in (2.0, 2.0, 0.5, 2.0, 2.0):
        assert trials.take(Interrupt()) is not None
        trials.note_done(seconds)
    assert trials.take(Interrupt()) is not None
    trials.note_done(2.0)
    assert counted.steps_until_tried() == -1


def slow_trials(trials: Trials, seconds: float) -> None:
    """Three trials that take so long."""
    for _ in range(3):
        assert trials.take(Interrupt()) is not None
        trials.note_done(seconds)


@pytest.mark.parametrize(("elsewhere", "goes_on"), [(2.0, True), (1.5, False), (1.4, False)])
def test_slow_trials_are_compared_with_the_executor(elsewhere: float, goes_on: bool) -> None:
    """Of both, the fewest seconds count, since others may have had the cores; no first step."""
    counted = Counted(0)
    slow_trials(counted.probe(), 1.5)
    for seconds in (1.0, 9.0, elsewhere, 9.0):
        assert counted.trials.take(Interrupt()) is None
        counted.trials.note_untried(seconds)
    slow_trials(counted.trials, 8.0)
    assert counted.steps_until_tried() == (0 if goes_on else -1)
    assert counted.probing == [True, False]


def test_slow_trials_go_on_if_the_executor_is_slower(ends: list[str]) -> None:
    """In a session, too: what a busy machine slows down by chance is not given up for good."""
    taken = "taken = QueueDequeueV2(q, ^put) component_types=['float32']"
    limits = Limits(slow_step=0.0, slow_trial=0.0, untried_steps=0)
    with Session(sketch(QUEUES + taken), config=Config(limits=limits)) as session:
        call = session.make_callable("taken:0", ["x:0"])
        for _ in range(20):
            assert call(np.float32(3)) == 3
    # Three trials, the first steps of the executor, three trials more: then whichever is faster.
    assert ends[:6] == ["done"] * 6
    assert len(ends) in {6, 16}


def test_what_cannot_be_tried_is_not_made_twice() -> None:
    """A request that is no such function stays with the executor."""
    counted = Counted(0, made=None)
    assert counted.steps_until_tried() == -1
    assert counted.probing == [True]


def test_while_the_first_function_is_used_others_have_the_executor() -> None:
    """It fills one profile; and if its step fails, nobody waits for it for ever."""
    counted = Counted(0)
    assert counted.trials.take(Interrupt()) is not None
    assert counted.steps_until_tried() == 64
    assert counted.probing == [True, False]
    assert counted.steps_until_tried() == 0


def test_the_second_function_is_written_for_what_was_seen(ends: list[str]) -> None:
    """Chains of arrays are programs in it; what is put into the queue is what the kernels give."""
    graph = """
        x = Placeholder() dtype=float32
        q = FIFOQueueV2() component_types=['float32'] shapes=[[5]]
        half = Const() value=0.5
        a = Mul(x, half)
        b = Tanh(a)
        c = Add(b, half)
        put = QueueEnqueueV2(q, c) Tcomponents=['float32']
        taken = QueueDequeueV2(q, ^put) component_types=['float32']
    """
    x = np.linspace(-1, 1, 5, dtype=np.float32)
    with Session(sketch(graph), config=Config(limits=Limits(untried_steps=0))) as session:
        call = session.make_callable("taken:0", ["x:0"])
        results = [call(x).tobytes() for _ in range(5)]
        [prepared] = session._requests._prepared.values()
        text = prepared.runnable.trials._trial.region.source.listing
    assert ends == ["done"] * 5
    assert len(set(results)) == 1
    assert ("in_c(" in text) is (library() is not None)
    assert "probe" not in text
