"""Regions of heavy nodes, computed by ONNX Runtime, where it is installed.

| what | module |
| --- | --- |
| the node in a region's place | ``region_op`` |
| ONNX Runtime itself | ``library`` |
| whether it, or the nodes one by one, prove faster | ``contest`` |

Which nodes go into a region, and how they are written as a model, is decided in
``passes/offload``.
"""
