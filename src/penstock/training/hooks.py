"""Hooks: what is called around the steps of a ``MonitoredSession``.

In:   a session, and what a step is asked for.
Out:  more fetches and feeds for the step; a wish to stop.
Not:  runs no step.

The order is TensorFlow's: ``begin`` of all hooks, before the session is made; then, each time a
session is made, ``after_create_session``; for each step ``before_run`` and ``after_run``; ``end``
if all went well.  In each of these, hooks are called in the order in which they were given.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from penstock.builder import Tensor, Variable
from penstock.config import RunMetadata
from penstock.errors import InvalidArgumentError
from penstock.session import Session
from penstock.training.saver import global_step_of


@dataclass(frozen=True, slots=True)
class SessionRunArgs:
    """What a hook wants of a step, or what the caller does."""

    #: As ``Session.run`` takes them; None for nothing.
    fetches: Any
    feed_dict: Mapping[Any, Any] | None = None
    options: Any = None


@dataclass(frozen=True, slots=True)
class SessionRunValues:
    """What a step gave a hook."""

    #: The values of the hook's own fetches, in their nesting.
    results: Any
    options: Any
    run_metadata: RunMetadata | None


class SessionRunContext:
    """One step, as hooks see it."""

    def __init__(self, original_args: SessionRunArgs, session: Session) -> None:
        #: What the caller asked for.
        self.original_args = original_args
        #: The session itself, without hooks.
        self.session = session
        self._is_over = False

    @property
    def stop_requested(self) -> bool:
        """Whether a hook wants this step to be the last one."""
        return self._is_over

    def request_stop(self) -> None:
        """Let ``should_stop`` be True after this step."""
        self._is_over = True


class SessionRunHook:
    """Does nothing; subclasses do what they want to."""

    def begin(self) -> None:
        """Called once, before there is a session; may still add to the graph."""

    def after_create_session(self, session: Session, coord: object) -> None:
        """Called when a session is ready, also after each recovery.

        Args:
            session: the session itself, without hooks.
            coord: what has ``request_stop`` and ``should_stop``.

        """

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs | None:
        """Called before each step; what is returned becomes part of it."""
        return None

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        """Called after each step that did not fail."""

    def end(self, session: Session) -> None:
        """Called when training ends without an error; the session is still open."""


class StopAtStepHook(SessionRunHook):
    """Stops after a number of steps, or at one."""

    def __init__(
        self,
        num_steps: int | None = None,
        last_step: int | None = None,
        *,
        global_step: Variable | None = None,
    ) -> None:
        """Know when to stop.

        Args:
            num_steps: so many steps after the first session began; recovery changes nothing.
            last_step: when the global step has this value.  Exactly one of the two is given.
            global_step: the variable that counts steps, if it is not called ``global_step``.

        Raises:
            InvalidArgumentError: neither or both were given.

        """
        if (num_steps is None) == (last_step is None):
            raise InvalidArgumentError("Exactly one of num_steps and last_step must be specified.")
        self._count: Final = num_steps
        #: The last step; known when the first session begins.
        self._last = last_step
        self._variable: Final = global_step
        self._step: Tensor | None = None

    def begin(self) -> None:
        """Find the global step."""
        self._step = global_step_of(self._variable).value()

    def after_create_session(self, session: Session, coord: object) -> None:
        """Learn where training begins."""
        if self._last is None and self._count is not None:
            self._last = int(session.run(self._step)) + self._count

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs:
        """Ask for the step's number."""
        return SessionRunArgs(self._step)

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        """Stop if it was the last one."""
        last = self._last or 0
        # What was fetched may be from before the step; so the variable is asked again.
        is_near = int(run_values.results) + 1 >= last
        if is_near and int(run_context.session.run(self._step)) >= last:
            run_context.request_stop()
