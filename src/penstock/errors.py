"""Every exception that Penstock raises, by TensorFlow's canonical codes.

    Exception
      OpError                         anything that goes wrong with a graph or a step
        CancelledError                the step was cancelled, or the session closed
        UnknownError
        InvalidArgumentError          bad graph, bad feed, bad value
        DeadlineExceededError         a timeout ran out
        NotFoundError                 a name, file, function or op is not there
        AlreadyExistsError
        PermissionDeniedError
        ResourceExhaustedError        out of memory, or an absurd shape
        FailedPreconditionError       uninitialised or closed state
        AbortedError                  the peer of a transfer went away
        OutOfRangeError               a closed and empty queue, the end of a file
        UnimplementedError            no kernel, or a removed op
        InternalError                 our mistake: please report it
        UnavailableError
        DataLossError
        UnauthenticatedError

An error says what happened, where (node, op, device, frame, iteration) and what to do
next.  The facts are fields; ``message`` is made from them and keeps TensorFlow's key
phrases, the ``{{node NAME}}`` tag included.

An error's text may name what a graph names: ``message`` shows it with escapes where a terminal
would obey it.  Its only line breaks are those between the parts; what needs several lines is given
as ``details``, so that no name can begin a line of its own.

Not: this module imports nothing of Penstock but ``advice`` and ``printable``, so that every layer
may raise.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

from penstock.advice import Advice
from penstock.dataclass import dataclass
from penstock.printable import printable


class Code(enum.IntEnum):
    """The canonical status codes."""

    OK = 0
    CANCELLED = 1
    UNKNOWN = 2
    INVALID_ARGUMENT = 3
    DEADLINE_EXCEEDED = 4
    NOT_FOUND = 5
    ALREADY_EXISTS = 6
    PERMISSION_DENIED = 7
    RESOURCE_EXHAUSTED = 8
    FAILED_PRECONDITION = 9
    ABORTED = 10
    OUT_OF_RANGE = 11
    UNIMPLEMENTED = 12
    INTERNAL = 13
    UNAVAILABLE = 14
    DATA_LOSS = 15
    UNAUTHENTICATED = 16


@dataclass(frozen=True, slots=True)
class Where:
    """The place in a graph, and in a step, where something went wrong."""

    node: str
    op: str = ""
    device: str = ""
    frame: str = ""
    iteration: int = 0
    #: The function whose body the node is in; empty for the graph's own nodes.
    function: str = ""

    def __str__(self) -> str:
        text = f"[[{{{{node {self.node}}}}}]]"
        if self.op:
            text += f" ({self.op})"
        if self.device:
            text += f" on {self.device}"
        if self.frame:
            text += f", frame {self.frame}, iteration {self.iteration}"
        if self.function:
            text += f", in function {self.function}"
        return text


class OpError(Exception):
    """Something went wrong with a graph or a step; see ``code``.

    ``reason`` is the bare sentence, ``details`` the lines of a list that goes with it, ``where``
    the place (or None), ``next_step`` the advice to a Python program (or ""), ``message`` all of
    them as one text.  ``advice`` is the same as facts, for those who say it in other words; plain
    text if no words differ.
    ``derived`` marks the mere consequence of another error, which is never reported when its
    cause is known.
    """

    code: ClassVar[Code] = Code.UNKNOWN

    def __init__(
        self,
        reason: str,
        *,
        details: Iterable[str] = (),
        where: Where | None = None,
        next_step: str | Advice = "",
        derived: bool = False,
    ) -> None:
        super().__init__(reason)
        self.reason = reason
        self.details = tuple(details)
        self.where = where
        self.advice = next_step
        self.derived = derived

    @property
    def next_step(self) -> str:
        """What to do, in the words of a Python program."""
        return str(self.advice)

    @property
    def message(self) -> str:
        """What, where and what next."""
        return self.worded(self.next_step)

    def worded(self, next_step: str) -> str:
        """The same with the advice in other words, say those of the command line."""
        parts = [self.reason, *self.details]
        if self.where is not None:
            parts.append(f"  at    {self.where}")
        if next_step:
            parts.append(f"  next  {next_step}")
        return "\n".join(map(printable, parts))

    @property
    def node_name(self) -> str | None:
        """Name of the node that failed, if one did."""
        return self.where.node if self.where else None

    @property
    def op_type(self) -> str | None:
        """Op of the node that failed, if one did."""
        return self.where.op if self.where else None

    @property
    def device(self) -> str | None:
        """Device of the node that failed, if one did."""
        return self.where.device if self.where else None

    def at(self, where: Where) -> OpError:
        """Note the place, unless a more precise one is already known; returns self."""
        if self.where is None:
            self.where = where
        return self

    def copy(self) -> OpError:
        """An equal error that can be raised again, without the first one's traceback."""
        return type(self)(
            self.reason,
            details=self.details,
            where=self.where,
            next_step=self.advice,
            derived=self.derived,
        )

    def with_details(self, lines: Iterable[str]) -> OpError:
        """The same error, which says more."""
        made = self.copy()
        made.details = (*self.details, *lines)
        made.__cause__ = self.__cause__
        return made

    def __str__(self) -> str:
        return self.message

    def __reduce__(self) -> tuple[object, ...]:
        # The default would lose the keyword-only facts on the way to another process.
        facts = {name: getattr(self, name) for name in ("details", "where", "derived")}
        return _restore, (type(self), self.reason, {**facts, "next_step": self.advice})


