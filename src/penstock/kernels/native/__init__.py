"""Regions of small arrays, whole loops included, as programs that XLA compiles.

| what | module |
| --- | --- |
| the node in a region's place, and when its program is used | ``native_region_op`` |
| a loop as a node of such a region | ``native_loop_op`` |
| nodes and shapes → a program | ``program`` |
| nodes one after the other | ``traced_nodes``, by the rules of ``*_rules`` and ``growing_lists`` |
| a loop in a program, and how often it goes round | ``written_loop``, ``loop_bounds`` |
| a program under construction | ``emitter`` |
| who compiles while steps go on | ``background`` |

Which nodes go into a region is decided in ``passes/native``; how XLA is called is known in
``kernels/xla/xla_programs`` alone.
"""
