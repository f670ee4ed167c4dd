"""The life of a queue: who waits for what, and whose turn it is.

In:   requests to put elements in, to take some out, to close, and to forget a request.
Out:  the requests that were settled by that.
Not:  has no lock and calls nobody; does not know what elements are.

Requests of a kind are served in the order in which they came.  A request that cannot be
served at once waits at the end of its line; a large one is served piece by piece, so that
it may be larger than the queue.  To close is a request in the line of those who put, so
that it comes after everything that was put before.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, Protocol, TypeAlias

from penstock.core.dtypes import DType
from penstock.core.trees import Tree
from penstock.errors import CancelledError, OpError, OutOfRangeError
from penstock.state.waits import Wait

#: The capacity of a queue that has no limit.
UNBOUNDED: Final = 2**31 - 1
#: The components of one element.
QueueElement: TypeAlias = tuple[Any, ...]


class ElementStore(Protocol):
    """Where a queue keeps its elements; decides which one comes out next."""

    def __len__(self) -> int:
        """Number of elements."""

    def available(self, *, is_closed: bool) -> int:
        """How many elements may be taken out now."""

    def put(self, element: QueueElement) -> None:
        """Keep an element."""

    def take(self) -> QueueElement:
        """Give an element away; there is one available."""

    def put_back(self, elements: Sequence[QueueElement]) -> None:
        """Undo the last takes."""

    def state(self) -> Tree:
        """The elements, and what decides which one comes out next."""

    def restore(self, state: Tree, types: Sequence[DType]) -> None:
        """Keep what another store of the kind kept; elements have these types."""


class QueueRequest(Wait):
    """What somebody wants of a queue; its outcome is None, or the error."""

    __slots__ = ()

    #: What the request is called when it is cancelled.
    what = "Queue"

    def __init__(self, report: Callable[[OpError | None], None]) -> None:
        super().__init__(report)


class Put(QueueRequest):
    """Put elements in."""

    __slots__ = ("left",)

    what = "Enqueue"

    def __init__(
        self, report: Callable[[OpError | None], None], elements: Iterable[QueueElement]
    ) -> None:
        super().__init__(report)
        #: Elements that are not in the queue yet, in order.
        self.left = deque(elements)


class Close(QueueRequest):
    """Let nothing more in once all that waits is in."""

    __slots__ = ()

    what = "Close"


class Take(QueueRequest):
    """Take so many elements out; or, from a queue that is closed, as many as there are."""

    __slots__ = ("may_be_fewer", "missing", "taken")

    what = "Dequeue"

    def __init__(
        self,
        report: Callable[[OpError | None], None],
        count: int,
        *,
        may_be_fewer: bool = False,
    ) -> None:
        super().__init__(report)
        self.may_be_fewer: Final = may_be_fewer
        #: Elements still to come.
        self.missing = count
        #: Elements that came, in order.  They are in no queue meanwhile.
        self.taken: list[QueueElement] = []


class QueueState:
    """Elements, and those who wait."""

    def __init__(self, title: str, capacity: int, store: ElementStore) -> None:
        #: Kind and name, for messages.
        self.title: Final = title
        self.capacity: Final = capacity
        self.store: Final = store
        #: Whether nothing more comes in.  Never becomes False again.
        self.is_closed = False
        #: Whether nobody can wait any more: the queue is dropped.  Never becomes False again.
        self.has_ended = False
        #: Puts and closes, oldest first.  None of them is settled.
        self._putters: deque[Put | Close] = deque()
        #: Takes, oldest first.  None of them is settled.
        self._takers: deque[Take] = deque()

    def add(self, request: QueueRequest) -> list[Wait]:
        """Let a request stand in line, unless it was cancelled before it came."""
        if request.is_settled:
            return []
        line: deque[Any] = self._takers if isinstance(request, Take) else self._putters
        line.append(request)
        settled = self._settle()
        return settled + self._turn_away() if self.has_ended else settled

    def put_at_once(self, element: QueueElement) -> list[Wait] | None:
        """Put one element in if nobody has to wait for that; None if somebody does."""
        store = self.store
        if self._putters or self.is_closed or len(store) >= self.capacity:
            return None
        store.put(element)
        return self._settle() if self._takers else []

    def put_all_at_once(self, elements: Sequence[QueueElement]) -> list[Wait] | None:
        """Put elements in if none of them has to wait; None if one has, and none is in."""
        room = self.capacity - len(self.store)
        if self._putters or self.is_closed or room < len(elements):
            return None
        for element in elements:
            self.store.put(element)
        return self._settle() if self._takers else []

    def take_at_once(self, count: int) -> list[QueueElement] | None:
        """Take so many elements out if nobody has to wait for that; None if somebody does."""
        if self._takers or self._putters:
            return None
        if self.store.available(is_closed=self.is_closed) < count:
            return None
        take = self.store.take
        return [take() for _ in range(count)]

    def describe(self) -> str:
        """What the queue is, and how full."""
        limit = f" of {self.capacity}" if self.capacity < UNBOUNDED else ""
        door = "closed" if self.is_closed else "open"
        return f"{self.title}, which has {len(self.store)}{limit} elements and is {door}"

    def cancel(self, request: QueueRequest) -> list[Wait]:
        """Forget a request; elements that it took go back."""
        if request.is_settled:
            return []
        self._leave(request)
        request.settle(CancelledError(f"{request.what} operation was cancelled"))
        return [request, *self._settle()]

    def close(self) -> list[Wait]:
        """Let nothing more in, and cancel everything that waits to get in."""
        self.is_closed = True
        puts = [putter for putter in self._putters if isinstance(putter, Put)]
        closers = [putter for putter in self._putters if isinstance(putter, Close)]
        self._putters.clear()
        for put in puts:
            put.settle(CancelledError(f"{put.what} operation was cancelled"))
        for closer in closers:
            closer.settle(None)
        return [*puts, *closers, *self._settle()]

    def end_waits(self) -> list[Wait]:
        """Cancel everything that waits, now and from now on."""
        self.has_ended = True
        return self._turn_away()

    def _turn_away(self) -> list[Wait]:
        settled: list[Wait] = []
        for request in (*self._putters, *self._takers):
            settled += self.cancel(request)
        return settled

    def _leave(self, request: QueueRequest) -> None:
        """Take a request out of its line, if it stands in one."""
        line: deque[Any] = self._takers if isinstance(request, Take) else self._putters
        if request in line:
            line.remove(request)
        if isinstance(request, Take):
            self.store.put_back(request.taken)
            request.taken = []

    @staticmethod
    def _serve(line: deque[Any], error: OpError | None, settled: list[Wait]) -> bool:
        """Settle the first request of a line."""
        request: QueueRequest = line.popleft()
        request.settle(error)
        settled.append(request)
        return True

    def _settle(self) -> list[Wait]:
        """Serve both lines for as long as that changes anything."""
        settled: list[Wait] = []
        while self._serve_putter(settled) | self._serve_taker(settled):
            pass
        return settled

    def _serve_putter(self, settled: list[Wait]) -> bool:
        """Do what can be done for the first of those who put; False if that is nothing."""
        if not self._putters:
            return False
        putter = self._putters[0]
        if isinstance(putter, Close):
            return self._serve(self._putters, self._close_in_turn(), settled)
        if self.is_closed:
            refusal = CancelledError(f"{self.title} is closed.")
            return self._serve(self._putters, refusal, settled)
        room = min(self.capacity - len(self.store), len(putter.left))
        for _ in range(room):
            self.store.put(putter.left.popleft())
        if not putter.left:
            return self._serve(self._putters, None, settled)
        return room > 0

    def _close_in_turn(self) -> OpError | None:
        if self.is_closed:
            name = self.title.partition(" ")[2]
            return CancelledError(f"Queue {name} is already closed.")
        self.is_closed = True
        return None

    def _serve_taker(self, settled: list[Wait]) -> bool:
        """Do what can be done for the first of those who take; False if that is nothing."""
        if not self._takers:
            return False
        taker = self._takers[0]
        ready = self.store.available(is_closed=self.is_closed)
        if self.is_closed and ready < taker.missing:
            return self._serve(self._takers, self._take_rest(taker, ready), settled)
        count = min(ready, taker.missing)
        self._move(taker, count)
        if not taker.missing:
            return self._serve(self._takers, None, settled)
        return count > 0

    def _move(self, taker: Take, count: int) -> None:
        taker.taken += [self.store.take() for _ in range(count)]
        taker.missing -= count

    def _take_rest(self, taker: Take, ready: int) -> OpError | None:
        """Content a request that will never get what it wants."""
        missing = taker.missing
        self.store.put_back(taker.taken)
        taker.taken = []
        left = len(self.store)
        if taker.may_be_fewer and left:
            self._move(taker, left)
            return None
        return OutOfRangeError(
            f"{self.title} is closed and has insufficient elements "
            f"(requested {missing}, current size {ready})"
        )
