"""What a block of a program can have for its session.

In:   blocks that are entered and left.
Out:  the session is what ``tensor.eval()`` uses meanwhile.
Not:  runs nothing.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NoReturn, Self

from penstock.state import default_session


class Scoped(ABC):
    """A session as a context manager."""

    @abstractmethod
    def run(self, fetches: Any, feed_dict: Any = None) -> Any:
        """Run what ``fetches`` need, and return their values."""

    @abstractmethod
    def close(self) -> None:
        """Give everything up."""

    @contextmanager
    def as_default(self) -> Iterator[Self]:
        """A block in which ``tensor.eval()`` uses this session, which stays open; yields it."""
        default_session.enter(self)
        try:
            yield self
        finally:
            default_session.leave(self)

    def __enter__(self) -> Self:
        default_session.enter(self)
        return self

    def __exit__(self, *_raised: object) -> None:
        default_session.leave(self)
        self.close()

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            "a Session cannot be pickled or copied: it holds threads, and the values of variables; "
            "send its graph, and open a session there"
        )
