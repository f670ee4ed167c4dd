"""Run statements for some entries of a batch after the others, while a step may go on.

In:   the function of these statements, and how it takes a batch.
Out:  what it would give for all entries at once.
Not:  chooses no statements; ``split_batches`` does.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from penstock.kernels.parallel.batches import Batches
from penstock.state.interrupt import Interruptible, end_loop


def in_batches(
    function: Callable[..., Sequence[Any]], batches: Batches, run: Interruptible, *args: Any
) -> Sequence[Any]:
    """``function(run, *args)``, for some entries after the others.

    Raises:
        OpError: the step must end.

    """

    def ask() -> None:
        if run.interrupt.loops_end:
            end_loop(run.interrupt)

    return batches.apply(partial(function, run), args, ask)
