"""Regions of small arrays, and whole loops, as single nodes that XLA computes.

| what | module |
| --- | --- |
| the pass | ``compile_regions`` |
| loops that can be told again as a condition and a body | ``find_loops`` |
| such loops as single nodes | ``replace_loops`` |
"""
