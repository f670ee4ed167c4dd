"""Run a recorded step again, in the same order, and compare.

In:   a ``Recording``, or the path of one.
Out:  the same results; or an error that says at which node the step is another one, and why.
Not:  records nothing.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from penstock.errors import AbortedError, Code, DeadlineExceededError
from penstock.printable import printable
from penstock.replays.orders import DemandedOrder
from penstock.replays.recording import Recording
from penstock.replays.task import Attempt, Ending, Stage


def replay(
    recording: Recording | str | os.PathLike[str],
    *,
    times: int = 1,
    allow_files: bool = False,
    timeout_in_ms: int = 0,
) -> Mapping[str, Any]:
    """Run a recorded step again, each time in a session of its own state; returns its results.

    A step that failed fails again, and gives no results.

    Args:
        recording: what ``record`` gave, or the path of its file.
        times: how often.
        allow_files: whether the step may read and write files, and call functions of Python, as it
            perhaps did when it was recorded.
        timeout_in_ms: each time fails after this; 0 means never.

    Raises:
        AbortedError: the step cannot be run in the recorded order, or gives something else.
        DeadlineExceededError: it did not end in time, and did when it was recorded.
        OpError: the file cannot be read, or the graph not be run here.

    """
    found = recording if isinstance(recording, Recording) else Recording.load(recording)
    results: Mapping[str, Any] = {}
    with Stage(found.task, allow_files=allow_files) as stage:
        for _ in range(times):
            results = _once(found, stage, timeout_in_ms)
    return results


def _once(recording: Recording, stage: Stage, timeout_in_ms: int) -> Mapping[str, Any]:
    order = DemandedOrder(recording.events)
    attempt = stage.attempt(order, timeout_in_ms)
    if order.divergence is not None:
        raise order.divergence
    if isinstance(attempt.error, DeadlineExceededError) and recording.ending.code is not (
        Code.DEADLINE_EXCEEDED
    ):
        raise attempt.error
    order.check_end()
    difference = _difference(recording.ending, attempt)
    if difference:
        raise AbortedError(f"The replay took the recorded order, but {difference}")
    return attempt.results


def _difference(wanted: Ending, attempt: Attempt) -> str:
    """How a step ended otherwise than it should have; empty if it did not."""
    found = attempt.ending
    if found.code is not wanted.code:
        return f"it ended with {found.code.name} rather than {wanted.code.name}: {found.message}"
    for name, digest in wanted.digests.items():
        if found.digests.get(name) != digest:
            return f"{printable(name)} is another value"
    return "" if found.state == wanted.state else "it left another state"
