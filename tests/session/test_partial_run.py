"""A step whose feeds come, and fetches go, over several calls."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import penstock as ps
from penstock import errors
from support.custom import custom_kernels
from support.loops import counting_loop
from support.sketch import sketch

#: Two feeds, two fetches: the second needs both feeds.
GRAPH = """
    a = Placeholder() dtype=float32
    b = Placeholder() dtype=float32
    c = Placeholder() dtype=float32
    ab = Add(a, b)
    abc = Mul(ab, c)
    twice = Add(a, a)
    lonely = Placeholder() dtype=float32
    needs_lonely = Add(a, lonely)
    nothing = NoOp(^ab)
"""


@pytest.fixture
def session() -> Iterator[ps.Session]:
    """Yield a session on the graph above."""
    with ps.Session(sketch(GRAPH)) as opened:
        yield opened


def setup(session: ps.Session) -> str:
    return session.partial_run_setup(["ab:0", "abc:0"], ["a", "b", "c"])


def test_results_come_as_feeds_come(session: ps.Session) -> None:
    """What depends on the first feeds is there before the last feed."""
    handle = setup(session)
    assert session.partial_run(handle, "ab:0", {"a": 1, "b": 2}) == 3.0
    assert session.partial_run(handle, "abc:0", {"c": 17}) == 51.0


def test_fetches_keep_their_nesting(session: ps.Session) -> None:
    """Partial results come in the nesting that was asked for."""
    handle = setup(session)
    feeds = {"a": 1, "b": 2, "c": 3}
    got = session.partial_run(handle, {"x": ["ab:0"], "y": ("abc:0", "abc:0")}, feeds)
    assert got == {"x": [3.0], "y": (9.0, 9.0)}


def test_a_run_may_stay_unfinished(session: ps.Session) -> None:
    """Nobody has to ask for everything."""
    handle = setup(session)
    assert session.partial_run(handle, "ab:0", {"a": 1, "b": 2}) == 3.0


def test_feeds_may_come_without_fetches(session: ps.Session) -> None:
    """A call may feed and fetch nothing."""
    handle = setup(session)
    assert session.partial_run(handle, [], {"a": 1}) == []
    assert session.partial_run(handle, [], {"b": 2, "c": 5}) == []
    assert session.partial_run(handle, ["abc:0", "ab:0"]) == [15.0, 3.0]


def test_a_run_without_feeds(session: ps.Session) -> None:
    """A graph that needs no feeds runs at once."""
    with ps.Session(sketch("x = Const() value=[1.0]\ny = Neg(x)")) as other:
        handle = other.partial_run_setup(["y:0"])
        assert other.partial_run(handle, "y:0").tolist() == [-1.0]
    del session


def test_a_finished_run_is_over(session: ps.Session) -> None:
    """When everything was fed and fetched, the handle means nothing any more."""
    handle = setup(session)
    session.partial_run(handle, ["ab:0", "abc:0"], {"a": 1, "b": 2, "c": 3})
    with pytest.raises(errors.InvalidArgumentError, match="Must run 'setup'"):
        session.partial_run(handle, "ab:0")
    assert not session._under_way.partial_runs


def test_two_runs_at_once(session: ps.Session) -> None:
    """Two partial runs of the same request do not see each other."""
    first, second = setup(session), setup(session)
    assert first != second
    assert session.partial_run(first, "ab:0", {"a": 1, "b": 2}) == 3.0
    assert session.partial_run(second, "ab:0", {"a": 10, "b": 20}) == 30.0
    assert session.partial_run(second, "abc:0", {"c": 2}) == 60.0
    assert session.partial_run(first, "abc:0", {"c": 3}) == 9.0


def test_many_runs_on_many_threads(session: ps.Session) -> None:
    """A hundred partial runs, on eight threads, give their own results."""
    wrong: list[Any] = []

    def work(start: int) -> None:
        for number in range(start, start + 12):
            handle = setup(session)
            if session.partial_run(handle, "ab:0", {"a": number, "b": 1}) != number + 1:
                wrong.append(number)
            if session.partial_run(handle, "abc:0", {"c": 2}) != 2 * number + 2:
                wrong.append(number)

    threads = [threading.Thread(target=work, args=(100 * i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30.0)
    assert wrong == []


def test_ordinary_runs_in_between(session: ps.Session) -> None:
    """A partial run does not disturb ordinary runs, nor they it."""
    handle = setup(session)
    assert session.partial_run(handle, "ab:0", {"a": 1, "b": 2}) == 3.0
    assert session.run("abc:0", {"a": 1, "b": 1, "c": 1}) == 2.0
    assert session.partial_run(handle, "abc:0", {"c": 2}) == 6.0


@pytest.mark.parametrize(
    ("fetches", "feeds", "text"),
    [
        (["ab:0"], {"lonely": 1.0}, "The feed lonely:0 was not specified in partial_run_setup"),
        (["twice:0"], {}, "The fetch twice:0 was not specified in partial_run_setup"),
        (["ab:0"], {"a": 1.0}, "b:0 can't be computed from the feeds that have been fed so far"),
        (["abc:0"], {"a": 1.0, "b": 1.0}, "c:0 can't be computed from the feeds"),
        (["nobody:0"], {}, "The fetch nobody:0 was not specified"),
        (["nothing"], {}, "requires empty target_list"),
    ],
)
def test_mistakes_leave_the_run_as_it_was(
    session: ps.Session, fetches: Any, feeds: Any, text: str
) -> None:
    """A call that is wrong is refused, feeds nothing, and the run goes on."""
    handle = setup(session)
    with pytest.raises(errors.InvalidArgumentError) as caught:
        session.partial_run(handle, fetches, feeds)
    assert text in str(caught.value)
    got = session.partial_run(handle, ["ab:0", "abc:0"], {"a": 1, "b": 2, "c": 3})
    assert got == [3.0, 9.0]


def test_feeding_or_fetching_twice(session: ps.Session) -> None:
    """What was fed or fetched is fed or fetched once."""
    handle = setup(session)
    session.partial_run(handle, "ab:0", {"a": 1, "b": 2})
    with pytest.raises(errors.InvalidArgumentError, match="The feed a:0 has already been fed"):
        session.partial_run(handle, [], {"a": 1})
    with pytest.raises(errors.InvalidArgumentError, match="The fetch ab:0 has already been fetch"):
        session.partial_run(handle, "ab:0")
    assert session.partial_run(handle, "abc:0", {"c": 2}) == 6.0


def test_values_of_the_wrong_kind_leave_the_run_as_it_was(session: ps.Session) -> None:
    """A feed of another type is refused before anything is fed."""
    handle = setup(session)
    with pytest.raises(errors.InvalidArgumentError, match="not compatible"):
        session.partial_run(handle, "ab:0", {"a": 1, "b": "x"})
    assert session.partial_run(handle, "ab:0", {"a": 1, "b": 2}) == 3.0


def test_a_fed_tensor_can_be_fetched_in_the_same_call(session: ps.Session) -> None:
    """A tensor that a call feeds comes back as it was fed, without being set up."""
    handle = setup(session)
    assert session.partial_run(handle, ["a:0", "ab:0"], {"a": 1, "b": 2}) == [1.0, 3.0]


@pytest.mark.parametrize(
    ("fetches", "feeds", "text"),
    [
        ([], [], "at least one target"),
        ([], ["a"], "at least one target"),
        (["nobody:0"], [], "not found"),
        (["ab:0"], ["nobody"], "nobody"),
        (["ab:0"], ["a:7"], "a:7"),
        (["ab:0"], ["a", "a:0"], "fed more than once"),
        (["a:0"], ["a"], "both fed and fetched"),
    ],
)
def test_bad_setups(session: ps.Session, fetches: Any, feeds: Any, text: str) -> None:
    """A setup that means nothing is refused, and leaves nothing behind."""
    with pytest.raises(errors.OpError) as caught:
        session.partial_run_setup(fetches, feeds)
    assert text in str(caught.value)
    assert not session._under_way.partial_runs


@pytest.mark.parametrize("handle", ["", "nonsense", "partial_run;99", None, 3])
def test_unknown_handles(session: ps.Session, handle: Any) -> None:
    """A handle that no setup gave is refused."""
    with pytest.raises(errors.InvalidArgumentError, match="Must run 'setup'"):
        session.partial_run(handle, "ab:0", {"a": 1, "b": 1})


def test_a_placeholder_that_was_not_set_up_fails_the_run(session: ps.Session) -> None:
    """A placeholder that can never be fed fails the run, with the usual text."""
    handle = session.partial_run_setup(["needs_lonely:0"], ["a"])
    with pytest.raises(errors.InvalidArgumentError, match="You must feed a value for placeholder"):
        session.partial_run(handle, "needs_lonely:0", {"a": 1})
    with pytest.raises(errors.InvalidArgumentError, match="Must run 'setup'"):
        session.partial_run(handle, "needs_lonely:0")


def test_an_error_ends_the_run(session: ps.Session) -> None:
    """A kernel that fails fails the call that waits for it, and the run is over."""

    def fail(_x: Any) -> None:
        raise ValueError("no good")

    with custom_kernels("ExFail(x: float32) -> (y: float32)") as register:
        register("ExFail", fail)
        with ps.Session(sketch(GRAPH + "bad = ExFail(ab)\nlater = Add(bad, c)")) as other:
            handle = other.partial_run_setup(["later:0", "twice:0"], ["a", "b", "c"])
            assert other.partial_run(handle, "twice:0", {"a": 1}) == 2.0
            with pytest.raises(errors.InvalidArgumentError, match="no good") as caught:
                other.partial_run(handle, "later:0", {"b": 1, "c": 1})
            assert caught.value.node_name == "bad"
            assert not other._under_way.partial_runs
    del session


def test_a_dead_fetch_is_not_valid() -> None:
    """A fetch that turns out dead fails, and names the fetch."""
    text = """
        p = Placeholder() dtype=bool
        x = Const() value=1.0
        s = Switch(x, p)
        y = Neg(s:1)
        n = Neg(s:0)
    """
    with ps.Session(sketch(text)) as session:
        handle = session.partial_run_setup(["y:0", "n:0"], ["p"])
        assert session.partial_run(handle, "y:0", {"p": True}) == -1.0
        with pytest.raises(errors.InvalidArgumentError, match="returned for n:0 was not valid"):
            session.partial_run(handle, "n:0")


def test_several_outputs_of_one_node_fed_apart() -> None:
    """Of a node with two outputs, one can be fed and the other computed."""
    text = """
        axis = Const() value=0
        x = Placeholder() dtype=float32
        s = Split(axis, x) num_split=2
        first = Neg(s:0)
        second = Neg(s:1)
    """
    with ps.Session(sketch(text)) as session:
        handle = session.partial_run_setup(["first:0", "second:0"], ["s:1", "x"])
        assert session.partial_run(handle, "first:0", {"x": [1.0, 2.0]}).tolist() == [-1.0]
        assert session.partial_run(handle, "second:0", {"s:1": [5.0]}).tolist() == [-5.0]


def test_targets_run_too() -> None:
    """An operation among the fetches of the setup runs when its inputs are there."""
    text = """
        x = Placeholder() dtype=int32
        q = FIFOQueueV2() component_types=["int32"]
        put = QueueEnqueueV2(q, x)
        y = Neg(x)
        size = QueueSizeV2(q)
    """
    with ps.Session(sketch(text)) as session:
        handle = session.partial_run_setup(["y:0", "put"], ["x"])
        assert session.run("size:0") == 0
        assert session.partial_run(handle, "y:0", {"x": 3}) == -3
        assert session.run("size:0") == 1


WAITS = (
    GRAPH
    + """
    queue = FIFOQueueV2() component_types=["float32"]
    get = QueueDequeueV2(queue, ^a) component_types=["float32"]
    late = Neg(get)
    put = QueueEnqueueV2(queue, a)
