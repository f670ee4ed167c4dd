"""Regions of dense float work as single nodes that ONNX Runtime computes.

| what | module |
| --- | --- |
| the pass | ``offload_regions`` |
| what a region takes, by ONNX Runtime and by the kernels in C | ``costs`` |
| which nodes go together, so that no path leaves and comes back | ``find_regions`` |
| nodes → a model of ONNX | ``write_model``, by the rules of ``*_rules`` |
| a model under construction, and layouts | ``model_writer`` |
"""
