"""Shapes of the parts of sparse tensors, of sets, and of sparse matrices.

In:   nodes of this folder's ops.
Out:  shape rules; what lies behind a sparse matrix is the dense one.
Not:  knows no number of elements that depends on values.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from penstock.core.shapes import SCALAR, UNKNOWN, TensorShape
from penstock.kernels.api.partial_shapes import (
    Dim,
    at_least_rank,
    broadcast,
    concat,
    dim,
    elements,
    merge,
    merge_dims,
    part_of,
    shape,
    with_rank,
)
from penstock.kernels.api.shape_context import Held, ShapeContext
from penstock.kernels.api.shape_rules import shape_rule, shape_signatures

shape_signatures({
    "AddManySparseToTensorsMap": "[?,?], [?], [?] -> [?]",
    "AddSparseToTensorsMap": "[?,?], [?], [?] -> []",
    "DeserializeManySparse": "[?,3] -> [?,?], [?], [?]",
    "SerializeManySparse": "[n,r], [n], [r] -> [?,3]",
    "SerializeSparse": "[n,r], [n], [r] -> [3]",
    "SetSize": "[?,?], [?], [?] -> *",
    "SparseAddGrad": "[?], [a,r], [b,r], [?,r] -> [a], [b]",
    "SparseCross SparseCrossHashed SparseCrossV2": "-> [?,2], [?], [2]",
    "SparseDenseCwiseAdd SparseDenseCwiseDiv SparseDenseCwiseMul": "[n,r], *, *, * -> [n]",
    "SparseFillEmptyRowsGrad": "[n], [?] -> [n], []",
    "SparseReorder": "[n,r], [m], [?] -> [n,r], [m]",
    "SparseReshape": "[n,?], [?], [r] -> [n,r], [r]",
    "SparseSliceGrad": "*, [n,?], *, * -> [n]",
    "SparseSoftmax": "[?,?], [n], [?] -> [n]",
    "SparseSparseMaximum SparseSparseMinimum":
        "[?,r], [?], [r], [?,r], [?], [r] -> [?,r], [?]",
    "SparseTensorDenseAdd": "[?,?], [?], [?], s -> s",
    "SparseToDense": "*, [?], *, [] -> :1",
    "TakeManySparseFromTensorsMap": "[?] -> [?,?], [?], [?]",
})  # fmt: skip


@shape_rule("DeserializeSparse")
def deserialize_sparse(_node: ShapeContext) -> Sequence[TensorShape]:
    """A sparse tensor whose rank only the strings tell."""
    return shape(None, None), shape(None), shape(None)


@shape_rule("SparseAdd")
def sparse_add(node: ShapeContext) -> Sequence[TensorShape]:
    """As many axes as both have."""
    sizes = node.input(2)
    return shape(None, dim(sizes, 0)), shape(None), with_rank(sizes, 1)


@shape_rule("SparseSlice")
def sparse_slice(node: ShapeContext) -> Sequence[TensorShape]:
    """Some of the elements, in as many axes."""
    return shape(None, elements(node.input(2))), shape(None), node.input(2)


@shape_rule("SparseSplit")
def sparse_split(node: ShapeContext) -> Sequence[TensorShape]:
    """Some of the elements for each part, in as many axes."""
    count, sizes = node.attrs.int("num_split"), node.input(3)
    return [shape(None, dim(sizes, 0))] * count + [shape(None)] * count + [sizes] * count


@shape_rule("SparseConcat")
def sparse_concat(node: ShapeContext) -> Sequence[TensorShape]:
    """All elements of all tensors."""
    count = len(node.inputs) // 3
    total: Dim = 0
    rank: Dim = None
    for slot in range(count):
        size = dim(with_rank(node.input(slot), 2), 0)
        size = dim(node.input(count + slot), 0) if size is None else size
        total = None if total is None or size is None else total + size
        rank = merge_dims(rank, dim(node.input(slot), 1))
        rank = merge_dims(rank, dim(node.input(2 * count + slot), 0))
    return shape(total, rank), shape(total), shape(rank)


@shape_rule("SparseFillEmptyRows")
def fill_empty_rows(node: ShapeContext) -> Sequence[TensorShape]:
    """Nobody knows how many are filled; one truth value per row says which."""
    indices, sizes = with_rank(node.input(0), 2), with_rank(node.input(2), 1)
    rank = merge_dims(dim(indices, 1), dim(sizes, 0))
    rows = None if rank is None else node.some_numbers(2, rank)[0]
    return shape(None, rank), shape(None), shape(rows), shape(dim(indices, 0))


@shape_rule("SparseBincount")
def sparse_bincount(node: ShapeContext) -> TensorShape:
    """Counts, or a row of counts for each row."""
    rows, size, rank = node.some_numbers(2, 2), node.count(3), dim(node.input(2), 0)
    if rank is None:
        return UNKNOWN
    return shape(size) if rank == 1 else shape(rows[0], size)


@shape_rule("SparseMatMul")
def sparse_mat_mul(node: ShapeContext) -> TensorShape:
    """Rows of the one, columns of the other."""
    a, b = with_rank(node.input(0), 2), with_rank(node.input(1), 2)
    flip_a, flip_b = (node.attrs.bool(name) for name in ("transpose_a", "transpose_b"))
    merge_dims(dim(a, 0 if flip_a else 1), dim(b, 1 if flip_b else 0))
    return shape(dim(a, 1 if flip_a else 0), dim(b, 0 if flip_b else 1))


@shape_rule("SparseTensorDenseMatMul")
def sparse_dense_mat_mul(node: ShapeContext) -> TensorShape:
    """Rows of the sparse matrix, columns of the dense one."""
    sizes, dense = node.some_numbers(2, 2), with_rank(node.input(3), 2)
    flip_a, flip_b = node.attrs.bool("adjoint_a"), node.attrs.bool("adjoint_b")
    merge_dims(sizes[0 if flip_a else 1], dim(dense, 1 if flip_b else 0))
    return shape(sizes[1 if flip_a else 0], dim(dense, 0 if flip_b else 1))


@shape_rule("SparseReduceMax", "SparseReduceSum")
def sparse_reduced(node: ShapeContext) -> TensorShape:
    """The axes that are reduced go, or become 1."""
    rank, axes = dim(node.input(2), 0), node.numbers(3)
    if rank is None or axes is None:
        return UNKNOWN
    sizes = node.some_numbers(2, rank)
    gone = {axis % rank for axis in axes}
    if node.attrs.bool("keep_dims"):
        return shape(*(1 if i in gone else size for i, size in enumerate(sizes)))
    return shape(*(size for i, size in enumerate(sizes) if i not in gone))


@shape_rule("SparseReduceMaxSparse", "SparseReduceSumSparse")
def sparse_reduced_sparse(_node: ShapeContext) -> Sequence[TensorShape]:
    """Nobody knows how many axes are left."""
    return UNKNOWN, UNKNOWN, UNKNOWN


@shape_rule(
    *("SparseSegmentMean", "SparseSegmentSqrtN", "SparseSegmentSum"),
    *("SparseSegmentMeanWithNumSegments", "SparseSegmentSqrtNWithNumSegments"),
    "SparseSegmentSumWithNumSegments",
)
def sparse_segment(node: ShapeContext) -> TensorShape:
    """A row per segment."""
    count = node.count(3) if len(node.inputs) > 3 else None
    merge(with_rank(node.input(1), 1), with_rank(node.input(2), 1))
    return concat(shape(count), part_of(at_least_rank(node.input(0), 1), 1))


@shape_rule("SparseSegmentMeanGrad", "SparseSegmentSqrtNGrad", "SparseSegmentSumGrad")
def sparse_segment_grad(node: ShapeContext) -> TensorShape:
    """As many rows as asked for."""
    merge(with_rank(node.input(1), 1), with_rank(node.input(2), 1))
    return concat(shape(node.count(3)), part_of(at_least_rank(node.input(0), 1), 1))


@shape_rule("SparseSegmentMeanGradV2", "SparseSegmentSqrtNGradV2", "SparseSegmentSumGradV2")
def sparse_segment_grad_v2(node: ShapeContext) -> Sequence[TensorShape]:
    """A row per index that there is."""
    return concat(shape(None), part_of(at_least_rank(node.input(0), 1), 1)), shape(None)


_SETS: Final = ("DenseToDenseSetOperation", "DenseToSparseSetOperation")


@shape_rule(*_SETS, "SparseToSparseSetOperation")
def set_operation(node: ShapeContext) -> Sequence[TensorShape]:
    """A sparse tensor of as many axes as the sets have."""
    name = node.attrs.op.name
    rank = node.input(0).rank if name in _SETS else dim(node.input(2), 0)
    if rank is None:
        other = {"DenseToDenseSetOperation": node.input(1).rank}
        sizes = node.input(3 if name == "DenseToSparseSetOperation" else -1)
        rank = other.get(name, dim(sizes, 0))
    return shape(None, rank), shape(None), shape(rank)


# -- sparse matrices ---------------------------------------------------------------------


@shape_rule("DenseToCSRSparseMatrix")
def dense_to_csr(node: ShapeContext) -> TensorShape:
    """A matrix, or a batch of them."""
    node.holds[0] = Held(node.input(0), node.attrs.dtype("T"))
    return SCALAR


@shape_rule("SparseTensorToCSRSparseMatrix")
def sparse_to_csr(node: ShapeContext) -> TensorShape:
    """The same, of the shape that is given."""
    node.holds[0] = Held(node.sizes(2), node.attrs.dtype("T"))
    return SCALAR


def _matrix(node: ShapeContext, slot: int = 0) -> TensorShape:
    held = node.held(slot)
    return UNKNOWN if held is None else held.shape


@shape_rule("CSRSparseMatrixToDense")
def csr_to_dense(node: ShapeContext) -> TensorShape:
    """The dense matrix."""
    return _matrix(node)


@shape_rule("CSRSparseMatrixToSparseTensor")
def csr_to_sparse(node: ShapeContext) -> Sequence[TensorShape]:
    """As many coordinates as there are elements."""
    rank = _matrix(node).rank
    return shape(None, rank), shape(None), shape(rank)


@shape_rule("CSRSparseMatrixComponents")
def csr_components(node: ShapeContext) -> Sequence[TensorShape]:
    """Where rows begin, columns, and values."""
    rows = dim(_matrix(node), -2)
    return shape(None if rows is None else rows + 1), shape(None), shape(None)


@shape_rule("SparseMatrixNNZ")
def nnz(node: ShapeContext) -> TensorShape:
    """One number per matrix."""
    return part_of(_matrix(node), 0, -2)


@shape_rule("SparseMatrixOrderingAMD")
def ordering(node: ShapeContext) -> TensorShape:
    """One permutation per matrix."""
    return part_of(_matrix(node), 0, -1)


@shape_rule("SparseMatrixTranspose")
def csr_transpose(node: ShapeContext) -> TensorShape:
    """Rows and columns change places."""
    given = _matrix(node)
    if node.held(0) is not None:
        turned = concat(part_of(given, 0, -2), shape(dim(given, -1), dim(given, -2)))
        node.holds[0] = Held(turned, node.attrs.dtype("type"))
    return SCALAR


@shape_rule("SparseMatrixSparseCholesky")
def csr_cholesky(node: ShapeContext) -> TensorShape:
    """A matrix like the other one."""
    held = node.held(0)
    if held is not None:
        node.holds[0] = held
    return SCALAR


def _flipped(node: ShapeContext, of: str) -> bool:
    return node.attrs.bool(f"transpose_{of}") or node.attrs.bool(f"adjoint_{of}")


def _product(node: ShapeContext, a: TensorShape, b: TensorShape) -> TensorShape:
    if a.dims is None or b.dims is None:
        return UNKNOWN
    rows = dim(a, -1 if _flipped(node, "a") else -2)
    columns = dim(b, -2 if _flipped(node, "b") else -1)
    return concat(broadcast(part_of(a, 0, -2), part_of(b, 0, -2)), shape(rows, columns))


@shape_rule("SparseMatrixSparseMatMul")
def csr_csr_product(node: ShapeContext) -> TensorShape:
    """A sparse matrix of the product's shape."""
    made = _product(node, _matrix(node, 0), _matrix(node, 1))
    node.holds[0] = Held(made, node.attrs.dtype("type"))
    return SCALAR


@shape_rule("SparseMatrixMatMul")
def csr_dense_product(node: ShapeContext) -> TensorShape:
    """A dense matrix of the product's shape."""
    made = _product(node, _matrix(node, 0), node.input(1))
    if node.attrs.bool("transpose_output") and made.dims is not None:
        return concat(part_of(made, 0, -2), shape(made.dims[-1], made.dims[-2]))
    return made
