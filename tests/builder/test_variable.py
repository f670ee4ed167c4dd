"""Variables: values that stay."""

from __future__ import annotations

import penstock as ps
from builder.asking import run
from penstock.builder import (
    Graph,
    Variable,
    cond,
    constant,
    control_dependencies,
    global_variables_initializer,
    ops,
    placeholder,
)


def test_a_variable_keeps_its_value_between_steps(graph: Graph) -> None:
    """Assignments of one step are seen by the next."""
    counter = Variable(1)
    step = counter.assign_add(2)
    initializer = global_variables_initializer()

    with ps.Session(graph) as session:
        session.run(initializer)
        steps = [session.run(step), session.run(step), session.run(counter.read_value())]

    assert steps == [3, 5, 5]


def test_an_assignment_gives_the_new_value(graph: Graph) -> None:
    """``assign``, ``assign_add`` and ``assign_sub`` read what they have made."""
    x = Variable(10.0)

    assert run(graph, x.assign(3)) == 3.0
    assert run(graph, x.assign_add(3)) == 13.0
    assert run(graph, x.assign_sub(3)) == 7.0
    assert run(graph, x.is_initialized())


def test_a_variable_stands_for_its_value(graph: Graph) -> None:
    """It can be an operand, an input, a result and something to wait for."""
    x, p = Variable([1, 2]), placeholder("bool", ())
    with control_dependencies([x]):
        results = [x + 1, 1 - x, ops.neg(x), x[0], cond(p, lambda: x, lambda: x * 2)]

    values = run(graph, results, {p: False})

    assert [value.tolist() for value in values] == [[2, 3], [0, -1], [-1, -2], 1, [2, 4]]


def test_a_raw_op_takes_the_handle(graph: Graph) -> None:
    """Where an op wants a resource, a variable gives its handle."""
    x = Variable(3)

    assert ops.var_is_initialized_op(x).op.inputs[0] == x.handle
    assert run(graph, ops.read_variable_op(x, "int32")) == 3


def test_names_and_resources_are_unique() -> None:
    """Two variables of one name are two resources."""
    first, second = Variable(1, name="v"), Variable(2, name="v")

    assert (first.name, second.name) == ("v", "v_1")
    assert second.handle.op.get_attr("shared_name") == b"v_1"
    assert first.initial_value.name == "v/initial_value:0"
    assert first.initializer.name == "v/Assign"


def test_type_and_shape_follow_from_the_initial_value() -> None:
    """A constant says both; a type may be given."""
    x = Variable([[1, 2]], dtype="float64")

    assert x.dtype.name == "float64"
    assert str(x.handle.op.get_attr("shape")) == "[1,2]"
    assert str(Variable(constant(1) + 1).handle.op.get_attr("shape")) == "<unknown>"
    assert str(Variable(1, shape=(None, 2)).handle.op.get_attr("shape")) == "[?,2]"


def test_a_variable_made_in_a_branch_belongs_to_none(graph: Graph) -> None:
    """Its initializer runs outside, before the branch is ever taken."""
    p = placeholder("bool", ())

    result = cond(p, lambda: Variable(5) + 1, lambda: 0)

    assert run(graph, result, {p: True}) == 6
