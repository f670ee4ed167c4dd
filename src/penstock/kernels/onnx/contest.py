"""Which of two ways to compute something proves to be faster.

In:   two functions of the same inputs; the second is the plain one.
Out:  what one of them gives.
Not:  does not know what the ways are.

Sizes only say that a way may pay: how fast it is depends on the processor and on the libraries.  So
for each set of shapes both are timed in the first calls, and later again.  The two may differ in
last bits, so only who does not mind them (``Config.exact_repetition``) has them tried.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from time import perf_counter
from typing import Any, Final, NamedTuple

#: Calls in a row that try a way, of which the last ones are timed: those before them wait for
#: memory and caches that the other way had, and the very first ones build things.
_IN_ROW, _TIMED, _BUILDING = 3, 2, 1
#: When the way that was slower is tried again: other programs may have come or gone.
_AGAIN: Final = (16, 32, 64, 128, 256, 1024, 4096)
#: Seconds from which on that is worthwhile.
_LONG: Final = 2e-4
#: Sets of shapes that a node remembers.
_MOST_DUELS: Final = 64


class _Turn(NamedTuple):
    """What is special about a call."""

    #: Whether it takes the way that the verdict is not for; without a verdict, the plain one.
    is_other: bool
    is_timed: bool


def _in_a_row(first: int, *, is_other: bool, count: int = _IN_ROW) -> dict[int, _Turn]:
    """Calls that try a way, by their numbers: the last ones are timed."""
    calls = range(first, first + count)
    return {call: _Turn(is_other, call >= calls.stop - _TIMED) for call in calls}


def _first_turns() -> dict[int, _Turn]:
    fast = _in_a_row(1, is_other=False, count=_BUILDING + _IN_ROW)
    return fast | _in_a_row(len(fast) + 1, is_other=True)


def _later_turns() -> dict[int, _Turn]:
    """Each time, what is used anyhow is timed first."""
    turns = dict[int, _Turn]()
    for start in _AGAIN:
        turns |= _in_a_row(start - _TIMED, is_other=False, count=_TIMED)
        turns |= _in_a_row(start, is_other=True)
    return turns


#: Before there is a verdict, and after; calls that are not listed are as ever.
_FIRST: Final = _first_turns()
_LATER: Final = _later_turns()
_AS_EVER: Final = _Turn(is_other=False, is_timed=False)


class _Duel:
    """Which of two ways was the faster one for inputs of some shapes; races do no harm."""

    __slots__ = ("calls", "fast", "is_fast", "is_timed", "plain")

    def __init__(self) -> None:
        self.calls = 0
        #: The fewest seconds of each way so far.
        self.fast = self.plain = float("inf")
        #: The verdict; None as long as there is none.
        self.is_fast: bool | None = None
        #: Whether the seconds of the last call that was asked for count.
        self.is_timed = False

    def next_is_fast(self) -> bool:
        """Whether the next call takes the fast way: it is the better one, or to be tried."""
        self.calls = calls = self.calls + 1
        if self.is_fast is None:
            turn = _FIRST.get(calls, _Turn(is_other=False, is_timed=True))
            self.is_timed = turn.is_timed
            return not turn.is_other
        turn = _LATER.get(calls, _AS_EVER) if self._is_long() else _AS_EVER
        self.is_timed = turn.is_timed
        return self.is_fast != turn.is_other

    def _is_long(self) -> bool:
        return min(self.fast, self.plain) >= _LONG

    def note(self, seconds: float, *, is_fast: bool) -> None:
        """One call took so long; after the first round, and after each other one, judge."""
        if is_fast:
            self.fast = min(self.fast, seconds)
        else:
            self.plain = min(self.plain, seconds)
        calls = self.calls
        if calls >= len(_FIRST) and calls + 1 not in _LATER:
            self.is_fast = self.fast <= self.plain


class Contest:
    """The two ways of one node, for inputs of all shapes."""

    __slots__ = ("_duels",)

    def __init__(self) -> None:
        #: By the shapes of inputs; emptied when there are too many.
        self._duels: Final[dict[tuple[Any, ...], _Duel]] = {}

    def run(
        self,
        fast: Callable[..., Any],
        plain: Callable[..., Any],
        inputs: Sequence[Any],
        changing: Sequence[Any],
    ) -> Any:
        """What the way gives that is faster, or that is to be tried.

        Args:
            fast: one way.
            plain: the other one.
            inputs: what both take.
            changing: those of them that may have other shapes next time.

        """
        duel = self._duel_of(changing)
        is_fast, start = duel.next_is_fast(), perf_counter()
        result = (fast if is_fast else plain)(*inputs)
        if duel.is_timed:
            duel.note(perf_counter() - start, is_fast=is_fast)
        return result

    def _duel_of(self, inputs: Sequence[Any]) -> _Duel:
        shapes = tuple([getattr(value, "shape", ()) for value in inputs])
        duel = self._duels.get(shapes)
        if duel is None:
            if len(self._duels) >= _MOST_DUELS:
                self._duels.clear()
            duel = self._duels.setdefault(shapes, _Duel())
        return duel
