"""Names in generated text: valid, new, and like what the graph says."""

from __future__ import annotations

import builtins
import keyword

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.runtime.compiler.names import Names


@pytest.mark.parametrize(
    ("hint", "name"),
    [
        ("y", "y"),
        ("scope/inner/MatMul", "MatMul"),
        ("a.b-c", "a_b_c"),
        ("while/Enter:0", "Enter_0"),
        ("_arg_x_0", "n_arg_x_0"),
        ("3d", "n_3d"),
        ("", "n_"),
        ("scope/", "n_"),
        ("if", "if_1"),
        ("match", "match_1"),
        ("sum", "sum_1"),
        ("run", "run_1"),
        ("größe", "gr__e"),
    ],
)
def test_a_name_is_like_its_hint(hint: str, name: str) -> None:
    """The last part of a node's name, changed as little as Python demands."""
    assert Names(["run"]).new(hint) == name


def test_a_prefix_keeps_kinds_apart() -> None:
    """A kernel and its value differ by the prefix only."""
    names = Names([])
    assert (names.new("Relu"), names.new("Relu", "k_")) == ("Relu", "k_Relu")


def test_equal_hints_are_numbered() -> None:
    """The same hint in several scopes gives numbered names; a taken number is skipped."""
    names = Names(["b_1"])
    assert [names.new("a"), names.new("x/a"), names.new("y/a")] == ["a", "a_1", "a_2"]
    assert [names.new("b"), names.new("b")] == ["b", "b_2"]


def test_long_names_are_cut() -> None:
    """A line stays readable, whatever the graph calls its nodes."""
    assert len(Names([]).new("n" * 500)) == 40


@given(st.lists(st.text(max_size=12), max_size=30), st.sampled_from(["", "k_"]))
def test_every_name_is_new_and_valid(hints: list[str], prefix: str) -> None:
    """No two names are equal; none hides a builtin or is a keyword; all are identifiers."""
    reserved = ["run", "interrupt"]
    names = Names(reserved)
    made = [names.new(hint, prefix) for hint in hints]
    assert len(set(made)) == len(made)
    for name in made:
        assert name.isidentifier()
        assert name.isascii()
        assert not keyword.iskeyword(name)
        assert not hasattr(builtins, name)
        assert name not in reserved
