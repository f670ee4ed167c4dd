"""Learn in the first steps how a compiled request is best run.

In:   how long each step took; then, once, what each statement of a step cost.
Out:  the region that the next step should use, or that it is to run as parts.
Not:  measures nothing itself, and never changes what a step computes.

A request whose steps are fast is left as it is.  A slow one is run once with a probe behind
every statement; then it is compiled again with what was learnt: long arrays are worked off in
pieces, and expensive parts that do not need each other become regions of their own, for the
pool to run side by side.  Whether that is faster nobody knows beforehand: so some steps are run as
parts, and if none of them was faster than those before, that was all; much faster, if they take
cores that were idle, which others may want.  What is known to be slow when it is compiled has
its probes at once; then steps are watched only if they are to be compared with parts.
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
#: Parts must take less than this much of the time, unless so many cores were busy without them.
_GAIN: Final = 0.9
_BUSY: Final = 1.5


def slow_step(lines: int, limits: Limits) -> float:
    """From how many seconds on a step with a text of so many lines is slow."""
    return limits.slow_step * (lines / _LINES if lines > _SHORT else 1.0)


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
    #: Steps are timed: to learn whether they are slow, or to compare parts with them.
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
        slow: float = DEFAULT_LIMITS.slow_step,
        limits: Limits = DEFAULT_LIMITS,
    ) -> None:
        """Begin with a region of which a step is slow from so many seconds on."""
        #: None once parts have proved to be faster.
        self._region: Region | None = region
        self._compared_steps = limits.compared_steps
        self._slow = slow
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
        #: What makes a region without probes, if there is only one with them; or None.
        self._make_plain: Callable[[], Region] | None = None
        #: Whether it can be run as parts, too; and how much of the time these may take.
        self._has_parts = False
        self._gain = _GAIN
        #: The fewest seconds of steps as one region, and of each step as parts.
        self._whole = math.inf
        self._parts: list[float] = []

    @classmethod
    def settled(cls, region: Region) -> Tuner:
        """A tuner that leaves a region as it is."""
        made = cls(region, _no_probing, _no_improving)
        made._settle()
        return made

    def begin_with_probe(self, profile: Profile, make_plain: Callable[[], Region]) -> None:
        """Take the region for one that fills a profile; before the first step.

        Args:
            profile: what it fills.
            make_plain: makes one that does not, if nothing better comes of it.

        """
        self._probe, self._profile, self._make_plain = self._region, profile, make_plain
        self._stage = _Stage.PROBING

    @property
    def region(self) -> Region | None:
        """The best region so far; None if it is best to run parts."""
        return self._region

    def take(self) -> Region | None:
        """The region for one step, or None for parts; that step must report by ``note``."""
        if self._stage is _Stage.COMPARING:
            return None
        if self._stage is _Stage.PROBING:
            with self._lock:
                if self._probe is not None and not self._is_probing:
                    self._is_probing = True
                    return self._probe
                self._profile.has_others = True
        return self._region if self._make_plain is None else self._plain()

    def _plain(self) -> Region | None:
        """The region, which must have no probes.

        Several steps may come before the first one is done; or that has failed, or been ended.
        """
        make_plain = self._make_plain
        if make_plain is not None:
            plain = make_plain()
            with self._lock:
                if self._make_plain is not None:
                    self._region, self._make_plain = plain, None
        return self._region

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
            if not self._is_slow(seconds):
                return None
            if not self._has_parts:
                return self._compile_probe
            self._compare()
            return None
        if self._stage is _Stage.COMPARING and region is None:
            self._parts.append(seconds)
            self._choose()
        if self._stage is not _Stage.PROBING:
            return None
        if region is self._probe:
            return self._compile_better
        self._profile.has_others = True
        return None

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
        self._profile.end()
        better = self._improve(self._profile)
        region = better.region or self._plain()
        with self._lock:
            self._region, self._make_plain = region, None
            self._has_parts = better.has_parts
            self._gain = _GAIN if self._profile.cores_used < _BUSY else 1.0
            if not better.has_parts:
                self._settle()
            elif self._steps:
                self._compare()
            else:
                self._stage = _Stage.WATCHING

    def _compare(self) -> None:
        """Run steps as parts from now on."""
        self._stage = _Stage.COMPARING
        self._choose()

    def _choose(self) -> None:
        """Settle for parts if they have proved faster, when there are enough steps to tell."""
        if len(self._parts) >= self._compared_steps:
            if min(self._parts, default=0.0) < self._gain * self._whole:
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
