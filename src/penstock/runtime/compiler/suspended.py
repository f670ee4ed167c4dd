"""Leave a function in which a kernel must wait.

In:   nothing; the function's own frame has all that there is to know.
Out:  ``Suspended``, raised.
Not:  knows no graph, and no more of the function than that it was left.
"""

from __future__ import annotations


class Suspended(BaseException):
    """A kernel must wait, and has done nothing yet."""


def leave() -> None:
    """Leave the function; raises Suspended."""
    raise Suspended
