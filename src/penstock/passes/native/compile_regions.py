"""Whole loops as single nodes, and regions of small arrays, for programs in C.

In:   a GraphRewriter.
Out:  the GraphRewriter, in which such regions are single nodes; how many nodes went.
Not:  writes no program, and knows no shapes: both is for the first steps.

A loop is always worth it; with it goes what it hands lists to, and what tells how long these are.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Any, Final

from penstock.core import dtypes
from penstock.core.values import size_in_bytes
from penstock.graph.graph import Graph, Node
from penstock.graph.roles import CONTROL_FLOW, Role
from penstock.kernels.native.array_rules import SIZES
from penstock.kernels.native.random_rules import RANDOM
from penstock.kernels.native.rules import TYPES, may_be_written
from penstock.kernels.native.traced_nodes import MAX_CONSTANT
from penstock.passes.graph_rewriter import GraphRewriter, value_of
from penstock.passes.native.find_loops import LoopForm, find_loops, outside
from penstock.passes.native.replace_loops import LOOP, replace_loops
from penstock.passes.offload.find_regions import find_regions, in_order
from penstock.passes.region_node import Output, listed, names_of, put_in_place, types_of

_OP: Final = "_NativeRegion"
#: What begins a TensorArray, and how the names of all ops begin that do something with one.
_ARRAY: Final = "TensorArrayV3"
_ARRAYS: Final = "TensorArray"
#: Nodes of which a program is made, at most.
_MAX_NODES: Final = 1000
#: Bytes of constants that programs have for themselves; others are read where they are.
_SMALL: Final = 1 << 16
#: What tells how long something is, and how often something is done.
_COUNTS: Final = frozenset({dtypes.bool_, dtypes.int32, dtypes.int64})
#: What may stand between nodes of a region: arrays, and what only such nodes understand.
_HIDDEN: Final = frozenset({dtypes.variant, dtypes.resource})


def possible_loops(graph: Graph) -> list[LoopForm]:
    """The innermost loops that may be for programs, as far as one can tell without a draft."""
    return list(find_loops(graph, _can_be_written))


def compile_regions(
    draft: GraphRewriter,
    loops: Iterable[LoopForm],
    min_nodes: int | None = None,
    *,
    goes_inside: bool = False,
    draws: bool = False,
) -> int:
    """Make single nodes of regions with loops, or of so many nodes; returns how many went.

    If that is none, the graph is of no further use.

    Args:
        draft: the graph.
        loops: what ``possible_loops`` finds in it, before anything is changed.
        min_nodes: of straight regions; None if there are to be none.
        goes_inside: whether loops in loops go, too; then they all must.
        draws: whether loops may draw random numbers.  Then there is one region at most: where a
            program does not know, text computes all anew, and what was drawn would be drawn twice.

    """
    arrays = _own_arrays(draft)

    def may_go(node: Node) -> bool:
        return _may_go(draft, node, arrays)

    def may_be_inside(node: Node) -> bool:
        return _can_be_written(node) if draws and node.op.name in RANDOM else may_go(node)

    replace_loops(
        draft, may_be_inside, lambda form, sure: _may_stand(form, sure, may_go, goes_inside), loops
    )
    _free_lists(draft, may_go)
    found = [
        part
        for part in _regions(draft, may_go, min_nodes)
        if ((min_nodes is not None and len(part) >= min_nodes) or _has_loops(part))
        and not _hides(part)
    ]
    if draws and len(found) > 1:
        return 0
    for part in found:
        _put_in_place(draft, [*_told_by_shapes(draft, part, may_go), *part], part)
    return 0 if _has_loops(draft.graph) else sum(map(len, found))


def _free_lists(draft: GraphRewriter, may_go: Callable[[Node], bool]) -> None:
    """Have nobody wait for what makes lists, as what is after a loop does for all that it reads.

    What is surely alive and only computes, nobody sees when it does.
    """
    for node in in_order(draft.graph):
        if not _HIDDEN.isdisjoint(node.output_types) and may_go(node):
            for edge in [edge for edge in node.out_edges if edge.is_control]:
                draft.graph.remove_edge(edge)


def _regions(
    draft: GraphRewriter, may_go: Callable[[Node], bool], min_nodes: int | None
) -> Sequence[Sequence[Node]]:
    """Regions; of loops and what belongs to them if that will do, and no others are wanted."""

    def may_go_along(node: Node) -> bool:
        return _belongs_to_loops(node) and may_go(node)

    if min_nodes is None:
        found = find_regions(draft, may_go_along, _is_free, late=True)
        if not any(_has_loops(nodes) and _hides(nodes) for nodes in found):
            return found
    return [
        part for nodes in find_regions(draft, may_go, _is_free, late=True) for part in _parts(nodes)
    ]


def _has_loops(nodes: Iterable[Node]) -> bool:
    return any(node.op.name == LOOP for node in nodes)


def _belongs_to_loops(node: Node) -> bool:
    """Whether a node is a loop, or hands it lists, or tells how long something is.

    Other work before and after a loop may be heavy, which is for kernels with threads.
    """
    types = {*node.input_types, *node.output_types}
    return node.op.name == LOOP or bool(types & _HIDDEN) or _COUNTS.issuperset(node.output_types)


def _parts(nodes: Sequence[Node]) -> Iterator[Sequence[Node]]:
    """Parts that do not take too long to compile; each needs only those before it."""
    for start in range(0, len(nodes), _MAX_NODES):
        yield nodes[start : start + _MAX_NODES]


def _is_free(_draft: GraphRewriter, node: Node) -> bool:
    is_awaited = any(edge.is_control for edge in node.out_edges)
    return not (node.control_inputs or is_awaited or node.role is Role.CONSTANT)


def _may_go(draft: GraphRewriter, node: Node, arrays: Collection[Node]) -> bool:
    """Whether a node can be a part of a program, and nobody sees whether it is a node."""
    if node.op.name == LOOP:
        return True
    if node.role is Role.CONSTANT:
        value = value_of(node)
        is_small = value is not None and size_in_bytes(value) <= MAX_CONSTANT
        return is_small and TYPES.issuperset(node.output_types)
    if not _can_be_written(node):
        return False
    if node in arrays:
        return True
    known = TYPES | _HIDDEN
    return (
        not node.op.name.startswith(_ARRAYS)
        and node.op.only_computes
        and not draft.is_root(node)
        and known.issuperset(node.input_types)
        and known.issuperset(node.output_types)
    )


def has_random_numbers(graph: Graph) -> bool:
    """Whether there are random numbers that programs can draw."""
    return any(node.op.name in RANDOM for node in graph)


def _can_be_written(node: Node) -> bool:
    """Whether there is a rule for such a node, which a constant needs none of."""
    types = node.input_types, node.output_types
    return node.role is Role.CONSTANT or may_be_written(node.op.name, node.attrs, *types)


def _may_stand(
    form: LoopForm,
    sure: Collection[Node],
    may_go: Callable[[Node], bool],
    goes_inside: bool,  # noqa: FBT001
) -> bool:
    """Whether all that a loop reads is alive, and lists come from where they can come along.

    In a loop that goes as well, all is alive or nothing.
    """
    if len(form.cond) + len(form.body) > _MAX_NODES:
        return False
    if not goes_inside and not all(node in sure for node in form.awaited):
        return False  # it may be dead, whatever it reads
    for edge in outside(form):
        is_hidden = edge.src.output_types[edge.src_slot] in _HIDDEN
        if is_hidden and not may_go(edge.src) and not (goes_inside and edge.src not in sure):
            return False
        if edge.src not in sure and not goes_inside:
            return False
    ends = [(v.exit, v.exit.output_types[0]) for v in form.variables if v.exit is not None]
    return all(
        may_go(edge.dst) or goes_inside
        for node, dtype in ends
        if dtype in _HIDDEN
        for edge in node.out_edges
        if edge.dst.role is not Role.ENTER and not edge.is_control
    )


def _hides(nodes: Sequence[Node]) -> bool:
    """Whether what only nodes of a region understand crosses its border."""
    inside = set(nodes)
    crossing = [edge for node in nodes for edge in node.in_edges() if edge.src not in inside]
    crossing += [edge for node in nodes for edge in node.out_edges if edge.dst not in inside]
    return any(edge.src.output_types[edge.src_slot] not in TYPES for edge in crossing)


def _own_arrays(draft: GraphRewriter) -> set[Node]:
    """All nodes that do something with TensorArrays of which every use can be written."""
    found: set[Node] = set()
    for node in draft.graph:
        if node.op.name == _ARRAY:
            users = _users(node)
            if users is not None:
                found |= {node, *users}
    return found


def _users(array: Node) -> set[Node] | None:
    """What gets the handle of an array; None if not all of it can be written."""
    users: set[Node] = set()
    waiting, seen = [array], {array}
    if not _can_be_written(array):
        return None
    for node in waiting:  # grows
        for edge in node.out_edges:
            dst = edge.dst
            if edge.is_control or dst in seen or (node is array and edge.src_slot != 0):
                continue
            seen.add(dst)
            if dst.role in CONTROL_FLOW or dst.role is Role.IDENTITY:
                waiting.append(dst)
            elif dst.op.name.startswith(_ARRAYS) and _can_be_written(dst):
                users.add(dst)
            else:
                return None
    return users


def _told_by_shapes(
    draft: GraphRewriter, nodes: Sequence[Node], may_go: Callable[[Node], bool]
) -> list[Node]:
    """What a region reads, directly or not, and shapes tell, of which it knows more than values.

    A size is known while a program is written, and with it how long a list is.  Others may need it
    before they have the region run, so that it cannot go: the region computes it again.
    """
    inside = set(nodes)
    read = [edge.src for node in nodes for edge in node.in_edges() if edge.src not in inside]
    if not any(src.op.name != "Const" and _COUNTS.issuperset(src.output_types) for src in read):
        return []
    told: set[Node] = set()
    order = [node for node in in_order(draft.graph) if node not in inside]
    for node in order:
        if _COUNTS.issuperset(node.output_types) and may_go(node) and _is_free(draft, node):
            srcs = [edge.src for edge in node.in_edges() if edge.src.role is not Role.CONSTANT]
            if node.op.name in SIZES or (srcs and told.issuperset(srcs)):
                told.add(node)
    wanted = set(read) & told
    for node in reversed(order):
        if node in wanted:
            wanted.update(edge.src for edge in node.in_edges() if edge.src in told)
    return [node for node in order if node in wanted]


def _put_in_place(draft: GraphRewriter, computed: Sequence[Node], nodes: Sequence[Node]) -> None:
    """One node, under the name of the last of the region that others read.

    Args:
        draft: the graph.
        computed: what the new node computes.
        nodes: those of it whose place it takes.

    """
    inside = set(nodes)
    gives = {
        (node, edge.src_slot): None
        for node in nodes
        for edge in node.out_edges
        if edge.dst not in inside
    }
    if not gives:
        return
    constants: dict[Node, None] = {}
    reads: dict[Output, None] = {}
    known = set(computed)
    for edge in (edge for node in computed for edge in node.in_edges() if edge.src not in known):
        value = value_of(edge.src)
        if value is not None and size_in_bytes(value) <= _SMALL:
            constants[edge.src] = None
        else:
            reads[edge.src, edge.src_slot] = None
    attrs = _attrs([*constants, *computed], list(reads), list(gives))
    draft.release(nodes)
    made = draft.take_name(next(reversed(gives))[0], _OP, attrs)
    put_in_place(draft, nodes, made, reads, gives)


def _attrs(
    nodes: Sequence[Node], reads: Sequence[Output], gives: Sequence[Output]
) -> dict[str, Any]:
    return {
        "Tin": types_of(reads),
        "Tout": types_of(gives),
        "nodes": listed(nodes),
        "reads": names_of(reads),
        "gives": names_of(gives),
    }
