"""Loops: what they compute, and which nodes they are made of."""

from __future__ import annotations

from collections import Counter, namedtuple
from typing import Any

import pytest

from builder.asking import frames_of, ops_in, run, waits_for
from penstock.builder import (
    Graph,
    TensorArray,
    Variable,
    cond,
    constant,
    control_dependencies,
    no_op,
    ops,
    placeholder,
    while_loop,
)
from penstock.errors import InvalidArgumentError

Pair = namedtuple("Pair", ["left", "right"])


def test_a_loop_computes_what_its_body_says(graph: Graph) -> None:
    """Variables go around until the condition fails."""
    n = placeholder("int32", ())

    i, total = while_loop(lambda i, _: i < n, lambda i, total: (i + 1, total + i), (0, 0))

    assert run(graph, [i, total], {n: 10}) == [10, 45]
    assert run(graph, [i, total], {n: 0}) == [0, 0]


def test_a_loop_is_made_of_tensorflows_primitives(graph: Graph) -> None:
    """Per variable one Enter, Merge, Switch, Identity, NextIteration and Exit; one LoopCond."""
    n = placeholder("int32", ())

    while_loop(lambda i, _: i < n, lambda i, s: (i + n, s + n), (0, 0))

    counted = ops_in(graph)
    assert counted == Counter(
        Placeholder=1, Const=2, Enter=3, Merge=2, Switch=2, Identity=2, LoopCond=1, Less=1,
        AddV2=2, NextIteration=2, Exit=2,
    )  # fmt: skip


def test_the_back_edge_closes_the_loop(graph: Graph) -> None:
    """Each Merge takes its Enter first and its NextIteration second."""
    while_loop(lambda i: i < 3, lambda i: i + 1, [0])

    merge = graph.operation("while/Merge")
    assert [tensor.op.type for tensor in merge.inputs] == ["Enter", "NextIteration"]


def test_an_outer_tensor_enters_once_as_an_invariant(graph: Graph) -> None:
    """However often condition and body use it, one constant Enter brings it in."""
    n = placeholder("int32", ())

    while_loop(lambda i: i < n + n, lambda i: i + n * n, [0])

    constant_enters = [
        node for node in graph if node.op.name == "Enter" and node.attrs["is_constant"]
    ]
    assert [node.name for node in constant_enters] == ["while/Enter_1"]


def test_an_invariant_enters_every_level(graph: Graph) -> None:
    """Into an inner loop a tensor goes through a constant Enter per loop."""
    n = placeholder("int32", (), name="n")

    def body(i: Any) -> Any:
        return while_loop(lambda j: j < i + n, lambda j: j + n, [i])

    result = while_loop(lambda i: i < 10, body, [0])

    inner = graph.operation("while/while/add_1").inputs[1].op
    assert inner.get_attr("frame_name") == b"while/while/while_context"
    assert inner.inputs[0].op.get_attr("frame_name") == b"while/while_context"
    assert inner.inputs[0].op.inputs[0].name == "n:0"
    assert run(graph, result[0], {n: 3}) == 12


def test_frames_are_unique(graph: Graph) -> None:
    """Two loops never share a frame, even under one name scope."""
    for _ in range(2):
        while_loop(lambda i: i < 3, lambda i: i + 1, [0], name="again/")

    assert set(frames_of(graph).values()) == {"", "again/while_context", "again/while_context_1"}


def test_parallel_iterations_are_the_enters(graph: Graph) -> None:
    """All Enters of a loop say how far its iterations may run ahead."""
    n = constant(3)
    while_loop(lambda i: i < n, lambda i: i + 1, [0], parallel_iterations=3)

    enters = [node for node in graph if node.op.name == "Enter"]
    assert [node.attrs["parallel_iterations"] for node in enters] == [3, 3]


@pytest.mark.parametrize("window", [0, -1])
def test_a_window_of_none_is_refused(graph: Graph, window: int) -> None:
    """A loop of which no iteration may be alive would never begin."""
    with pytest.raises(InvalidArgumentError, match="at least 1"):
        while_loop(lambda i: i < 3, lambda i: i + 1, [0], parallel_iterations=window)
    assert not frames_of(graph)


def test_nodes_without_inputs_wait_for_their_part(graph: Graph) -> None:
    """A constant of the condition waits for the Merge, one of the body for the pivot."""
    while_loop(
        lambda i: i < constant(3, name="in_cond"),
        lambda i: i + constant(1, name="in_body"),
        [0],
    )

    assert waits_for(graph, "while/in_cond") == ["while/Merge"]
    assert waits_for(graph, "while/in_body") == ["while/Identity"]


