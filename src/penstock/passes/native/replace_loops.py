"""Loops as single nodes.

In:   a GraphRewriter; which nodes may be in such a loop.
Out:  the GraphRewriter, with one ``_NativeLoop`` instead of each loop; innermost loops first, so
      that loops around them can go, too.
Not:  decides nothing about regions.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any, Final

from penstock.core.names import Endpoint
from penstock.defs.schema import GraphDef
from penstock.graph.export import node_to_def
from penstock.graph.graph import Edge, Node
from penstock.graph.roles import Role
from penstock.passes.graph_rewriter import GraphRewriter
from penstock.passes.native.find_loops import LoopForm, find_loops, outside
from penstock.passes.offload.find_regions import in_order

#: The op of a loop.
LOOP: Final = "_NativeLoop"


def replace_loops(
    draft: GraphRewriter,
    may_go: Callable[[Node], bool],
    may_stand: Callable[[LoopForm, Collection[Node]], bool],
    found: Iterable[LoopForm],
) -> int:
    """Make single nodes of loops; returns how many.

    Args:
        draft: the graph.
        may_go: whether a node may be in such a loop.
        may_stand: whether a loop may become a node, told the nodes that are surely alive.
        found: the innermost loops, if more nodes may be in such a loop.

    """
    count = 0
    candidates = [form for form in found if all(map(may_go, [*form.cond, *form.body]))]
    while True:
        forms = [form for form in candidates if _may_be_one(draft, form)]
        sure = set(in_order(draft.graph)) if forms else set()
        going = [form for form in forms if may_stand(form, sure)]
        for form in going:
            _replace(draft, form, sure)
        if not going:
            return count
        # All at once: whoever fed many of them, as a constant does, is asked but once who is left.
        draft.discard([node for form in going for node in form.nodes()])
        if any(form.awaited for form in going):
            draft.drop_unused()  # what only had loops wait
        count += len(going)
        candidates = list(find_loops(draft.graph, may_go))


def _may_be_one(draft: GraphRewriter, form: LoopForm) -> bool:
    """Whether a loop lies on one device."""
    return len({draft.device(node) for node in form.nodes()}) == 1


def _replace(draft: GraphRewriter, form: LoopForm, sure: Collection[Node]) -> None:
    """A node instead of a loop, whose own nodes nothing outside reads any more.

    It waits for what may be dead, and whoever waits for it does if it may be; else nobody waits,
    since nobody sees when it computes.
    """
    edges = outside(form)
    # Whoever hears of it knows where to look.
    like = next((v.exit for v in form.variables if v.exit is not None), form.variables[0].merge)
    made = draft.add(like, f"{like.name}/loop", LOOP, _attrs(form, edges))
    for slot, edge in enumerate(edges):
        draft.graph.add_edge(edge.src, edge.src_slot, made, slot)
    doubtful = [node for node in form.awaited if node not in sure]
    draft.graph.add_control_edges(doubtful, made)
    moves: dict[Node, Any] = {}
    for slot, variable in enumerate(form.variables):
        if variable.exit is not None:
            moves[variable.exit] = [(made, slot)]
    draft.release([node for node in form.nodes() if node not in moves])
    draft.graph.redirect(moves)
    if not doubtful and all(edge.src in sure for edge in edges):
        for edge in [edge for edge in made.out_edges if edge.is_control]:
            draft.graph.remove_edge(edge)


def _attrs(form: LoopForm, edges: Sequence[Edge]) -> dict[str, Any]:
    merges = {v.switch.name: v.merge.name for v in form.variables}
    reads = [v.merge for v in form.variables] + form.fixed
    needed = _needed(form)
    types = [edge.src.output_types[edge.src_slot] for edge in edges]
    ends = [_read(v.next_iteration.input(0), merges) for v in form.variables]
    return {
        "Tin": tuple(types),
        "Tout": tuple(types[: len(form.variables)]),
        "cond": _listed(form.cond, merges),
        "body": _listed([*needed, *form.body], merges),
        "reads": tuple(node.name.encode() for node in reads),
        "test": _read(form.test.input(0), merges).encode(),
        "gives": tuple(end.encode() for end in ends),
        "frame": form.name.encode(),
    }


def _needed(form: LoopForm) -> list[Node]:
    """What the body needs of that from which the condition is computed."""
    own, found = set(form.cond), set[Node]()
    ends = [v.next_iteration for v in form.variables]
    waiting = [*form.body, *ends]
    for node in waiting:  # grows
        for edge in node.inputs:
            if edge is not None and edge.src in own and edge.src not in found:
                found.add(edge.src)
                waiting.append(edge.src)
    return [node for node in form.cond if node in found]


def _listed(nodes: Sequence[Node], merges: dict[str, str]) -> bytes:
    """Nodes as a GraphDef, in which a variable has one name, and nothing waits."""
    graph = GraphDef()
    for node in nodes:
        proto = node_to_def(node, "")
        del proto.input[:]
        proto.input.extend(_read(edge, merges) for edge in node.inputs if edge is not None)
        graph.node.append(proto)
    content: bytes = graph.SerializeToString(deterministic=True)
    return content


def _read(edge: Edge, merges: dict[str, str]) -> str:
    if edge.src.role is Role.SWITCH:
        return merges[edge.src.name]
    return str(Endpoint(edge.src.name, edge.src_slot))
