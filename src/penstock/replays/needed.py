"""The part of a graph that one step needs, as a graph of its own.

In:   a GraphDef message; the names of what is fetched, run and fed.
Out:  another one, without the nodes that none of these depends on.
Not:  what is fed stays, and what it would depend on: the names of inputs must mean something.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from penstock.defs.schema import GraphDef, Message

_TOGETHER: Final = b"loc:@"


def needed(graph_def: Message, names: Iterable[str]) -> Message:
    """The part of a graph that endpoints and nodes of these names depend on."""
    nodes = {node.name: node for node in graph_def.node}
    found: set[str] = set()
    ahead = [name.partition(":")[0] for name in names]
    while ahead:
        name = ahead.pop()
        if name in nodes and name not in found:
            found.add(name)
            ahead += _asked_for(nodes[name])
    part = GraphDef(versions=graph_def.versions, library=graph_def.library)
    part.node.extend(node for node in graph_def.node if node.name in found)
    return part


def _asked_for(node: Message) -> Iterator[str]:
    """The nodes that a node names: as its inputs, or as those that it lies with."""
    for text in node.input:
        yield text.removeprefix("^").partition(":")[0]
    for text in node.attr["_class"].list.s if "_class" in node.attr else ():
        yield text.removeprefix(_TOGETHER).decode("utf-8", "replace")
