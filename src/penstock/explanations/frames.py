"""In which loop a node is, and why.

In:   a question.
Out:  the frame with the way that leads into it; or the two ways that do not fit together.
Not:  knows no iterations.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

from penstock.checks.subject import forward_edges
from penstock.errors import OpError
from penstock.explanations.explanation import Fact, Topic
from penstock.explanations.request import Question
from penstock.graph.frames import Frame
from penstock.graph.graph import Graph, Node
from penstock.graph.roles import Role


def facts(question: Question) -> Iterator[Fact]:
    """The frame that it runs in."""
    flow = question.subject.flow
    if isinstance(flow, OpError):
        yield Fact(Topic.FRAME, flow.reason, is_trouble=True)
        yield from _ways_that_differ(question.lowered, flow.reason)
        return
    node = question.node_as_run
    frame = flow.frame_of.get(node.id) if node is not None else None
    if node is None or (frame is not None and frame.parent is None):
        return
    if frame is None:
        text = "no step ever reaches it: it waits for a loop that nothing enters, or for itself"
        yield Fact(Topic.FRAME, text, is_trouble=True)
        return
    yield Fact(Topic.FRAME, f"it is in {_nested(frame)}: {_shown(_way_in(node, frame.name))}")


def _nested(frame: Frame) -> str:
    """A loop, and those around it."""
    names = []
    at: Frame | None = frame
    while at is not None and at.parent is not None:
        names.append(f"the loop '{at.name}'")
        at = at.parent
    return " in ".join(names)


def _way_in(node: Node, name: str) -> list[Node]:
    """The shortest way from an Enter of a loop to a node; only the node if there is none."""
    after: dict[Node, Node | None] = {node: None}
    waiting = deque([node])
    while waiting:
        at = waiting.popleft()
        if at.role is Role.ENTER and at.attrs["frame_name"] == name.encode():
            way, step = [], after[at]
            way.append(at)
            while step is not None:
                way.append(step)
                step = after[step]
            return way
        for edge in forward_edges(at):
            # What an inner loop does is no way into this one.
            if edge.src not in after:
                after[edge.src] = at
                waiting.append(edge.src)
    return [node]


def _ways_that_differ(graph: Graph, reason: str) -> Iterator[Fact]:
    """How the inputs of the node that an error names come there."""
    node = graph.find(reason.partition("{{node ")[2].partition("}}")[0])
    if node is None:
        return
    for edge in node.in_edges():
        way = _back_to_border(edge.src)
        border = way[0]
        where = "the outside of all loops"
        if border.role is Role.ENTER:
            where = f"the loop '{border.attrs['frame_name'].decode('utf-8', 'replace')}'"
        elif border.role is Role.EXIT:
            where = "behind a loop"
        yield Fact(Topic.FRAME, f"from {where}: {_shown([*way, node])}", is_trouble=True)


def _back_to_border(node: Node) -> list[Node]:
    """The way to a node from the last border of a loop, or from a source."""
    way = [node]
    while way[-1].role not in (Role.ENTER, Role.EXIT):
        edge = next(forward_edges(way[-1]), None)
        if edge is None or edge.src in way:
            break
        way.append(edge.src)
    return way[::-1]


def _shown(way: list[Node]) -> str:
    return " → ".join(f"{node.name} ({node.op.name})" for node in way)
