"""Shapes of what a convolution or a product gives together with what comes after it.

In:   nodes that the optimiser made.
Out:  shape rules: those of the first of the ops, and of the sum with another result.
Not:  rules of its own; a bias and an activation change no shape.
"""

from __future__ import annotations

from penstock.core.shapes import TensorShape
from penstock.kernels.api.partial_shapes import broadcast
from penstock.kernels.api.shape_context import ShapeContext
from penstock.kernels.api.shape_rules import shape_rule
from penstock.kernels.math.math_shapes import mat_mul
from penstock.kernels.nn.window_shapes import conv, depthwise_conv


@shape_rule("_FusedConv2D")
def fused_conv(node: ShapeContext) -> TensorShape:
    """The convolution's, which what is added may repeat."""
    result, steps = conv(node), node.attrs.list("fused_ops")
    added = 2 + (b"BiasAdd" in steps)
    return broadcast(result, node.input(added)) if b"Add" in steps else result


shape_rule("_FusedConv3D")(conv)
shape_rule("_FusedDepthwiseConv2dNative")(depthwise_conv)
shape_rule("_FusedMatMul")(mat_mul)
