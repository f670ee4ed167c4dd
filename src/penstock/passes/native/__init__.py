"""Whole loops, and regions of small arrays, as single nodes, each a program in C.

| what | module |
| --- | --- |
| the pass | ``compile_regions`` |
| loops that can be told again as a condition and a body | ``find_loops`` |
| such loops as single nodes | ``replace_loops`` |
"""
