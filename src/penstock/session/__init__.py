"""The facade: open a graph, feed, fetch, close."""

from penstock.session.run import Run
from penstock.session.session import Session

__all__ = ["Run", "Session"]
