"""Values of all nodes of a step: collected, kept, and compared with those of another one.

In:   sessions and graphs, fetches and feeds.
Out:  every output of every node (``collected``); how two differ (``difference``); the first node
      that differs in two steps (``compare``); a step's values on disk (``dump_all``); the first
      node that made something that is no number (``find_nan``).
Not:  nothing of what runs asks anything here.
"""
