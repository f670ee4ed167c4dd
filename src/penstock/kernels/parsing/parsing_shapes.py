"""Shapes of what is decoded out of strings.

In:   nodes of this folder's ops.
Out:  shape rules.
Not:  reads no strings.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from penstock.core.shapes import UNKNOWN, TensorShape
from penstock.kernels.api.partial_shapes import at_most_rank, concat, dim, shape, with_rank
from penstock.kernels.api.shape_context import ShapeContext
from penstock.kernels.api.shape_rules import shape_rule, shape_signatures

shape_signatures(
    {
        "DecodeBase64 DecodeCompressed DecodeJSONExample EncodeBase64": "s -> s",
        "DecodeCSV": "s, * -> s",
        "DecodeRaw": "[...] -> [...,?]",
        "SerializeTensor": "* -> []",
    }
)


@shape_rule("DecodePaddedRaw")
def decode_padded_raw(node: ShapeContext) -> TensorShape:
    """As many numbers as the bytes have room for."""
    length, size = node.count(1), node.attrs.dtype("out_type").numpy.itemsize
    return concat(node.input(0), shape(None if length is None else length // size))


def _sparse(count: int, rank: int | None) -> list[TensorShape]:
    """``count`` sparse tensors: their indices, their values, their shapes."""
    return [shape(None, rank)] * count + [shape(None)] * count + [shape(rank)] * count


@shape_rule("ParseExample", "ParseExampleV2")
def parse_example(node: ShapeContext) -> Sequence[TensorShape]:
    """Sparse tensors, dense ones and ragged ones, for one example or for each of a vector."""
    is_new = node.attrs.op.name == "ParseExampleV2"
    names = "num_sparse" if is_new else "Nsparse"
    outer = at_most_rank(node.input(0), 1) if is_new else with_rank(node.input(0), 1)
    rank = None if outer.rank is None else outer.rank + 1
    made = _sparse(node.attrs.int(names), rank)
    made += _dense(outer, node.attrs.list("dense_shapes"))
    if is_new:
        made += _ragged(node, outer)
    return made


def _dense(outer: TensorShape, shapes: Iterable[TensorShape]) -> list[TensorShape]:
    """What stands for each example; a first size that varies is the longest one's."""
    return [concat(outer, one) for one in shapes]


def _ragged(node: ShapeContext, outer: TensorShape) -> list[TensorShape]:
    values = node.attrs.list("ragged_value_types")
    splits = node.attrs.list("ragged_split_types")
    size = dim(outer, 0)
    ends = shape(None if size is None else size + 1) if outer.rank == 1 else shape(None)
    if outer.rank == 0:
        ends = shape(2)
    return [shape(None)] * len(values) + [ends] * len(splits)


@shape_rule("ParseSingleExample")
def parse_single_example(node: ShapeContext) -> Sequence[TensorShape]:
    """Vectors as sparse tensors, and what the attributes say."""
    shapes = node.attrs.list("dense_shapes")
    return _sparse(node.attrs.int("num_sparse"), 1) + _dense(shape(), shapes)


@shape_rule("ParseSingleSequenceExample")
def parse_single_sequence_example(node: ShapeContext) -> Sequence[TensorShape]:
    """The context as in an example, and lists with an axis in front."""
    attrs = node.attrs
    made = _sparse(attrs.int("Ncontext_sparse"), 1)
    made += _dense(shape(), attrs.list("context_dense_shapes"))
    made += _sparse(attrs.int("Nfeature_list_sparse"), 2)
    return made + _dense(shape(None), attrs.list("feature_list_dense_shapes"))


@shape_rule("ParseSequenceExample", "ParseSequenceExampleV2")
def parse_sequence_example(node: ShapeContext) -> Sequence[TensorShape]:
    """Contexts and lists; for one example, or for each of a vector."""
    attrs, is_new = node.attrs, node.attrs.op.name == "ParseSequenceExampleV2"
    outer = at_most_rank(node.input(0), 1)
    rank = outer.rank if is_new else 1
    context, lists = (None, None) if rank is None else (rank + 1, rank + 2)
    in_context = attrs.int("Ncontext_sparse")
    in_lists = attrs.int("Nfeature_list_sparse")
    made = _sparse(in_context, context)
    made += _dense(outer, attrs.list("context_dense_shapes"))
    made += _ragged_unknown(node, "context")
    made += _sparse(in_lists, lists)
    steps = UNKNOWN if outer.dims is None else concat(outer, shape(None))
    made += _dense(steps, attrs.list("feature_list_dense_shapes"))
    made += [outer] * attrs.int("Nfeature_list_dense")
    return made + _ragged_unknown(node, "feature_list")


def _ragged_unknown(node: ShapeContext, part: str) -> list[TensorShape]:
    """Values and where they begin; lists of lists have two such vectors."""
    if node.attrs.op.name != "ParseSequenceExampleV2":
        return []
    counts = [len(node.attrs.list(f"{part}_ragged_value_types"))]
    counts += [len(node.attrs.list(f"{part}_ragged_split_types"))]
    return [shape(None)] * (counts[0] + counts[1] * (2 if part == "feature_list" else 1))
