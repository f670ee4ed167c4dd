"""Products of matrices and Einstein sums, against answers recorded from TensorFlow."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from penstock.core.dtypes import as_dtype
from penstock.errors import InvalidArgumentError
from support.ops import run_op

SQUARE = np.array([[1, 2], [3, 4]], np.float32)


@pytest.mark.parametrize("kind", [np.float16, ml_dtypes.bfloat16, np.float32, np.float64, np.int32])
def test_product_and_its_transposes(kind: Any) -> None:
    """Either matrix may be transposed first; the type stays."""
    x = SQUARE.astype(kind)
    for a, b, expected in (
        (False, False, [[7, 10], [15, 22]]),
        (True, False, [[10, 14], [14, 20]]),
        (False, True, [[5, 11], [11, 25]]),
        (True, True, [[7, 15], [10, 22]]),
    ):
        product = run_op("MatMul", x, x, transpose_a=a, transpose_b=b)
        assert (product.astype(np.float64).tolist(), product.dtype) == (expected, kind)


def test_adjoint_is_conjugate_and_transpose_is_not() -> None:
    """MatMul turns a complex matrix, BatchMatMul conjugates it as well."""
    x, y = np.array([[1 + 2j, 3j]]), np.array([[1j, 2]])
    assert run_op("MatMul", x, y, transpose_b=True).tolist() == [[-2 + 7j]]
    assert run_op("BatchMatMulV2", x, y, adj_y=True).tolist() == [[2 + 5j]]


def test_integers_wrap_around() -> None:
    """Products wrap in their own type, whether they go through floats or not."""
    x, y = np.array([[2**30, 2**30]], np.int32), np.array([[4], [1]], np.int32)
    assert run_op("MatMul", x, y).tolist() == [[2**30]]
    rng = np.random.default_rng(0)
    for largest in (100, 2**31 - 1):
        x = rng.integers(-largest, largest, (40, 50)).astype(np.int32)
        y = rng.integers(-largest, largest, (50, 30)).astype(np.int32)
        exact = (x.astype(object) @ y.astype(object)) & 0xFFFFFFFF
        np.testing.assert_array_equal(run_op("MatMul", x, y).view(np.uint32), exact)


def test_half_precision_is_summed_in_single() -> None:
    """Intermediate sums may be larger than float16 holds, and finer."""
    x, y = np.full((1, 2), 300, np.float16), np.array([[300], [-299]], np.float16)
    assert run_op("MatMul", x, y).tolist() == [[300]]
    ones = np.ones((1, 5000), np.float16)
    assert run_op("MatMul", ones, ones, transpose_b=True).tolist() == [[5000]]


@pytest.mark.parametrize(
    ("x", "y", "expected"),
    [((2, 0), (0, 3), (2, 3)), ((0, 2), (2, 3), (0, 3)), ((2, 2, 0), (1, 0, 2), (2, 2, 2))],
)
def test_products_of_nothing(x: Any, y: Any, expected: Any) -> None:
    """A sum over no elements is 0."""
    op = "MatMul" if len(x) == 2 else "BatchMatMulV2"
    product = run_op(op, np.ones(x, np.float32), np.ones(y, np.float32))
    assert product.shape == expected
    assert not product.any()


@pytest.mark.parametrize(
    ("op", "x", "y", "complaint"),
    [
        ("MatMul", (2, 2), (1, 3), r"Matrix size-incompatible: In\[0\]: \[2,2\], In\[1\]: \[1,3\]"),
        ("MatMul", (2,), (2, 2), r"has different ndims: \[2\] vs. \[2,2\]"),
        ("BatchMatMul", (2, 2, 3), (3, 2), "has different ndims"),
        ("BatchMatMul", (2, 2, 3), (1, 3, 2), r"In\[0\].dim\(0\) and In\[1\].dim\(0\) must be"),
        ("BatchMatMulV2", (2, 2, 3), (2, 2, 3), "Matrix size-incompatible"),
        ("BatchMatMulV2", (3,), (3, 2), r"In\[0\] ndims must be >= 2: 1"),
        ("BatchMatMulV2", (2, 2, 3), (3, 3, 2), "must have compatible batch dimensions"),
    ],
)
def test_wrong_shapes(op: str, x: Any, y: Any, complaint: str) -> None:
    """Shapes that do not fit are named."""
    with pytest.raises(InvalidArgumentError, match=complaint):
        run_op(op, np.ones(x, np.float32), np.ones(y, np.float32))


def test_batches_are_broadcast() -> None:
    """Batches of the second form follow the rules of element-wise ops."""
    rng = np.random.default_rng(0)
    x, y = rng.random((4, 1, 2, 3)), rng.random((5, 3, 2))
    expected = np.einsum("aoij,bjk->abik", x, y)
    np.testing.assert_allclose(run_op("BatchMatMulV2", x, y), expected)


@pytest.mark.parametrize(
    ("a", "b", "out", "expected"),
    [
        ("int8", "int8", "int32", 22000),
        ("uint8", "int8", "int32", 22000),
        ("int16", "int16", "int16", 22000),
        ("int8", "bfloat16", "bfloat16", 22016),
    ],
)
def test_factors_and_products_of_different_types(a: str, b: str, out: str, expected: int) -> None:
    """Small factors are multiplied in the type of the product."""
    x = np.array([[100, 100]]).astype(as_dtype(a).numpy)
    y = np.array([[100], [120]]).astype(as_dtype(b).numpy)
    types = {"Ta": as_dtype(a), "Tb": as_dtype(b), "Tout": as_dtype(out)}
    product = run_op("BatchMatMulV3", x, y, **types)
    assert (int(product[0, 0]), product.dtype) == (expected, out)


@pytest.mark.parametrize(
    ("equation", "shapes"),
    [
        ("ij->ji", [(2, 3)]),
        ("ii->i", [(3, 3)]),
        ("iij->j", [(2, 2, 3)]),
        ("ij->", [(2, 3)]),
        ("...ij->i...", [(4, 2, 3)]),
        ("ij,jk->ik", [(2, 3), (3, 4)]),
        ("ij,kj->ki", [(2, 3), (4, 3)]),
        ("...ij,...jk->...ik", [(5, 1, 2, 3), (4, 3, 2)]),
        ("i,j->ij", [(2,), (3,)]),
        ("bij,bjk->kbi", [(2, 3, 4), (2, 4, 5)]),
        ("ij,ij->i", [(2, 3), (2, 3)]),
        ("ij,->ij", [(2, 3), ()]),
        ("ijj,k->", [(2, 3, 3), (4,)]),
        ("a...,a...->...", [(2, 3), (2, 1)]),
    ],
)
def test_einstein_sums(equation: str, shapes: Any) -> None:
    """Each equation means what it means to numpy."""
    rng = np.random.default_rng(0)
    arrays = [rng.random(shape) for shape in shapes]
    result = run_op("Einsum", arrays, equation=equation)
    np.testing.assert_allclose(result, np.einsum(equation, *arrays))


@pytest.mark.parametrize(
    ("equation", "expected"),
    [
        ("i,i->ii", [[1, 0], [0, 4]]),
        ("i,j->iji", [[[1, 0], [2, 0]], [[0, 2], [0, 4]]]),
    ],
)
def test_a_label_twice_in_the_result_is_a_diagonal(equation: str, expected: Any) -> None:
    """Elsewhere the result is 0, which numpy cannot say."""
    x = np.array([1, 2], np.float32)
    assert run_op("Einsum", [x, x], equation=equation).tolist() == expected


@pytest.mark.parametrize(
    ("equation", "complaint"),
    [
        ("ij,jk", "Expecting exactly one '->'"),
        ("ij,jk->ik->", "Expecting exactly one '->'"),
        ("ij,jk,kl->il", "Expecting 1 or 2 input subscripts in equation 'ij,jk,kl->il' but got: 3"),
        ("ij->i", "Expected 1 inputs but got: 2"),
        ("ijk,jk->i", "Expected input 0 to have rank 3 but got: 2"),
        ("ij,jk -> ik", "Expected input 1 to have rank 3 but got: 2"),
        ("ij,ik->jk", "Expected dimension 2 at axis 0 of the input shaped"),
        ("...j,jk->k", r"1 broadcasting dimension\(s\) but no ellipsis"),
        ("ij,jk->iz", "Label 'z'"),
    ],
)
def test_wrong_equations(equation: str, complaint: str) -> None:
    """An equation that makes no sense, or does not fit its inputs, is refused."""
    with pytest.raises(InvalidArgumentError, match=complaint):
        run_op("Einsum", [np.ones((2, 3)), np.ones((3, 4))], equation=equation)


def test_einstein_sums_of_half_precision() -> None:
    """They are summed in single precision, like products of matrices."""
    ones = np.ones((1, 5000), np.float16)
    assert run_op("Einsum", [ones, ones], equation="ij,kj->ik").tolist() == [[5000]]
    assert run_op("Einsum", [ones], equation="ij->i").tolist() == [5000]
