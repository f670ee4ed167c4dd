"""When a request is tried as one function that is left if a kernel must wait.

In:   how each trial ended, and how long steps took on the executor.
Out:  the function for the next step, or None: then the step begins on the executor.
Not:  runs nothing.

A function that is left has the rest of its step done node by node, without compiled regions.  So a
request that has to wait is run by the executor as a whole, which has them: for one step after the
first time, and for twice as many after each time that follows without a success between.  Steps
that take long gain little, and the executor can do their parts side by side: three of them in a
row have some steps run there, and whichever was faster goes on.  The fewest seconds of each are
compared, since on a busy machine any step may take long.

The function is made twice: the first one notes how large values are, in the only step that it is
for, and the second one is written for those.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from threading import Lock
from typing import Final

from penstock.core.limits import Limits
from penstock.runtime.compiler.profile import Profile
from penstock.runtime.compiler.trial import Trial
from penstock.state.interrupt import Interrupt

#: After so many steps at most it is tried again.
_LONGEST_PAUSE: Final = 64
#: After so many slow trials in a row the executor is asked: one may be slow by chance.
_SLOW_STEPS: Final = 3
#: So many steps of the executor are compared with them.
_COMPARED_STEPS: Final = 3
#: So many come before those and are not compared: they make kernels.
_FIRST_STEPS: Final = 1

#: Makes the function that fills a profile, or the one that is written for it.
Make = Callable[[Interrupt, Profile, bool], "Trial | None"]


class Trials:
    """The trials of one request; safe to use from several threads."""

    def __init__(self, make: Make, limits: Limits, *, is_wanted: bool) -> None:
        """Make the function when it is first to be tried."""
        self._make = make
        self._slow = limits.slow_trial
        #: Guards what follows; not held while the function is made.
        self._lock = Lock()
        #: How many steps come before the next trial; None if there is none any more.  Read without
        #: the lock, too, by who then has nothing to do.
        self._pause: int | None = limits.untried_steps if is_wanted else None
        #: How many there were before the last one.
        self._last_pause = 0
        #: Trials in a row that took long.
        self._slow_steps = 0
        #: The fewest seconds of a trial, and of a step on the executor.
        self._fewest = self._fewest_elsewhere = math.inf
        #: How many steps of the executor are yet to be seen, the first ones included.
        self._unseen = _FIRST_STEPS + _COMPARED_STEPS
        #: What the first function notes, and whether there has been one.
        self._profile = Profile()
        self._is_probed = False
        #: The second function; None before it is made, and when it is not of use.
        self._trial: Trial | None = None

    def take(self, interrupt: Interrupt) -> Trial | None:
        """The function for a step, which must tell how it ended; None for the executor.

        Raises:
            OpError: the reason of ``interrupt``, that of the step for which it is made.

        """
        with self._lock:
            if self._pause is None:
                return None
            if self._pause > 0:
                self._pause -= 1
                return None
            if self._trial is not None:
                return self._trial
            # For others, while it is made, and while the first one is used.
            self._pause = _LONGEST_PAUSE
            is_first, self._is_probed = not self._is_probed, True
        trial = self._make(interrupt, self._profile, is_first)
        with self._lock:
            if trial is None:
                self._pause = None
            elif not is_first:
                self._trial, self._pause, self._profile = trial, 0, Profile()
        return trial

    def note_done(self, seconds: float) -> None:
        """A trial went to its end, and took so long."""
        with self._lock:
            self._last_pause = 0
            if self._trial is None:  # it was the first one
                self._pause = 0 if self._pause is not None else None
                return
            self._fewest = min(self._fewest, seconds)
            self._slow_steps = self._slow_steps + 1 if seconds > self._slow else 0
            if self._slow_steps >= _SLOW_STEPS:
                self._compare()

    def _compare(self) -> None:
        """Leave it to the executor from now on, or until it is known which is faster."""
        self._slow_steps = 0
        if self._unseen:
            self._pause = self._unseen
        elif self._fewest >= self._fewest_elsewhere:
            self._pause = self._trial = None

    def note_untried(self, seconds: float) -> None:
        """A step that was no trial succeeded, and took so long."""
        if self._pause is None:  # which it stays
            return
        with self._lock:
            if self._unseen <= _COMPARED_STEPS:
                self._fewest_elsewhere = min(self._fewest_elsewhere, seconds)
            self._unseen = max(self._unseen - 1, 0)

    def note_left(self) -> None:
        """A trial was left."""
        with self._lock:
            self._last_pause = min(max(1, 2 * self._last_pause), _LONGEST_PAUSE)
            if self._pause is not None:
                self._pause = self._last_pause
