"""The compiled tier: regions of a partition as generated Python functions.

In:   a partition's graph, and the kernels of its nodes.
Out:  the same graph with each region replaced by one node, whose kernel is a function made
      from Python text; or, if the whole partition is one region, that function itself.
Not:  defines nothing.  The dataflow executor says what a graph means; this tier only does
      the same faster, and leaves to the executor whatever it does not understand.

The stages, in the order of data:

1. ``loops`` finds units in the graph: nodes, and loops that are regular.
2. ``regions`` groups units that can run as one; ``cut`` does when a profile is known.
3. ``build`` and ``build_body`` make a ``program`` of a group: statements, each with the predicate
   (``predicates``) under which it is live.
4. ``rows`` joins long rows of functions of one number to single statements; ``blocks`` joins
   chains over long arrays, and ``sizes`` spreads numbers beside arrays, when a profile is known.
5. ``schedule`` puts the statements of a program in an order, in branches.
6. ``generate`` makes Python ``text`` of them: ``write`` their lines, in ``branches``, with ``names``
   that live as long as ``lifetimes`` says and kernels as ``expressions``.
7. ``source`` makes a function of the text, one that tracebacks know.
8. ``rewrite`` puts a node for each function into the graph, and ``region`` runs it.

``compile_regions`` is the main path; ``profile`` is what one run of a function has cost.
"""
