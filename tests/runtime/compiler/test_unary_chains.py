"""Long rows of functions of one number are one statement, and mean the same."""

from __future__ import annotations

import math

import numpy as np
import pytest

import penstock as ps
from penstock.runtime.compiler.unary_chains import SHORTEST, apply_all, runs_of
from support.sketch import sketch

LENGTH = SHORTEST + 3
X = "x = Placeholder() dtype=float32\n"


def row(op: str = "Sin", length: int = LENGTH, first: str = "x") -> str:
    """A row of nodes ``a0``, ``a1`` and so on."""
    lines = [f"a0 = {op}({first})", *(f"a{i} = {op}(a{i - 1})" for i in range(1, length))]
    return "\n".join(lines) + "\n"


def text_of(graph: str, *fetches: str, **config: object) -> str:
    """What a request of ``x`` and the fetches is compiled to."""
    with ps.Session(sketch(graph), config=ps.Config(**config)) as session:  # type: ignore[arg-type]
        session.make_callable(list(fetches), ["x:0"])
        [prepared] = session._requests._prepared.values()
        assert prepared.runnable.whole is not None
        return prepared.runnable.whole.source.listing


def test_a_long_row_is_one_line() -> None:
    """It names its ends; nothing of it is written twice."""
    text = text_of(X + row(), f"a{LENGTH - 1}:0")
    assert f"a{LENGTH - 1} = apply_all(x, k_a0_to_a{LENGTH - 1})" in text
    assert "a1 =" not in text


@pytest.mark.parametrize(
    ("graph", "fetches"),
    [
        (X + row(length=SHORTEST - 1), [f"a{SHORTEST - 2}:0"]),
        (X + row(), [f"a{LENGTH - 1}:0", "a8:0"]),
        (X + row() + f"y = Add(a8, a{LENGTH - 1})", ["y:0"]),
        (X + row() + f"y = Neg(a{LENGTH - 1}, ^a8)", ["y:0"]),
    ],
    ids=["short", "fetched", "read twice", "waited for"],
)
def test_what_others_see_is_in_no_row(graph: str, fetches: list[str]) -> None:
    """A value with a second reader, or one that others wait for, ends a row."""
    assert f"k_a0_to_a{LENGTH - 1}" not in text_of(graph, *fetches)


def test_checked_kernels_have_their_own_lines() -> None:
    """Whoever wants outputs checked gets every one checked."""
    assert "apply_all" not in text_of(X + row(), f"a{LENGTH - 1}:0", check_outputs=True)


@pytest.mark.parametrize("fed", [0.5, [0.5, -1.0], [[0.1]], []], ids=str)
def test_rows_compute_the_same(fed: object) -> None:
    """Numbers and arrays; what is fed is not overwritten, also if it may be."""
    value = np.asarray(fed, np.float32)
    before = value.copy()
    expected = value.astype(np.float64)
    for _ in range(LENGTH):
        expected = np.sin(expected)
    with ps.Session(sketch(X + row() + f"y = Add(a{LENGTH - 1}, x)")) as session:
        last, total = session.run([f"a{LENGTH - 1}:0", "y:0"], {"x": value})
        np.testing.assert_allclose(last, expected, rtol=1e-5)
        np.testing.assert_allclose(total, expected + before, rtol=1e-5)
    assert np.array_equal(value, before)


def test_a_variable_at_the_beginning_keeps_its_value() -> None:
    """The first function makes an array of its own."""
    graph = "v = VariableV2() shape=[2] dtype=float32\nc = Const() value=[0.5, 1.0]\n"
    graph += "init = Assign(v, c)\n" + row(first="v")
    with ps.Session(sketch(graph)) as session:
        session.run("init")
        session.run(f"a{LENGTH - 1}:0")
        assert session.run("v:0").tolist() == [0.5, 1.0]


def test_rows_in_branches_and_loops() -> None:
    """A row in a branch not taken is not computed; in a loop it is in every iteration."""
    graph = X + "p = Placeholder() dtype=bool\ns = Switch(x, p)\n" + row(first="s:1")
    graph += f"other = Neg(s)\nm = Merge(other, a{LENGTH - 1})"
    with ps.Session(sketch(graph)) as session:
        expected = 0.5
        for _ in range(LENGTH):
            expected = math.sin(expected)
        assert session.run("m:0", {"x": 0.5, "p": True}) == pytest.approx(expected, rel=1e-5)
        assert session.run("m:0", {"x": 0.5, "p": False}) == -0.5


def test_apply_all_leaves_its_argument_alone() -> None:
    """Only what the first function has made is overwritten."""
    roots = runs_of([np.sqrt, np.sqrt])
    for size in (3, 5000):
        x = np.full(size, 4.0, np.float32)
        assert apply_all(x, roots).tolist() == pytest.approx([math.sqrt(2)] * size)
        assert x.tolist() == [4.0] * size
    assert apply_all(np.float32(16), roots) == 2


@pytest.mark.parametrize("x", [np.float32(0.3), np.full(2, 0.3, np.float32)], ids=str)
def test_functions_come_in_their_order(x: object) -> None:
    """FunctionRuns of one function and of several; nothing is left out or done twice."""
    functions = [np.exp, np.negative, np.negative, np.negative, np.exp, np.tanh, np.exp]
    expected = np.asarray(x, np.float64)
    for function in functions:
        expected = function(expected)
    np.testing.assert_allclose(apply_all(x, runs_of(functions)), expected, rtol=1e-6)
