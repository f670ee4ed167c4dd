"""How busy the machine is, as far as this process can tell.

In:   how many kernels run side by side; how long equal pieces of work took.
Out:  how many threads may help with a piece of work, and whether work is to be shared at all.
Not:  starts no thread; measures nothing itself.

The law of whatever adapts to this, or to times: it may change where and when something is
computed, never what.  How a sum is cut into parts follows from shapes and from the number of cores,
never from here.  (Who gives up ``Config.exact_repetition`` gives up that law for heavy regions.)

There is one such object for the process, since there is one machine.  As long as a session with
``Config(adaptive=False)`` is open, it says that the machine is idle, whatever happens; and such a
session learns nothing from times: neither which kernels are slow, nor how a request is best run.

The law of threads is stated here as well, since all of them want the same cores:

- a kernel's work is shared by the threads of ``intra_op``, one less than there are cores, which
  sleep while they wait; a kernel beside others, or others that are about to run, has its share of
  them (``helpers``);
- the kernels in C have as many threads of their own, which spin for 200 microseconds before they
  sleep, since the next node often has work for them by then, and for 20 in the second after the
  system took cores away from the process's threads a hundred times a second or more; one kernel has
  them at a time; a caller lends its core to one of them that has lost its own to another program,
  and so keeps it waiting; if it waits longer than it worked all the same, the next works are done
  without them for a while;
- OpenBLAS works on the threads that call it, and on no others (``blas.alone``);
- ONNX Runtime has as many threads of its own as there are cores, less the one that calls it, which
  spin for 200 microseconds before they sleep, since the next step often follows at once; nothing
  else of a kernel runs while a model does;
- ``Config(intra_op_parallelism_threads=...)`` limits all of them (``limit``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from time import perf_counter
from typing import Final

from penstock.core.forks import in_children, process_lock

#: A piece of work is suspicious if it took so many times as long as another, and so many
#: seconds on top.
_TIMES, _SECONDS = 2.0, 5e-4
#: For so many seconds, at least and at most, work is not shared after that.
_SHORTEST, _LONGEST = 0.05, 2.0


class Contention:
    """Who else uses the cores: kernels of this process, and other programs."""

    __slots__ = (
        *("_busy_until", "_is_suspicious", "_kernels", "_limits", "_lock", "_most", "_pause"),
        *("_pins", "_told"),
    )

    def __init__(self) -> None:
        #: Guards changes of the numbers.  Innermost.
        self._lock = process_lock()
        #: Kernels that run side by side, or are about to.  Read without the lock: who sees an old
        #: number has one helper too many or too few.
        self._kernels = 0
        #: Sessions that want no adaptation.  Read without the lock, too.
        self._pins = 0
        #: How many threads open sessions grant a kernel, each of them that does.  Under ``_lock``.
        self._limits: list[int] = []
        #: The least of them; None if there are none.  Read without the lock, too.
        self._most: int | None = None
        #: Who is told that ``helpers`` may say something else now.  Grows, and is called, under
        #: ``_lock``.
        self._told: list[Callable[[], None]] = []
        # What follows is changed without a lock: races do no harm.
        #: Until when cores are taken to be busy, by ``perf_counter``.
        self._busy_until = 0.0
        #: How long they will be taken to be busy next time.
        self._pause = _SHORTEST
        #: Whether the last work was kept waiting.
        self._is_suspicious = False

    # -- kernels of this process --------------------------------------------------------

    def count(self, more: int) -> None:
        """Say that so many kernels more run side by side, or are about to; fewer, if negative."""
        with self._lock:
            self._kernels += more
            self._tell()

    def tell(self, changed: Callable[[], None]) -> None:
        """Call something now, and whenever ``helpers`` may say something else."""
        with self._lock:
            self._told.append(changed)
            changed()

    def _tell(self) -> None:
        for changed in self._told:
            changed()

    def helpers(self, most: int) -> int:
        """How many of the threads beside the caller's may help it: all, or its share of them."""
        kernels, most = self._kernels, self.threads(most + 1) - 1
        return most if kernels < 2 or self._pins else max((most + 1) // kernels - 1, 0)

    def threads(self, cores: int) -> int:
        """How many threads a kernel may have, its own included, where there are so many cores."""
        most = self._most
        return cores if most is None else min(most, cores)

    def limit(self, threads: int) -> None:
        """Grant kernels no more threads, until ``lift`` is called with the same number."""
        with self._lock:
            self._limits.append(threads)
            self._most = min(self._limits)
            self._tell()

    def lift(self, threads: int) -> None:
        """Take a limit back."""
        with self._lock:
            self._limits.remove(threads)
            self._most = min(self._limits, default=None)
            self._tell()

    # -- other programs -------------------------------------------------------------------

    @property
    def is_busy(self) -> bool:
        """Whether whoever shares work now is likely to wait for a core that others hold."""
        return perf_counter() < self._busy_until and not self._pins

    def note(self, seconds: Sequence[float]) -> None:
        """Learn from the times of equal pieces: whoever took far longer was kept waiting.

        Once may be a helper's memory and caches, which it had lost to other work.
        """
        was_suspicious = self._is_suspicious
        self._is_suspicious = max(seconds) > _TIMES * min(seconds) + _SECONDS
        if not self._is_suspicious:
            self._pause = _SHORTEST
        elif was_suspicious:
            self._busy_until = perf_counter() + self._pause
            self._pause = min(2 * self._pause, _LONGEST)

    # -- no adaptation ----------------------------------------------------------------------

    def pin(self) -> None:
        """Say that the machine is idle, until ``unpin`` is called as often."""
        with self._lock:
            self._pins += 1
            self._tell()

    def unpin(self) -> None:
        """Say again what is the case, if nobody else has it pinned."""
        with self._lock:
            self._pins -= 1
            self._tell()

    def forget_threads(self) -> None:
        """Begin anew in the child of a fork, where no kernel runs."""
        self._kernels = 0
        self._tell()


#: The machine's.
contention: Final = Contention()
in_children(contention.forget_threads)
