"""Who needs a node, and whether it can run at all.

In:   a question.
Out:  the way from the node to what is fetched; or that there is none, or that nothing computes it.
Not:  knows no values: whether it is dead, others say.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator

from penstock.defs.attrs import FuncAttr
from penstock.explanations.explanation import Fact, Topic
from penstock.explanations.request import Question
from penstock.graph.graph import Edge, Graph, Node
from penstock.kernels.api.registry import kernels_of, no_kernel_error

#: A way of more nodes is not shown whole.
_SHOWN = 8


def facts(question: Question) -> Iterator[Fact]:
    """Whether it runs, and for whom."""
    yield from _kernel(question.node, question.graph)
    wanted, fed = question.ends
    if any(node is question.node for node, _ in fed):
        yield Fact(Topic.RUNS, "it is fed, and so never computed")
        return
    way = _way(question.node, wanted, fed)
    if way is None:
        asked = ", ".join([*question.request.fetches, *question.request.targets][:_SHOWN])
        text = f"pruned: nothing that is asked for ({asked}) depends on it"
        yield Fact(Topic.RUNS, text, is_trouble=True)
    elif len(way) == 1:
        yield Fact(Topic.RUNS, "it is asked for")
    else:
        yield Fact(Topic.RUNS, f"needed: {_shown(way)}")


def _kernel(node: Node, graph: Graph) -> Iterator[Fact]:
    if not node.op.is_function and not kernels_of(node.op.name):
        reason = no_kernel_error(node.op.name, node.attrs).reason
        yield Fact(Topic.RUNS, f"it cannot run: {reason}", is_trouble=True)
    for name in _called(node):
        missing = [
            body.name
            for body in (graph.library.get(name).node_def if name in graph.library else ())
            if body.op not in graph.library and not kernels_of(body.op)
        ]
        if missing:
            text = f"the function '{name}' cannot run: nothing computes '{missing[0]}' of its body"
            yield Fact(Topic.RUNS, text, is_trouble=True)


def _called(node: Node) -> Iterator[str]:
    """The functions that a node names."""
    if node.op.is_function:
        yield node.op.name
    for value in dict(node.attrs).values():
        if isinstance(value, FuncAttr):
            yield value.name


def _way(node: Node, wanted: Iterable[Node], fed: set[tuple[Node, int]]) -> list[Node] | None:
    """The shortest way from a node to something that is asked for."""
    ends = set(wanted)
    before: dict[Node, Node | None] = {node: None}
    waiting = deque([node])
    while waiting:
        at = waiting.popleft()
        if at in ends:
            return _back(at, before)
        for edge in at.out_edges:
            if edge.dst not in before and not _is_cut(edge, fed):
                before[edge.dst] = at
                waiting.append(edge.dst)
    return None


def _is_cut(edge: Edge, fed: set[tuple[Node, int]]) -> bool:
    return not edge.is_control and (edge.src, edge.src_slot) in fed


def _back(end: Node, before: dict[Node, Node | None]) -> list[Node]:
    way: list[Node] = []
    at: Node | None = end
    while at is not None:
        way.append(at)
        at = before[at]
    return way[::-1]


def _shown(way: list[Node]) -> str:
    names = [node.name for node in way]
    if len(names) > _SHOWN:
        names = [*names[: _SHOWN // 2], f"… {len(names) - _SHOWN} more …", *names[-_SHOWN // 2 :]]
    return " → ".join(names)