def test_nodes_of_invariants_only_wait_for_the_pivot(graph: Graph) -> None:
    """What takes nothing but invariants must still run as often as the body, not once more."""
    n, counter = constant(2), Variable(0)
    yes = constant(value=True)

    def body(i: Any) -> Any:
        doubled = ops.mul(n, n, name="doubled")
        done = cond(yes, lambda: counter.assign_add(n), lambda: counter.assign_add(doubled))
        with control_dependencies([done]):
            return i + 1

    turns = while_loop(lambda i: i < 5, body, [0])[0]
    with control_dependencies([turns]):
        result = counter.read_value()

    assert waits_for(graph, "while/doubled") == ["while/Identity"]
    assert run(graph, result) == 10


def test_a_loop_waits_at_its_entry(graph: Graph) -> None:
    """What a loop waits for, every Enter waits for, and nothing inside does."""
    n = placeholder("int32", ())
    with control_dependencies([no_op(name="gate")]):
        i = while_loop(lambda i: i < n, lambda i: i + 1, [n])[0]
        after = i + n

    waiting = {edge.dst.name for edge in graph.node("gate").out_edges}
    assert waiting == {"while/Enter", "while/Enter_1"}
    assert waits_for(graph, after.node.name) == []
    assert frames_of(graph)


def test_waiting_inside_for_something_outside_moves_to_the_entry(graph: Graph) -> None:
    """No control edge crosses into a frame; the outermost loop that does not hold it waits."""
    gate = no_op(name="gate")

    def inner(j: Any) -> Any:
        with control_dependencies([gate]):
            return j + constant(1)

    def outer(i: Any) -> Any:
        return while_loop(lambda j: j < 3, inner, [i])[0] + 1

    result = while_loop(lambda i: i < 5, outer, [0])

    assert {edge.dst.name for edge in graph.node("gate").out_edges} == {"while/Enter"}
    assert frames_of(graph)["while/while/Const"] == "while/while/while_context"
    assert run(graph, result[0]) == 5


def test_waiting_inside_the_same_loop_stays_there(graph: Graph) -> None:
    """A control edge within one frame is just that."""

    def body(i: Any) -> Any:
        gate, late = no_op(name="gate"), i > 1
        with control_dependencies([gate]):
            return cond(late, lambda: i + 1, lambda: i + 2)

    while_loop(lambda i: i < 5, body, [0])

    assert [edge.dst.name for edge in graph.node("while/gate").out_edges] == ["while/cond/pred_id"]


def test_a_tensor_of_a_loop_stays_in_it() -> None:
    """Nobody could say which iteration's value is meant."""
    kept = []

    def body(i: Any) -> Any:
        kept.append(i)
        return i + 1

    while_loop(lambda i: i < 3, body, [0], name="count")

    with pytest.raises(InvalidArgumentError, match="belongs to the body of loop 'count'") as caught:
        kept[0] + 1
    assert "the graph around it" in str(caught.value)


def test_a_tensor_of_the_condition_stays_in_it() -> None:
    """The condition runs once more than the body; its values are not the body's."""
    kept = []

    def condition(i: Any) -> Any:
        kept.append(i + 1)
        return i < 3

    with pytest.raises(InvalidArgumentError, match="belongs to the condition of loop 'while'"):
        while_loop(condition, lambda i: i + kept[0], [0])


@pytest.mark.parametrize(
    ("loop_vars", "body"),
    [
        (constant, lambda i: i + 1),
        (lambda first: [constant(first)], lambda i: i + 1),
        (lambda first: [constant(first)], lambda i: [i + 1]),
        (lambda first: (constant(first),), lambda i: (i + 1,)),
    ],
)
def test_one_variable_may_come_without_a_list(graph: Graph, loop_vars: Any, body: Any) -> None:
    """The result has the form of the loop variables."""
    result = while_loop(lambda i: i < 3, body, loop_vars(0))

    leaf = result[0] if isinstance(result, (list, tuple)) else result
    assert run(graph, leaf) == 3


def test_structures_go_around_as_they_are(graph: Graph) -> None:
    """Named tuples, lists and dicts may be variables, one in the other."""

    def body(i: Any, state: Any) -> Any:
        assert isinstance(state, Pair)
        return i + 1, Pair(state.left * 2, {"a": [state.right["a"][0] + i]})

    _, state = while_loop(lambda i, _: i < 4, body, (0, Pair(constant(1.0), {"a": [constant(0)]})))

    assert run(graph, [state.left, state.right["a"][0]]) == [16.0, 6]


