"""Shapes of what a convolution or a product gives together with what comes after it.

In:   nodes that the optimiser made.
Out:  shape rules: those of the first of the ops.
Not:  rules of its own; what is added and applied changes no shape.
"""

from __future__ import annotations

from penstock.kernels.api.shape_rules import shape_rule
from penstock.kernels.math.math_shapes import mat_mul
from penstock.kernels.nn.window_shapes import conv, depthwise_conv

shape_rule("_FusedConv2D")(conv)
shape_rule("_FusedDepthwiseConv2dNative")(depthwise_conv)
shape_rule("_FusedMatMul")(mat_mul)
