"""Which requests are answered within moments, so that no thread need be woken for them.

In:   how long requests took, and whether they can wait or repeat anything.
Out:  whether one like them may be answered where all requests arrive.
Not:  runs nothing.

Whoever waits there keeps everybody waiting.  So a request is brief only if nothing in what it runs
can wait or goes round, the last ones like it were brief, and it is no larger than they were.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from threading import Lock
from typing import Final

from penstock.dataclass import dataclass

#: Seconds that a brief request may take; about as long as it takes to wake a thread and to go back.
_SECONDS: Final = 0.000_5
#: So many in a row must have been brief.
_IN_A_ROW: Final = 3
#: How many kinds of requests are remembered.
_MAX_KNOWN: Final = 1_000


@dataclass(frozen=False, slots=True)
class _Record:
    """How requests of one kind went."""

    size: int
    brief: int = 0


class BriefRequests:
    """The kinds of requests that a service has seen lately."""

    def __init__(self) -> None:
        #: Guards what follows.  Innermost.
        self._lock = Lock()
        #: By what makes requests alike; the one seen last at the end.
        self._known: OrderedDict[Hashable, _Record] = OrderedDict()

    def include(self, kind: Hashable, size: int) -> bool:
        """Whether a request of some kind, of so many bytes, is brief; None is never."""
        record = self._known.get(kind)
        return record is not None and record.brief >= _IN_A_ROW and size <= record.size

    def note(self, kind: Hashable, size: int, seconds: float, *, is_straight: bool) -> None:
        """A request took so long; ``is_straight`` says that it cannot wait or go round."""
        if kind is None:
            return
        is_brief = is_straight and seconds <= _SECONDS
        with self._lock:
            record = self._known.setdefault(kind, _Record(size))
            self._known.move_to_end(kind)
            if len(self._known) > _MAX_KNOWN:
                self._known.popitem(last=False)
            record.brief = record.brief + 1 if is_brief else 0
            record.size = max(record.size, size) if is_brief else size
