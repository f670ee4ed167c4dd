"""The compiled tier: regions of a partition as generated Python functions.

In:   a partition's graph, and the kernels of its nodes.
Out:  the same graph with each region replaced by one node, whose kernel is a function made
      from Python text; or, if the whole partition is one region, that function itself.
Not:  defines nothing.  The dataflow executor says what a graph means; this tier only does
      the same faster, and leaves to the executor whatever it does not understand.

The stages, in the order of data:

1. ``loops`` finds units in the graph: nodes, and loops that are regular.
2. ``clusters`` groups units that can run as one; ``partition_by_cost`` does so when a profile is
   known.
3. ``build`` and ``build_body`` make a ``program`` of a group: statements, each with the predicate
   (``predicates``) under which it is live.
4. ``fused_groups`` makes single statements of groups of element-wise ones: of long groups, and of
   others when a profile is known; they are ``element_programs`` in C, whose kernels are called
   ``one_by_one`` where those will not do, or run ``blockwise``.  ``unary_chains`` joins long rows
   of functions of one number, and ``sizes`` spreads numbers beside arrays.
5. ``schedule`` puts the statements of a program in an order, in branches.
6. ``generate`` makes Python of them: ``statement_writer`` their lines, in ``branches``, with
   ``names`` that live as long as ``lifetimes`` says and kernels as ``expressions``, all of which
   goes into a ``code_buffer``.
7. ``source`` makes a function of the text, one that tracebacks know.
8. ``rewrite`` puts a node for each function into the graph, and ``region`` runs it.

``compile_regions`` is the main path; ``profile`` is what one run of a function has cost.
"""
