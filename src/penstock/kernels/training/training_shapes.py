"""Shapes of what optimisers write.

In:   nodes of this folder's ops.
Out:  shape rules.
Not:  says nothing of ops that only write into variables: they have no outputs.
"""

from __future__ import annotations

from typing import Final

from penstock.core.shapes import TensorShape
from penstock.kernels.api.partial_shapes import merge_all
from penstock.kernels.api.shape_context import ShapeContext
from penstock.kernels.api.shape_rules import shape_rule, shape_signatures

shape_signatures(
    {
        "LoadAndRemapMatrix": "-> [$num_rows,$num_cols]",
        "GenerateVocabRemapping": "-> [$num_new_vocab], []",
    }
)

#: How many variables stand in front, and which other inputs are as large.
_DENSE: Final = {
    "ApplyAdaMax": (3, -1), "ApplyAdadelta": (3, -1), "ApplyAdagrad": (2, -1),
    "ApplyAdagradDA": (3, 3), "ApplyAdagradV2": (2, -1), "ApplyAdam": (3, -1),
    "ApplyAddSign": (2, -1), "ApplyCenteredRMSProp": (4, -1), "ApplyFtrl": (3, 3),
    "ApplyFtrlV2": (3, 3), "ApplyGradientDescent": (1, -1), "ApplyMomentum": (2, 3),
    "ApplyPowerSign": (2, -1), "ApplyProximalAdagrad": (2, -1),
    "ApplyProximalGradientDescent": (1, -1), "ApplyRMSProp": (3, -1),
}  # fmt: skip
#: The same for gradients of some of the rows, which have another shape.
_SPARSE: Final = {
    "SparseApplyAdadelta": 3, "SparseApplyAdagrad": 2, "SparseApplyAdagradDA": 3,
    "SparseApplyAdagradV2": 2, "SparseApplyCenteredRMSProp": 4, "SparseApplyFtrl": 3,
    "SparseApplyFtrlV2": 3, "SparseApplyMomentum": 2, "SparseApplyProximalAdagrad": 2,
    "SparseApplyProximalGradientDescent": 1, "SparseApplyRMSProp": 3,
}  # fmt: skip


@shape_rule(*_DENSE)
def apply(node: ShapeContext) -> TensorShape:
    """What the variable, its companions and the gradient have in common."""
    count, gradient = _DENSE[node.attrs.op.name]
    return merge_all([*node.inputs[:count], node.input(gradient)])


@shape_rule(*_SPARSE)
def sparse_apply(node: ShapeContext) -> TensorShape:
    """What the variable and its companions have in common."""
    return merge_all(node.inputs[: _SPARSE[node.attrs.op.name]])
