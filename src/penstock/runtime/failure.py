"""What a step reports when something in it has failed, on either tier.

In:   what a kernel raised, the step's ``Interrupt``, and where it was.
Out:  the canonical error with its place, or the reason for which the step was ended before.
Not:  ends no step, but for what is no error at all: SystemExit, KeyboardInterrupt and the like.
"""

from __future__ import annotations

from collections.abc import Callable
from threading import current_thread, main_thread

from penstock.errors import OpError, Where
from penstock.exceptions import from_exception, shown_cause
from penstock.state.interrupt import Interrupt


def judged(
    cause: BaseException,
    interrupt: Interrupt,
    find_place: Callable[[], Where | None],
    *,
    is_late: bool,
) -> OpError:
    """The error of a kernel that raised ``cause``.

    Args:
        cause: what was raised.
        interrupt: the step's.
        find_place: the kernel's place, as far as it is known; called only if nobody else has
            told it: an error that has a place was judged there, in a function or on another
            device.
        is_late: whether the step has failed already, so that this is a mere consequence.

    """
    if interrupt.blame(cause) is interrupt.reason:
        return interrupt.verdict()
    error = from_exception(cause)
    if error.where is None:
        where = find_place()
        if where is not None:
            error = error if error is not cause else error.copy()
            error.at(where)
        error.derived |= is_late
    if error is not cause:
        error.__cause__ = shown_cause(cause)
    if not isinstance(cause, Exception) and current_thread() is main_thread():
        # It may come from a signal handler, in whichever kernel the thread is just then.
        cause.add_note(error.message)
        interrupt.escape(cause, error)
    return error
