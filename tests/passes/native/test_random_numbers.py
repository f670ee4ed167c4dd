"""Loops that draw random numbers are programs, and their streams go on as if there were none."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

import penstock as ps
from penstock.builder.graph import apply
from penstock.errors import CancelledError, InvalidArgumentError
from penstock.kernels.c.library import loaded
from penstock.kernels.native import ready_program
from penstock.kernels.random.node_stream import NodeStream, borrowed
from penstock.state.interrupt import NEVER, Interrupt
from support.native import WITHOUT, watched

if loaded() is None:
    pytest.skip("there is no library of kernels in C", allow_module_level=True)

TEXT = ps.Config(graph_options=WITHOUT)
DRAWS = {
    "uniform": ps.ops.random_uniform,
    "normal": ps.ops.random_standard_normal,
    "cut": ps.ops.truncated_normal,
}
SEEDS = {"seed": 3, "seed2": 5}


def noisy(draw: str = "uniform", shape: tuple[int, ...] = (3,), **seeds: int) -> ps.Graph:
    """Numbers that are drawn in ``n`` turns, one row for each of eight that there may be."""
    graph, sizes, ones = ps.Graph(), np.array(shape, np.int32), [1] * len(shape)
    with graph.as_default():
        n = ps.placeholder("int32", [], name="n")

        def turn(i: Any, rows: Any) -> Any:
            with ps.control_dependencies([rows]):
                drawn = DRAWS[draw](sizes, dtype="float32", **(seeds or SEEDS))
            is_this = ps.ops.reshape(ps.ops.equal(np.arange(8, dtype=np.int32), i), [8, *ones])
            return i + 1, ps.ops.select_v2(is_this, drawn, rows)

        start = np.zeros([8, *shape], np.float32)
        ps.identity(ps.while_loop(lambda i, _: i < n, turn, [0, start])[1], name="y")
    return graph


def rows(session: ps.Session, n: int) -> Any:
    """What is drawn in so many turns."""
    return session.run("y:0", {"n:0": n})[:n]


# -- the same numbers ----------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(), (1,), (3,), (4,), (2, 5), (0, 3), (33,)])
@pytest.mark.parametrize("draw", DRAWS)
def test_numbers_are_those_of_kernels(draw: str, shape: tuple[int, ...]) -> None:
    """From turn to turn and from step to step, however many numbers a turn draws."""
    graph = noisy(draw, shape)
    with ps.Session(graph, config=TEXT) as text, ps.Session(graph) as session, watched() as given:
        for n in (3, 0, 1, 8):
            np.testing.assert_array_equal(rows(session, n), rows(text, n))
    assert len(given) == 4
    assert None not in given


def test_programs_and_others_share_a_stream() -> None:
    """A step whose nodes are looked at runs no program, and goes on where the last one was."""
    graph, seen = noisy(), list[Any]()
    watching = ps.RunOptions(trace_level=ps.RunOptions.FULL_TRACE)
    with ps.Session(graph, config=TEXT) as text, ps.Session(graph) as session, watched() as given:
        for number in range(6):
            feeds, options = {"n:0": 2}, watching if number % 2 else None
            seen.append(session.run("y:0", feeds, options=options)[:2])
            np.testing.assert_array_equal(seen[-1], rows(text, 2))
    assert 0 < len(given) < 6


def test_no_seed_is_another_sequence_in_each_session() -> None:
    """What nobody gave a seed goes on from step to step, too."""
    graph = noisy(seed=0, seed2=0)
    drawn = []
    for _ in range(2):
        with ps.Session(graph) as session, watched() as given:
            drawn += [rows(session, 4), rows(session, 4)]
        assert len(given) == 2
    assert len(np.unique(np.stack(drawn))) == 4 * 4 * 3


def test_a_snapshot_knows_where_a_stream_is() -> None:
    """What came after it comes again."""
    with ps.Session(noisy()) as session:
        rows(session, 3)
        snapshot = session.snapshot()
        first = rows(session, 5)
        assert not np.array_equal(rows(session, 5), first)
        session.restore(snapshot)
        np.testing.assert_array_equal(rows(session, 5), first)


def test_loops_in_loops() -> None:
    """The stream goes on through all of them."""
    graph = ps.Graph()
    with graph.as_default():
        n = ps.placeholder("int32", [], name="n")

        def inner(i: Any, a: Any) -> Any:
            with ps.control_dependencies([a]):
                drawn = ps.ops.random_uniform([4], dtype="float32", **SEEDS)
            return i + 1, a * 0.5 + drawn

        def outer(i: Any, a: Any) -> Any:
            return i + 1, ps.while_loop(lambda j, _: j < i, inner, [0, a])[1]

        start = np.zeros(4, np.float32)
        ps.identity(ps.while_loop(lambda i, _: i < n, outer, [0, start])[1], name="y")
    with ps.Session(graph, config=TEXT) as text, ps.Session(graph) as session, watched() as given:
        for count in (4, 2, 5):
            feeds = {"n:0": count}
            np.testing.assert_allclose(session.run("y:0", feeds), text.run("y:0", feeds), rtol=1e-6)
    assert len(given) == 3
    assert None not in given


def test_a_condition_that_draws_is_for_text() -> None:
    """It is asked once more than the body runs."""
    graph = ps.Graph()
    with graph.as_default():

        def goes_on(i: Any) -> Any:
            with ps.control_dependencies([i]):
                return ps.ops.random_uniform(np.zeros(0, np.int32), dtype="float32", **SEEDS) < 0.8

        ps.identity(ps.while_loop(goes_on, lambda i: i + 1, [0]), name="y")
    with ps.Session(graph, config=TEXT) as text, ps.Session(graph) as session, watched() as given:
        counts = [session.run("y:0").item() for _ in range(5)]
        assert counts == [text.run("y:0").item() for _ in range(5)]
    assert len(set(counts)) > 1
    assert given == []


# -- what is not known until the end -------------------------------------------------------------


def picking() -> ps.Graph:
    """Draws in each of four turns, of which the third may divide by nothing."""
    graph = ps.Graph()
    with graph.as_default():
        by = ps.placeholder("int32", [], name="by")

        def turn(i: Any, a: Any, _: Any) -> Any:
            with ps.control_dependencies([a]):
                drawn = ps.ops.random_uniform([3], dtype="float32", **SEEDS)
            return i + 1, a * 0.5 + drawn, ps.ops.floor_mod(i, by - i)

        start = np.zeros(3, np.float32)
        ends = ps.while_loop(lambda i, *_: i < 4, turn, [0, start, 0])
        ps.identity(ends[1], name="y")
        ps.identity(ends[2], name="whole")
    return graph


def outcomes(graph: ps.Graph, bys: list[int]) -> list[bool]:
    """Which steps' programs did not know; all of them give what text does, errors among it."""
    with ps.Session(graph, config=TEXT) as text, ps.Session(graph) as session, watched() as given:
        for by in bys:
            results = []
            for one in (session, text):
                try:
                    results.append(one.run(["y:0", "whole:0"], {"by:0": by})[0])
                except InvalidArgumentError as error:
                    results.append(np.array([ord(letter) for letter in str(error)]))
            np.testing.assert_allclose(*results, rtol=1e-6)
    return [one is None for one in given]


