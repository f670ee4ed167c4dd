"""Choices: what they compute, and which nodes they are made of."""

from __future__ import annotations

from collections import Counter, namedtuple
from typing import Any

import pytest

from builder.asking import ops_in, run, waits_for
from penstock.builder import (
    Graph,
    TensorArray,
    Variable,
    case,
    cond,
    constant,
    control_dependencies,
    group,
    no_op,
    ops,
    placeholder,
    switch_case,
    while_loop,
)
from penstock.errors import InvalidArgumentError, OpError

Pair = namedtuple("Pair", ["left", "right"])


@pytest.mark.parametrize(("taken", "expected"), [(True, 4), (False, 2)])
def test_cond_returns_what_the_branch_taken_returns(
    graph: Graph, taken: bool, expected: int
) -> None:
    """Every step takes the branch that the predicate names."""
    p, x = placeholder("bool", ()), constant(3)

    assert run(graph, cond(p, lambda: x + 1, lambda: x - 1), {p: taken}) == expected


def test_cond_makes_one_switch_per_branch_and_captured_tensor(graph: Graph) -> None:
    """Two branches that use x twice each: two Switches for x, one for the pivots, one Merge."""
    p, x = placeholder("bool", ()), placeholder("int32", ())

    cond(p, lambda: x + x, lambda: x * x)

    assert ops_in(graph) == Counter(Placeholder=2, Identity=3, Switch=3, AddV2=1, Mul=1, Merge=1)


def test_a_branch_takes_the_side_of_its_switch() -> None:
    """The true branch takes output 1 of its Switches, the other one output 0."""
    p, x = placeholder("bool", ()), placeholder("int32", ())

    merged = cond(p, lambda: x + 1, lambda: x - 1)

    sides = [tensor.op.inputs[0].slot for tensor in merged.op.inputs]
    assert sides == [1, 0]


def test_nodes_without_inputs_wait_for_their_branch(graph: Graph) -> None:
    """A constant in a branch is dead when the branch is not taken."""
    p = placeholder("bool", ())

    cond(p, lambda: constant(1, name="yes"), lambda: constant(2, name="no"))

    assert waits_for(graph, "cond/yes") == ["cond/switch_t"]
    assert waits_for(graph, "cond/no") == ["cond/switch_f"]


def test_a_predicate_is_waited_for_once(graph: Graph) -> None:
    """What a cond waits for, its predicate waits for; branches need no edges of their own."""
    p, x = placeholder("bool", ()), placeholder("int32", ())
    with control_dependencies([no_op(name="gate")]):
        result = cond(p, lambda: x + 1, lambda: constant(2))
        after = result + x

    waiting = [edge.dst.name for edge in graph.node("gate").out_edges]
    assert waiting == ["cond/pred_id"]
    assert waits_for(graph, after.node.name) == []


def test_literals_and_outer_tensors_can_be_results(graph: Graph) -> None:
    """A branch may return what it did not make; a literal takes the other branch's type."""
    p, x = placeholder("bool", ()), placeholder("float64", ())

    result = cond(p, lambda: 1, lambda: x)

    assert result.dtype is x.dtype
    assert run(graph, result, {p: True, x: 5}) == 1
    assert run(graph, result, {p: False, x: 5}) == 5


def test_structures_come_back_as_they_were_returned(graph: Graph) -> None:
    """Lists, named tuples and dicts keep their form, leaf by leaf."""
    p, x = placeholder("bool", ()), constant(3)

    result = cond(
        p,
        lambda: [x, Pair(1, {"b": 2.0, "a": "t"}), None],
        lambda: [x * 2, Pair(10, {"a": "f", "b": 3.0}), None],
    )

    assert isinstance(result[1], Pair)
    assert result[2] is None
    left, text = run(graph, [result[1].left, result[1].right["a"]], {p: False})
    assert (left, text) == (10, b"f")


def test_branches_must_return_the_same_form() -> None:
    """The error shows both forms."""
    p, x = placeholder("bool", ()), constant(1)

    with pytest.raises(InvalidArgumentError, match=r"returns \[\*, \*\], another \*"):
        cond(p, lambda: [x, x], lambda: x)


def test_branches_must_return_the_same_types() -> None:
    """An int32 and a float32 cannot be one result."""
    p = placeholder("bool", ())

    with pytest.raises(InvalidArgumentError, match="different types"):
        cond(p, lambda: constant(1), lambda: constant(1.5))


