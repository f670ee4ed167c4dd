"""The compiled tier: regions of a partition as generated Python functions.

In:   a partition's graph, and the kernels of its nodes.
Out:  the same graph with each region replaced by one node, whose kernel is a function made
      from Python text; or, if the whole partition is one region, that function itself.
Not:  defines nothing.  The dataflow executor says what a graph means; this tier only does
      the same faster, and leaves to the executor whatever it does not understand.

The stages, in the order of data:

| | from | to | module |
| --- | --- | --- | --- |
| 1 | graph | nodes that can be compiled, loops that are regular | ``loops`` |
| 2 | these | groups of nodes that can run as one | ``regions`` |
| 3 | one group | a program: statements with the predicate under which each is live | ``build`` |
| 4 | program | statements in an order, in blocks | ``schedule`` |
| 5 | blocks | Python text, and what it refers to | ``emit`` |
| 6 | text | a function, known to tracebacks | ``source`` |
"""