def test_what_a_program_drew_in_vain_is_drawn_again() -> None:
    """A program that finds an error leaves no trace in the stream: the text that tells does."""
    assert outcomes(picking(), [9, 2, 9, 0, 9]) == [False, True, False, True, False]


def test_of_several_regions_none_draws() -> None:
    """If the second program did not know, what the first one drew would be drawn twice."""
    graph = ps.Graph()
    with graph.as_default():
        by = ps.placeholder("int32", [], name="by")

        def drawing(i: Any, a: Any) -> Any:
            with ps.control_dependencies([a]):
                drawn = ps.ops.random_uniform([3], dtype="float32", **SEEDS)
            return i + 1, a * 0.5 + drawn

        def dividing(i: Any, a: Any, _: Any) -> Any:
            return i + 1, a * 0.5, ps.ops.floor_mod(i, by)

        start = np.zeros(3, np.float32)
        first = ps.while_loop(lambda i, _: i < 3, drawing, [0, start])[1]
        # No program sorts.
        between = ps.ops.top_kv2(first, 3)[0]
        second = ps.while_loop(lambda i, *_: i < 3, dividing, [0, between, 0])
        ps.identity(second[1], name="y")
        ps.identity(second[2], name="whole")
    assert outcomes(graph, [9, 0, 9]) == []


# -- several at once -----------------------------------------------------------------------------


