"""Learn in the first steps how a compiled request is best run.

In:   how long each step took; then, once, what each statement of a step cost.
Out:  the region that the next step should use, or that it is to run as parts.
Not:  measures nothing itself, and never changes what a step computes.

A request whose steps are fast is left as it is.  A slow one is run once with a probe behind
every statement; then it is compiled again with what was learnt: long arrays are worked off in
pieces, and expensive parts that do not need each other become regions of their own, for the
pool to run side by side.  Whether that is faster nobody knows beforehand, and it depends on who
else wants the cores, other steps of the request included.  So some steps are run in both ways by
turns (``turns.py``); again after some more, and after ever more as long as that changes nothing.
Parts must be faster, and much faster if they take cores that were idle, which others may want.
What is known to be slow when it is compiled has its probes at once.
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from threading import Lock
from typing import Final, NamedTuple

from penstock.core.limits import DEFAULT_LIMITS, Limits
from penstock.errors import OpError
from penstock.runtime.compiler.profile import Profile
from penstock.runtime.compiler.region import Region
from penstock.runtime.turns import Turns
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
#: Steps between two comparisons: at first, and at most.
_FIRST_PAUSE: Final = 128
_LONGEST_PAUSE: Final = 1 << 14


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
    #: Steps are timed, to learn whether they are slow.
    WATCHING = enum.auto()
    #: A step that has ended compiles something; the others go on as before.
    COMPILING = enum.auto()
    #: One step is, or is to be, probed.
    PROBING = enum.auto()
    #: Steps are run as one region and as parts by turns, and timed.
    COMPARING = enum.auto()
    #: Steps are run in the way that was faster, and counted.
    CHOSEN = enum.auto()
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
        #: The best region so far.
        self._region = region
        #: Whether parts are faster than that.  Read without the lock, like the region.
        self._as_parts = False
        self._compared_steps = limits.compared_steps
        self._slow = slow
        self._probing = probing
        self._improve = improve
        #: Guards what follows, but for reading ``_stage``.  Not held while a region is compiled:
        #: the stage says so, and nobody waits for it.
        self._lock = Lock()
        #: Read without the lock.
        self._stage = _Stage.WATCHING
        self._steps = 0
        self._profile = Profile()
        #: The probed region; None unless PROBING.
        self._probe: Region | None = None
        #: Whether some step has taken it.
        self._is_probing = False
        #: What makes a region without probes, if there is only one with them; or None.
        self._make_plain: Callable[[], Region] | None = None
        #: How much of the time parts may take.
        self._gain = _GAIN
        #: The comparison under way, if COMPARING.
        self._turns = Turns(0)
        #: How many steps come before the next comparison, and came before the last one.
        self._pause = self._last_pause = 0

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
        return None if self._as_parts else self._region

    def give_up(self) -> None:
        """Let go of what the region holds, which no step may need any more."""
        self._region.give_up()

    def take(self) -> Region | None:
        """The region for one step, or None for parts; that step must report by ``note``."""
        if self._stage is _Stage.SETTLED and self._make_plain is None:
            return self._region
        if self._stage is _Stage.COMPARING:
            with self._lock:
                return None if self._turns.take_parts() else self._region
        if self._stage is _Stage.PROBING:
            with self._lock:
                if self._probe is not None and not self._is_probing:
                    self._is_probing = True
                    return self._probe
                self._profile.has_others = True
        return self.region if self._make_plain is None else self._plain()

    def _plain(self) -> Region:
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
        match self._stage:
            case _Stage.WATCHING if self._is_slow(seconds):
                return self._compile_probe
            case _Stage.PROBING if region is self._probe:
                return self._compile_better
            case _Stage.PROBING:
                self._profile.has_others = True
            case _Stage.COMPARING if region is None or region is self._region:
                self._turns.note(seconds, as_parts=region is None)
                self._choose()
            case _Stage.CHOSEN:
                self._pause -= 1
                if self._pause <= 0:
                    self._compare()
        return None

    def _is_slow(self, seconds: float) -> bool:
        """Whether enough steps have been watched, and none of them was fast."""
        self._steps += 1
        if self._steps > 1 and seconds < self._slow:
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
            if self._profile.cores_used >= _BUSY:
                self._gain = 1.0
            self._settle()
            if better.has_parts:
                self._compare()

    def _compare(self) -> None:
        """Run steps in both ways from now on, by turns."""
        self._stage, self._turns = _Stage.COMPARING, Turns(self._compared_steps)
        self._choose()

    def _choose(self) -> None:
        """Go on with the faster way, when there are enough steps to tell."""
        if not self._turns.are_over:
            return
        before, ratio = self._as_parts, self._turns.ratio
        # What runs as parts already need not be much faster.
        self._as_parts = ratio < (1.0 if before else self._gain)
        is_new = self._as_parts is not before or not self._last_pause
        self._last_pause = _FIRST_PAUSE if is_new else min(2 * self._last_pause, _LONGEST_PAUSE)
        self._pause, self._stage = self._last_pause, _Stage.CHOSEN

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
