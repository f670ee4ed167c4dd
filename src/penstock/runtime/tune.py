"""Learn in the first steps how a compiled request is best run.

In:   how long each step took; then, once, what each statement of a step cost.
Out:  the region that the next step should use.
Not:  measures nothing itself, and never changes what a step computes.

A request whose steps are fast is left as it is.  A slow one is run once with a probe behind
every statement; then it is compiled again with what was learnt: long arrays are worked off in
pieces, and expensive parts that do not need each other become regions of their own, for the
pool to run side by side.
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from threading import Lock
from typing import Final

from penstock.runtime.compiler.profile import Profile
from penstock.runtime.compiler.region import Region

#: Steps that take fewer seconds are not worth tuning.
SLOW: Final = 1e-3
#: Steps that are only timed; the first one fills caches and is not representative.
_WATCHED: Final = 3

#: Makes the region that fills a profile.
Probing = Callable[[Profile], Region]
#: Takes a profile; returns a better region, or None if there is no better one (or if it is
#: none of one region any more, and whoever made this has seen to that).
Improve = Callable[[Profile], Region | None]


class _Stage(enum.Enum):
    #: Steps are timed.
    WATCHING = enum.auto()
    #: One step is, or is to be, probed.
    PROBING = enum.auto()
    SETTLED = enum.auto()


class Tuner:
    """The region of one request, better after some steps."""

    def __init__(self, region: Region, probing: Probing, improve: Improve) -> None:
        self._region = region
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

    @property
    def region(self) -> Region:
        """The best region so far."""
        return self._region

    def take(self) -> Region:
        """The region for one step; that step must report by ``note``."""
        if self._stage is not _Stage.PROBING:
            return self._region
        with self._lock:
            probe = self._probe
            if probe is None or self._is_probing:
                return self._region
            self._is_probing = True
            return probe

    def note(self, region: Region, seconds: float) -> None:
        """A step with ``region`` has succeeded."""
        if self._stage is _Stage.SETTLED:
            return
        with self._lock:
            if self._stage is _Stage.WATCHING:
                self._watch(seconds)
            elif region is self._probe:
                better = self._improve(self._profile)
                self._region = better or self._region
                self._settle()

    def _watch(self, seconds: float) -> None:
        self._steps += 1
        if self._steps == 1:
            return
        if seconds < SLOW:
            self._settle()
        elif self._steps >= _WATCHED:
            self._probe = self._probing(self._profile)
            self._stage = _Stage.PROBING

    def _settle(self) -> None:
        """Keep the region, and forget what it was made from."""
        self._stage = _Stage.SETTLED
        self._probe = None
        self._profile = Profile()
        self._probing, self._improve = _no_probing, _no_improving


def _no_probing(_profile: Profile) -> Region:
    raise AssertionError("settled")


def _no_improving(_profile: Profile) -> Region | None:
    return None
