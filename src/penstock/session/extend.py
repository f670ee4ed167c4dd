"""Let the graph of a session grow.

In:   the graph, and a GraphDef in any form, of new nodes, which may read and wait for those that
      are there.
Out:  the same graph, with the nodes.
Not:  prepares and runs nothing; what was prepared for the smaller graph stays good.

Functions are added first, and stay if nodes turn out to be wrong.  A function may come again,
a node may not, however equal it is.  The graph is then of the version of its last extension,
whichever that is.
"""

from __future__ import annotations

from typing import Any

from penstock.core.names import parse_endpoint
from penstock.defs.codec import load_apart
from penstock.defs.large_contents import LargeContents
from penstock.defs.schema import Message
from penstock.errors import FailedPreconditionError, InvalidArgumentError
from penstock.graph.graph import Graph, Versions
from penstock.graph.import_graph_def import import_graph_def
from penstock.graph.import_options import ImportOptions


def extend(graph: Graph, graph_def: Any, *, is_final: bool) -> None:
    """Add a GraphDef to the graph of a session; ``is_final`` is what its configuration says.

    Raises:
        InvalidArgumentError: a node is there already, or the definition is wrong.
        NotFoundError: an op is neither in the catalogue nor in the library.
        FailedPreconditionError: the graph is final.

    """
    if is_final:
        raise FailedPreconditionError(
            "Extending the graph is not supported when optimize_for_static_graph is true."
        )
    proto, contents = load_apart(graph_def)
    with graph.lock:
        _extend(graph, proto, contents)


def _extend(graph: Graph, graph_def: Message, contents: LargeContents) -> None:
    graph.library.add_library(graph_def.library)
    for node in graph_def.node:
        if node.name in graph:
            raise InvalidArgumentError(
                f"GraphDef argument to Extend includes node '{node.name}', which was created "
                "by a previous call to Create or Extend in this session.",
                next_step="extend by the nodes that are new, and by these alone",
            )
    if not graph_def.node:
        return
    import_graph_def(graph, graph_def, _options(graph, graph_def, contents))
    new = graph_def.versions
    graph.versions = Versions(new.producer, new.min_consumer, tuple(new.bad_consumers))


def _options(graph: Graph, graph_def: Message, contents: LargeContents) -> ImportOptions:
    """Options that let new nodes take inputs from those that are there already."""
    input_map: dict[str, str] = {}
    for node in graph_def.node:
        for text in node.input:
            name, slot = parse_endpoint(text)
            if name in graph:
                input_map[text] = text if slot < 0 else f"{name}:{slot}"
    return ImportOptions(contents=contents, input_map=input_map, validate_colocation=False)
