"""Lists in programs in C: they grow, shrink, and are read before they are written."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import penstock as ps
from benchmarks.cases import Case
from penstock import errors
from penstock.kernels.native import growing_lists
from support.native import ALL, JIT, WITHOUT, watched

NATIVE = ps.Config(graph_options=JIT, limits=ALL, check_graphs=True)
TEXT = ps.Config(graph_options=WITHOUT)
BENCHMARKS = Path(__file__).parents[3] / "benchmarks" / "graphs"
#: A shape of which nothing is known, as lists are told it.
ANY = np.int32(-1)
X = np.arange(1, 9, dtype=np.float32).reshape(4, 2)


def both(graph: ps.Graph, feeds: dict[str, Any]) -> tuple[list[Any], list[Any]]:
    """What ``y:0`` is by text and by programs; and what these gave."""
    results = []
    for config in (TEXT, NATIVE):
        with watched() as given, ps.Session(graph, config=config) as session:
            results.append(session.run("y:0", feeds))
    return results, given


def pushed(
    limit: int = -1,
    shape: Any = ANY,
    condition: Callable[[Any, Any], Any] = lambda i, n: i < n,
    step: int = 1,
    most: int = 10,
    width: int = 2,
) -> ps.Graph:
    """``x`` times 1, 2, ... put on a list as long as a condition holds, then all of it stacked."""
    graph = ps.Graph()
    with graph.as_default():
        x = ps.placeholder("float32", [width], name="x")
        n = ps.placeholder("int32", [], name="n")
        empty = ps.ops.empty_tensor_list(shape, limit, "float32")

        def body(i: Any, a: Any, items: Any) -> Any:
            return i + step, a + x, ps.ops.tensor_list_push_back(items, a)

        def goes_on(i: Any, _a: Any, _items: Any) -> Any:
            return ps.ops.logical_and(i < most, condition(i, n))

        _, _, items = ps.while_loop(goes_on, body, [0, x, empty])
        ps.ops.tensor_list_stack(items, ANY, "float32", name="y")
    return graph


@pytest.mark.parametrize("shape", [ANY, np.int32([2]), np.int32([-1])])
@pytest.mark.parametrize("limit", [-1, 10])
def test_a_list_grows_to_what_the_loop_can_fill(limit: int, shape: Any) -> None:
    """Its limit or the loop's counter tell how long it can get; its elements' shape the first."""
    feeds = {"x:0": np.float32([1, 2]), "n:0": 10}
    results, given = both(pushed(limit, shape), feeds)
    np.testing.assert_array_equal(results[1], results[0])
    assert results[0].tolist() == [[k, 2 * k] for k in range(1, 11)]
    assert [one is not None for one in given] == [True]


@pytest.mark.parametrize(("n", "is_full"), [(10, True), (11, True), (4, False), (0, False)])
def test_a_list_that_is_not_full_is_stacked_by_the_nodes(n: int, is_full: bool) -> None:
    """A program has one size of results."""
    feeds = {"x:0": np.float32([1, 2]), "n:0": n}
    results, given = both(pushed(shape=np.int32([2])), feeds)
    np.testing.assert_array_equal(results[1], results[0])
    assert len(results[1]) == min(n, 10)
    assert [one is not None for one in given] == [is_full]


def test_a_list_has_a_limit() -> None:
    """To put more on it is TensorFlow's error, of the node, in its iteration."""
    feeds = {"x:0": np.float32([1, 2]), "n:0": 10}
    found = []
    for config in (TEXT, NATIVE):
        with watched() as given, ps.Session(pushed(limit=7), config=config) as session:
            with pytest.raises(errors.InvalidArgumentError, match="full list") as caught:
                session.run("y:0", feeds)
            found.append(caught.value.where)
    assert given == [None]
    assert found[0].iteration == found[1].iteration == 7


def turned(pops: int) -> ps.Graph:
    """The rows of ``x``, put on a list, and ``pops`` of them taken from it: those, weighed."""
    graph = ps.Graph()
    with graph.as_default():
        x = ps.placeholder("float32", [4, 2], name="x")
        source = ps.ops.tensor_list_from_tensor(x, np.int32([2]))
        empty = ps.ops.empty_tensor_list(np.int32([2]), -1, "float32")

        def put(i: Any, items: Any) -> Any:
            item = ps.ops.tensor_list_get_item(source, i, ANY, "float32")
            return i + 1, ps.ops.tensor_list_push_back(items, item)

        count, items = ps.while_loop(lambda i, _: i < 4, put, [0, empty])

        def take(i: Any, total: Any, items: Any) -> Any:
            items, item = ps.ops.tensor_list_pop_back(items, ANY, "float32")
            return i + 1, total + item * ps.ops.cast(i + count, DstT="float32"), items

        start = [0, np.zeros(2, np.float32), items]
        _, total, rest = ps.while_loop(lambda i, _t, _r: i < pops, take, start)
        length = ps.ops.cast(ps.ops.tensor_list_length(rest), DstT="float32")
        ps.ops.add_v2(total, length, name="y")
    return graph


