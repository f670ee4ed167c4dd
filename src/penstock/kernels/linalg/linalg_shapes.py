"""Shapes of matrices: decompositions, solutions, diagonals, sums of products.

In:   nodes of this folder's ops.
Out:  shape rules.
Not:  plain products of matrices, the folder ``math`` has these.
"""

from __future__ import annotations

from collections.abc import Sequence

from penstock.core.shapes import UNKNOWN, TensorShape
from penstock.errors import InvalidArgumentError
from penstock.kernels.api.partial_shapes import (
    Dim,
    at_least_rank,
    broadcast,
    concat,
    dim,
    merge_dims,
    part_of,
    shape,
    with_rank,
)
from penstock.kernels.api.shape_context import ShapeContext
from penstock.kernels.api.shape_rules import shape_rule, shape_signatures

shape_signatures({
    """
    BatchCholesky BatchMatrixInverse Cholesky MatrixExponential MatrixInverse MatrixLogarithm
    MatrixSquareRoot
    """: "[...,n,n] -> [...,n,n]",
    "BatchCholeskyGrad CholeskyGrad": "[...,n,n], * -> [...,n,n]",
    "BatchMatrixBandPart MatrixBandPart": "[...,n,m], *, * -> [...,n,m]",
    "BatchMatrixDeterminant MatrixDeterminant": "[...,n,n] -> [...]",
    "BatchMatrixSetDiag MatrixSetDiag": "[...,n,m], * -> [...,n,m]",
    "MatrixSetDiagV2 MatrixSetDiagV3": "[...,n,m], *, * -> [...,n,m]",
    "BatchMatrixDiag MatrixDiag": "[...,n] -> [...,n,n]",
    "BatchSelfAdjointEig SelfAdjointEig": "[...,n,n] -> [...,?,n]",
    "BatchMatrixSolve MatrixSolve": "[...,n,n], [...,n,k] -> [...,n,k]",
    "BatchMatrixSolveLs MatrixSolveLs": "[...,m,n], [...,m,k], [] -> [...,n,k]",
    "LogMatrixDeterminant": "[...,n,n] -> [...], [...]",
    "Lu": "[...,n,n] -> [...,n,n], [...,n]",
    "TridiagonalMatMul": "*, *, *, [...,m,n] -> [...,m,n]",
    "TridiagonalSolve": "[...,3,m], [...,m,n] -> [...,m,n]",
})  # fmt: skip


@shape_rule("BatchMatrixTriangularSolve", "MatrixTriangularSolve", "BandedTriangularSolve")
def triangular_solve(node: ShapeContext) -> TensorShape:
    """The right-hand sides' own; the axes in front are broadcast."""
    matrix, right = at_least_rank(node.input(0), 2), at_least_rank(node.input(1), 2)
    rows = dim(matrix, -1)
    if node.attrs.op.name != "BandedTriangularSolve":
        rows = merge_dims(rows, dim(matrix, -2))
    outer = broadcast(part_of(matrix, 0, -2), part_of(right, 0, -2))
    return concat(outer, shape(merge_dims(rows, dim(right, -2)), dim(right, -1)))


@shape_rule("BatchMatrixDiagPart", "MatrixDiagPart")
def diag_part(node: ShapeContext) -> TensorShape:
    """As long as the shorter side."""
    given = at_least_rank(node.input(0), 2)
    return concat(part_of(given, 0, -2), shape(_least(dim(given, -2), dim(given, -1))))


def _least(one: Dim, other: Dim) -> Dim:
    if one == 0 or other == 0:
        return 0
    return None if one is None or other is None else min(one, other)


@shape_rule("MatrixDiagPartV2", "MatrixDiagPartV3")
def diag_part_v2(node: ShapeContext) -> TensorShape:
    """One diagonal, or a row for each of a band; as long as the longest of them."""
    given, band = at_least_rank(node.input(0), 2), node.numbers(1)
    if given.dims is None or band is None:
        return UNKNOWN
    low, high = band[0], band[-1]
    rows, columns = given.dims[-2:]
    length = None
    if rows is not None and columns is not None:
        length = min(rows + min(high, 0), columns - max(low, 0))
    count = () if low == high else (high - low + 1,)
    return concat(part_of(given, 0, -2), shape(*count, length))


