"""Shapes of arithmetic, reductions, products and segments.

In:   nodes of this folder's ops.
Out:  shape rules.
Not:  computes nothing.
"""

from __future__ import annotations

from penstock.core.shapes import SCALAR, UNKNOWN, TensorShape
from penstock.errors import InvalidArgumentError
from penstock.kernels.api.partial_shapes import (
    at_least_rank,
    at_most_rank,
    broadcast,
    concat,
    dim,
    merge,
    merge_all,
    merge_dims,
    of_rank,
    part_of,
    shape,
    with_rank,
    without,
)
from penstock.kernels.api.shape_context import ShapeContext
from penstock.kernels.api.shape_rules import shape_rule, shape_signatures

shape_signatures({
    """
    Abs Acos Acosh Angle Asin Asinh Atan Atanh BesselI0 BesselI0e BesselI1 BesselI1e BesselJ0
    BesselJ1 BesselK0 BesselK0e BesselK1 BesselK1e BesselY0 BesselY1 Bucketize Cast Ceil ComplexAbs
    Conj Cos Cosh Dawsn Digamma Erf Erfc Erfinv Exp Expint Expm1 Floor FresnelCos FresnelSin Imag
    Inv Invert IsFinite IsInf IsNan Lgamma Log Log1p LogicalNot Ndtri Neg PopulationCount Real
    Reciprocal Rint Round Rsqrt Sigmoid Sign Sin Sinh Spence Sqrt Square Tan Tanh
    _UnaryOpsComposition
    """: "s -> s",
    """
    Add AddV2 Atan2 BitwiseAnd BitwiseOr BitwiseXor Complex Div DivNoNan FloorDiv FloorMod Greater
    GreaterEqual Igamma IgammaGradA Igammac LeftShift Less LessEqual LogicalAnd LogicalOr Maximum
    Minimum Mod Mul MulNoNan NextAfter Polygamma Pow RandomGammaGrad RealDiv RightShift
    SquaredDifference Sub TruncateDiv TruncateMod Xdivy Xlog1py Xlogy Zeta
    """: "a, b -> a^b",
    "AccumulateNV2": "* -> @shape",
    "ApproximateEqual": "s, s -> s",
    "Bincount": "*, [], * -> [#1]",
    "ClipByValue": "s, *, * -> s",
    "Cross": "s, s -> s",
    "Cumprod Cumsum CumulativeLogsumexp": "s, * -> s",
    "HistogramFixedWidth": "*, [2], [] -> [#2]",
    "KMC2ChainInitialization": "-> []",
    "KmeansPlusPlusInitialization": "-> *",
    "L2Loss": "* -> []",
    "NearestNeighbors": "[n,d], [?,d], [] -> [n,?], [n,?]",
    "SelectV2": "c, t, e -> c^t^e",
    "SobolSample": "[], [], [] -> [#1,#0]",
    "ToBool": "* -> []",
})  # fmt: skip


@shape_rule("AddN")
def add_n(node: ShapeContext) -> TensorShape:
    """The shape that all have."""
    return merge_all(node.inputs)


@shape_rule("Equal", "NotEqual")
def equal(node: ShapeContext) -> TensorShape:
    """Broadcast; or one answer for two shapes that do not fit, where that is allowed."""
    if node.attrs.bool("incompatible_shape_error"):
        return broadcast(*node.inputs)
    try:
        together = broadcast(*node.inputs)
    except InvalidArgumentError:
        return SCALAR
    # A size that is not known may turn out not to fit.
    return together if all(one.is_fully_defined for one in node.inputs) else UNKNOWN


@shape_rule("Betainc")
def betainc(node: ShapeContext) -> TensorShape:
    """All the same, but for scalars."""
    if any(one.dims is None for one in node.inputs):
        others = [one for one in node.inputs if one.rank]
        return merge_all(others)
    return merge_all([one for one in node.inputs if one.rank] or [SCALAR])


@shape_rule("Select")
def select(node: ShapeContext) -> TensorShape:
    """Both values are alike; the condition is one truth value, one per row, or one per element."""
    condition, values = node.input(0), merge(node.input(1), node.input(2))
    if condition.dims is None or condition.rank == 0:
        return values
    if condition.rank == 1 and values.rank not in (None, 1):
        merge_dims(dim(condition, 0), dim(values, 0))
        return values
    # A vector of conditions may go with values of any rank.
    return values if values.dims is None and condition.rank == 1 else merge(values, condition)


@shape_rule("ArgMax", "ArgMin")
def arg_max(node: ShapeContext) -> TensorShape:
    """One axis goes."""
    given, axis = node.input(0), node.number(1)
    with_rank(node.input(1), 0)
    if given.dims is None:
        return UNKNOWN
    if len(given.dims) <= 1:
        return SCALAR
    return of_rank(len(given.dims) - 1) if axis is None else without(given, axis)


