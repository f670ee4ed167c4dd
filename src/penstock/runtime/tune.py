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

from penstock.runtime.compiler.profile import Profile
from penstock.runtime.compiler.region import Region

#: Steps that take fewer seconds are not worth tuning; for a long text, fewer than this for each
#: so many lines, since all of it is compiled twice more.
SLOW: Final = 1e-3
_LINES: Final = 1000
#: Steps that are only timed; the first one fills caches and is not representative.
_WATCHED: Final = 3
#: Steps that are run as parts before it is decided whether to go on like that.
COMPARED: Final = 3
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
    #: One step is, or is to be, probed.
    PROBING = enum.auto()
    #: Steps are run as parts, and timed.
    COMPARING = enum.auto()
    SETTLED = enum.auto()


class Tuner:
    """The region of one request, better after some steps."""

    def __init__(
        self, region: Region, probing: Probing, improve: Improve, *, lines: int = 0
    ) -> None:
        """Begin with a region whose text has so many lines."""
        #: None once parts have proved to be faster.
        self._region: Region | None = region
        self._lines = lines
        self._probing = probing
        self._improve = improve
        #: Guards what follows, but for reading ``_stage``.  Held while a region is compiled, so
        #: that it is compiled once.
        self._lock = Lock()
        #: Only moves forward.  Read without the lock.
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

    def note(self, region: Region | None, seconds: float) -> None:
        """A step with ``region`` has succeeded, or one as parts."""
        if self._stage is _Stage.SETTLED:
            return
        with self._lock:
            if self._stage is _Stage.WATCHING:
                self._watch(seconds)
            elif self._stage is _Stage.COMPARING:
                if region is None:
                    self._parts.append(seconds)
                    self._choose()
            elif region is self._probe:
                self._learn(self._improve(self._profile))

    def _watch(self, seconds: float) -> None:
        self._steps += 1
        if self._steps == 1:
            return
        self._whole = min(self._whole, seconds)
        if seconds < SLOW * max(1.0, self._lines / _LINES):
            self._settle()
        elif self._steps >= _WATCHED:
            self._probe = self._probing(self._profile)
            self._stage = _Stage.PROBING

    def _learn(self, better: Better) -> None:
        self._region = better.region or self._region
        if not better.has_parts:
            self._settle()
            return
        self._stage = _Stage.COMPARING
        self._choose()

    def _choose(self) -> None:
        """Settle for parts if they have proved faster, when there are enough steps to tell."""
        if len(self._parts) >= COMPARED:
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
