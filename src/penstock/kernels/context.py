"""The little that a kernel may ask of the run.

Most kernels are plain functions of arrays and never see this.  Those that touch state,
other partitions or functions are registered with ``context_kernel`` or ``async_kernel``
and get an ``OpKernelContext`` as their first argument.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol, TypeAlias

from penstock.core.values import Value
from penstock.defs.attrs import Attr
from penstock.state.call_frame import CallFrame
from penstock.state.cancellation import CancellationManager
from penstock.state.interrupt import Interrupt
from penstock.state.rendezvous import Rendezvous
from penstock.state.resources import ResourceManager, StepContainer
from penstock.state.session_state import SessionState, TensorStore

#: Called exactly once by an asynchronous kernel, from any thread: with its outputs (as a
#: synchronous kernel would return them) or with the exception that it would raise.
Done: TypeAlias = Callable[[object], None]
#: Has a closure run, now or later, on this thread or another.
Runner: TypeAlias = Callable[[Callable[[], None]], None]


class CallKind(enum.Enum):
    """How a function is called."""

    #: All of it runs on one device, with all that has effects; all of its results must be alive.
    NATIVE = enum.auto()
    #: The same, but dead results come out as empty tensors.
    CAPTURED = enum.auto()
    #: What its results need, and what it names (``control_ret``), runs where it asks to; dead
    #: results come out as empty tensors.
    PARTITIONED = enum.auto()


class FunctionCaller(Protocol):
    """Runs functions of the graph's library on behalf of kernels."""

    def call(
        self,
        name: str,
        attrs: Mapping[str, Attr],
        args: Sequence[Value],
        context: OpKernelContext,
        done: Done,
        *,
        kind: CallKind = CallKind.NATIVE,
        device: str = "",
    ) -> None:
        """Start a function; ``done`` gets a tuple of its results, or the error.

        It runs on a device, the caller's own if none is named.
        """

    def check(self, name: str, attrs: Mapping[str, Attr]) -> None:
        """Raise OpError unless a function is there, and its definition makes sense."""


class Waiting(NamedTuple):
    """What an asynchronous kernel waits for, for those who ask why a step hangs."""

    #: That, as it is now; from any thread.
    describe: Callable[[], str]
    #: The ops whose nodes can end the wait, if they have the same resource.
    ended_by: frozenset[str] = frozenset()
    #: Its container and name.
    resource: tuple[str, str] = ("", "")


class FrameTag(Protocol):
    """What a kernel may know of the frame it runs in."""

    @property
    def name(self) -> str:
        """The dynamic name, "" at the root."""

    @property
    def label(self) -> str:
        """The frame's name for people, "" at the root."""

    @property
    def id(self) -> int:
        """The frame's number in rendezvous keys, 0 at the root."""


@dataclass(frozen=True, slots=True)
class StepContext:
    """What all kernels of one step on one device share."""

    step_id: int
    device: str
    #: Resources that live as long as the session: variables, queues, tables.
    resources: ResourceManager
    #: Resources that live for this step only: stacks, tensor arrays.
    step_container: StepContainer
    cancellation_manager: CancellationManager
    rendezvous: Rendezvous | None = None
    call_frame: CallFrame | None = None
    session_state: SessionState | None = None
    tensor_store: TensorStore | None = None
    functions: FunctionCaller | None = None
    #: Schedules a closure within the step.
    runner: Runner | None = None
    #: Where slow kernels run; None keeps them on the step's own thread.
    pool: Runner | None = None
    interrupt: Interrupt = field(default_factory=Interrupt)
    #: Whether denormal numbers are zeros, wherever the step runs.
    flush: bool = False
    #: How many function calls the step is inside of.
    call_depth: int = 0
    #: Who watches the functions that are called; None if nobody does.  Kernels have no use for it.
    observers: object | None = None


@dataclass(frozen=False, slots=True)
class OpKernelContext:
    """One activation of one node: where it stands in the step."""

    step: StepContext
    node_name: str
    op: str
    frame: FrameTag
    iteration: int
    #: Whether a data input is dead; only transfer nodes ever see True.
    is_input_dead: bool
    #: What an asynchronous kernel waits for, in words for people; it may say so here.
    waits_for: Waiting | str = ""

    @property
    def interrupt(self) -> Interrupt:
        """The step's; whatever may go on for long asks it now and then."""
        return self.step.interrupt

    @property
    def cancellation_manager(self) -> CancellationManager:
        """The step's; blocking kernels register here to be woken."""
        return self.step.cancellation_manager

    @property
    def resources(self) -> ResourceManager:
        """Resources of the session."""
        return self.step.resources

    @property
    def step_container(self) -> StepContainer:
        """Resources of this step."""
        return self.step.step_container
