"""Pipelines of elements: datasets, what transforms them, and iterators.

A dataset is a variant on an edge and holds no elements; it makes iterators.  An iterator
gives one element per ``next``, which is a coroutine: when it needs a function of the graph
it yields a ``Call``, so that nothing ever blocks a thread.  See ``pulling``.
"""
