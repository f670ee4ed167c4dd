"""The graph, and everything that is known about it before it runs."""
