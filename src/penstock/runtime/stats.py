"""What a step recorded, for those who ask for TensorFlow's messages.

In:   a recording, and what other tasks recorded.
Out:  a StepStats message, when somebody asks.
Not:  records nothing.
"""

from __future__ import annotations

from typing import Final

from penstock.defs.schema import Message
from penstock.tracing.recorder import Recording
from penstock.tracing.replay import trace_of
from penstock.tracing.step_stats import step_stats_of


class StatsCollector:
    """Records of one step on all its devices."""

    __slots__ = ("recording",)

    def __init__(self, recording: Recording) -> None:
        self.recording: Final = recording

    @property
    def remote(self) -> list[Message]:
        """What other tasks recorded, as StepStats messages.  Grows; ``append`` is atomic."""
        return self.recording.remote

    def step_stats(self) -> Message:
        """Everything as a StepStats message."""
        proto = step_stats_of(trace_of(self.recording))
        for recorded in self.remote:
            proto.MergeFrom(recorded)
        return proto
