"""Where a step stands, and where it is to stop next.

In:   an activation that was seen, and at which moment.
Out:  ``Stop``: plain facts, which outlive the step; ``Goal``: what somebody who says "go on" means.
Not:  waits for nothing.
"""

from __future__ import annotations

import enum
import fnmatch
from collections.abc import Callable
from typing import TypeAlias

from penstock.dataclass import dataclass
from penstock.debugger.breakpoints import Seen, TensorFilter
from penstock.debugger.places import is_exit, is_within
from penstock.errors import OpError
from penstock.printable import printable, printable_lines


class Moment(enum.Enum):
    """When a step stops."""

    BEFORE = "before"
    #: The node has run, and nobody has read what it gives.
    AFTER = "after"
    DEAD = "dead"
    FAILED = "failed"
    #: There is no step any more.
    ENDED = "ended"


@dataclass(frozen=True, slots=True)
class Stop:
    """A place where a step stood."""

    moment: Moment
    #: Why it stopped there.
    reason: str
    #: How many activations were over.
    number: int
    node: str = ""
    op: str = ""
    function: str = ""
    device: str = ""
    #: The loops around the node, for people; empty outside of all.
    frame: str = ""
    #: The iteration of each of these loops, the outermost first.
    iterations: tuple[int, ...] = ()
    #: How many calls that are not inlined it is inside of.
    depth: int = 0
    #: The node from whose function the node is, if that was inlined; empty otherwise.
    call: str = ""
    #: Why the node, or the step, failed.
    error: OpError | None = None

    @property
    def iteration(self) -> int:
        """The iteration of the innermost loop; 0 outside of all."""
        return self.iterations[-1] if self.iterations else 0

    @property
    def place(self) -> str:
        """The node with its loop and iteration."""
        where = f" in {self.frame}[{self.iteration}]" if self.iterations else ""
        inside = f", function {self.function}" if self.function else ""
        return printable(f"{self.node} ({self.op}){where}{inside}")

    def __str__(self) -> str:
        if self.moment is Moment.ENDED:
            return f"the step has ended: {printable_lines(self.reason)}"
        return f"{self.moment.value} {self.place}: {printable(self.reason)}"


#: Whether a step has come to where it was to come.
Reached: TypeAlias = Callable[[Seen, Moment], bool]


@dataclass(frozen=True, slots=True)
class Goal:
    """What "go on" means."""

    #: What is said when it is reached.
    what: str
    reached: Reached
    heeds_breakpoints: bool = True


def to_the_end(*, heeds_breakpoints: bool = True) -> Goal:
    """Until a breakpoint, or the end."""
    return Goal("", lambda _seen, _moment: False, heeds_breakpoints)


def steps(count: int) -> Goal:
    """So many nodes; dead ones, which do nothing, do not count."""
    left = [count]

    def reached(_seen: Seen, moment: Moment) -> bool:
        left[0] -= moment is Moment.AFTER
        return left[0] <= 0 and moment is Moment.AFTER

    return Goal("step", reached)


def to_node(pattern: str, *, is_before: bool = False) -> Goal:
    """To a node of that name, whether it is dead or not."""
    wanted = Moment.BEFORE if is_before else Moment.AFTER

    def reached(seen: Seen, moment: Moment) -> bool:
        is_time = moment in (wanted, Moment.DEAD)
        return is_time and fnmatch.fnmatchcase(seen.node, pattern)

    return Goal(f"came to {pattern}", reached)


def to_filter(name: str, wanted: TensorFilter, excluded: Callable[[str], object]) -> Goal:
    """To the first output that passes a filter, of a node whose name is not ``excluded``."""

    def reached(seen: Seen, moment: Moment) -> bool:
        return moment is Moment.AFTER and not excluded(seen.node) and seen.passes(wanted)

    return Goal(f"passes {name}", reached)


def to_next_iteration(stop: Stop) -> Goal:
    """To the first node of the next iteration of the loop that ``stop`` is in, or out of it."""
    outer = stop.iterations[:-1]

    def reached(seen: Seen, moment: Moment) -> bool:
        at = seen.at
        if moment is not Moment.AFTER or at.frame != stop.frame or at.iterations[:-1] != outer:
            return False
        return at.iteration > stop.iteration or is_exit(at)

    return Goal(f"next iteration of {stop.frame}", reached)


def out_of_loop(stop: Stop) -> Goal:
    """To the first value that leaves the loop that ``stop`` is in."""

    def reached(seen: Seen, moment: Moment) -> bool:
        at = seen.at
        is_same = at.frame == stop.frame and at.iterations[:-1] == stop.iterations[:-1]
        return moment is Moment.AFTER and is_same and is_exit(at)

    return Goal(f"end of {stop.frame}", reached)


def out_of_call(stop: Stop) -> Goal:
    """To the first node that is not from the function that ``stop`` is in."""

    def reached(seen: Seen, moment: Moment) -> bool:
        if moment is not Moment.AFTER or seen.at.call_depth > stop.depth:
            return False
        if seen.at.call_depth < stop.depth:
            return True
        return bool(stop.call) and not is_within(seen.node, stop.call)

    return Goal(f"end of {stop.function}", reached)
