"""What a session asks of the process, as long as it is open.

In:   its configuration.
Out:  the number of threads that kernels share their work with, and whether that is learnt, as the
      session asks; given up when it closes, or when nobody refers to it any more.
Not:  knows nothing else of the session.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

from penstock.config import Config
from penstock.kernels.parallel.contention import contention


class Claims:
    """The claims of one session."""

    def __init__(self, session: object, config: Config) -> None:
        """Make them; they end with ``session`` at the latest."""
        self._given: list[Callable[[], Any]] = []
        if not config.adaptive:
            contention.pin()
            self._given.append(weakref.finalize(session, contention.unpin))
        if config.intra_op_parallelism_threads:
            threads = max(config.intra_op_parallelism_threads, 1)
            contention.limit(threads)
            self._given.append(weakref.finalize(session, contention.lift, threads))

    def give_up(self) -> None:
        """End them; may be called twice."""
        for end in self._given:
            end()