@shape_rule("All", "Any", "EuclideanNorm", "Max", "Mean", "Min", "Prod", "Sum")
def reduction(node: ShapeContext) -> TensorShape:
    """The axes that are reduced go, or become 1."""
    at_most_rank(node.input(1), 1)
    return reduced(node.input(0), node.numbers(1), keeps=node.attrs.bool("keep_dims"))


@shape_rule("_Moments")
def moments(node: ShapeContext) -> list[TensorShape]:
    """Two times the shape, with sizes 1 in the place of the axes."""
    return [reduced(node.input(0), node.numbers(1), keeps=True)] * 2


def reduced(given: TensorShape, axes: list[int] | None, *, keeps: bool) -> TensorShape:
    """What is left of a shape when some of its axes are reduced."""
    if axes is not None and not axes:
        return given
    if given.dims is None:
        return UNKNOWN
    if axes is None:
        return of_rank(len(given.dims)) if keeps else UNKNOWN
    gone = {_reduced_axis(axis, len(given.dims)) for axis in axes}
    if keeps:
        return shape(*(1 if i in gone else size for i, size in enumerate(given.dims)))
    return shape(*(size for i, size in enumerate(given.dims) if i not in gone))


def _reduced_axis(axis: int, rank: int) -> int:
    if not -rank <= axis < rank:
        raise InvalidArgumentError(
            f"Invalid reduction dimension {axis} for input with {rank} dimensions"
        )
    return axis % rank


@shape_rule("MatMul")
def mat_mul(node: ShapeContext) -> TensorShape:
    """Rows of the one, columns of the other."""
    a, b = with_rank(node.input(0), 2), with_rank(node.input(1), 2)
    is_flipped = [node.attrs.bool(name) for name in ("transpose_a", "transpose_b")]
    merge_dims(dim(a, 0 if is_flipped[0] else 1), dim(b, 1 if is_flipped[1] else 0))
    return shape(dim(a, 1 if is_flipped[0] else 0), dim(b, 0 if is_flipped[1] else 1))


@shape_rule("_ItemMatMul")
def item_mat_mul(node: ShapeContext) -> TensorShape:
    """The same; where the first one comes from does not matter."""
    a, b = with_rank(node.input(0), 2), with_rank(node.input(1), 2)
    is_flipped = node.attrs.bool("transpose_b")
    merge_dims(dim(a, 1), dim(b, 1 if is_flipped else 0))
    return shape(dim(a, 0), dim(b, 0 if is_flipped else 1))


@shape_rule("BatchMatMul", "BatchMatMulV2", "BatchMatMulV3")
def batch_mat_mul(node: ShapeContext) -> TensorShape:
    """A product for each pair of matrices; the axes in front are the same, or broadcast."""
    a, b = at_least_rank(node.input(0), 2), at_least_rank(node.input(1), 2)
    flip_a, flip_b = node.attrs.bool("adj_x"), node.attrs.bool("adj_y")
    merge_dims(dim(a, -2 if flip_a else -1), dim(b, -1 if flip_b else -2))
    join = merge if node.attrs.op.name == "BatchMatMul" else broadcast
    outer = join(part_of(a, 0, -2), part_of(b, 0, -2))
    return concat(outer, shape(dim(a, -1 if flip_a else -2), dim(b, -2 if flip_b else -1)))


@shape_rule("DenseBincount")
def dense_bincount(node: ShapeContext) -> TensorShape:
    """Counts, or a row of counts for each row."""
    given, size = node.input(0), node.count(1)
    with_rank(node.input(1), 0)
    at_most_rank(given, 2)
    return concat(part_of(given, 0, -1), shape(size)) if given.rank else given


@shape_rule("SegmentMax", "SegmentMean", "SegmentMin", "SegmentProd", "SegmentSum")
def segment(node: ShapeContext) -> TensorShape:
    """Nobody knows how many segments there are."""
    with_rank(node.input(1), 1)
    return concat(shape(None), part_of(at_least_rank(node.input(0), 1), 1))


@shape_rule(
    *("SegmentMaxV2", "SegmentMinV2", "SegmentProdV2", "SegmentSumV2"),
    *("UnsortedSegmentMax", "UnsortedSegmentMin", "UnsortedSegmentProd", "UnsortedSegmentSum"),
)
def unsorted_segment(node: ShapeContext) -> TensorShape:
    """As many rows as there are segments, and what follows the axes of the segments' numbers."""
    data, ids, count = node.input(0), node.input(1), node.count(2)
    with_rank(node.input(2), 0)
    if data.dims is None or ids.dims is None:
        return UNKNOWN
    merge(part_of(at_least_rank(data, len(ids.dims)), 0, len(ids.dims)), ids)
    return concat(shape(count), part_of(data, len(ids.dims)))
