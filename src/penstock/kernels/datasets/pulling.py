"""Take one element out of a pipeline, whatever functions have to run for it.

In:   a coroutine that gives an element, and the context in which its functions run.
Out:  ``done`` gets the element, None at the end of the sequence, or the error.
Not:  knows no datasets; waits for nothing.

A coroutine yields a ``FunctionCall`` and is sent the function's results, or has its error thrown
into it; it may yield ``WORKING`` in a long loop, and ends there if its step is cancelled.
"""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Generator, Sequence
from threading import Lock
from typing import Any, Final, TypeAlias

from penstock.core.values import Value
from penstock.dataclass import dataclass
from penstock.defs.attrs import FuncAttr
from penstock.errors import CancelledError, InvalidArgumentError, OpError, OutOfRangeError
from penstock.kernels.api.context import CallKind, Done, OpKernelContext
from penstock.kernels.control_flow.functional_ops import call
from penstock.state.cancellation import CancellationManager
from penstock.state.interrupt import Activity, Interrupt
from penstock.state.rendezvous import Rendezvous

Element: TypeAlias = tuple[Value, ...]


class Working(enum.Enum):
    """The type of ``WORKING``."""

    WORKING = "working"


#: Asks for nothing but the chance to be cancelled.
WORKING: Final = Working.WORKING


@dataclass(frozen=True, slots=True)
class FunctionCall:
    """A function that a coroutine wants to have run, and its arguments."""

    func: FuncAttr
    args: Sequence[Value]


#: Gives an element, or None at the end.
Pull: TypeAlias = "Generator[FunctionCall | Working, Any, Element | None]"


def run_function(func: FuncAttr, args: Sequence[Value]) -> Generator[FunctionCall, Any, Element]:
    """A function's results; what ends a sequence must not come out of a function."""
    try:
        results = yield FunctionCall(func, args)
    except OutOfRangeError as error:
        raise InvalidArgumentError(
            f"Function invocation produced OutOfRangeError: {error.message}"
        ) from error
    return tuple(results)


def drive(pull: Generator[Any, Any, Any], context: OpKernelContext, done: Done) -> None:
    """Run a coroutine to its end; ``done`` gets what it returns or raises."""
    _Driver(pull, context, done).resume(None)


class _Within(Interrupt):
    """Ends functions when the step ends, and when one of them fails; ends nothing else."""

    __slots__ = ("_ends", "_outer")

    def __init__(self, outer: Interrupt) -> None:
        self._outer: Final = outer
        self._ends = False
        self.may_be_left = outer.may_be_left

    @property
    def activities(self) -> dict[int, Activity]:
        """What goes on in the step."""
        return self._outer.activities

    @property
    def loops_end(self) -> bool:
        """Whether loops must end, here or in the whole step."""
        return self._ends or self._outer.loops_end

    @loops_end.setter
    def loops_end(self, value: bool) -> None:
        self._ends = value

    @property
    def reason(self) -> OpError | None:
        """Why the step must end."""
        return self._outer.reason

    @reason.setter
    def reason(self, value: OpError | None) -> None:
        self._outer.reason = value

    def end(self, reason: OpError) -> None:
        """End the step."""
        self._outer.end(reason)

    def escape(self, cause: BaseException, reason: OpError) -> None:
        """End the step, and have ``run`` raise ``cause``."""
        self._outer.escape(cause, reason)

    def blame(self, failure: BaseException) -> BaseException:
        """The failure, of which the step may never hear; or the reason why the step ends."""
        return self._outer.reason or failure

    def verdict(self) -> OpError:
        """The error of work that is dropped."""
        return self._outer.verdict()


class _Driver:
    """One coroutine on its way.  Functions that end at once cost no stack.

    A function that fails does not end the step: the coroutine may know what to do.  So they
    run with a cancellation manager, an interrupt and a rendezvous of their own.
    """

    __slots__ = ("_answers", "_context", "_done", "_inner", "_is_waiting", "_lock", "_pull")

    def __init__(
        self, pull: Generator[Any, Any, Any], context: OpKernelContext, done: Done
    ) -> None:
        self._pull: Final = pull
        self._context: Final = context
        self._done: Final = done
        #: Where functions run; None before the first, and after one that failed.
        self._inner: OpKernelContext | None = None
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
                self._finish(end.value)
                return
            except BaseException as error:  # noqa: BLE001  (handed to the node's own done)
                self._finish(error)
                return
            answer = None
            if isinstance(request, FunctionCall):
                self._start(request)
                with self._lock:
                    if not self._answers:
                        self._is_waiting = True
                        return
                    answer = self._answers.pop()

    def _finish(self, result: object) -> None:
        self._leave()
        self._done(result)

    def _advance(self, answer: object) -> object:
        if self._context.cancellation_manager.is_cancelled:
            self._pull.close()
            raise CancelledError("The step was cancelled", derived=True)
        if isinstance(answer, BaseException):
            self._leave()
            return self._pull.throw(answer)
        return self._pull.send(answer)

    def _start(self, request: FunctionCall) -> None:
        try:
            inner = self._enter()
            self._context.waits_for = f"the function {request.func.name}"
            call(inner, request.func, request.args, self._receive, kind=CallKind.CAPTURED)
        except BaseException as error:  # noqa: BLE001  (thrown into the coroutine)
            self._receive(error)

    def _enter(self) -> OpKernelContext:
        if self._inner is None:
            outer = self._context.step
            inner = outer.state.within(
                Rendezvous(),
                interrupt=_Within(outer.interrupt),
                cancellation_manager=CancellationManager(outer.cancellation_manager),
            )
            step = dataclasses.replace(outer, state=inner)
            self._inner = dataclasses.replace(self._context, step=step)
        return self._inner

    def _leave(self) -> None:
        if self._inner is not None:
            self._inner.cancellation_manager.close()
            self._inner = None

    def _receive(self, answer: object) -> None:
        with self._lock:
            if not self._is_waiting:
                self._answers.append(answer)
                return
            self._is_waiting = False
        self.resume(answer)
