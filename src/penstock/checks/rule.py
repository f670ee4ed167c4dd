"""A rule: its code, its name, and the function that looks.

In:   a ``Subject``.
Out:  findings, with the rule's code and severity.
Not:  says nothing of the order in which rules look.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from penstock.checks.finding import Finding, Severity
from penstock.checks.subject import Subject
from penstock.dataclass import dataclass
from penstock.graph.graph import Node


@dataclass(frozen=True, slots=True)
class Remark:
    """What a rule's function says."""

    node: Node | None
    message: str
    next_step: str = ""
    others: Sequence[Node] = ()


@dataclass(frozen=True, slots=True)
class Rule:
    """One kind of mistake."""

    code: str
    #: A few words, by which docs and other tools call it.
    name: str
    severity: Severity
    #: Yields remarks.
    look: Callable[[Subject], Iterator[Remark]]

    def findings(self, subject: Subject) -> Iterator[Finding]:
        """What it finds, one finding for each node."""
        seen: set[Node | None] = set()
        for remark in self.look(subject):
            if remark.node not in seen:
                seen.add(remark.node)
                yield self._finding(subject, remark)

    def _finding(self, subject: Subject, remark: Remark) -> Finding:
        node = remark.node
        return Finding(
            self.code,
            self.severity,
            node.name if node is not None else "",
            (node.function if node is not None else "") or subject.graph.function,
            remark.message,
            remark.next_step,
            tuple(other.name for other in remark.others),
        )
