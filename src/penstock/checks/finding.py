"""What a check says about a graph.

In:   what a rule found.
Out:  records that people, programs and other tools can read.
Not:  finds nothing.
"""

from __future__ import annotations

import enum

from penstock.dataclass import dataclass


class Severity(enum.Enum):
    """What comes of a finding."""

    #: Whoever asks for it gets an error, waits for ever, or waits in vain.
    ERROR = "error"
    #: Results may differ from run to run, be inexact, or take longer than they must.
    WARNING = "warning"
    #: Nothing comes of it; it may be a mistake all the same.
    NOTE = "note"


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that one rule says of one node."""

    #: Such as ``PS101``.
    code: str
    severity: Severity
    #: The node that it is about, as the graph has it; empty if it is about the graph as a whole.
    node: str
    #: The function that the node is written in; empty for the graph's own.
    function: str
    #: What is the matter, as a sentence.
    message: str
    #: What to do about it.
    next_step: str = ""
    #: Other nodes that have part in it.
    others: tuple[str, ...] = ()

    def __str__(self) -> str:
        place = f"{self.function}: {self.node}" if self.function else self.node
        text = f"{self.code} {self.severity.value}  {place}  {self.message}"
        return f"{text}\n  next  {self.next_step}" if self.next_step else text
