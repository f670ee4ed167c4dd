"""Learn in the first steps how a compiled request is best run.

In:   how long each step took; then, once, what each statement of a step cost.
Out:  the region that the next step should use, or that it is to run as parts.
Not:  measures nothing itself, and never changes what a step computes.

A request whose steps are fast is left as it is.  A slow one is run once with a probe behind
every statement; then it is compiled again with what was learnt: long arrays are worked off in
pieces, and expensive parts that do not need each other become regions of their own, for the
pool to run side by side.  Whether that is faster nobody knows beforehand, since kernels may
have kept all cores busy as it was: so some steps are run as parts, and if none of them was
much faster than those before, that was all.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Callable
from threading import Lock
from typing import Final, NamedTuple

from penstock.core.limits import DEFAULT_LIMITS, Limits
from penstock.errors import OpError
from penstock.runtime.compiler.profile import Profile
from penstock.runtime.compiler.region import Region
from penstock.state.checkpoints import heeding
from penstock.state.interrupt import NEVER, Interrupt

#: A text of more lines is a long one, whose steps must take as long again for each so many.
_SHORT: Final = 2_000
_LINES: Final = 100
#: Steps that are only timed; the first one fills caches and is not representative.
_WATCHED: Final = 3
#: Parts must take less than this much of the time.
_GAIN: Final = 0.9


class Better(NamedTuple):
    """What a profile has led to."""

    #: A better region; None if there is none.
    region: Region | None = None
    #: Whether the request can be run as parts side by side, too.
    has_parts: bool = False


#: Makes the region that fills a profile.
Probing = Callable[[Profile], Region]
#: Takes a profile.
Improve = Callable[[Profile], Better]


class _Stage(enum.Enum):
    #: Steps are timed.
    WATCHING = enum.auto()
    #: A step that has ended compiles something; the others go on as before.
    COMPILING = enum.auto()
    #: One step is, or is to be, probed.
    PROBING = enum.auto()
    #: Steps are run as parts, and timed.
    COMPARING = enum.auto()
    SETTLED = enum.auto()


class Tuner:
    """The region of one request, better after some steps."""

    def __init__(
        self,
        region: Region,
        probing: Probing,
        improve: Improve,
        *,
        lines: int = 0,
        limits: Limits = DEFAULT_LIMITS,
    ) -> None:
        """Begin with a region whose text has so many lines, or which has more nodes."""
        #: None once parts have proved to be faster.
        self._region: Region | None = region
        self._compared_steps = limits.compared_steps
        #: A step that takes as many seconds is slow.
        self._slow = limits.slow_step * (lines / _LINES if lines > _SHORT else 1.0)
        self._probing = probing
        self._improve = improve
        #: Guards what follows, but for reading ``_stage``.  Not held while a region is compiled:
        #: the stage says so, and nobody waits for it.
        self._lock = Lock()
        #: Each once but for COMPILING.  Read without the lock.
        self._stage = _Stage.WATCHING
        self._steps = 0
        self._profile = Profile()
        #: The probed region; None unless PROBING.
        self._probe: Region | None = None
        #: Whether some step has taken it.
        self._is_probing = False
        #: The fewest seconds of steps as one region, and of each step as parts.
        self._whole = math.inf
        self._parts: list[float] = []

    @classmethod
    def settled(cls, region: Region) -> Tuner:
        """A tuner that leaves a region as it is."""
        made = cls(region, _no_probing, _no_improving)
        made._settle()
        return made

    @property
    def region(self) -> Region | None:
        """The best region so far; None if it is best to run parts."""
        return self._region

    def take(self) -> Region | None:
        """The region for one step, or None for parts; that step must report by ``note``."""
        if self._stage is _Stage.COMPARING:
            return None
        if self._stage is not _Stage.PROBING:
            return self._region
        with self._lock:
            probe = self._probe
            if probe is None or self._is_probing:
                return self._region
            self._is_probing = True
            return probe

    def note(self, region: Region | None, seconds: float, interrupt: Interrupt = NEVER) -> None:
        """A step with ``region`` has succeeded, or one as parts.

        What is compiled then ends when the step's ``interrupt`` gets a reason; the step has
        its results all the same.
        """
        if self._stage is _Stage.SETTLED:
            return
        with self._lock:
            compile_ = self._noted(region, seconds)
            if compile_ is None:
                return
            self._stage = _Stage.COMPILING
        try:
            heeding(interrupt, compile_)
        except BaseException as failure:
            # A caller with too little time for this would not have it in the next step either.
            with self._lock:
                self._settle()
            if interrupt.reason is None or not isinstance(failure, OpError):
                raise

    def _noted(self, region: Region | None, seconds: float) -> Callable[[], None] | None:
        """Take a report; returns what compiles something now, if that is due."""
        if self._stage is _Stage.WATCHING:
            return self._compile_probe if self._is_slow(seconds) else None
        if self._stage is _Stage.COMPARING and region is None:
            self._parts.append(seconds)
            self._choose()
        is_probed = self._stage is _Stage.PROBING and region is self._probe
        return self._compile_better if is_probed else None

    def _is_slow(self, seconds: float) -> bool:
        """Whether enough steps have been watched, and none of them was fast."""
        self._steps += 1
        if self._steps == 1:
            return False
        self._whole = min(self._whole, seconds)
        if seconds < self._slow:
            self._settle()
            return False
        return self._steps >= _WATCHED

    def _compile_probe(self) -> None:
        probe = self._probing(self._profile)
        with self._lock:
            self._probe = probe
            self._stage = _Stage.PROBING

    def _compile_better(self) -> None:
        better = self._improve(self._profile)
        with self._lock:
            self._region = better.region or self._region
            if not better.has_parts:
                self._settle()
                return
            self._stage = _Stage.COMPARING
            self._choose()

    def _choose(self) -> None:
        """Settle for parts if they have proved faster, when there are enough steps to tell."""
        if len(self._parts) >= self._compared_steps:
            if min(self._parts, default=0.0) < _GAIN * self._whole:
                self._region = None
            self._settle()

    def _settle(self) -> None:
        """Stay with what is best, and forget how that was found."""
        self._stage = _Stage.SETTLED
        self._probe = None
        self._profile = Profile()
        self._probing, self._improve = _no_probing, _no_improving


def _no_probing(_profile: Profile) -> Region:
    raise AssertionError("settled")


def _no_improving(_profile: Profile) -> Better:
    return Better()
