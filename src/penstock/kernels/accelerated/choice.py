"""The choice between numpy's kernel and PyTorch's, by size or by trial.

In:   for an op, a function that offers a faster way for a node's attributes, or None.
Out:  a kernel, registered above numpy's, that takes the faster way where it pays.
Not:  knows no op.

By size the choice is the same each time, and so are the last bits of what is computed.  A session
that does not mind them has both ways tried, and takes whichever proves faster.

The faster way may decline an input by returning NotImplemented or by an error: numpy's
kernel then gives the result, or the error with TensorFlow's words.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Any, Final, NamedTuple, TypeAlias

from penstock.core import dtypes
from penstock.core.dtypes import DType
from penstock.kernels.accelerated import library
from penstock.kernels.accelerated.library import Torch
from penstock.kernels.api.attrs import Attrs
from penstock.kernels.api.registry import Kernel, MakeKernel, kernel, kernels_of

FLOAT32: Final = frozenset({dtypes.float32})
#: Above numpy's kernels.
PRIORITY: Final = 10
#: Calls in a row that try a way, of which the last ones are timed: those before them wait for
#: memory and caches that the other way had, and the very first ones build things.
_IN_ROW, _TIMED, _BUILDING = 3, 2, 1
#: When the way that was slower is tried again: other programs may have come or gone.
_AGAIN: Final = (16, 32, 64, 128, 256, 1024, 4096)
#: Seconds from which on that is worthwhile.
_LONG: Final = 2e-4
#: Sets of shapes that a node remembers.
_MOST_TRIALS: Final = 64


@dataclass(frozen=True, slots=True)
class Offer:
    """A faster way to compute a node."""

    #: Whether it pays for these inputs; they may be anything that the op takes.
    pays: Callable[..., bool]
    #: The function of the inputs, made with PyTorch.
    build: Callable[[Torch], Kernel]


MakeOffer: TypeAlias = Callable[[Attrs], Offer | None]


def accelerated(
    *ops: str,
    types: Mapping[str, Collection[DType]] | None = None,
    otherwise: MakeKernel | None = None,
) -> Callable[[MakeOffer], MakeOffer]:
    """Register what offers a faster way to compute these ops, for float32 unless said.

    ``otherwise`` makes numpy's kernel for an op that has no other.
    """
    constraints = {"T": FLOAT32} if types is None else types

    def register(make_offer: MakeOffer) -> MakeOffer:
        @functools.wraps(make_offer)
        def make(attrs: Attrs) -> Kernel:
            plain = plain_kernel(attrs, otherwise)
            is_wanted = attrs.accelerate and library.is_installed()
            offer = make_offer(attrs) if is_wanted else None
            if offer is None:
                return plain
            return choosing(plain, offer, by_trial=attrs.by_trial)

        kernel(*ops, types=constraints, priority=PRIORITY)(make)
        return make_offer

    return register


def plain_kernel(attrs: Attrs, otherwise: MakeKernel | None = None) -> Kernel:
    """Numpy's kernel for a node."""
    fitting = (k for k in kernels_of(attrs.op.name) if k.device_type == "CPU")
    below = [k for k in fitting if k.priority < PRIORITY and k.fits(attrs.values)]
    if not below and otherwise is not None:
        return otherwise(attrs)
    return max(below, key=lambda k: k.priority).make(attrs)


def choosing(plain: Kernel, offer: Offer, *, by_trial: bool = False) -> Kernel:
    """The faster way where it pays; or, by trial, whichever proves to be faster."""
    pays, fast = offer.pays, (_Tried if by_trial else _Fast)(plain, offer)

    def choose(*inputs: Any) -> Any:
        return fast(*inputs) if pays(*inputs) else plain(*inputs)

    return choose


class _Turn(NamedTuple):
    """What is special about a call."""

    #: Whether it takes the way that is not the one of the verdict; without a verdict, numpy's.
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


class _Trial:
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
        """Whether the next call takes PyTorch's way: the better one, or the one to be tried."""
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


class _Fast:
    """The faster way, built when it first pays, with numpy's kernel behind it."""

    __slots__ = ("_build", "_compute", "_plain")

    def __init__(self, plain: Kernel, offer: Offer) -> None:
        self._plain, self._build = plain, offer.build
        #: Replaced once; two threads may both build it, and either result is good.
        self._compute: Kernel | None = None

    def __call__(self, *inputs: Any) -> Any:
        compute = self._compute
        if compute is None:
            compute = self._compute = self._built()
        library.stay_alone()
        try:
            result = compute(*inputs)
        except (RuntimeError, ValueError, TypeError):
            if compute is self._plain:
                raise
            result = NotImplemented
        return self._plain(*inputs) if result is NotImplemented else result

    def _built(self) -> Kernel:
        torch = library.load()
        try:
            return self._plain if torch is None else self._build(torch)
        except AttributeError:  # not every build of PyTorch has every library inside
            return self._plain


class _Tried(_Fast):
    """The faster way, unless numpy proves to be faster.

    Sizes only say that it may pay: how fast either way is depends on the processor and on the
    libraries.  So for each set of shapes both are timed in the first calls, and later again.
    """

    __slots__ = ("_trials",)

    def __init__(self, plain: Kernel, offer: Offer) -> None:
        super().__init__(plain, offer)
        #: By the shapes of all inputs; emptied when there are too many.
        self._trials: dict[tuple[Any, ...], _Trial] = {}

    def __call__(self, *inputs: Any) -> Any:
        trial = self._trial_of(inputs)
        is_fast, start = trial.next_is_fast(), perf_counter()
        result = super().__call__(*inputs) if is_fast else self._plain(*inputs)
        if trial.is_timed:
            trial.note(perf_counter() - start, is_fast=is_fast)
        return result

    def _trial_of(self, inputs: Sequence[Any]) -> _Trial:
        shapes = tuple([getattr(value, "shape", ()) for value in inputs])
        trial = self._trials.get(shapes)
        if trial is None:
            if len(self._trials) >= _MOST_TRIALS:
                self._trials.clear()
            trial = self._trials.setdefault(shapes, _Trial())
        return trial