def test_a_known_predicate_is_refused() -> None:
    """A Python truth value means an ``if``, or a mistake."""
    with pytest.raises(TypeError, match="`if`"):
        cond(True, lambda: 1, lambda: 2)


def test_a_predicate_must_be_a_truth_value() -> None:
    """Numbers are compared first."""
    with pytest.raises(InvalidArgumentError, match="must be bool"):
        cond(constant(1), lambda: 1, lambda: 2)


def test_a_tensor_of_a_branch_stays_in_it() -> None:
    """Used outside, it would be dead in half of all steps; so it is refused."""
    p, kept = placeholder("bool", ()), []

    def branch() -> Any:
        kept.append(constant(1, name="inner"))
        return kept[0]

    cond(p, branch, lambda: 2)

    with pytest.raises(InvalidArgumentError, match="'cond/inner' belongs to a branch of 'cond'"):
        kept[0] + 1
    with pytest.raises(InvalidArgumentError, match="return it from the branch"):
        group(kept[0])


@pytest.mark.parametrize(("taken", "expected"), [(True, 11), (False, 101)])
def test_branches_that_return_nothing_run_for_their_effects(
    graph: Graph, taken: bool, expected: int
) -> None:
    """The result is an operation that runs all that was made in the branch taken."""
    p, counter = placeholder("bool", ()), Variable(1)

    def add(number: int) -> None:
        counter.assign_add(number)

    done = cond(p, lambda: add(10), lambda: add(100))
    with control_dependencies([done]):
        result = counter.read_value()

    assert done.type == "Merge"
    assert run(graph, result, {p: taken}) == expected


def test_branches_may_return_operations(graph: Graph) -> None:
    """An operation among the results becomes one that runs the operation of the branch taken."""
    p, counter = placeholder("bool", ()), Variable(1)

    value, done = cond(p, lambda: (5, counter.assign_add(10).op), lambda: (6, no_op()))
    with control_dependencies([done]):
        result = counter.read_value()

    assert run(graph, [value, result], {p: True}) == [5, 11]
    assert run(graph, [value, result], {p: False}) == [6, 1]


def test_effects_of_a_branch_not_taken_do_not_happen(graph: Graph) -> None:
    """Nested choices and loops of a dead branch leave no trace."""
    p, counter = placeholder("bool", ()), Variable(1)

    def effects() -> None:
        def body(i: Any) -> Any:
            with control_dependencies([counter.assign_add(1)]):
                return i + 1

        while_loop(lambda i: i < 3, body, [0])
        cond(p, lambda: counter.assign_add(10).op, no_op)

    with control_dependencies([cond(p, effects, lambda: None)]):
        result = counter.read_value()

    assert run(graph, result, {p: True}) == 14
    assert run(graph, result, {p: False}) == 1


def test_arrays_are_merged_as_they_are_written(graph: Graph) -> None:
    """Both branches write to one array; it is read as the branch taken left it."""
    p = placeholder("bool", ())
    array = TensorArray("int32", 2).write(0, 1)

    written = cond(p, lambda: array.write(1, 5), lambda: array.write(1, 6))

    assert run(graph, written.stack(), {p: False}).tolist() == [1, 6]


def test_each_branch_may_have_an_array_of_its_own(graph: Graph) -> None:
    """Arrays made in the branches are merged with their handles."""
    p = placeholder("bool", ())

    array = cond(
        p,
        lambda: TensorArray("int32", 2).unstack([1, 2]),
        lambda: TensorArray("int32", 3).unstack([3, 4, 5]),
    )

    assert run(graph, array.stack(), {p: True}).tolist() == [1, 2]
    assert run(graph, array.stack(), {p: False}).tolist() == [3, 4, 5]


def test_cond_goes_as_deep_as_one_likes(graph: Graph) -> None:
    """A tensor is captured once per level, through the levels in between."""
    x = placeholder("int32", ())

    def level(depth: int) -> Any:
        if depth == 0:
            return x * 10
        return cond(x > depth, lambda: level(depth - 1), lambda: constant(depth))

    result = level(5)

    assert [run(graph, result, {x: value}) for value in (9, 5, 3, 1)] == [90, 5, 5, 5]