@pytest.mark.parametrize("budget", [ready_program.BUDGET, 1])
@pytest.mark.parametrize("traced", [0, 2])
def test_no_number_is_drawn_twice(
    budget: int, traced: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever runs beside whom, in programs or not, all numbers are the next of one stream."""
    monkeypatch.setattr(ready_program, "BUDGET", budget)
    graph, found = noisy(), list[Any]()
    watching = ps.RunOptions(trace_level=ps.RunOptions.FULL_TRACE)
    with ps.Session(graph) as session:

        def work(number: int) -> None:
            for _ in range(25):
                options = watching if number < traced else None
                found.append(session.run("y:0", {"n:0": 8}, options=options))

        threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    with ps.Session(graph, config=TEXT) as text:
        wanted = [rows(text, 8) for _ in range(100)]
    assert len(found) == 100
    np.testing.assert_array_equal(
        np.sort(np.stack(found).ravel()), np.sort(np.stack(wanted).ravel())
    )


def test_a_long_program_makes_room(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that takes long gives up when somebody else wants to draw, and text goes on for it."""
    monkeypatch.setattr(ready_program, "BUDGET", 1)
    monkeypatch.setattr(NodeStream, "is_wanted", property(lambda _: is_wanted[-1]))
    graph, is_wanted = noisy(), list[bool]()
    with ps.Session(graph, config=TEXT) as text, ps.Session(graph) as session, watched() as given:
        for wanted in (False, True, False):
            is_wanted.append(wanted)
            np.testing.assert_array_equal(rows(session, 8), rows(text, 8))
    assert [one is None for one in given] == [False, True, False]


def test_whoever_waits_for_a_stream_can_be_ended() -> None:
    """The one that has it sees that somebody waits."""
    stream, other = NodeStream((1, 2), None), NodeStream((3, 4), None)
    interrupt, ended = Interrupt(), list[BaseException]()

    def wait() -> None:
        try:
            with borrowed([other, stream], interrupt):
                pass
        except CancelledError as error:
            ended.append(error)

    with borrowed([stream], NEVER):
        assert not stream.is_wanted
        thread = threading.Thread(target=wait)
        thread.start()
        while not stream.is_wanted:
            pass
        interrupt.end(CancelledError("enough"))
        thread.join()
        assert not stream.is_wanted
    assert [str(error) for error in ended] == ["enough"]
    with borrowed([other, stream], NEVER):
        place = stream.place()
        stream.go_on_from(place + np.array([0, 7, 1]))
    assert stream.reserve(1).counter == (2 << 64) + 7 + (1 << 64)


# -- sequences of their own lengths --------------------------------------------------------------


@pytest.mark.parametrize("lengths", [[4, 2, 1], [0, 4, 4], [1, 2]])
def test_what_is_checked_before_a_loop_is_no_hindrance(lengths: list[int]) -> None:
    """A dropout in a recurrence that checks how many lengths there are, as those of TF1 do."""
    graph = ps.Graph()
    with graph.as_default():
        x = ps.placeholder("float32", [None, None, 4], name="x")
        given_lengths = ps.placeholder("int32", [None], name="lengths")
        sizes = ps.ops.shape(x)
        expected = ps.ops.pack([ps.ops.strided_slice(sizes, [1], [2], [1], shrink_axis_mask=1)])
        alike = ps.ops.all(ps.ops.equal(ps.ops.shape(given_lengths), expected), [0])
        check = apply("Assert", alike, [expected])
        with ps.control_dependencies([check]):
            checked = ps.identity(given_lengths)
        turns = ps.ops.strided_slice(sizes, [0], [1], [1], shrink_axis_mask=1)

        source, target = (ps.ops.tensor_array_v3(turns, dtype="float32") for _ in range(2))
        every = ps.ops.range(0, turns, 1)
        flow = ps.ops.tensor_array_scatter_v3(source.handle, every, x, source.flow)

        def turn(i: Any, state: Any, seen: Any) -> Any:
            with ps.control_dependencies([state]):
                noise = ps.ops.random_uniform([3, 4], dtype="float32", **SEEDS)
            item = ps.ops.tensor_array_read_v3(source.handle, i, flow, dtype="float32")
            after = ps.ops.tanh(item + state * ps.ops.floor(noise + 0.5))
            state = ps.ops.select(ps.ops.less(i, checked), after, state)
            return i + 1, state, ps.ops.tensor_array_write_v3(target.handle, i, state, seen)

        start = [0, np.zeros((3, 4), np.float32), target.flow]
        seen = ps.while_loop(lambda i, *_: i < turns, turn, start)[2]
        ps.ops.tensor_array_gather_v3(target.handle, every, seen, dtype="float32", name="y")
    values = np.random.default_rng(3).standard_normal((4, 3, 4), np.float32)
    feeds = {"x:0": values, "lengths:0": np.int32(lengths)}
    with ps.Session(graph, config=TEXT) as text, ps.Session(graph) as session, watched() as given:
        if len(lengths) != 3:
            with pytest.raises(InvalidArgumentError, match="assertion failed"):
                session.run("y:0", feeds)
            return
        for _ in range(3):
            np.testing.assert_allclose(
                session.run("y:0", feeds), text.run("y:0", feeds), rtol=1e-5, atol=1e-6
            )
    assert len(given) == 3
    assert None not in given
