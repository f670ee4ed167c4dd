"""How the variables, tables and iterators of a graph get their first values.

In:   a graph, and what has no value yet.
Out:  the nodes to run: an initializer, or what restores a checkpoint and which tensor names it.
Not:  runs nothing; knows nodes by what they do, not by what they are called.

A GraphDef does not say which of its nodes initialize, so it is told from the graph.  The first
node that assigns to a variable is its initializer, unless what it assigns is restored.  A NoOp
that waits for initializers alone initializes all of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from penstock.graph.graph import Graph, Node

_ASSIGN: Final = frozenset({"Assign", "AssignVariableOp"})
#: The ops that make variables.
VARIABLES: Final = frozenset({"Variable", "VariableV2", "VarHandleOp"})
_RESTORE: Final = frozenset({"Restore", "RestoreSlice", "RestoreV2"})
#: The ops that initialize something else than variables, by what it is.
FILLERS: Final[Mapping[str, frozenset[str]]] = {
    "table": frozenset(
        {
            "InitializeTable",
            "InitializeTableFromDataset",
            "InitializeTableFromTextFile",
            "InitializeTableFromTextFileV2",
            "InitializeTableV2",
            "LookupTableImport",
            "LookupTableImportV2",
        }
    ),
    "iterator": frozenset({"MakeIterator"}),
}
#: Values are followed back over so many nodes that change only their form.
_MAX_STEPS: Final = 20


class Restorer(NamedTuple):
    """What restores variables from a checkpoint."""

    #: The node to run.
    node: str
    #: The tensor that names the checkpoint's files, such as ``save/Const:0``.
    prefix: str


def initializer_of(graph: Graph, kind: str, name: str = "") -> str | None:
    """The node that initializes something, and as much else as any node does; or None.

    Args:
        graph: the graph; the caller holds its lock.
        kind: ``variable``, ``table`` or ``iterator``.
        name: of a variable, that of its node or of its resource.

    """
    name = _variable_name(graph, name)
    firsts = _first_assignments(graph)
    fillers = [node for node in graph if any(node.op.name in ops for ops in FILLERS.values())]
    if kind == "variable":
        mine = {node for variable, node in firsts.items() if _is_called(variable, name)}
    else:
        mine = {node for node in fillers if node.op.name in FILLERS[kind]}
    found, _ = _largest(graph, mine, {*firsts.values(), *fillers})
    return None if found is None else found.name


def restorer_of(graph: Graph, name: str) -> Restorer | None:
    """What restores a variable, and as many others as any node does; or None.

    The caller holds the graph's lock.
    """
    name = _variable_name(graph, name)
    sources: dict[Node, Node] = {}
    mine: set[Node] = set()
    for node in graph:
        variable, source = _assigned(node), _restored_by(node)
        if variable is not None and source is not None:
            sources[node] = source
            if _is_called(variable, name):
                mine.add(node)
    found, run = _largest(graph, mine, set(sources))
    if found is None:
        return None
    # There may be several savers, each with a prefix of its own.
    prefix = _origin(sources[next(iter(mine & run))], 0)
    return None if prefix is None else Restorer(found.name, f"{prefix[0].name}:{prefix[1]}")


def _first_assignments(graph: Graph) -> dict[Node, Node]:
    """The initializer of each variable that has one."""
    firsts: dict[Node, Node] = {}
    for node in graph:
        variable = _assigned(node)
        if variable is not None and variable not in firsts and _restored_by(node) is None:
            firsts[variable] = node
    return firsts


def _assigned(node: Node) -> Node | None:
    """The variable that a node assigns to, if it does."""
    if node.op.name not in _ASSIGN:
        return None
    found = _origin(node, 0)
    return found[0] if found is not None and found[0].op.name in VARIABLES else None


def _restored_by(node: Node) -> Node | None:
    """The node that reads the value of an assignment from a checkpoint, if one does."""
    found = _origin(node, 1) if node.op.name in _ASSIGN else None
    return found[0] if found is not None and found[0].op.name in _RESTORE else None


def _origin(node: Node, slot: int) -> tuple[Node, int] | None:
    """Where an input comes from, past nodes that have only one input themselves."""
    for _ in range(_MAX_STEPS):
        edge = node.inputs[slot] if slot < len(node.inputs) else None
        if edge is None:
            return None
        if len(edge.src.inputs) != 1 or edge.src.op.name == "PlaceholderWithDefault":
            return edge.src, edge.src_slot
        node, slot = edge.src, 0
    return None


def _variable_name(graph: Graph, name: str) -> str:
    """The variable's name, if ``name`` is that of a node that hands on a reference to it."""
    node = graph.find(name)
    if node is None or node.op.name in VARIABLES:
        return name
    found = _origin(node, 0)
    return found[0].name if found is not None and found[0].op.name in VARIABLES else name


def _is_called(variable: Node, name: str) -> bool:
    shared: bytes = variable.attrs.get("shared_name", b"")
    return name in (variable.name, shared.decode("utf-8", "replace"))


def _largest(graph: Graph, mine: set[Node], all_: set[Node]) -> tuple[Node | None, frozenset[Node]]:
    """The node that runs one of ``mine``, and of ``all_`` the most, but nothing else.

    What it runs comes with it.
    """
    #: What each NoOp runs, if it is nothing else.  Sources come before what waits for them.
    run_by: dict[Node, frozenset[Node]] = {node: frozenset((node,)) for node in all_}
    for node in graph:
        sources = [edge.src for edge in node.control_inputs]
        if node.op.name == "NoOp" and sources and all(source in run_by for source in sources):
            run_by[node] = _union(run_by[source] for source in sources)
    covering = {node: len(runs) for node, runs in run_by.items() if runs & mine}
    largest = [node for node, size in covering.items() if size == max(covering.values())]
    # Of one around the other, the outer one is what its author meant to be run.
    inner = {edge.src for node in largest for edge in node.control_inputs}
    found = next((node for node in largest if node not in inner), None)
    return found, run_by[found] if found is not None else frozenset()


def _union(sets: Iterable[frozenset[Node]]) -> frozenset[Node]:
    return frozenset().union(*sets)
