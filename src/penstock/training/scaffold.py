"""``Scaffold``: how a session gets ready for its first step.

In:   nodes that initialize, nodes that tell what is still missing, a saver.
Out:  a session whose variables have their values: of the last checkpoint, or their first ones.
Not:  makes no session.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from penstock.builder import default_graph, global_variables_initializer
from penstock.errors import FailedPreconditionError
from penstock.session import Session
from penstock.training.saver import Saver


class Scaffold:
    """What a graph needs besides its steps; what is not given is made of its variables."""

    def __init__(
        self,
        init_op: Any = None,
        init_feed_dict: Mapping[Any, Any] | None = None,
        init_fn: Callable[[Scaffold, Session], object] | None = None,
        ready_op: Any = None,
        local_init_op: Any = None,
        saver: Saver | None = None,
    ) -> None:
        """Take what is given.

        Args:
            init_op: gives variables their first values, if there is no checkpoint.
            init_feed_dict: what is fed to it.
            init_fn: is called with this and the session after ``init_op``.
            ready_op: a tensor with the names of what is not ready; empty if all is.
            local_init_op: runs whenever a session is made, after the rest.
            saver: saves and restores.

        """
        self.init_op = init_op
        self.init_feed_dict = init_feed_dict
        self.init_fn = init_fn
        self.ready_op = ready_op
        self.local_init_op = local_init_op
        self.saver = saver

    def finalize(self) -> Scaffold:
        """Make what is missing, in the default graph; nothing is added to that later."""
        if self.init_op is None:
            self.init_op = global_variables_initializer()
        if self.ready_op is None:
            variables = default_graph().variables
            self.ready_op = {one.name: one.is_initialized() for one in variables}
        if self.saver is None:
            self.saver = Saver()
        return self

    def prepare(self, session: Session, checkpoint: str | None) -> None:
        """Get a session ready.

        Args:
            session: a new one.
            checkpoint: the prefix to restore from; None to begin at the beginning.

        Raises:
            FailedPreconditionError: something is not ready after all that.
            OpError: a step fails.

        """
        if checkpoint is not None and self.saver is not None:
            self.saver.restore(session, checkpoint)
        else:
            session.run(self.init_op, self.init_feed_dict)
            if self.init_fn is not None:
                self.init_fn(self, session)
        if self.local_init_op is not None:
            session.run(self.local_init_op)
        missing = self.missing(session)
        if missing:
            raise FailedPreconditionError(
                "Init operations did not make model ready. Variables not initialized: "
                f"{', '.join(missing)}",
                next_step="save them as well, or give them values in init_op or local_init_op",
            )

    def missing(self, session: Session) -> list[str]:
        """The names of what has no value yet in a session."""
        found = session.run(self.ready_op)
        if isinstance(found, dict):
            return [name for name, is_ready in found.items() if not is_ready]
        names = np.asarray(found, object).reshape(-1)
        return [n.decode("utf-8", "replace") if isinstance(n, bytes) else str(n) for n in names]
