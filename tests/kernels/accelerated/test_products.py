"""Products of matrices by PyTorch, compared with numpy's."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

from penstock.errors import InvalidArgumentError
from penstock.kernels.accelerated import products
from penstock.kernels.api.registry import get_kernel
from support.offers import assert_equal, faster, frozen, plain
from support.ops import node_of

pytest.importorskip("torch")


def f32(*shape: int) -> Any:
    return np.random.RandomState(sum(shape)).randn(*shape).astype(np.float32)


@pytest.mark.parametrize("sizes", [(3, 4, 5), (40, 30, 50), (128, 100, 90), (1, 70, 9), (0, 3, 2)])
@pytest.mark.parametrize("turned", [(False, False), (True, False), (False, True), (True, True)])
def test_products_agree(sizes: tuple[int, ...], turned: tuple[bool, bool]) -> None:
    """Each factor may be transposed first."""
    rows, depth, columns = sizes
    a = f32(depth, rows) if turned[0] else f32(rows, depth)
    b = f32(columns, depth) if turned[1] else f32(depth, columns)
    facts = {"transpose_a": turned[0], "transpose_b": turned[1]}
    assert_equal("MatMul", a, frozen(b), **facts)


def test_large_products_in_pieces_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows for several threads, also if they do not divide evenly."""
    monkeypatch.setattr(products, "threads", lambda _torch: 3)
    monkeypatch.setattr(products, "_PIECE", 1)
    assert_equal("MatMul", f32(101, 60), f32(60, 70))
    assert_equal("BatchMatMulV2", f32(7, 10, 12), f32(7, 12, 11))


@pytest.mark.parametrize("batch", [(), (1,), (3,), (2, 3), (0,)])
@pytest.mark.parametrize("turned", [(False, False), (True, True)])
def test_batches_agree(batch: tuple[int, ...], turned: tuple[bool, bool]) -> None:
    """Of any rank, transposed or not."""
    x = f32(*batch, 6, 5) if turned[0] else f32(*batch, 5, 6)
    y = f32(*batch, 7, 6) if turned[1] else f32(*batch, 6, 7)
    assert_equal("BatchMatMulV2", x, y, adj_x=turned[0], adj_y=turned[1])


def test_one_matrix_may_multiply_a_batch() -> None:
    """Which is then one product."""
    assert_equal("BatchMatMulV2", f32(3, 4, 6), f32(6, 7))


@pytest.mark.parametrize("shapes", [((2, 3), (4, 5)), ((2, 1, 3, 4), (1, 5, 4, 6))])
def test_what_does_not_fit_or_is_broadcast_is_left_to_numpy(shapes: Any) -> None:
    """Numpy's kernel has TensorFlow's words for it."""
    with pytest.raises((ValueError, RuntimeError)):
        faster("BatchMatMulV2", f32(*shapes[0]), f32(*shapes[1]))


def test_errors_are_those_of_numpys_kernel() -> None:
    """However large the factors are."""
    a, b = f32(300, 300), f32(299, 300)
    facts, _ = node_of("MatMul", [a, b], {})
    facts = dataclasses.replace(facts, accelerate=True)
    multiply = get_kernel("MatMul", "CPU", facts.values).make(facts)
    with pytest.raises(InvalidArgumentError, match="Matrix size-incompatible"):
        multiply(a, b)


@pytest.mark.parametrize("equation", ["abc,cde->abde", "bqhd,bkhd->bhqk", "ij,jk->ki", "bi,bi->b"])
def test_equations_agree(equation: str) -> None:
    """Their products of matrices are large enough for PyTorch."""
    sizes = dict(zip("abcdehijkq", (8, 9, 300, 10, 31, 4, 90, 95, 99, 97), strict=True))
    words = equation.partition("->")[0].split(",")
    arrays = [f32(*(sizes[label] for label in word)) for word in words]
    facts, flat = node_of("Einsum", [arrays], {"equation": equation})
    found = get_kernel("Einsum", "CPU", facts.values)
    fast = found.make(dataclasses.replace(facts, accelerate=True))(*flat)
    slow = plain("Einsum", arrays, equation=equation)
    np.testing.assert_allclose(fast, slow, rtol=1e-3, atol=1e-3)
