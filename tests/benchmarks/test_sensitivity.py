"""Whether answers show that a large node was wrong: what is found, and that the graphs pass."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import penstock as ps
from benchmarks.cases import FOLDERS, Case
from benchmarks.sensitivity import Asked, Result, large_results, unnoticed
from penstock import builder
from penstock.builder import ops


def _asked(build: Any, **fed: Any) -> Asked:
    """A graph that ``build`` makes of placeholders, and what it gives."""
    with builder.Graph().as_default() as graph:
        given = {
            name: builder.placeholder(value.dtype.name, value.shape, name=name)
            for name, value in fed.items()
        }
        fetched = build(**given)
    feeds = {f"{name}:0": value for name, value in fed.items()}
    return Asked(graph.as_graph_def(), feeds, [fetched.name], "", 1, 1)


_MATRIX = np.random.default_rng(1).standard_normal((300, 300)).astype(np.float32)


def test_a_product_that_does_not_matter_is_found() -> None:
    """Whatever a large product gives, zero times that is zero; the other one is noticed."""

    def build(x: Any) -> Any:
        lost = ops.mul(ops.mat_mul(x, x, name="lost"), 0.0)
        return ops.sum(lost + ops.mat_mul(x, x, transpose_a=True, name="seen"), [0, 1])

    silent, count = unnoticed(_asked(build, x=_MATRIX))

    assert "lost" in silent
    assert "seen" not in silent
    assert count >= 3


def test_only_the_best_is_not_enough() -> None:
    """Where one of a few numbers is far larger than the others, its place tells nothing of them."""

    def build(x: Any) -> Any:
        numbers = ops.sum(ops.mat_mul(x, x, name="product"), 0)
        far = builder.constant(np.eye(300, dtype=np.float32)[7] * 1e6)
        return ops.arg_max(numbers + far, 0)

    assert "product" in unnoticed(_asked(build, x=_MATRIX))[0]


def test_products_in_loops_are_changed_in_each_iteration() -> None:
    """What a loop computes is changed there, and its answer is another."""

    def build(x: Any) -> Any:
        _, y = builder.while_loop(
            lambda i, _: i < 3,
            lambda i, y: (i + 1, ops.mat_mul(y, x * 0.05, name="product")),
            (builder.constant(0), x),
        )
        return ops.sum(y, 0)

    asked = _asked(build, x=_MATRIX)
    assert any(name.endswith("product") for name in large_results(asked))
    assert unnoticed(asked)[0] == []


def test_changes_are_those_that_are_promised() -> None:
    """Each number x becomes x + (|x| + x cos 1000x) / 5."""
    x = np.float32([-2.0, 0.001, 0.5])
    asked = _asked(lambda x: ops.neg(ops.mul(x, 1.0, name="same")), x=x)
    (changed,) = asked.changed([Result("same", 0, ps.dtypes.float32.number, "")]).answers()

    wanted = x + (np.abs(x) + x * np.cos(1000 * x)) / 5
    np.testing.assert_allclose(changed, -wanted, rtol=1e-3)


#: One of each kind that takes a second: loops, arrays of tensors, functions, training, products.
_CHECKED = ("while_rnn", "lstm_infer", "function_rnn", "mlp_adam_step", "parallel_matmul")


@pytest.mark.slow
@pytest.mark.parametrize("name", _CHECKED)
def test_benchmark_graphs_notice_what_is_wrong(name: str) -> None:
    """No large node of a benchmark graph can be wrong without another answer."""
    silent, count = unnoticed(Asked.of(Case.read(FOLDERS[0] / name)))

    assert silent == []
    assert count > 0


def test_a_state_that_vanished_is_found() -> None:
    """A loop whose state has become zero gives zero, whatever is computed on the way."""

    def build(x: Any) -> Any:
        small = builder.constant(_MATRIX * np.float32(1e-12))
        _, y = builder.while_loop(
            lambda i, _: i < 6,
            lambda i, y: (i + 1, ops.mat_mul(y, small, name="product")),
            (builder.constant(0), x),
        )
        return ops.sum(y, 0)

    assert unnoticed(_asked(build, x=_MATRIX))[0] != []
