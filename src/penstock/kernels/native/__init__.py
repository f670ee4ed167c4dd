"""Whole loops, and regions of small arrays, as programs that the library in C carries out.

| what | module |
| --- | --- |
| the node in a region's place, which has a program for each set of shapes | ``native_region_op`` |
| a program that can be called | ``ready_program`` |
| nodes and shapes → a program | ``program`` |
| nodes one after the other | ``traced_nodes``, by the rules of ``*_rules`` and ``growing_lists`` |
| a loop in a program, and how often it goes round | ``written_loop``, ``loop_bounds`` |
| a program under construction, and what it is made of | ``emitter``, ``parts`` |
| a program → instructions, and registers for its values | ``assemble``, ``uses`` |

Which nodes go into a region is decided in ``passes/native``; how instructions are carried out is
known in ``kernels/c/machine`` alone.
"""
