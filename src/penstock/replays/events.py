"""What is noted of a step: which node took effect when, and what it gave.

In:   runs of nodes, as executors have them, and digests of outcomes.
Out:  ``Event``; its text for people; all of it as a tree.
Not:  keeps no values.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from penstock.core import trees
from penstock.core.trees import Tree
from penstock.printable import printable
from penstock.state.step_order import NodeRun

#: The digest of what has none: a node that begins.
NONE: Final = 0


class Event(NamedTuple):
    """A node begins, or what it gave travels."""

    node_run: NodeRun
    is_end: bool
    #: Tells outcomes apart; of what ends alone.
    digest: int = NONE

    def __str__(self) -> str:
        return f"{named(self.node_run)} {'ends' if self.is_end else 'begins'}"


def named(node_run: NodeRun) -> str:
    """A run of a node, for people: ``loop/add in while_1[3]``."""
    name = printable(node_run.node)
    if node_run.frame:
        loop = printable(node_run.frame.rpartition(";")[2])
        name += f" in {loop}[{node_run.iteration}]"
    return name + (f" of executor {node_run.executor}" if node_run.executor else "")


# -- as a tree -------------------------------------------------------------------------------------


def as_tree(events: Iterable[Event]) -> Tree:
    """Events as a tree, in which each run of a node stands once."""
    numbers: dict[NodeRun, int] = {}
    rows: list[Tree] = []
    for event in events:
        number = numbers.setdefault(event.node_run, len(numbers))
        rows.append((number, event.digest if event.is_end else None))
    return tuple(map(tuple, numbers)), tuple(rows)


def of_tree(tree: Tree) -> tuple[Event, ...]:
    """The events that a tree has; raises ValueError if it has none."""
    node_runs, rows = trees.parts(tree, 2)
    known = [_node_run(one) for one in trees.listed(node_runs)]
    return tuple(_event(row, known) for row in trees.listed(rows))


def _node_run(tree: Tree) -> NodeRun:
    executor, node, frame, iteration = trees.parts(tree, 4)
    return NodeRun(
        trees.number(executor), trees.text(node), trees.text(frame), trees.number(iteration)
    )


def _event(tree: Tree, known: list[NodeRun]) -> Event:
    number, digest = trees.parts(tree, 2)
    node_run = known[trees.number(number)]
    return Event(node_run, digest is not None, NONE if digest is None else trees.number(digest))
