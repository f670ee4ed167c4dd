"""The ops whose work is worth a region.

Not:  imports nothing: a graph that has none of them is not looked at any closer.
"""

from __future__ import annotations

from typing import Final

#: Products of two matrices.
PRODUCTS: Final = frozenset({"MatMul", "_FusedMatMul"})
#: The same, or of batches of matrices.
OF_MATRICES: Final = PRODUCTS | {"BatchMatMul", "BatchMatMulV2", "Einsum"}
CONVOLUTIONS: Final = frozenset(
    {"Conv2D", "Conv3D", "DepthwiseConv2dNative"}
    | {"_FusedConv2D", "_FusedConv3D", "_FusedDepthwiseConv2dNative"}
)
HEAVY: Final = OF_MATRICES | CONVOLUTIONS
