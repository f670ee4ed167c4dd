"""Shapes of the parts of ragged tensors.

In:   nodes of this folder's ops.
Out:  shape rules.
Not:  knows no row's length.
"""

from __future__ import annotations

from collections.abc import Sequence

from penstock.core.shapes import TensorShape
from penstock.kernels.api.partial_shapes import concat, dim, part_of, shape
from penstock.kernels.api.shape_context import ShapeContext
from penstock.kernels.api.shape_rules import shape_rule, shape_signatures

shape_signatures(
    {
        "RaggedBincount": "*, *, *, * -> [?,#2]",
        "RaggedTensorToVariantGradient": "*, *, [?] -> :2",
    }
)


@shape_rule("RaggedTensorToSparse")
def to_sparse(node: ShapeContext) -> Sequence[TensorShape]:
    """One coordinate per ragged axis, per axis of the values."""
    rank = node.input(-1).rank
    width = None if rank is None else rank + node.attrs.int("RAGGED_RANK")
    return shape(None, width), shape(None), shape(width)


@shape_rule("RaggedTensorToVariant")
def to_variant(node: ShapeContext) -> TensorShape:
    """One variant, or one per row."""
    if not node.attrs.bool("batched_input"):
        return shape()
    if node.attrs.int("RAGGED_RANK") == 0:
        return shape(None)  # TensorFlow takes the values for splits, and counts one too few
    splits = dim(node.input(0), 0)
    return shape(None if splits is None else splits - 1)


@shape_rule("RaggedTensorFromVariant")
def from_variant(node: ShapeContext) -> Sequence[TensorShape]:
    """Vectors of places, and values of which nothing is known."""
    return [*[shape(None)] * node.attrs.int("output_ragged_rank"), TensorShape(None)]


@shape_rule("RaggedRange")
def ragged_range(node: ShapeContext) -> Sequence[TensorShape]:
    """Where each row begins and the last one ends, and all numbers."""
    rows = next((dim(one, 0) for one in node.inputs if one.rank == 1), None)
    if all(one.rank == 0 for one in node.inputs):
        rows = 1
    return shape(None if rows is None else rows + 1), shape(None)


@shape_rule("RaggedGather")
def ragged_gather(node: ShapeContext) -> Sequence[TensorShape]:
    """Nobody knows how many values are taken; each is as it was."""
    values = node.input(-2)
    made = concat(shape(None), part_of(values, 1))
    return [*[shape(None)] * node.attrs.int("OUTPUT_RAGGED_RANK"), made]
