"""PS102: what is fetched and can only be dead.

In:   a subject.
Out:  a remark for each node that needs two branches of which only one is ever taken, or one that
      never is.
Not:  runs nothing.
"""

from __future__ import annotations

from collections.abc import Iterator

from penstock.checks.rule import Remark
from penstock.checks.subject import Branch, Subject, forward_edges, is_dead_for_sure


def look(subject: Subject) -> Iterator[Remark]:
    """Nodes that never run."""
    ends = {node for request in subject.requests for node in request}
    for node in subject.order:
        branches = subject.branches[node]
        both = _both(branches)
        if both is not None and not any(
            _both(subject.branches[edge.src]) for edge in forward_edges(node)
        ):
            predicate = both[0]
            yield Remark(
                node,
                "can only be dead: it needs both sides of the Switches on "
                f"'{predicate.name}:{both[1]}', of which one is dead in every step",
                "join the branches by a Merge",
                (predicate,),
            )
        elif subject.is_request and node in ends:
            never = next(filter(is_dead_for_sure, branches), None)
            if never is not None:
                yield Remark(
                    node,
                    f"can only be dead: the predicate '{never[0].name}:{never[1]}' is the constant "
                    f"{not never[2]}",
                    "fetch the Merge behind the branch",
                    (never[0],),
                )


def _both(branches: frozenset[Branch]) -> Branch | None:
    """A branch whose other side is needed as well."""
    return next((b for b in branches if (b[0], b[1], 1 - b[2]) in branches), None)