def test_references_go_through_reference_switches(graph: Graph) -> None:
    """A branch may assign to a variable of the reference kind."""
    p, variable = placeholder("bool", ()), ops.variable_v2((), "float32")

    cond(p, lambda: ops.assign(variable, 1.0), lambda: ops.assign(variable, 2.0))

    assert ops_in(graph)["RefSwitch"] == 2


@pytest.mark.parametrize(
    ("value", "expected"), [(-5, -1), (7, 7), (42, 4), (100, 1000), (5000, 1000)]
)
def test_case_takes_the_first_true_predicate(graph: Graph, value: int, expected: int) -> None:
    """Later predicates count only if no earlier one is true."""
    x = placeholder("int32", ())

    result = case(
        [(x < 0, lambda: -1), (x < 10, lambda: x), (x < 100, lambda: x // 10)],
        default=lambda: 1000,
    )

    assert run(graph, result, {x: value}) == expected


def test_case_is_flat(graph: Graph) -> None:
    """However many branches there are, one Merge joins them all."""
    x = placeholder("int32", ())

    result = case([(x < i, lambda i=i: constant(i)) for i in range(20)], default=lambda: 99)

    assert ops_in(graph)["Merge"] == 1
    assert len(result.op.inputs) == 21


def test_case_without_default_must_find_one(graph: Graph) -> None:
    """A step in which no predicate is true fails."""
    x = placeholder("int32", ())
    result = case({x < 0: lambda: 1, x > 10: lambda: 2})

    assert run(graph, result, {x: 11}) == 2
    with pytest.raises(OpError, match="No predicate"):
        run(graph, result, {x: 5})


def test_an_exclusive_case_finds_one_only(graph: Graph) -> None:
    """A step in which several predicates are true fails."""
    x = placeholder("int32", ())
    result = case([(x > 0, lambda: 1), (x > 10, lambda: 2)], lambda: 3, exclusive=True)

    assert run(graph, result, {x: 5}) == 1
    with pytest.raises(OpError, match="Several predicates"):
        run(graph, result, {x: 11})


@pytest.mark.parametrize(("index", "expected"), [(0, 10), (1, 1), (2, 30), (3, -5), (-1, -5)])
def test_switch_case_takes_the_function_of_the_number(
    graph: Graph, index: int, expected: int
) -> None:
    """Numbers without a function take the default."""
    x = placeholder("int32", ())

    result = switch_case(x, [lambda: 10, lambda: x, lambda: 30], default=lambda: -5)

    assert run(graph, result, {x: index}) == expected


@pytest.mark.parametrize(("index", "expected"), [(1, 10), (7, 70), (0, 70), (99, 70)])
def test_switch_case_without_default_takes_the_last(
    graph: Graph, index: int, expected: int
) -> None:
    """The function of the largest number stands in for those that are missing."""
    x = placeholder("int32", ())

    result = switch_case(x, {7: lambda: 70, 1: lambda: 10})

    assert run(graph, result, {x: index}) == expected


def test_one_function_is_no_choice(graph: Graph) -> None:
    """A single function is called, whatever the index."""
    result = switch_case(placeholder("int32", ()), [lambda: constant(1)])

    assert ops_in(graph)["Switch"] == 0
    assert run(graph, result) == 1


@pytest.mark.parametrize("choice", [lambda: case([]), lambda: switch_case(constant(1), [])])
def test_a_choice_needs_something_to_choose(choice: Any) -> None:
    """No branches are a mistake of the call."""
    with pytest.raises(TypeError, match="at least one"):
        choice()


def test_choices_of_many_work_in_loops(graph: Graph) -> None:
    """A case in a loop chooses anew in every iteration, with a loop in one of its branches."""
    k = constant(3)

    def body(i: Any, s: Any) -> Any:
        def count() -> Any:
            def step(j: Any, t: Any) -> Any:
                return j + 1, switch_case(j, [lambda: t + 1, lambda: t * k], lambda: t - i)

            return while_loop(lambda j, _: j < k, step, (0, s))[1]

        return i + 1, case([(i < 1, lambda: s + k), (i < 3, count)], lambda: s * 2)

    result = while_loop(lambda i, _: i < 5, body, (0, 1))[1]

    # 1 + 3 = 4; (4 + 1) * 3 - 1 = 14; (14 + 1) * 3 - 2 = 43; then doubled twice.
    assert run(graph, result) == 172
