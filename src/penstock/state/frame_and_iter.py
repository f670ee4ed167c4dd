"""Which dynamic frame, and which iteration of it, in two numbers.

In:   the loops around an activation, by name, each with its iteration.
Out:  ``FrameAndIter``, the last part of every rendezvous key.
Not:  knows no graph; frames that never exist have numbers like any other.
"""

from __future__ import annotations

from typing import NamedTuple

from penstock.core.hash64 import combine64, hash64


class FrameAndIter(NamedTuple):
    """One iteration of one dynamic frame; ``FrameAndIter()`` is outside of all loops."""

    #: The frame's number, the same in all executors and all steps; 0 outside of all loops.
    frame_id: int = 0
    iteration: int = 0

    @classmethod
    def of(cls, *loops: tuple[str, int]) -> FrameAndIter:
        """The numbers of an iteration, given the loops around it, outermost first.

        ``FrameAndIter.of(("outer", 3), ("inner", 0))`` is iteration 0 of the frame ``inner``
        that iteration 3 of the frame ``outer`` has entered.  Frames are named as their Enter
        nodes name them (``frame_name``).
        """
        frame, iteration = 0, 0
        for static_name, number in loops:
            frame, iteration = frame_id(frame, iteration, static_name), number
        return cls(frame, iteration)

    def __str__(self) -> str:
        return f"{self.frame_id}:{self.iteration}"


def frame_id(parent: int, parent_iteration: int, static_name: str) -> int:
    """The number of a dynamic frame: that of the frame around it, which iteration, and its name.

    TensorFlow's executors number frames like that, and meet others' by these numbers.
    """
    return combine64(parent, combine64(parent_iteration, hash64(static_name.encode())))