"""
)


@pytest.mark.parametrize("fetch", ["late:0", "exit:0"])
def test_the_sessions_timeout_ends_a_call(fetch: str) -> None:
    """A call that waits too long fails, and the run with it; the session stays usable."""
    feeds = ["a", "limit"]
    config = ps.Config(operation_timeout_in_ms=200)
    with ps.Session(sketch(WAITS + counting_loop()), config=config) as session:
        handle = session.partial_run_setup([fetch, "twice:0"], feeds)
        with pytest.raises(errors.DeadlineExceededError):
            session.partial_run(handle, fetch, {"a": 1.0, "limit": 2**31 - 1})
        assert not session._under_way.partial_runs
        session.run("put", {"a": 2.0})
        assert session.run("late:0", {"a": 1.0}) == -2.0


def test_a_target_that_blocks_ends_with_the_timeout() -> None:
    """When all is fetched but a target never ends, the last call waits no longer than allowed."""
    config = ps.Config(operation_timeout_in_ms=200)
    with ps.Session(sketch(WAITS), config=config) as session:
        handle = session.partial_run_setup(["twice:0", "late"], ["a"])
        assert session.partial_run(handle, "twice:0", {"a": 1.0}) == 2.0
        session.run("put", {"a": 2.0})
        assert session.run("late:0", {"a": 1.0}) == -2.0


def test_close_ends_partial_runs() -> None:
    """Closing a session cancels its partial runs, also one that another thread waits in."""
    session = ps.Session(sketch(WAITS))
    handle = session.partial_run_setup(["late:0"], ["a"])
    idle = session.partial_run_setup(["late:0"], ["a"])
    outcome: list[BaseException] = []

    def wait() -> None:
        try:
            session.partial_run(handle, "late:0", {"a": 1.0})
        except errors.OpError as error:
            outcome.append(error)

    thread = threading.Thread(target=wait)
    thread.start()
    threading.Event().wait(0.01)
    session.close()
    thread.join(5.0)
    assert isinstance(outcome[0], errors.CancelledError)
    with pytest.raises(errors.CancelledError):
        session.partial_run(idle, "late:0", {"a": 1.0})


def test_a_session_that_closes_between_two_calls_says_so() -> None:
    """However far the second call has come: here it looks at what is fed."""
    session = ps.Session(sketch(GRAPH))
    handle = setup(session)

    class Closing:
        def __array__(self, *_args: Any, **_options: Any) -> Any:
            session.close()
            return np.array(1, np.float32)

    with pytest.raises(errors.CancelledError):
        session.partial_run(handle, "ab:0", {"a": Closing(), "b": 2})


def test_two_devices() -> None:
    """A partial run over two devices gives the same."""
    text = GRAPH.replace("ab = Add(a, b)", 'ab = Add(a, b) device="/device:CPU:1"')
    with ps.Session(sketch(text), config=ps.Config(device_count={"CPU": 2})) as session:
        handle = setup(session)
        assert session.partial_run(handle, "ab:0", {"a": 1, "b": 2}) == 3.0
        assert session.partial_run(handle, "abc:0", {"c": 17}) == 51.0


def test_each_partial_run_has_resources_of_its_own() -> None:
    """What one run names after its step, such as an iterator, does not meet that of the next."""
    text = """
        x = Placeholder() dtype=int32
        it = AnonymousIterator(^x) output_types=["int32"] output_shapes=[[]]
        y = Neg(x, ^it)
    """
    with ps.Session(sketch(text)) as session:
        for number in (1, 2):
            handle = session.partial_run_setup(["y:0"], ["x"])
            assert session.partial_run(handle, "y:0", {"x": number}) == -number


def test_a_fetched_handle_keeps_its_tensor() -> None:
    """A tensor that a partial run keeps is there for later runs, once its handle is fetched."""
    text = """
        a = Placeholder() dtype=float32
        kept = GetSessionHandle(a)
        b = Placeholder() dtype=float32
        sum = Add(a, b)
        handle = Placeholder() dtype=string
        again = GetSessionTensor(handle) dtype=float32
    """
    with ps.Session(sketch(text)) as session:
        run = session.partial_run_setup(["kept:0", "sum:0"], ["a", "b"])
        handle = session.partial_run(run, "kept:0", {"a": 3.0})
        assert session.run("again:0", {"handle:0": bytes(handle)}) == 3.0
        assert session.partial_run(run, "sum:0", {"b": 1.0}) == 4.0