@pytest.mark.parametrize("pops", [0, 1, 4])
def test_what_was_put_last_is_taken_first(pops: int) -> None:
    """And what is left has its length."""
    results, given = both(turned(pops), {"x:0": X})
    want = sum((X[3 - i] * (i + 4) for i in range(pops)), np.zeros(2)) + 4 - pops
    np.testing.assert_allclose(results[0], want)
    np.testing.assert_allclose(results[1], want)
    assert [one is not None for one in given] == [True]


def test_an_empty_list_has_nothing_to_take() -> None:
    """That is TensorFlow's error."""
    with (
        watched() as given,
        ps.Session(turned(5), config=NATIVE) as session,
        pytest.raises(errors.InvalidArgumentError, match="empty list"),
    ):
        session.run("y:0", {"x:0": X})
    assert given == [None]


def rewritten(*, shift: int, repeats: int = 1) -> ps.Graph:
    """Elements of a list, read and then written elsewhere in the same iteration."""
    graph = ps.Graph()
    with graph.as_default():
        x = ps.placeholder("float32", [9, 2], name="x")
        begin = ps.ops.tensor_list_from_tensor(x, np.int32([2]))

        def body(i: Any, items: Any) -> Any:
            for turn in range(repeats):
                item = ps.ops.tensor_list_get_item(items, i + turn, ANY, "float32")
                items = ps.ops.tensor_list_set_item(items, i + turn + shift, item + 10.0)
            return i + 1, items

        _, items = ps.while_loop(lambda i, _: i < 6, body, [1, begin])
        ps.ops.tensor_list_stack(items, ANY, "float32", name="y")
    return graph


@pytest.mark.parametrize("repeats", [1, 2])
@pytest.mark.parametrize("shift", [0, 1, 2, -1])
def test_what_was_written_is_there_in_the_next_iteration(shift: int, repeats: int) -> None:
    """And what is read is what was there before."""
    x = np.arange(18, dtype=np.float32).reshape(9, 2)
    results, given = both(rewritten(shift=shift, repeats=repeats), {"x:0": x})
    want = x.copy()
    for i in range(1, 6):
        for place in range(i, i + repeats):
            want[place + shift] = want[place] + 10
    np.testing.assert_array_equal(results[0], want)
    np.testing.assert_array_equal(results[1], want)
    assert [one is not None for one in given] == [True]


def test_who_waits_for_a_list_does_not_keep_its_loop_from_going() -> None:
    """What comes after a loop waits for all that the loop reads, in models that are frozen."""
    graph = ps.Graph()
    with graph.as_default():
        x = ps.placeholder("float32", [4, 2], name="x")
        rows = ps.ops.tensor_list_from_tensor(x, np.int32([2]))

        def body(i: Any, a: Any) -> Any:
            return i + 1, a + ps.ops.tensor_list_get_item(rows, i, ANY, "float32")

        _, total = ps.while_loop(lambda i, _: i < 4, body, [0, np.zeros(2, np.float32)])
        with ps.control_dependencies([ps.no_op(name="after")]):
            ps.identity(total, name="y")
        made = graph.as_graph_def()
    [after] = (node for node in made.node if node.name == "after")
    after.input.append(f"^{rows.op.name}")
    for config in (TEXT, NATIVE):
        with watched() as given, ps.Session(made, config=config) as session:
            np.testing.assert_array_equal(session.run("y:0", {"x:0": X}), X.sum(0))
    assert [one is not None for one in given] == [True]


