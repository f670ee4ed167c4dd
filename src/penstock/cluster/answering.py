"""How a server's event loop has work done that may wait.

In:   a request, and a function that answers it on whichever thread.
Out:  the answer; or gRPC's form of an error.
Not:  knows no method.

Whatever may wait (a step, a queue in it) has a thread as long as it takes, so that nothing waits
for a thread.  When the caller goes away, or its time is up, the work is told.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import Any, Final, TypeVar

from penstock.cluster.services import status_of
from penstock.cluster.wire_errors import shortened, to_wire
from penstock.errors import CancelledError, OpError
from penstock.exceptions import from_exception
from penstock.session.run import Call

_Result = TypeVar("_Result")
_log: Final = logging.getLogger("penstock.cluster")


async def in_thread(
    threads: ThreadPoolExecutor,
    work: Callable[[Any, Call], _Result],
    request: Any,
    *,
    unwanted: Callable[[_Result], object] | None = None,
) -> _Result:
    """What ``work`` returns for a request; if nobody waits for it any more, its call ends.

    If it returns something all the same, that is given to ``unwanted``, on the same thread.
    """
    call = Call()
    future = threads.submit(work, request, call)
    try:
        return await asyncio.wrap_future(future)
    except asyncio.CancelledError:
        call.cancel(CancelledError("The request was cancelled by its caller"))
        if unwanted is not None:
            future.add_done_callback(partial(_take_back, unwanted))
        raise


def _take_back(unwanted: Callable[[_Result], object], future: Future[_Result]) -> None:
    if not future.cancelled() and future.exception() is None:
        unwanted(future.result())


async def refuse(context: Any, error: BaseException) -> None:
    """Answer by an error, in the call's status."""
    code, text = to_wire(as_op_error(error))
    await context.abort(status_of(code), text)


def as_op_error(error: BaseException) -> OpError:
    """The error that a client is told of."""
    if not isinstance(error, OpError):
        _log.error("A request failed in a way that is a mistake of ours", exc_info=error)
    return from_exception(error)


def noted_in(answer: Any, error: BaseException) -> Any:
    """An answer whose body holds an error."""
    answer.status_code, text = to_wire(as_op_error(error))
    answer.status_error_message = shortened(text)
    return answer
