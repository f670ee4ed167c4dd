"""What takes memory: the tensors at a step's peak, what a session keeps, and what grows.

In:   a session or a graph, fetches and feeds.
Out:  ``MemoryUse``, as facts and as text.
Not:  bounds nothing; ``RunOptions(max_memory_in_bytes=…)`` does.
"""
