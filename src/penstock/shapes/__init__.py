"""Shapes that nobody has computed: what is known of the tensors of a graph before it runs.

``infer.py`` goes through a graph, ``values.py`` computes the sizes that shapes depend on,
``calls.py`` goes into functions.  The rules stand beside the kernels (``kernels/*/*_shapes.py``).
"""
