"""``MonitoredSession``: a session that recovers, saves checkpoints, and calls hooks.

In:   a graph, a folder for checkpoints, hooks; steps.
Out:  their results.  What a lost session had done since the last checkpoint is done anew.
Not:  does not know where steps run: whatever makes sessions may make the next one elsewhere.

What counts as lost, and in which order all is called, is as in TensorFlow: after an AbortedError or
an UnavailableError, of a step or of a hook, the session is closed, another one made and restored,
and the same call is run again.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from functools import partial
from time import monotonic, sleep
from types import TracebackType
from typing import Any, Final, TypeVar

from penstock.builder import Graph, Variable, default_graph
from penstock.checkpoint import latest
from penstock.config import RunMetadata
from penstock.errors import (
    AbortedError,
    DeadlineExceededError,
    InvalidArgumentError,
    OutOfRangeError,
    UnavailableError,
)
from penstock.session import Session
from penstock.training.checkpoint_hook import CheckpointSaverHook
from penstock.training.hooks import (
    SessionRunArgs,
    SessionRunContext,
    SessionRunHook,
    SessionRunValues,
)
from penstock.training.scaffold import Scaffold

_Result = TypeVar("_Result")
_log: Final = logging.getLogger("penstock.training")

#: Errors that say that the session is lost, and not that the graph is wrong.
LOST: Final = (AbortedError, UnavailableError)
_DEFAULT_SECONDS: Final = 600
#: Seconds between two attempts to make a session, at first and at most.
_SHORTEST, _LONGEST = 0.05, 5.0


class StepContext:
    """What a function gets that ``run_step_fn`` calls."""

    def __init__(self, session: Session, run: Callable[..., Any], stop: Callable[[], None]) -> None:
        #: The session itself, without hooks.
        self.session: Final = session
        #: Runs a step with the hooks: fetches, ``feed_dict``, ``options``, ``run_metadata``.
        self.run_with_hooks: Final = partial(run, session)
        #: Lets ``should_stop`` be True from now on.
        self.request_stop: Final = stop


class MonitoredSession:
    """Runs steps as a ``Session`` does, and survives the loss of one; use it in a ``with``.

    One thread at a time runs steps; ``request_stop`` and ``should_stop`` are for any thread.
    """

    def __init__(
        self,
        graph: Graph | None = None,
        *,
        target: str = "",
        is_chief: bool = True,
        checkpoint_dir: str | os.PathLike[str] | None = None,
        scaffold: Scaffold | None = None,
        hooks: Iterable[SessionRunHook] = (),
        chief_only_hooks: Iterable[SessionRunHook] = (),
        save_checkpoint_secs: float | None = None,
        save_checkpoint_steps: int | None = None,
        config: Any = None,
        max_wait_secs: float = 7200,
        global_step: Variable | None = None,
        session_factory: Callable[[], Session] | None = None,
    ) -> None:
        """Make the first session, restore or initialize it, and call the hooks.

        Args:
            graph: what is trained; None means the default graph.
            target: where sessions run, as for ``Session``.
            is_chief: whether this process initializes, restores and saves; others wait for it.
            checkpoint_dir: the folder of checkpoints; restored from at the beginning and after a
                loss.  None: there are none, and training begins anew.
            scaffold: how sessions get ready; None makes all of the graph's variables.
            hooks: what is called around steps.
            chief_only_hooks: the same, for the chief.
            save_checkpoint_secs: seconds between checkpoints; 600 if neither this nor
                ``save_checkpoint_steps`` is given, never if it is 0.
            save_checkpoint_steps: steps between checkpoints.
            config: the sessions'.
            max_wait_secs: so long is tried to get a session before that is an error.
            global_step: the variable that counts steps, if it is not called ``global_step``.
            session_factory: makes sessions, in place of ``Session(graph, target=…, config=…)``.

        Raises:
            InvalidArgumentError: both kinds of intervals were given; or there are to be checkpoints
                and the graph has no global step.
            DeadlineExceededError: no session could be had in time.
            OpError: the graph is not acceptable, or its initialization fails.

        """
        self._graph: Final = graph or default_graph()
        self._folder: Final = None if checkpoint_dir is None else os.fsdecode(checkpoint_dir)
        self._is_chief: Final = is_chief
        self._patience: Final = max_wait_secs
        self._scaffold: Final = scaffold or Scaffold()
        self._hooks: Final = [*hooks, *(chief_only_hooks if is_chief else ())]
        #: Makes a session; called again after each loss.
        self._make: Final = session_factory or (
            lambda: Session(self._graph, target=target, config=config)
        )
        #: The present one; None while there is none.
        self._session: Session | None = None
        #: Set by any thread, never cleared.
        self._should_stop = False
        self._is_closed = False
        if self._folder is not None and is_chief:
            self._add_saving(save_checkpoint_secs, save_checkpoint_steps, global_step)
        with self._graph.as_default():
            for hook in self._hooks:
                hook.begin()
            self._scaffold.finalize()
        if self._folder is not None and self._scaffold.saver is not None:
            self._scaffold.saver.recover(self._folder)
        self._reopened()

    def _add_saving(
        self, seconds: float | None, steps: int | None, global_step: Variable | None
    ) -> None:
        if seconds is not None and steps is not None:
            raise InvalidArgumentError(
                "save_checkpoint_secs and save_checkpoint_steps cannot both be given"
            )
        if seconds is None and steps is None:
            seconds = _DEFAULT_SECONDS
        if seconds != 0 and steps != 0:
            assert self._folder is not None
            saving = CheckpointSaverHook(
                self._folder, seconds, steps, scaffold=self._scaffold, global_step=global_step
            )
            self._hooks.append(saving)

    @property
    def graph(self) -> Graph:
        """The graph that it runs; nothing should be added to it any more."""
        return self._graph

    @property
    def scaffold(self) -> Scaffold:
        """How its sessions get ready."""
        return self._scaffold

    # -- stopping -----------------------------------------------------------------------------

    def should_stop(self) -> bool:
        """Whether a hook, or somebody else, wants no more steps."""
        return self._should_stop or self._is_closed

    def request_stop(self) -> None:
        """Let ``should_stop`` be True from now on; a step under way is not ended."""
        self._should_stop = True

    # -- steps ------------------------------------------------------------------------------

    def run(
        self,
        fetches: Any,
        feed_dict: Mapping[Any, Any] | None = None,
        options: Any = None,
        run_metadata: RunMetadata | None = None,
    ) -> Any:
        """Run a step with the hooks, as often as it takes until no session is lost over it.

        Raises:
            RuntimeError: no more steps were wanted.
            DeadlineExceededError: no session could be had in time.
            OpError: what ``Session.run`` raises, but for AbortedError and UnavailableError.

        """
        return self._kept(
            lambda session: self._run_once(session, fetches, feed_dict, options, run_metadata)
        )

    def run_step_fn(self, step_fn: Callable[[StepContext], _Result]) -> _Result:
        """Call a function that runs steps, anew if the session is lost meanwhile."""
        return self._kept(
            lambda session: step_fn(StepContext(session, self._run_once, self.request_stop))
        )

    def _run_once(
        self,
        session: Session,
        fetches: Any,
        feed_dict: Mapping[Any, Any] | None = None,
        options: Any = None,
        run_metadata: RunMetadata | None = None,
    ) -> Any:
        if self.should_stop():
            raise RuntimeError("Run called even after should_stop requested.")
        context = SessionRunContext(SessionRunArgs(fetches, feed_dict, options), session)
        wanted = {"caller": fetches}
        feeds = dict(feed_dict or {})
        for number, hook in enumerate(self._hooks):
            asked = hook.before_run(context)
            if asked is None:
                continue
            if asked.fetches is not None:
                wanted[str(number)] = asked.fetches
            _add_feeds(feeds, asked.feed_dict)
            options = options if options is not None else asked.options
        metadata = run_metadata if run_metadata is not None else RunMetadata()
        results = session.run(wanted, feeds, options, run_metadata)
        for number, hook in enumerate(self._hooks):
            values = SessionRunValues(results.get(str(number)), options, metadata)
            hook.after_run(context, values)
        if context.stop_requested:
            self._should_stop = True
        return results["caller"]

    # -- sessions ----------------------------------------------------------------------------

    def _kept(self, work: Callable[[Session], _Result]) -> _Result:
        """Do something with a session, and again with the next one if that one is lost."""
        while True:
            session = self._session or self._reopened()
            try:
                return work(session)
            except LOST as error:
                _log.warning("the session is lost, and another one is made: %s", error)
                self._drop()

    def _reopened(self) -> Session:
        """A session that is ready; tried until there is one, or the time is up."""
        pause, deadline = _SHORTEST, monotonic() + self._patience
        while True:
            try:
                self._session = self._opened(deadline)
            except LOST as error:
                if monotonic() + pause > deadline:
                    raise _no_session(self._patience) from error
                _log.warning("no session yet: %s", error)
                sleep(pause)
                pause = min(pause * 2, _LONGEST)
            else:
                return self._session

    def _opened(self, deadline: float) -> Session:
        """A new session, ready for steps."""
        if self._is_closed:
            raise RuntimeError("Run called even after should_stop requested.")
        session = self._make()
        try:
            if self._is_chief:
                last = None if self._folder is None else latest(self._folder)
                self._scaffold.prepare(session, last)
            else:
                self._wait_for_chief(session, deadline)
            for hook in self._hooks:
                hook.after_create_session(session, self)
        except BaseException:
            _close(session)
            raise
        return session

    def _wait_for_chief(self, session: Session, deadline: float) -> None:
        """Wait until another process has initialized what this one uses."""
        pause = _SHORTEST
        while self._scaffold.missing(session):
            if monotonic() >= deadline:
                raise _no_session(self._patience)
            sleep(pause)
            pause = min(pause * 2, _LONGEST)

    def _drop(self) -> None:
        session, self._session = self._session, None
        if session is not None:
            _close(session)

    # -- its end -------------------------------------------------------------------------------

    def close(self) -> None:
        """End training: call ``end`` of all hooks, and close the session.  May be called twice.

        A session that is lost just now is not rebuilt for that.
        """
        if self._is_closed:
            return
        self._is_closed = True
        try:
            if self._session is not None:
                for hook in self._hooks:
                    hook.end(self._session)
        except LOST as error:
            _log.warning("the session was lost when it was to be closed: %s", error)
        finally:
            self._drop()

    def __enter__(self) -> MonitoredSession:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool:
        """Close it; what says that there is no more data is no error.

        After other errors hooks are not told of an end, and nothing is saved.
        """
        if kind is None or issubclass(kind, (OutOfRangeError, StopIteration)):
            self.close()
            return kind is not None
        self._is_closed = True
        self._drop()
        return False


def _add_feeds(feeds: dict[Any, Any], more: Mapping[Any, Any] | None) -> None:
    for key, value in (more or {}).items():
        if key in feeds:
            raise InvalidArgumentError(
                f"Same tensor is fed by two hooks, or by one and the caller: {key}"
            )
        feeds[key] = value


def _no_session(seconds: float) -> DeadlineExceededError:
    return DeadlineExceededError(
        f"No session was ready within {seconds:g} seconds",
        next_step="see whether the target's servers run, or allow more time by max_wait_secs",
    )


def _close(session: Session) -> None:
    """Close a session of which nobody expects anything any more."""
    with suppress(Exception):
        session.close()