def test_lists_are_added_and_zeroed() -> None:
    """Element by element, as gradients of lists are; what was never set is zero."""
    graph = ps.Graph()
    with graph.as_default():
        x = ps.placeholder("float32", [4, 2], name="x")
        whole = ps.ops.tensor_list_from_tensor(x, np.int32([2]))
        bare = ps.ops.tensor_list_reserve(ANY, 4, "float32")

        def body(i: Any, total: Any, _zeros: Any) -> Any:
            item = ps.ops.tensor_list_get_item(whole, i, ANY, "float32")
            one = ps.ops.tensor_list_set_item(bare, i, item)
            return i + 1, ps.ops.add_n([total, one, bare]), ps.ops.zeros_like(total)

        ends = ps.while_loop(lambda i, _t, _z: i < 3, body, [0, whole, whole])
        total, zeros = (ps.ops.tensor_list_stack(one, ANY, "float32") for one in ends[1:])
        ps.ops.add_v2(total, zeros, name="y")
    results, given = both(graph, {"x:0": X})
    np.testing.assert_array_equal(results[0], X * np.float32([[2], [2], [2], [1]]))
    np.testing.assert_array_equal(results[1], results[0])
    assert [one is not None for one in given] == [True]


@pytest.mark.parametrize("combine", ["add_n", "zeros_like"])
def test_flows_are_numbers_to_all_others(combine: str) -> None:
    """What is done to an array's flow is not done to its elements."""
    graph = ps.Graph()
    with graph.as_default():
        x = ps.placeholder("float32", [4, 2], name="x")
        array = ps.ops.tensor_array_v3(4, dtype="float32", element_shape=[2])
        flow = ps.ops.tensor_array_scatter_v3(array.handle, list(range(4)), x, array.flow)
        given = [flow, flow] if combine == "add_n" else flow
        flow = getattr(ps.ops, combine)(given)
        ps.ops.tensor_array_gather_v3(
            array.handle, list(range(4)), flow, dtype="float32", element_shape=[2], name="y"
        )
    results, _ = both(graph, {"x:0": X})
    np.testing.assert_array_equal(results[0], X)
    np.testing.assert_array_equal(results[1], X)


def test_the_gradient_of_a_loop_is_one_program() -> None:
    """The loop there, what it keeps, and the loop back."""
    case = Case.read(BENCHMARKS / "function_rnn_grad")
    with watched() as given, ps.Session(case.graph_bytes, config=NATIVE) as session:
        (got,) = session.run(case.fetches, dict(zip(case.feeds, case.fed(), strict=True)))
    with np.load(BENCHMARKS / "function_rnn_grad" / "expected.npz") as expected:
        (want,) = expected.values()
    np.testing.assert_allclose(got, want, rtol=1e-3, atol=1e-4)
    assert [one is not None for one in given] == [True]


@pytest.mark.parametrize(
    ("condition", "step"),
    [
        (lambda i, _n: i <= 9, 1),
        (lambda i, _n: ps.ops.greater(np.int32(10), i), 1),
        (lambda i, _n: ps.ops.greater_equal(np.int32(9), i), 1),
        (lambda i, _n: i < 19, 2),
    ],
)
def test_counters_are_understood(condition: Any, step: int) -> None:
    """However they are compared: here each gives exactly ten iterations, all of them needed."""
    graph = pushed(condition=condition, step=step, most=100)
    results, given = both(graph, {"x:0": np.float32([1, 2]), "n:0": 0})
    assert len(results[0]) == 10
    np.testing.assert_array_equal(results[1], results[0])
    assert [one is not None for one in given] == [True]


@pytest.mark.parametrize(("most", "count"), [(20, 1), (21, 0)])
def test_there_is_not_room_for_everything(most: int, count: int) -> None:
    """A loop that may put 8 MiB on a list need not."""
    width = 100_000
    assert (most * width * 4 <= growing_lists.MAX_ROOM) == bool(count)
    x = np.arange(width, dtype=np.float32)
    results, given = both(pushed(width=width, most=most), {"x:0": x, "n:0": most})
    np.testing.assert_array_equal(results[1], results[0])
    assert len(given) == count


def test_loops_without_a_counter_are_the_nodes() -> None:
    """Nobody knows how long a list gets whose loop ends by what it is fed."""
    graph = ps.Graph()
    with graph.as_default():
        n = ps.placeholder("int32", [], name="n")
        empty = ps.ops.empty_tensor_list(np.int32([]), -1, "int32")
        _, items = ps.while_loop(
            lambda i, _: i < n,
            lambda i, items: (i + 1, ps.ops.tensor_list_push_back(items, i)),
            [0, empty],
        )
        ps.ops.tensor_list_stack(items, np.int32([]), "int32", name="y")
    results, given = both(graph, {"n:0": 3})
    assert results[0].tolist() == results[1].tolist() == [0, 1, 2]
    assert given == []
