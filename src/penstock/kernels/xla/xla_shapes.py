"""Shapes of the ops that stand for those of XLA.

In:   nodes of this folder's ops.
Out:  shape rules.
Not:  reads no program of XlaCallModule: its attribute says what comes out.
"""

from __future__ import annotations

from collections.abc import Sequence

from penstock.core.shapes import UNKNOWN, TensorShape
from penstock.kernels.api.partial_shapes import Dim, at_least_rank, of_rank, part_of, shape
from penstock.kernels.api.shape_context import ShapeContext
from penstock.kernels.api.shape_rules import shape_rule, shape_signatures

shape_signatures(
    {
        "XlaDynamicSlice": "*, *, [?] -> :2",
        "XlaDynamicUpdateSlice": "s, *, * -> s",
        "XlaKeyValueSort": "s, t -> s, t",
        "XlaReducePrecision XlaSort": "s -> s",
        "XlaReplicaId": "-> []",
        "XlaRngBitGenerator": "*, s, [?] -> s, :2",
        "XlaScatter": "s, *, * -> s",
        "XlaSelectAndScatter": "s, *, *, *, *, * -> s",
        "XlaSetBound": "s, * -> s",
        "XlaSharding": "s -> s",
        "XlaSpmdShardToFullShape": "* -> @full_shape",
    }
)


@shape_rule("XlaCallModule")
def call_module(node: ShapeContext) -> Sequence[TensorShape]:
    """What the attribute says of the results; the program itself is not read."""
    count = len(node.attrs.output_types)
    return (*node.attrs.list("Sout"), *[UNKNOWN] * count)[:count]


@shape_rule("XlaOptimizationBarrier")
def barrier(node: ShapeContext) -> Sequence[TensorShape]:
    """Each as it was."""
    return node.inputs


@shape_rule("XlaVariadicSort")
def variadic_sort(node: ShapeContext) -> Sequence[TensorShape]:
    """Each as it was."""
    return node.inputs[: len(node.attrs.output_types)]


@shape_rule("XlaReduce")
def reduce(node: ShapeContext) -> TensorShape:
    """The axes that are reduced go."""
    return _without(node.input(0), node.attrs.list("dimensions_to_reduce"))


@shape_rule("XlaVariadicReduce", "XlaVariadicReduceV2")
def variadic_reduce(node: ShapeContext) -> Sequence[TensorShape]:
    """The same for several arrays."""
    axes = node.attrs.list("dimensions_to_reduce")
    return [_without(node.input(slot), axes) for slot in range(len(node.attrs.output_types))]


def _without(given: TensorShape, axes: Sequence[int]) -> TensorShape:
    if given.dims is None:
        return UNKNOWN
    return shape(*(size for axis, size in enumerate(given.dims) if axis not in axes))


@shape_rule("XlaReduceWindow")
def reduce_window(node: ShapeContext) -> TensorShape:
    """As many axes as before; how long they are depends on how windows slide."""
    return of_rank(node.input(0).rank)


@shape_rule("XlaSetDynamicDimensionSize")
def set_dynamic_size(node: ShapeContext) -> TensorShape:
    """As many axes as before, one of which may be shorter."""
    return of_rank(node.input(0).rank)


@shape_rule("XlaPad")
def pad(node: ShapeContext) -> TensorShape:
    """What is added at both ends and between the elements makes axes longer."""
    given = node.input(0)
    if given.dims is None:
        return UNKNOWN
    rank = len(given.dims)
    low, high, inner = (node.some_numbers(slot, rank) for slot in (2, 3, 4))
    sizes: list[Dim] = []
    for size, before, after, between in zip(given.dims, low, high, inner, strict=True):
        if size is None or before is None or after is None or between is None:
            sizes.append(None)
        else:
            sizes.append(size + before + after + between * max(size - 1, 0))
    return shape(*sizes)


@shape_rule("XlaSelfAdjointEig")
def eigen(node: ShapeContext) -> Sequence[TensorShape]:
    """The values, and the vectors."""
    given = at_least_rank(node.input(0), 2)
    return part_of(given, 0, -1), given


@shape_rule("XlaEinsum")
def einsum(node: ShapeContext) -> TensorShape:
    """As many axes as the equation has behind its arrow."""
    result = node.attrs.str("equation").replace(" ", "").partition("->")[2]
    return UNKNOWN if "." in result else of_rank(len(result))


@shape_rule("XlaDequantize")
def dequantize(node: ShapeContext) -> TensorShape:
    """Packed numbers lie side by side along the last axis."""
    return of_rank(node.input(0).rank)


@shape_rule("XlaConcatND")
def concat_nd(node: ShapeContext) -> TensorShape:
    """As many axes as each part has."""
    return of_rank(node.input(0).rank)


@shape_rule("XlaSplitND")
def split_nd(node: ShapeContext) -> Sequence[TensorShape]:
    """As many axes as the whole has."""
    return [of_rank(node.input(0).rank)] * len(node.attrs.output_types)
