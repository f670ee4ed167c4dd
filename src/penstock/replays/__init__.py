"""One step again, exactly: recorded, replayed, and shrunk to the exchanges that matter.

In:   a session or a graph, fetches and feeds; or the file of a recording.
Out:  a ``Recording`` (``record``); the same step in the same order (``replay``); the fewest pairs
      of nodes whose order makes a step fail (``shrink``).
Not:  nothing of what runs asks anything here; ``state/step_order.py`` says what it asks.
"""
