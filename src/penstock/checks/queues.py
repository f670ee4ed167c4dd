"""PS105: queues that nobody can ever fill, or that are full before anybody may take.

In:   a subject.
Out:  a remark for each node that waits for ever, whichever order nodes run in.
Not:  knows nothing of other sessions: a queue that others may share is left out.

All queues are taken to be empty at first, and every node of the graph that can put something in to
be run some time.  What then still waits, waits for ever.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Final

from penstock.checks.rule import Remark
from penstock.checks.subject import Before, Subject, hands_references_on, origin
from penstock.graph.graph import Node

_QUEUES: Final = frozenset(
    {
        *("FIFOQueue", "FIFOQueueV2", "RandomShuffleQueue", "RandomShuffleQueueV2"),
        *("PaddingFIFOQueue", "PaddingFIFOQueueV2", "PriorityQueue", "PriorityQueueV2"),
    }
)
_PUTS: Final = ("QueueEnqueue",)
_PUTS_ONE: Final = frozenset({"QueueEnqueue", "QueueEnqueueV2"})
_TAKES: Final = ("QueueDequeue",)
#: What makes waiting nodes go on with an error, or hands the queue to somebody unknown.
_ENDS: Final = ("QueueClose",)
_KNOWN: Final = (*_PUTS, *_TAKES, *_ENDS, "QueueSize", "QueueIsClosed")


def look(subject: Subject) -> Iterator[Remark]:
    """Nodes that wait for ever."""
    users = _users(subject)
    if not users:
        return
    before = subject.before([node for found in users.values() for node in found])
    yield from _never_filled(users, before)
    yield from _full_before(users, before)


def _users(subject: Subject) -> Mapping[Node, list[Node]]:
    """What puts into and takes from each queue that is this graph's alone."""
    found: dict[Node, list[Node]] = defaultdict(list)
    unknown: set[Node] = set()
    for node in subject.order:
        for edge in node.inputs:
            if edge is None:
                continue
            queue = origin(edge, hands_references_on).src
            if queue.op.name not in _QUEUES or hands_references_on(node):
                continue
            found[queue].append(node)
            if not node.op.name.startswith(_KNOWN) or node.op.name.startswith(_ENDS):
                unknown.add(queue)
    return {q: nodes for q, nodes in found.items() if q not in unknown and not _is_shared(q)}


def _is_shared(queue: Node) -> bool:
    name = queue.attrs.get("shared_name", b"")
    return bool(name) and name != queue.name.encode()


def _puts(node: Node) -> bool:
    return node.op.name.startswith(_PUTS)


def _takes(node: Node) -> bool:
    return node.op.name.startswith(_TAKES)


def _never_filled(users: Mapping[Node, list[Node]], before: Before) -> Iterator[Remark]:
    """What takes from queues into which nothing can come."""
    takes = {node: q for q, nodes in users.items() for node in nodes if _takes(node)}
    puts = {node: q for q, nodes in users.items() for node in nodes if _puts(node)}
    filled: set[Node] = set()
    while True:
        stuck = [node for node, queue in takes.items() if queue not in filled]
        more = {
            queue
            for node, queue in puts.items()
            if queue not in filled and not any(before.comes(take, node) for take in stuck)
        }
        if not more:
            break
        filled |= more
    for node, queue in takes.items():
        if queue not in filled:
            rivals = [put for put, filling in puts.items() if filling is queue]
            if rivals:
                why = f"all that fills it ('{rivals[0].name}') waits for something like this first"
            else:
                why = "nothing in the graph fills it"
            yield Remark(node, f"waits for ever for the queue '{queue.name}': {why}",
                         "fill the queue before something is taken", (queue, *rivals))  # fmt: skip


def _full_before(users: Mapping[Node, list[Node]], before: Before) -> Iterator[Remark]:
    """What puts into queues that are full before anything may be taken."""
    for queue, nodes in users.items():
        capacity = queue.attrs.get("capacity", -1)
        takes = [node for node in nodes if _takes(node)]
        puts = [node for node in nodes if node.op.name in _PUTS_ONE]
        if capacity <= 0 or not takes:
            continue
        first = [put for put in puts if all(before.comes(put, take) for take in takes)]
        if len(first) > capacity:
            yield Remark(
                first[-1],
                f"waits for ever for room in the queue '{queue.name}': {len(first)} values are put "
                f"into it before the first is taken, and it holds {capacity}",
                "make the queue larger, or take earlier",
                (queue, takes[0]),
            )