def test_a_dict_is_one_argument(graph: Graph) -> None:
    """Only lists and tuples are spread over the arguments."""
    result = while_loop(lambda d: d["i"] < 4, lambda d: {"i": d["i"] + 1}, {"i": constant(0)})

    assert run(graph, result["i"]) == 4


@pytest.mark.parametrize(("limit", "expected"), [(0, 0), (4, 4), (99, 10)])
def test_maximum_iterations_ends_a_loop_early(graph: Graph, limit: int, expected: int) -> None:
    """The limit may be a number or a tensor; the result is only the variables."""
    for maximum in (limit, constant(limit)):
        result = while_loop(lambda i: i < 10, lambda i: i + 1, [0], maximum_iterations=maximum)

        assert run(graph, result[0]) == expected


def test_a_body_may_return_literals_and_outer_tensors(graph: Graph) -> None:
    """A literal takes the variable's type, an outer tensor becomes an invariant."""
    x = placeholder("float32", ())

    i, a, b = while_loop(
        lambda i, *_: i < 2, lambda i, *_: (i + 1, 7, x), (0, constant(1.5), constant(2.5))
    )

    assert run(graph, [i, a, b], {x: 9}) == [2, 7.0, 9.0]


def test_a_variable_keeps_its_type() -> None:
    """A body that changes it is refused, with both sides named."""
    with pytest.raises(InvalidArgumentError, match="starts as 0, but its body returns"):
        while_loop(lambda i: i < 3, lambda i: ops.cast(i, "float32"), [0])


def test_a_body_keeps_the_form() -> None:
    """As many values come back as went in."""
    with pytest.raises(InvalidArgumentError, match=r"are \[\*, \*\], but its body returns \*"):
        while_loop(lambda i, _: i < 3, lambda i, _: i, (0, 0))


def test_a_condition_is_a_truth_value() -> None:
    """A number is refused where it is returned."""
    with pytest.raises(InvalidArgumentError, match="no truth value"):
        while_loop(lambda i: i, lambda i: i, [0])


def test_a_loop_needs_variables() -> None:
    """Without any, nothing could ever end it."""
    with pytest.raises(TypeError, match="at least one"):
        while_loop(lambda: True, list, [])


def test_a_condition_may_be_constant(graph: Graph) -> None:
    """An invariant condition is asked anew in every iteration."""
    never = placeholder("bool", ())

    result = while_loop(lambda _: never, lambda i: i + 1, [5])

    assert run(graph, result[0], {never: False}) == 5


def test_arrays_go_around_by_their_flow(graph: Graph) -> None:
    """A TensorArray as a variable is one float; its handle is an invariant."""
    array = TensorArray("int32", 4)

    _, written = while_loop(
        lambda i, _: i < 4, lambda i, array: (i + 1, array.write(i, i * i)), (0, array)
    )

    assert ops_in(graph)["Merge"] == 2
    assert run(graph, written.stack()).tolist() == [0, 1, 4, 9]


def test_another_array_cannot_take_a_variables_place() -> None:
    """The handle does not go around, so the array must be the same."""
    array, other = TensorArray("int32", 4), TensorArray("int32", 4)

    with pytest.raises(InvalidArgumentError, match="starts as <TensorArray"):
        while_loop(lambda i, _: i < 4, lambda i, _: (i + 1, other), (0, array))


def test_loops_in_choices_in_loops(graph: Graph) -> None:
    """Any nesting gives what Python gives."""
    n = placeholder("int32", ())

    def body(i: Any, total: Any) -> Any:
        def count() -> Any:
            return while_loop(lambda j, _: j < i, lambda j, t: (j + 1, t + n), (0, total))[1]

        return i + 1, cond(i % 2 < 1, count, lambda: total - 1)

    result = while_loop(lambda i, _: i < n, body, (0, 0))[1]

    expected = 0
    for i in range(7):
        expected = expected + 7 * i if i % 2 < 1 else expected - 1
    assert run(graph, result, {n: 7}) == expected


def test_references_enter_as_references(graph: Graph) -> None:
    """A body may assign to a variable of the reference kind."""
    variable = ops.variable_v2((), "int32", name="v")
    with control_dependencies([ops.assign(variable, 1)]):

        def body(i: Any) -> Any:
            with control_dependencies([ops.assign_add(variable, i)]):
                return i + 1

        turns = while_loop(lambda i: i < 4, body, [0])[0]
        with control_dependencies([turns]):
            result = variable + 0

    assert ops_in(graph)["RefEnter"] == 1
    assert run(graph, result) == 7
