"""A step under somebody's hands: run to a node, look at values, change them, go on.

In:   a session or a graph, fetches and feeds; then commands.
Out:  where the step stands, what has been computed, what is changed (``debug``, ``prompt``).
Not:  nothing of what runs asks anything here; the runtime knows a ``NodeHook``.
"""