@shape_rule("MatrixDiagV2", "MatrixDiagV3")
def diag_v2(node: ShapeContext) -> TensorShape:
    """A matrix that has room for the diagonals, unless its sizes are given."""
    given, band = at_least_rank(node.input(0), 1), node.numbers(1)
    if given.dims is None or band is None:
        return UNKNOWN
    low, high = band[0], band[-1]
    outer = part_of(given, 0, -1 if low == high else -2)
    rows, columns = (_side(node.number(slot)) for slot in (2, 3))
    length = given.dims[-1]
    if length is None or node.number(2) is None or node.number(3) is None:
        return concat(outer, shape(rows, columns))
    least_rows, least_columns = length - min(high, 0), length + max(low, 0)
    if rows is None and columns is None:
        rows = columns = max(least_rows, least_columns)
    else:
        rows = least_rows if rows is None else rows
        columns = least_columns if columns is None else columns
    return concat(outer, shape(rows, columns))


def _side(number: int | None) -> Dim:
    """A side of a matrix; -1 means as long as need be."""
    return None if number is None or number < 0 else number


@shape_rule("Eig", "BatchSelfAdjointEigV2", "SelfAdjointEigV2")
def eigen(node: ShapeContext) -> Sequence[TensorShape]:
    """The values, and the vectors if they are asked for."""
    given = at_least_rank(node.input(0), 2)
    size = merge_dims(dim(given, -1), dim(given, -2))
    outer = part_of(given, 0, -2)
    vectors = concat(outer, shape(size, size)) if node.attrs.bool("compute_v") else shape(0)
    return concat(outer, shape(size)), vectors


@shape_rule("Qr")
def qr(node: ShapeContext) -> Sequence[TensorShape]:
    """Two factors, which are square or as narrow as they can be."""
    given = at_least_rank(node.input(0), 2)
    rows, columns, outer = dim(given, -2), dim(given, -1), part_of(given, 0, -2)
    inner = rows if node.attrs.bool("full_matrices") else _least(rows, columns)
    return concat(outer, shape(rows, inner)), concat(outer, shape(inner, columns))


@shape_rule("BatchSvd", "Svd")
def svd(node: ShapeContext) -> Sequence[TensorShape]:
    """The values, and both factors if they are asked for."""
    given = at_least_rank(node.input(0), 2)
    rows, columns, outer = dim(given, -2), dim(given, -1), part_of(given, 0, -2)
    least = _least(rows, columns)
    values = concat(outer, shape(least))
    if not node.attrs.bool("compute_uv"):
        return values, shape(0), shape(0)
    is_full = node.attrs.bool("full_matrices")
    left = concat(outer, shape(rows, rows if is_full else least))
    right = concat(outer, shape(columns, columns if is_full else least))
    return values, left, right


@shape_rule("Einsum")
def einsum(node: ShapeContext) -> TensorShape:
    """What the equation says."""
    return summed(node.attrs.str("equation").replace(" ", ""), node.inputs)


def summed(equation: str, given: Sequence[TensorShape]) -> TensorShape:
    """The shape of a sum of products; letters are axes, dots are any number of them."""
    left, arrow, right = equation.partition("->")
    terms = left.split(",")
    if not arrow or len(terms) != len(given):
        raise InvalidArgumentError(f"Expected {len(terms)} inputs in {equation}, got {len(given)}")
    sizes: dict[str, Dim] = {}
    outer: TensorShape = shape()
    for term, one in zip(terms, given, strict=True):
        front, dots, back = term.partition("...")
        if one.dims is None:
            outer = UNKNOWN if dots else outer
            sizes |= {letter: sizes.get(letter) for letter in front + back}
            continue
        named = len(front) + len(back)
        known = at_least_rank(one, named) if dots else with_rank(one, named)
        assert known.dims is not None  # it was known before
        stop = len(known.dims) - len(back)
        outer = broadcast(outer, part_of(known, len(front), stop)) if dots else outer
        labels = zip(front + back, known.dims[: len(front)] + known.dims[stop:], strict=True)
        for letter, size in labels:
            sizes[letter] = merge_dims(sizes.get(letter), size)
    front, dots, back = right.partition("...")
    ends = (shape(*(sizes.get(letter) for letter in part)) for part in (front, back))
    before, after = ends
    return concat(before, outer if dots else shape(), after)
