"""A GraphDef: a graph, and nothing that says what it is for.

In:   the place of a file.
Out:  its graph, without signatures.
Not:  judges nothing; ``defs`` does.
"""

from __future__ import annotations

from penstock.defs.codec import load_graph_def, parse_graph_file
from penstock.defs.schema import MetaGraphDef
from penstock.formats.place import Place
from penstock.formats.stored_model import Companions, StoredModel


def read(place: Place) -> StoredModel:
    """The graph of a file.

    Raises:
        NotFoundError: there is no file.
        InvalidArgumentError: it is something else; the error says what, if that is known.

    """
    if place.content is None:
        graph_def = load_graph_def(place.path)
    else:
        graph_def = parse_graph_file(place.content, place.path)
    meta_graph = MetaGraphDef()
    meta_graph.graph_def.MergeFrom(graph_def)
    return StoredModel(
        what="a GraphDef",
        path=place.path,
        meta_graphs=[meta_graph],
        companions=Companions(files=(place.path,) if place.has_folder else ()),
    )
