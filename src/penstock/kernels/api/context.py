"""The little that a kernel may ask of the run.

Most kernels are plain functions of arrays and never see this.  Those that touch state,
other partitions or functions are registered with ``context_kernel`` or ``async_kernel``
and get an ``OpKernelContext`` as their first argument.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, Protocol, TypeAlias

from penstock.core.values import Value
from penstock.dataclass import dataclass
from penstock.defs.attrs import Attr
from penstock.state.call_frame import CallFrame
from penstock.state.cancellation import CancellationManager
from penstock.state.interrupt import Interrupt
from penstock.state.rendezvous import Rendezvous
from penstock.state.resources import ResourceManager, StepContainer
from penstock.state.session_state import SessionState, TensorStore
from penstock.state.step_state import Runner, StepState

#: Called exactly once by an asynchronous kernel, from any thread: with its outputs (as a
#: synchronous kernel would return them) or with the exception that it would raise.
Done: TypeAlias = Callable[[object], None]


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

    state: StepState
    device: str
    #: The device's resources that live as long as the session: variables, queues, tables.  What a
    #: handle means is ``resources.at(handle.device)``'s.
    resources: ResourceManager
    functions: FunctionCaller | None = None
    #: Arguments and results of the graph, or of the function that it is the body of.
    call_frame: CallFrame | None = None
    #: Schedules a closure within the step.
    runner: Runner | None = None
    #: How many function calls the step is inside of.
    call_depth: int = 0

    @property
    def step_id(self) -> int:
        """A number that no other step of the process has."""
        return self.state.id

    @property
    def interrupt(self) -> Interrupt:
        """Whether, and why, the step must end."""
        return self.state.interrupt

    @property
    def cancellation_manager(self) -> CancellationManager:
        """Wakes what waits."""
        return self.state.cancellation_manager

    @property
    def step_container(self) -> StepContainer:
        """Resources that live for this step only: stacks, tensor arrays."""
        return self.state.container

    @property
    def rendezvous(self) -> Rendezvous | None:
        """Where what is sent and received meets; None if nothing is."""
        return self.state.rendezvous

    @property
    def session_state(self) -> SessionState | None:
        """Where tensors are kept between steps; None without a session."""
        return self.state.session_state

    @property
    def tensor_store(self) -> TensorStore:
        """What the step wants to keep for later ones."""
        return self.state.tensor_store


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
        return self.step.state.interrupt

    @property
    def cancellation_manager(self) -> CancellationManager:
        """The step's; blocking kernels register here to be woken."""
        return self.step.state.cancellation_manager

    @property
    def resources(self) -> ResourceManager:
        """The device's resources; those of a handle are ``resources.at(handle.device)``."""
        return self.step.resources

    @property
    def step_container(self) -> StepContainer:
        """Resources of this step."""
        return self.step.state.container
