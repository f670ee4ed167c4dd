"""Collective operations: values that all members of a group exchange, each with all others.

In:   what each member brings, as soon as it is there; a way to send values to other members.
Out:  what each of them gets: the same sum, all values in order, the value of one.
Not:  knows no graph and no kernels, and blocks nobody.

What travels, and how values are added up, is as in TensorFlow, so that sums are the same to the
last bit.  An array is cut into as many chunks as there are members.  In the first half of a
reduction each chunk goes around the ring, beginning with the member of its number, and grows by
what each member has; so the last one has all of it.  In the second half it goes around once more.
Every member sends and receives 2 (n - 1) / n of its array, whatever the number n of members:
Patarasuk and Yuan, "Bandwidth optimal all-reduce algorithms for clusters of workstations", Journal
of Parallel and Distributed Computing 69 (2009).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Generator, Iterator
from functools import partial
from threading import TIMEOUT_MAX, Lock, Timer
from typing import Any, Final, Protocol, TypeAlias

import numpy as np

from penstock.core.values import Array
from penstock.errors import CancelledError, OpError
from penstock.state.cancellation import CancellationManager
from penstock.state.collective_groups import Collective, CollectiveGroups, Groups, Place
from penstock.state.rendezvous import RecvDone, Rendezvous, RendezvousKey
from penstock.state.waits import Wait

#: Larger chunks travel in pieces, so that the next member begins before the last piece is there.
_PIECE_BYTES: Final = 4 << 20
#: Chunks begin at multiples of so many bytes, as TensorFlow's do.
_ALIGNMENT: Final = 64

#: A member's part: yields keys, is sent the values that come under them, returns the result.
Exchange: TypeAlias = Generator[str, Array, Any]
#: Called once with the result, or with what was raised.
Exchanged: TypeAlias = Callable[[Any], None]


class Peers(Protocol):
    """A way to the other members; keys are those of a rendezvous, and name both devices."""

    def send(self, key: str, value: Any, /) -> None:
        """Hand a value over to whoever receives under the key; does not wait."""

    def recv_async(
        self, key: str, done: RecvDone, cancellation_manager: CancellationManager | None, /
    ) -> None:
        """Have ``done`` called with the value, or with an error."""


class CollectiveExecutor:
    """The collective operations of one step."""

    def __init__(
        self,
        peers_of: Callable[[Place], Peers] | None = None,
        groups: Groups | None = None,
        *,
        piece_bytes: int = _PIECE_BYTES,
    ) -> None:
        """Have members meet.

        Args:
            peers_of: the way to the other members of an exchange; None if all of them are in this
                process.
            groups: who decides about members; None if that is this object alone.
            piece_bytes: larger chunks travel in pieces; the same number for all members.

        """
        rendezvous = Rendezvous()
        self._peers_of: Final = peers_of or (lambda _place: rendezvous)
        self._groups: Final = groups or CollectiveGroups()
        self._piece_bytes: Final = piece_bytes

    def run(
        self,
        member: Collective,
        exchange: Callable[[Member], Exchange],
        done: Exchanged,
        *,
        cancellation: CancellationManager,
        timeout_seconds: float = 0,
        runner: Callable[[Callable[[], None]], object] | None = None,
    ) -> None:
        """Take part in a collective operation.

        Args:
            member: who, and in what.
            exchange: what the member does when all have come.
            done: is called once, from any thread, with the result or an error.
            cancellation: ends the member's waits, and with them those of all others.
            timeout_seconds: so long it waits for other members to come; 0 is for ever.
            runner: has what goes on after a wait run; None leaves that to who ended it.

        """
        timer: Timer | None = None

        def entered(error: OpError | None, place: Place | None) -> None:
            if timer is not None:
                timer.cancel()
            if error is not None or place is None:
                done(error)
                return
            try:
                peers = self._peers_of(place)
            except OpError as over:
                done(over)
                return
            part = exchange(Member(place, peers, self._piece_bytes))
            ended = partial(self._ended, place, done)
            _Conversation(part, peers, ended, cancellation, runner).go_on(None)

        wait = Wait(entered, member)
        if timeout_seconds > 0:
            seconds = min(timeout_seconds, TIMEOUT_MAX)
            timer = Timer(seconds, partial(self._groups.expire, wait))
            timer.daemon = True
            timer.start()
        self._groups.enter(wait, cancellation)

    def _ended(self, place: Place, done: Exchanged, result: Any) -> None:
        if isinstance(result, Exception):
            self._groups.failed(place)
        else:
            self._groups.finished(place)
        done(result)

    def end_waits(self) -> None:
        """The step is over; whoever still waits is told so."""
        self._groups.abort(CancelledError("the step is over", derived=True))


class _Conversation:
    """A member's part that goes on whenever the value has come for which it waits."""

    def __init__(
        self,
        part: Exchange,
        peers: Peers,
        done: Exchanged,
        cancellation: CancellationManager,
        runner: Callable[[Callable[[], None]], object] | None,
    ) -> None:
        self._part: Final = part
        self._peers: Final = peers
        self._done: Final = done
        self._cancellation: Final = cancellation
        self._runner: Final = runner or (lambda work: work())

    def go_on(self, value: Any) -> None:
        """Work with a value, and with all that are there already, until one is missing."""
        while True:
            try:
                key = self._part.send(value)
            except StopIteration as end:
                self._done(end.value)
                return
            except Exception as error:  # noqa: BLE001  (whatever it is, somebody waits for it)
                self._done(error)
                return
            arrival = _Arrival()
            self._peers.recv_async(key, arrival.come, self._cancellation)
            if not arrival.is_here(self._later):
                return
            if arrival.error is not None:
                self._done(arrival.error)
                return
            value = arrival.value

    def _later(self, arrival: _Arrival) -> None:
        if arrival.error is not None:
            self._done(arrival.error)
        else:
            self._runner(partial(self.go_on, arrival.value))


