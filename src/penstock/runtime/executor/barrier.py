"""Several executors of one step: when all are done, and whose error counts.

In:   the outcome of each executor, from any thread.
Out:  ``done`` is called once, by the last to arrive, with None or one error for all.
Not:  starts no executor and stops none; it only aborts the rendezvous where they meet.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from threading import Lock

from penstock.errors import AbortedError, CancelledError, OpError
from penstock.runtime.executor.params import DoneCallback
from penstock.state.rendezvous import Rendezvous


class ExecutorBarrier:
    """Waits for several executors of one step, and sums their errors up."""

    def __init__(self, count: int, rendezvous: Rendezvous | None, done: DoneCallback) -> None:
        self._rendezvous = rendezvous
        self._done = done
        #: Guards what follows.  Innermost.
        self._lock = Lock()
        self._pending = count
        #: Errors in order of arrival.
        self._errors: list[OpError] = []

    def arrive(self, error: OpError | None) -> None:
        """One executor is done; the last one to arrive calls ``done``."""
        with self._lock:
            is_first_error = error is not None and not self._errors
            if error is not None:
                self._errors.append(error)
            self._pending -= 1
            is_last = self._pending == 0
        if is_first_error and self._rendezvous is not None:
            # Those who are told may fail in turn; ``done`` must be called all the same.
            with contextlib.suppress(Exception):
                self._rendezvous.start_abort(
                    AbortedError("Stopping remaining executors.", derived=True)
                )
        if is_last:
            self._done(summarize(self._errors))


def summarize(errors: Sequence[OpError]) -> OpError | None:
    """One error for several executors: the root ones, not their consequences."""
    if not errors:
        return None
    roots: list[OpError] = []
    for error in errors:
        is_new = all((e.code, e.message) != (error.code, error.message) for e in roots)
        if not error.derived and is_new:
            roots.append(error)
    if not roots:
        return errors[0]
    if len(roots) == 1:
        return roots[0]
    first = next((e for e in roots if not isinstance(e, CancelledError)), roots[0])
    share = 8192 // len(roots)
    listed = [f"  ({i}) {e.code.name}: {e.message[:share]}" for i, e in enumerate(roots)]
    ignored = len(errors) - len(roots)
    return type(first)(
        f"{len(roots)} root error(s) found.",
        details=[*"\n".join(listed).split("\n"), f"{ignored} derived errors ignored."],
        where=first.where,
    )
