"""Shapes of variables, and of what is read from and written to them.

In:   nodes of this folder's ops.
Out:  shape rules; what the handles of variables point to.
Not:  knows no values: those change.
"""

from __future__ import annotations

from collections.abc import Sequence

from penstock.core.shapes import SCALAR, UNKNOWN, TensorShape
from penstock.kernels.api.partial_shapes import concat, dim, merge, part_of, shape
from penstock.kernels.api.shape_context import Held, ShapeContext
from penstock.kernels.api.shape_rules import shape_rule, shape_signatures

shape_signatures({
    "AssignAdd AssignSub": "s, s -> s",
    "AssignAddVariableOp AssignSubVariableOp AssignVariableOp": "*, * -> ",
    "CountUpTo": "[] -> []",
    "DestroyResourceOp": "* -> ",
    "DestroyTemporaryVariable": "s -> s",
    "IsVariableInitialized VarIsInitializedOp": "* -> []",
    "ResourceCountUpTo": "* -> []",
    """
    ScatterAdd ScatterDiv ScatterMax ScatterMin ScatterMul ScatterSub ScatterUpdate ScatterNdAdd
    ScatterNdMax ScatterNdMin ScatterNdSub ScatterNdUpdate
    """: "s, *, * -> s",
    "StridedSliceAssign": "s, *, *, *, * -> s",
    "TemporaryVariable VariableV2": " -> @shape",
})  # fmt: skip


@shape_rule("Variable")
def variable(node: ShapeContext) -> TensorShape:
    """What the attribute says; no sizes at all mean, in these old graphs, that nobody knows."""
    stated = node.attrs.shape("shape")
    return UNKNOWN if stated.dims == () else stated


@shape_rule("Assign")
def assign(node: ShapeContext) -> TensorShape:
    """The value's; which is the variable's own, unless it may change."""
    if node.attrs.bool("validate_shape"):
        return merge(node.input(0), node.input(1))
    return node.input(1)


@shape_rule("VarHandleOp")
def var_handle(node: ShapeContext) -> TensorShape:
    """A handle, which points to a value of the shape that the attribute says."""
    node.holds[0] = Held(node.attrs.shape("shape"), node.attrs.dtype("dtype"))
    return SCALAR


@shape_rule("_VarHandlesOp")
def var_handles(node: ShapeContext) -> Sequence[TensorShape]:
    """Handles, which point to values of the shapes that the attribute says."""
    kinds = zip(node.attrs.list("shapes"), node.attrs.list("dtypes"), strict=True)
    node.holds.update((slot, Held(*kind)) for slot, kind in enumerate(kinds))
    return [SCALAR] * len(node.attrs.output_types)


@shape_rule("ReadVariableOp", "_ReadVariablesOp")
def read_variable(node: ShapeContext) -> Sequence[TensorShape]:
    """What the handles point to."""
    return [_behind(node, slot) for slot in range(len(node.inputs))]


def _behind(node: ShapeContext, slot: int) -> TensorShape:
    held = node.held(slot)
    if held is None or held.dtype is not node.attrs.output_types[slot]:
        return UNKNOWN
    return held.shape


@shape_rule("VariableShape")
def variable_shape(node: ShapeContext) -> TensorShape:
    """One number per axis of the variable."""
    held = node.held(0)
    return shape(None if held is None else held.shape.rank)


@shape_rule("ResourceGather")
def resource_gather(node: ShapeContext) -> TensorShape:
    """The rows that are asked for."""
    values, indices, batch = _behind(node, 0), node.input(1), node.attrs.int("batch_dims")
    if values.dims is None or indices.dims is None:
        return UNKNOWN
    return concat(
        merge(part_of(values, 0, batch), part_of(indices, 0, batch)),
        part_of(indices, batch),
        part_of(values, batch + 1),
    )


@shape_rule("ResourceGatherNd")
def resource_gather_nd(node: ShapeContext) -> TensorShape:
    """The parts that are asked for."""
    values, indices = _behind(node, 0), node.input(1)
    depth = dim(indices, -1)
    if values.dims is None or depth is None:
        return UNKNOWN
    return concat(part_of(indices, 0, -1), part_of(values, depth))