class _Arrival:
    """A value that comes before somebody looks for it, or after."""

    def __init__(self) -> None:
        #: Guards what follows: who comes second goes on.  Innermost.
        self._lock: Final = Lock()
        self._has_come = False
        self._later: Callable[[_Arrival], None] | None = None
        #: Set before ``_has_come``.
        self.error: OpError | None = None
        self.value: Any = None

    def come(self, error: OpError | None, value: Any, _is_dead: bool) -> None:  # noqa: FBT001
        self.error, self.value = (None, value) if error is None else (_derived(error), None)
        with self._lock:
            self._has_come = True
            later = self._later
        if later is not None:
            later(self)

    def is_here(self, later: Callable[[_Arrival], None]) -> bool:
        """Whether it has come; if not, ``later`` is called then."""
        with self._lock:
            if not self._has_come:
                self._later = later
            return self._has_come


def _derived(error: OpError) -> OpError:
    """What another member's end does to this one is no cause of its own."""
    found = error.copy()
    found.derived = True
    return found


# -- what members do ---------------------------------------------------------------------------


class Member:
    """One member, when all have come: whom it sends to, and under which keys."""

    def __init__(self, place: Place, peers: Peers, piece_bytes: int = _PIECE_BYTES) -> None:
        self.place: Final = place
        self._piece_bytes: Final = piece_bytes
        self._peers: Final = peers

    def send(self, rank: int, name: str, value: Any) -> None:
        """Send to the member of a rank."""
        self._peers.send(self._key(self.place.rank, rank, name), value)

    def expect(self, rank: int, name: str) -> str:
        """The key of what the member of a rank sends here; to be yielded."""
        return self._key(rank, self.place.rank, name)

    def _key(self, src: int, dst: int, name: str) -> str:
        place = self.place
        incarnation = place.incarnations[src] if place.incarnations else 0
        full_name = f"{place.name}/{name}"
        return str(RendezvousKey(place.devices[src], incarnation, place.devices[dst], full_name))

    # -- of all, by all ----------------------------------------------------------------------

    def reduce(
        self, value: Array, merge: Callable[..., Array], finish: Callable[[Array], Array]
    ) -> Exchange:
        """All members' values merged, and ``finish`` of that; of the value's shape.

        The value itself is only read; what comes from others is, too.  A chunk of the result is
        written twice, and what it held first was sent on: nobody looks at that any more when the
        second value comes, which is made of it.

        Args:
            value: the member's own.
            merge: of two arrays the third, which is its ``out``, as numpy's ufuncs have it.
            finish: what is done with each merged chunk, such as a division.

        """
        flat, size = np.asarray(value).reshape(-1), self.place.size
        chunks, rank = _chunks(flat, size), self.place.rank
        merged = flat.copy() if size == 1 else np.empty_like(flat)

        def add(part: slice, received: Array) -> None:
            merge(flat[part], received, out=merged[part])

        def keep(part: slice, received: Array) -> None:
            merged[part] = received

        for step in range(size - 1):
            sent = (merged if step else flat)[chunks[(rank - step) % size]]
            self._pass_on(f"r{step}", sent)
            part = chunks[(rank - step - 1) % size]
            yield from self._take(f"r{step}", part, flat.itemsize, add)
        last = chunks[(rank + 1) % size]
        merged[last] = finish(merged[last])
        for step in range(size - 1):
            self._pass_on(f"g{step}", merged[chunks[(rank + 1 - step) % size]])
            part = chunks[(rank - step) % size]
            yield from self._take(f"g{step}", part, flat.itemsize, keep)
        return merged.reshape(np.shape(value))

    def _pass_on(self, name: str, chunk: Array) -> None:
        """Send a chunk to the next member; of an empty one nothing."""
        after = (self.place.rank + 1) % self.place.size
        for number, part in enumerate(self._pieces(slice(0, chunk.size), chunk.itemsize)):
            self.send(after, f"{name}/{number}", chunk[part])

    def _take(
        self, name: str, chunk: slice, itemsize: int, use: Callable[[slice, Array], None]
    ) -> Generator[str, Array, None]:
        """What the member before sends of a chunk, piece by piece."""
        before = (self.place.rank - 1) % self.place.size
        for number, part in enumerate(self._pieces(chunk, itemsize)):
            use(part, (yield self.expect(before, f"{name}/{number}")))

    def _pieces(self, chunk: slice, itemsize: int) -> Iterator[slice]:
        elements = max(self._piece_bytes // itemsize, 1)
        for start in range(chunk.start, chunk.stop, elements):
            yield slice(start, min(start + elements, chunk.stop))

    def gather(self, value: Array) -> Exchange:
        """All members' values, end to end along the first axis, by rank."""
        rank, size = self.place.rank, self.place.size
        found = [value] * size
        for step in range(size - 1):
            self.send((rank + 1) % size, f"{step}", found[(rank - step) % size])
            found[(rank - step - 1) % size] = yield self.expect((rank - 1) % size, f"{step}")
        return np.concatenate(found)

    def exchange(self, value: Array) -> Exchange:
        """One row from each member, by rank: the member's own one of each value."""
        rank, size = self.place.rank, self.place.size
        for other in range(size):
            if other != rank:
                self.send(other, "row", value[other])
        rows = list(value)
        for other in range(size):
            if other != rank:
                rows[other] = yield self.expect(other, "row")
        return np.stack(rows)

    def broadcast(self, value: Any) -> Exchange:
        """The value of the source, by a tree: who has it sends it on, twice as many each time."""
        size, source = self.place.size, self.place.source
        own = (self.place.rank - source) % size
        if own:
            above = own - (1 << (own.bit_length() - 1))
            value = yield self.expect((above + source) % size, "value")
        step = 1 << own.bit_length()
        while own + step < size:
            self.send((own + step + source) % size, "value", value)
            step <<= 1
        return value


def _chunks(flat: Array, count: int) -> list[slice]:
    """The elements of an array in so many parts, all but the last ones of equal size."""
    elements = -(-flat.size // count)
    # As TensorFlow rounds: what is a multiple already gets one more.
    elements += (_ALIGNMENT - elements * flat.itemsize % _ALIGNMENT) // flat.itemsize
    bounds = [min(number * elements, flat.size) for number in range(count + 1)]
    return [slice(start, stop) for start, stop in itertools.pairwise(bounds)]
