"""How much a server keeps of what others send.

In:   nothing: these are numbers that no honest cluster comes near to.
Out:  the numbers.
Not:  bounds no memory of graphs that are run; ``Config.limits`` does, for each step.
"""

from __future__ import annotations

from penstock.dataclass import dataclass
from penstock.errors import ResourceExhaustedError


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """What is more than this is refused."""

    #: Calls under way at a time.
    calls: int = 65_536
    #: Steps that have begun, or that others ask for, and of which nobody said that they are over.
    steps: int = 65_536
    #: Sessions of a master and of a worker, graphs of a worker, callables and partial runs of a
    #: session.
    kept: int = 65_536
    #: Devices in groups and instances of collective operations, counted once for each.
    members: int = 262_144
    #: Seconds after which a session ends that nobody has named: clients do so as soon as they have
    #: it, so it was made for somebody who had gone when it was there.
    first_use_seconds: float = 600.0


def check_room(what: str, count: int, bound: int, next_step: str) -> None:
    """Raise ResourceExhaustedError unless there is room for one more."""
    if count >= bound:
        raise ResourceExhaustedError(
            f"There are {count} {what} already, and no room for another one", next_step=next_step
        )
