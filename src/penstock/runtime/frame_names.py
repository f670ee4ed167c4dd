"""Names of dynamic frames: which loop, in which iterations of the loops around it.

In:   a loop's static name, and the frame and iteration that it stands in.
Out:  its name in rendezvous keys, its number, and its name for people.
Not:  knows neither tier.
"""

from __future__ import annotations

from penstock.dataclass import dataclass
from penstock.state.frame_and_iter import frame_id


@dataclass(frozen=True, slots=True)
class FrameTag:
    """One dynamic frame; the root has no parent and no name."""

    parent: FrameTag | None
    #: The iteration of the parent that it stands in.
    parent_iteration: int
    static_name: str

    @property
    def name(self) -> str:
        """The name that is the same in all partitions."""
        if self.parent is None:
            return ""
        return f"{self.parent.name};{self.parent_iteration};{self.static_name}"

    @property
    def label(self) -> str:
        """The name for people: ``outer[3]/inner``; empty for the root."""
        if self.parent is None:
            return ""
        outer = self.parent.label
        return f"{outer}[{self.parent_iteration}]/{self.static_name}" if outer else self.static_name

    @property
    def id(self) -> int:
        """A number that all partitions give the same dynamic frame; 0 for the root."""
        if self.parent is None:
            return 0
        return frame_id(self.parent.id, self.parent_iteration, self.static_name)
