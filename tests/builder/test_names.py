"""Names are unique, scoped, and predictable."""

from __future__ import annotations

import pytest

from penstock.builder import Graph, constant, name_scope, ops
from penstock.builder.names import NamePool
from penstock.errors import InvalidArgumentError


def test_a_free_name_is_taken_as_it_is() -> None:
    """The first to ask for a name gets it; later ones get numbers in order."""
    pool = NamePool()

    assert [pool.unique("add") for _ in range(3)] == ["add", "add_1", "add_2"]


def test_numbered_names_step_over_those_that_are_taken() -> None:
    """A name that looks numbered already is not given twice."""
    pool = NamePool()
    pool.take("x_1")

    assert [pool.unique("x"), pool.unique("x"), pool.unique("x_1")] == ["x", "x_2", "x_1_1"]


def test_names_that_differ_in_case_count_as_one() -> None:
    """``Add`` after ``add`` gets a number, but keeps its capital."""
    pool = NamePool()
    pool.take("add")

    assert pool.unique("Add") == "Add_1"


def test_operators_and_functions_name_their_nodes_as_tensorflow_does() -> None:
    """An operator's node has the operator's name, a function's the op's."""
    x = constant(1)

    names = [(x + x).name, (x + x).name, ops.mul(x, x).name, ops.mul(x, x, name="area").name]

    assert names == ["add:0", "add_1:0", "Mul:0", "area:0"]


def test_a_literal_is_named_after_its_place() -> None:
    """The constant that a literal becomes stands under the node that takes it."""
    x = constant(1)

    assert [tensor.name for tensor in (x + 2).op.inputs] == ["Const:0", "add/y:0"]


def test_scopes_nest_and_are_unique() -> None:
    """A scope puts its name in front; opened anew, it is a new scope."""
    with name_scope("a") as outer, name_scope("b") as inner:
        name = constant(1).name
    with name_scope("a") as again:
        pass

    assert (outer, inner, name, again) == ("a/", "a/b/", "a/b/Const:0", "a_1/")


def test_a_scope_with_a_slash_is_entered_again() -> None:
    """A name that ends in a slash means the scope of that name, wherever one is."""
    with name_scope("a") as scope:
        constant(1)
    with name_scope("other"), name_scope(scope):
        assert constant(1).name == "a/Const_1:0"


def test_no_name_leads_out_of_all_scopes() -> None:
    """Within ``name_scope(None)`` names stand alone."""
    with name_scope("a"), name_scope(None) as scope:
        assert (scope, constant(1).name) == ("", "Const:0")


@pytest.mark.parametrize("name", ["white space", "_hidden", "a:0", "^a", "-"])
def test_illegal_names_are_refused(graph: Graph, name: str) -> None:
    """A name that TensorFlow could not read back is an error here, and makes no node."""
    with pytest.raises(InvalidArgumentError, match="not a legal name"):
        ops.no_op(name=name)

    assert len(graph) == 0


def test_an_illegal_scope_is_refused() -> None:
    """A scope must be a legal beginning of names."""
    with pytest.raises(InvalidArgumentError, match="not a legal name"), name_scope("a b"):
        pass
