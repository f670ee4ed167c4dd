"""Take one element out of a pipeline, whatever functions have to run for it.

In:   a coroutine that gives an element, and the context in which its functions run.
Out:  ``done`` gets the element, None at the end of the sequence, or the error.
Not:  knows no datasets; waits for nothing.

A coroutine yields a ``Call`` and is sent the function's results, or has its error thrown
into it; it may yield ``WORKING`` in a long loop, and ends there if its step is cancelled.
"""

from __future__ import annotations

import enum
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from threading import Lock
from typing import Any, Final, TypeAlias

from penstock.core.values import Value
from penstock.defs.attrs import FuncAttr
from penstock.errors import CancelledError, InvalidArgumentError, OutOfRangeError
from penstock.kernels.context import Done, OpKernelContext
from penstock.kernels.functional_ops import call

Element: TypeAlias = tuple[Value, ...]


class Working(enum.Enum):
    """The type of ``WORKING``."""

    WORKING = "working"


#: Asks for nothing but the chance to be cancelled.
WORKING: Final = Working.WORKING


@dataclass(frozen=True, slots=True)
class Call:
    """A function that a coroutine wants to have run, and its arguments."""

    func: FuncAttr
    args: Sequence[Value]


#: Gives an element, or None at the end.
Pull: TypeAlias = "Generator[Call | Working, Any, Element | None]"


def run_function(func: FuncAttr, args: Sequence[Value]) -> Generator[Call, Any, Element]:
    """A function's results; what ends a sequence must not come out of a function."""
    try:
        results = yield Call(func, args)
    except OutOfRangeError as error:
        raise InvalidArgumentError(
            f"Function invocation produced OutOfRangeError: {error.message}"
        ) from error
    return tuple(results)


def drive(pull: Generator[Any, Any, Any], context: OpKernelContext, done: Done) -> None:
    """Run a coroutine to its end; ``done`` gets what it returns or raises."""
    _Driver(pull, context, done).resume(None)


class _Driver:
    """One coroutine on its way.  Functions that end at once cost no stack."""

    __slots__ = ("_answers", "_context", "_done", "_is_waiting", "_lock", "_pull")

    def __init__(
        self, pull: Generator[Any, Any, Any], context: OpKernelContext, done: Done
    ) -> None:
        self._pull: Final = pull
        self._context: Final = context
        self._done: Final = done
        #: Guards what follows.  Nothing is called under it.
        self._lock = Lock()
        #: The answer that came before its call had returned; at most one.
        self._answers: list[object] = []
        #: Whether the next answer has to resume the coroutine itself.
        self._is_waiting = False

    def resume(self, answer: object) -> None:
        """Go on with an answer, as long as answers come at once."""
        while True:
            try:
                request = self._advance(answer)
            except StopIteration as end:
                self._done(end.value)
                return
            except Exception as error:  # noqa: BLE001  (handed to the node's own done)
                self._done(error)
                return
            answer = None
            if isinstance(request, Call):
                self._start(request)
                with self._lock:
                    if not self._answers:
                        self._is_waiting = True
                        return
                    answer = self._answers.pop()

    def _advance(self, answer: object) -> object:
        if self._context.cancellation_manager.is_cancelled:
            self._pull.close()
            raise CancelledError("The step was cancelled", derived=True)
        if isinstance(answer, BaseException):
            return self._pull.throw(answer)
        return self._pull.send(answer)

    def _start(self, request: Call) -> None:
        try:
            call(self._context, request.func, request.args, self._receive, allow_dead=True)
        except Exception as error:  # noqa: BLE001  (thrown into the coroutine)
            self._receive(error)

    def _receive(self, answer: object) -> None:
        with self._lock:
            if not self._is_waiting:
                self._answers.append(answer)
                return
            self._is_waiting = False
        self.resume(answer)
