"""What is said of one node.

In:   facts.
Out:  ``Explanation``: as objects, as text, as what JSON can hold.
Not:  finds nothing out.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator
from typing import Any

from penstock.dataclass import dataclass
from penstock.printable import printable


class Topic(enum.Enum):
    """What a fact is about; in the order in which facts are told."""

    RUNS = "runs"
    DEAD = "dead"
    FRAME = "frame"
    DEVICE = "device"
    OPTIMISED = "optimised"
    COMPILED = "compiled"
    SHAPE = "shape"


@dataclass(frozen=True, slots=True)
class Fact:
    """One sentence about a node."""

    topic: Topic
    text: str
    #: Whether it is why something does not work.
    is_trouble: bool = False


@dataclass(frozen=True, slots=True)
class Explanation:
    """All that is known of a node in a request."""

    node: str
    op: str
    facts: tuple[Fact, ...]

    def about(self, topic: Topic) -> str:
        """What is said of one topic; empty if that is nothing."""
        return "; ".join(fact.text for fact in self.facts if fact.topic is topic)

    @property
    def trouble(self) -> str:
        """Why something does not work; empty if everything does."""
        return "; ".join(fact.text for fact in self.facts if fact.is_trouble)

    def as_json(self) -> dict[str, Any]:
        """The same as what JSON can hold."""
        return {
            "node": self.node,
            "op": self.op,
            "facts": [
                {"topic": fact.topic.value, "text": fact.text, "trouble": fact.is_trouble}
                for fact in self.facts
            ],
        }

    def lines(self) -> Iterator[str]:
        """The same as lines of text, fit for a terminal."""
        yield printable(f"{self.node} ({self.op})")
        last = None
        for fact in self.facts:
            topic = "" if fact.topic is last else fact.topic.value
            last = fact.topic
            yield f"  {topic:10}{'! ' if fact.is_trouble else ''}{printable(fact.text)}"

    def __str__(self) -> str:
        return "\n".join(self.lines())
