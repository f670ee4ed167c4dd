"""``CheckpointSaverHook``: a checkpoint every so many steps or seconds.

In:   a folder; steps.
Out:  checkpoints called ``model.ckpt-STEP``.
Not:  does not know how; ``saver`` does.

As in TensorFlow one is written when the first session is ready, and one at the end.
"""

from __future__ import annotations

import os
from time import monotonic
from typing import Final

from penstock.builder import Tensor, Variable
from penstock.errors import InvalidArgumentError
from penstock.session import Session
from penstock.training.hooks import (
    SessionRunArgs,
    SessionRunContext,
    SessionRunHook,
    SessionRunValues,
)
from penstock.training.saver import Saver, global_step_of
from penstock.training.scaffold import Scaffold


class CheckpointSaverHook(SessionRunHook):
    """Saves variables every N steps or seconds."""

    def __init__(
        self,
        checkpoint_dir: str | os.PathLike[str],
        save_secs: float | None = None,
        save_steps: int | None = None,
        saver: Saver | None = None,
        checkpoint_basename: str = "model.ckpt",
        scaffold: Scaffold | None = None,
        *,
        global_step: Variable | None = None,
    ) -> None:
        """Know when and where.

        Args:
            checkpoint_dir: the folder; it is made if it is not there.
            save_secs: at least so many seconds lie between two checkpoints.
            save_steps: so many steps lie between them.  Exactly one of the two is given.
            saver: what saves; None means the scaffold's.
            checkpoint_basename: what the files' names begin with.
            scaffold: has a saver, if none is given here.
            global_step: the variable that counts steps, if it is not called ``global_step``.

        Raises:
            InvalidArgumentError: neither or both of seconds and steps were given, or not positive.

        """
        if (save_secs is None) == (save_steps is None):
            raise InvalidArgumentError("Exactly one of save_secs and save_steps must be given.")
        if min(save_secs or 1, save_steps or 1) <= 0 or save_steps == 0:
            raise InvalidArgumentError("save_secs and save_steps must be positive")
        self._prefix: Final = os.path.join(os.fsdecode(checkpoint_dir), checkpoint_basename)
        self._seconds: Final = save_secs
        self._steps: Final = save_steps
        self._given: Final = saver
        self._scaffold: Final = scaffold
        self._step_variable = global_step
        self._step: Tensor | None = None
        #: The step of the last checkpoint, and when it was written; none yet in this process.
        self._last: tuple[int, float] | None = None

    def begin(self) -> None:
        """Find the global step."""
        self._step = global_step_of(self._step_variable).value()

    def after_create_session(self, session: Session, coord: object) -> None:
        """Save at once, unless that is what was just restored."""
        step = int(session.run(self._step))
        if self._saver().last_checkpoints[-1:] == [f"{self._prefix}-{step}"]:
            self._last = step, monotonic()
        else:
            self._save(session, step)

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs:
        """Ask for the step's number."""
        return SessionRunArgs(self._step)

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        """Save if it is time to."""
        # What was fetched may be from before the step; so the variable is asked again.
        if self._is_time(int(run_values.results) + 1):
            step = int(run_context.session.run(self._step))
            if self._is_time(step):
                self._save(run_context.session, step)

    def end(self, session: Session) -> None:
        """Save what is not saved yet."""
        step = int(session.run(self._step))
        if self._last is None or self._last[0] != step:
            self._save(session, step)

    def _is_time(self, step: int) -> bool:
        if self._last is None or step == self._last[0]:
            return self._last is None
        if self._steps is not None:
            return step >= self._last[0] + self._steps
        return monotonic() >= self._last[1] + (self._seconds or 0)

    def _save(self, session: Session, step: int) -> None:
        self._saver().save(session, self._prefix, step)
        self._last = step, monotonic()

    def _saver(self) -> Saver:
        found = self._given or (self._scaffold.saver if self._scaffold is not None else None)
        if found is None:
            raise InvalidArgumentError("CheckpointSaverHook has neither a saver nor a scaffold")
        return found
