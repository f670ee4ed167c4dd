"""The facade: open a graph, feed, fetch, close."""

from penstock.session.session import Run, Session

__all__ = ["Run", "Session"]