def _restore(cls: type[OpError], reason: str, facts: Mapping[str, Any]) -> OpError:
    return cls(reason, **facts)


class AdvisedWarning(UserWarning):
    """Something that goes on, but perhaps not as it was meant; with advice, as errors have it."""

    def __init__(self, reason: str, advice: str | Advice = "") -> None:
        super().__init__(reason, advice)
        self.reason = reason
        self.advice = advice

    def worded(self, advice: str) -> str:
        """What is the matter, and advice in somebody's words."""
        return printable(f"{self.reason}. {advice}." if advice else self.reason)

    def __str__(self) -> str:
        return self.worded(str(self.advice))


class CancelledError(OpError):
    """The step was cancelled, or its session was closed."""

    code = Code.CANCELLED


class UnknownError(OpError):
    """An error of no known kind."""

    code = Code.UNKNOWN


class InvalidArgumentError(OpError):
    """A graph, a feed or a value is not acceptable."""

    code = Code.INVALID_ARGUMENT


class DeadlineExceededError(OpError):
    """A timeout ran out before the step was done."""

    code = Code.DEADLINE_EXCEEDED


class NotFoundError(OpError):
    """A name, file, function or op is not there."""

    code = Code.NOT_FOUND


class AlreadyExistsError(OpError):
    """Something is created that exists already."""

    code = Code.ALREADY_EXISTS


class PermissionDeniedError(OpError):
    """The operating system refused."""

    code = Code.PERMISSION_DENIED


class ResourceExhaustedError(OpError):
    """Memory ran out, or a shape asks for more than there can be."""

    code = Code.RESOURCE_EXHAUSTED


class FailedPreconditionError(OpError):
    """Some state is not ready: uninitialised, finalised or closed."""

    code = Code.FAILED_PRECONDITION


class AbortedError(OpError):
    """A transfer's other side went away."""

    code = Code.ABORTED


class OutOfRangeError(OpError):
    """There is no more: a closed and empty queue, the end of a file."""

    code = Code.OUT_OF_RANGE


class UnimplementedError(OpError):
    """There is no kernel, or the op was removed."""

    code = Code.UNIMPLEMENTED


class InternalError(OpError):
    """A law of the runtime was broken, by Penstock itself or by a custom kernel."""

    code = Code.INTERNAL


class UnavailableError(OpError):
    """A service is not reachable now."""

    code = Code.UNAVAILABLE


class DataLossError(OpError):
    """Stored data is damaged."""

    code = Code.DATA_LOSS


class UnauthenticatedError(OpError):
    """Credentials are missing."""

    code = Code.UNAUTHENTICATED
